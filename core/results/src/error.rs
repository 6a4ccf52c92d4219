//! Why a result can't be made, or a folder of unfinished work can't be read.

use std::io;
use std::path::{Path, PathBuf};

use crate::output::OutputError;
use crate::pipeline::JournalError;
use crate::unfinished::{TargetError, WorkError};

/// The errors of this crate. They carry what was found; the programs above make the sentences, which name flags and
/// remedies.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The system refused something that was done to a path.
    #[error("{}: {error}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system's error, which does not name it.
        error: io::Error,
    },
    /// The system refused something, and the error names the file itself.
    #[error(transparent)]
    Named(io::Error),
    /// A file of the engine can't be read or written, or is damaged.
    #[error(transparent)]
    Sort(#[from] merganser_sort::Error),
    /// The journal of a pipeline can't be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No result can have this name.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The folder of unfinished work can't be used, or the result can't get its name.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// The output can't be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Another run writes the report at this path.
    #[error("{}: another run writes it now", .0.display())]
    BusyReport(PathBuf),
}

impl ResultsError {
    /// An error on `path`, as the system tells it.
    pub(crate) fn on(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |error| ResultsError::File { path: path.to_owned(), error }
    }
}
