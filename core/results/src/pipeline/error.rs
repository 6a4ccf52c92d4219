//! Why a journal can't be read.

use std::io;
use std::path::PathBuf;

/// The errors of a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Its content is damaged, or of another version.
    #[error(transparent)]
    Content(#[from] merganser_sort::Error),
    /// The system refused to read it.
    #[error("{}: {error}", path.display())]
    File {
        /// The journal.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl JournalError {
    /// An error of a file.
    pub(super) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| JournalError::File { path, error }
    }
}
