//! The errors of a pipeline.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use merganser_results::pipeline::{JournalError, PARTITIONS_MAX};

use super::template::TemplateError;

/// The errors of a pipeline. The texts name no flags.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// An input or a decompressor failed.
    #[error(transparent)]
    Engine(#[from] merganser_sort::Error),
    /// Settings that can't be.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A file of the work folder failed.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A stage or the merge failed each time that it was tried.
    #[error(transparent)]
    Stage(Box<StageFailure>),
    /// The work folder needs more than its limit.
    #[error(
        "{who} brought the work folder to {used_bytes} bytes, more than its limit of {limit_bytes}"
    )]
    TempLimit {
        /// What needed the space.
        who: String,
        /// Bytes of the folder, or bytes that it would have.
        used_bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// The journal belongs to other work.
    #[error("{what}")]
    Changed {
        /// The difference, in words.
        what: String,
    },
    /// An input has other content than when it was read before.
    #[error(
        "{input}: was changed while the pipeline ran; its partitions are no longer the input's"
    )]
    InputChanged {
        /// The input's name.
        input: String,
    },
    /// More partitions than can be numbered.
    #[error("more than {max} partitions; make them larger")]
    TooMany {
        /// The most.
        max: u32,
    },
    /// An input without a size, where a size is needed.
    #[error(
        "{input}: has no size before it is read, so it can't be divided into a number of partitions"
    )]
    NoSize {
        /// The input's name.
        input: String,
    },
    /// The end was asked for.
    #[error("cancelled")]
    Cancelled,
}

/// A command that failed.
#[derive(Debug, thiserror::Error)]
#[error("{who} {ended}; it wrote: {said}")]
pub struct StageFailure {
    /// The stage and the partition, or the merge.
    pub who: String,
    /// How the last attempt ended.
    pub ended: CommandEnding,
    /// How often it was tried.
    pub attempts: u32,
    /// The last lines that it wrote to standard error.
    pub said: String,
    /// The file with all that was kept of its standard error.
    pub log: Option<PathBuf>,
    /// Whether the disk of the work folder was full when it failed.
    pub disk_full: bool,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandEnding {
    /// With a status other than 0.
    #[error("ended with status {0}")]
    Status(i32),
    /// By a signal.
    #[error("was killed by signal {0}")]
    Signal(i32),
    /// It took too long and was ended.
    #[error("was ended after its time limit of {} s", .0.as_secs_f64())]
    TimeLimit(Duration),
    /// It was successful and did not write what its command says.
    #[error("ended with status 0 but wrote no {0}")]
    NoOutput(&'static str),
    /// It could not be started.
    #[error("could not be started: {0}")]
    NotStarted(String),
}

impl From<JournalError> for PipelineError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Content(error) => PipelineError::Engine(error),
            JournalError::File { path, error } => PipelineError::File { path, error },
        }
    }
}

impl PipelineError {
    /// An error of a file.
    pub(super) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| PipelineError::File { path, error }
    }

    /// Whether a disk is full.
    #[must_use]
    pub fn is_full_disk(&self) -> bool {
        match self {
            PipelineError::File { error, .. } => is_full(error),
            PipelineError::Stage(failure) => failure.disk_full,
            _ => false,
        }
    }
}

/// Whether this error says that there is no space.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Settings that can't be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Nothing to do.
    #[error("a pipeline has at least one stage")]
    NoStage,
    /// A name that is part of the names of files.
    #[error("'{0}' is no name: up to 32 letters, digits, '-' and '_'")]
    Name(String),
    /// These names have a meaning of their own.
    #[error("'{0}' can't be the name of a stage; take another one")]
    Reserved(String),
    /// Two stages of one name.
    #[error("two stages have the name '{0}'")]
    Twice(String),
    /// A pool that is not there.
    #[error("the stage '{stage}' is in the pool '{pool}', which has no threads")]
    NoPool {
        /// The stage.
        stage: String,
        /// Its pool.
        pool: String,
    },
    /// A command that can't be.
    #[error("the stage '{stage}': {error}")]
    Command {
        /// The stage.
        stage: String,
        /// The fault.
        error: TemplateError,
    },
    /// A merge that can't be.
    #[error("the merge: {0}")]
    Merge(TemplateError),
    /// The last stage has no result that can be merged.
    #[error(
        "the last stage, '{0}', writes a folder, which can't be merged; let it write {{out}}, or print its result"
    )]
    LastWritesFolder(String),
    /// A number of partitions that can't be.
    #[error("the number of partitions is 1 to {}", PARTITIONS_MAX)]
    Count,
    /// Nothing would ever be cut.
    #[error("a partition has at least 1 byte")]
    Bytes,
}
