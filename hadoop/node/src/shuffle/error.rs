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
        reason: SpillRefusal,
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
    #[error("busy: {shortage}; come again")]
    Busy {
        /// The thing that is used up.
        shortage: Shortage,
    },
    /// The merge failed before, and reported it then.
    #[error("this merge has failed and gives nothing more")]
    Failed,
}

/// Why a spill may not be read.
#[derive(Debug, thiserror::Error)]
pub enum SpillRefusal {
    /// The path is relative, or goes up.
    #[error("a spill's path is absolute and has no .. in it")]
    Path,
    /// The path holds a NUL.
    #[error("a spill's path has no NUL in it")]
    Nul,
    /// The file is in none of the server's local folders.
    #[error("it is below none of the folders for spills")]
    Outside,
    /// The path leads through a symbolic link, or through a file.
    #[error("on the way to it, below the folder for spills, is a link or what is no folder")]
    Link,
    /// It is a folder, a pipe, a device.
    #[error("it is no regular file")]
    NotRegular,
    /// The system refuses it.
    #[error("{0}")]
    System(io::Error),
}

impl From<SpillRefusal> for io::Error {
    fn from(refusal: SpillRefusal) -> Self {
        io::Error::new(io::ErrorKind::PermissionDenied, refusal)
    }
}

/// What a merge, or a client, must wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Shortage {
    /// As many merges run as may run at once.
    #[error("all {max} merges are taken")]
    Merges {
        /// How many may run.
        max: u32,
    },
    /// The merges that run leave too little memory.
    #[error("{wanted} bytes more than the {taken} of {max} in use")]
    Memory {
        /// Bytes that this merge wants.
        wanted: u64,
        /// Bytes that others have.
        taken: u64,
        /// Bytes that there are.
        max: u64,
    },
    /// As many clients are connected as may be at once.
    #[error("all {max} connections are in use")]
    Connections {
        /// How many may be connected.
        max: usize,
    },
    /// Descriptors ran out.
    #[error("no more files can be opened")]
    Files,
}

/// The results of a merge.
pub type ShuffleResult<T, E = ShuffleError> = Result<T, E>;
