//! Why a merge can't be.

use std::io;
use std::path::PathBuf;

/// Everything that can go wrong between spills and the merged segment. The texts are whole sentences.
#[derive(Debug, thiserror::Error)]
pub enum ShuffleError {
    /// There is no such file.
    #[error("{}: the spill is not there", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file may not be read, by the rules of this server or of the system.
    #[error("{}: {reason}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The system failed to read.
    #[error("{}: reading at byte {offset}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The bytes are not those of a sorted segment as it was described.
    #[error("{}: damaged at byte {offset}: {detail}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// The bytes that were found and those that were expected.
        detail: String,
    },
    /// The memory cannot hold what is needed.
    #[error("{given} bytes of memory are too few for this merge: at least {needed} are needed")]
    Memory {
        /// The least that would do.
        needed: u64,
        /// The memory that was given.
        given: u64,
    },
    /// The next record is larger than the output that whole records were asked for. Nothing is lost:
    /// a larger output gets it.
    #[error("the next record has {needed} bytes, more than there is room for")]
    Output {
        /// Bytes of the record.
        needed: u64,
    },
    /// Too much is going on to begin another merge now.
    #[error("busy: {why}; come again")]
    Busy {
        /// The thing that there is too much of.
        why: String,
    },
    /// The merge failed before, and reported it then.
    #[error("this merge has failed and gives nothing more")]
    Failed,
}

/// The results of a merge.
pub type Result<T, E = ShuffleError> = std::result::Result<T, E>;
