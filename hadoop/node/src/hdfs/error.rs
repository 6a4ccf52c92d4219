//! Why a map is refused or fails.

use std::collections::TryReserveError;
use std::fmt;
use std::io;

use merganser_map::ssdlet::Sha256;

/// A block, as HDFS names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HdfsBlock {
    /// Its number.
    pub id: i64,
    /// Its generation stamp, which changes when it is written again.
    pub generation: i64,
}

impl fmt::Display for HdfsBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blk_{}_{}", self.id, self.generation)
    }
}

/// Everything that can keep a map from being done here. The texts are whole sentences.
#[derive(Debug, thiserror::Error)]
pub enum HdfsError {
    /// Too much is going on.
    #[error("busy: {what}")]
    Busy {
        /// The thing that is used up.
        what: String,
    },
    /// There is no such SSDlet for map tasks.
    #[error("there is no SSDlet {name} for map tasks")]
    Ssdlet {
        /// Its name.
        name: String,
    },
    /// The SSDlet that the job brings is not here yet, or not any more.
    #[error("there is no SSDlet with the SHA-256 {} here", hex(sha256))]
    Absent {
        /// SHA-256 of its module.
        sha256: Sha256,
    },
    /// No job may bring an SSDlet.
    #[error("this node takes no SSDlets from jobs")]
    Uploads,
    /// A module that a job brings is no SSDlet, or wants more than it may have.
    #[error("{detail}")]
    Module {
        /// Why.
        detail: String,
    },
    /// The SSDlet that the job brings failed.
    #[error("{detail}")]
    Program {
        /// Its name, and how.
        detail: String,
    },
    /// The SSDlet does not take these arguments.
    #[error("{ssdlet}: {detail}")]
    Arguments {
        /// Its name.
        ssdlet: String,
        /// The reason.
        detail: String,
    },
    /// The SSDlet gives something else than the job expects.
    #[error("{ssdlet}: {detail}")]
    Types {
        /// Its name.
        ssdlet: String,
        /// The types that it gives, and those that were asked for.
        detail: String,
    },
    /// No folder has the block as a finalized replica that may be read.
    #[error("{block}: {detail}")]
    Replica {
        /// The block.
        block: HdfsBlock,
        /// Why not.
        detail: String,
    },
    /// The replica is of another generation.
    #[error("{block}: the replica here has the generation stamp {found}")]
    Generation {
        /// The block that was asked for.
        block: HdfsBlock,
        /// The stamp that was found.
        found: i64,
    },
    /// The replica has another length.
    #[error("{block}: the replica here has {found} bytes, not {expected}")]
    Length {
        /// The block.
        block: HdfsBlock,
        /// Its length as the NameNode knows it.
        expected: u64,
        /// The length of the file.
        found: u64,
    },
    /// Hadoop's own reader gives other records for this delimiter when its buffer has another size.
    #[error(
        "records depend on the size of Hadoop's buffer: a beginning of the delimiter occurs again inside it, \
         or it has several bytes and records have a limit"
    )]
    Delimiter,
    /// The memory is too small.
    #[error("{given} bytes of memory are too few for this map: at least {needed} are needed")]
    Memory {
        /// The least that works.
        needed: u64,
        /// The memory that was granted.
        given: u64,
    },
    /// The checksums of the block are of a kind that is not known here.
    #[error("{block}: {detail}")]
    Checksum {
        /// The block.
        block: HdfsBlock,
        /// The kind.
        detail: String,
    },
    /// Bytes of the block, or of its checksums, are not those that were written.
    #[error("{block}: damaged at byte {offset}: {detail}")]
    Damaged {
        /// The block.
        block: HdfsBlock,
        /// Where in it.
        offset: u64,
        /// The bytes that were found and those that were expected.
        detail: String,
    },
    /// The system failed to read.
    #[error("{block}: reading at byte {offset}: {source}")]
    Io {
        /// The block.
        block: HdfsBlock,
        /// Where in it.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// A record, or a row that the SSDlet hands out, is longer than the memory holds.
    #[error("at byte {offset} of the file: {detail}")]
    Record {
        /// Where in the file, about.
        offset: u64,
        /// The thing that is too long.
        detail: String,
    },
    /// The bytes behind the split, which the task sent, do not hold the end of the last record.
    #[error(
        "the {bytes} bytes that were sent from byte {end} on do not hold the end of the last record"
    )]
    Tail {
        /// Where the split ends in the file.
        end: u64,
        /// Bytes that were sent.
        bytes: u64,
    },
    /// The client does not want the rest.
    #[error("the client is gone")]
    Gone,
}

/// The results of a map.
pub type HdfsResult<T, E = HdfsError> = Result<T, E>;

impl From<TryReserveError> for HdfsError {
    /// Of memory that was granted.
    fn from(_: TryReserveError) -> Self {
        HdfsError::Busy { what: "the system has no memory".to_owned() }
    }
}

impl From<merganser_sort::Error> for HdfsError {
    /// Of a budget.
    fn from(error: merganser_sort::Error) -> Self {
        HdfsError::Busy { what: error.to_string() }
    }
}

/// In hexadecimal digits.
pub(super) fn hex(sha256: &Sha256) -> String {
    sha256.iter().map(|byte| format!("{byte:02x}")).collect()
}
