//! The errors of object stores.

use std::path::PathBuf;

use merganser_results::ResultsError;

/// An error of an object store, or of what is noted of its uploads. Its sentence names the object, and no credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectsError {
    /// An address that can't be one.
    #[error("{shown}: {why}")]
    Address {
        /// The address, as far as it may be shown.
        shown: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Settings with which no store can be reached.
    #[error("{name}: {why}")]
    Settings {
        /// The object or the bucket.
        name: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A store that failed, or refused.
    #[error("{name}: {why}")]
    Store {
        /// The object or the folder.
        name: String,
        /// The reason, and what to do.
        why: String,
    },
    /// There is no table.
    #[error("{name}: has no objects of tables (.parquet, .arrow, .feather, .ipc, .arrows)")]
    NoTables {
        /// The folder or pattern.
        name: String,
    },
    /// A folder that a result wants, and that has objects.
    #[error("{name}: has objects already, and stores can't replace a folder in one step")]
    NotEmpty {
        /// The folder.
        name: String,
    },
    /// The end was asked for.
    #[error("cancelled")]
    Cancelled,
    /// The note of an upload can't be written or read.
    #[error(transparent)]
    Note(#[from] ResultsError),
    /// A file of settings that can't be read.
    #[error("{}: {error}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
}
