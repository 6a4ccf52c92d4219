//! The sentences for errors of tables.

use merganser_objects::ObjectsError;
use merganser_shell::failure::{Failure, plain_text};
use merganser_tables::{ObjectError, TableError};

/// The end of a command with this error of an object store.
pub(crate) fn told_of_objects(error: ObjectsError) -> Failure {
    match error {
        ObjectsError::Cancelled => Failure::Cancelled,
        ObjectsError::Note(error) => error.into(),
        ObjectsError::File { file, error } => Failure::on(&file, &error),
        error @ ObjectsError::NotEmpty { .. } => {
            Failure::Error(plain_text(format!("{error}; remove them or give -o another name")))
        }
        error => Failure::Error(plain_text(error.to_string())),
    }
}

/// The end of a command with this error.
pub(crate) fn told(error: TableError) -> Failure {
    match error {
        TableError::Engine(error) => error.into(),
        TableError::Io { file, error } => Failure::on(&file, &error),
        TableError::Object { error: ObjectError::Cancelled, .. } => Failure::Cancelled,
        error @ TableError::NotInCsv { .. } => Failure::Error(plain_text(format!(
            "{error}; take --output-format jsonl, or name other columns (cat --columns)"
        ))),
        error @ TableError::FolderColumns { .. } => {
            Failure::Error(plain_text(format!("{error}; --no-hive leaves such columns out")))
        }
        error @ TableError::TooManyFiles { .. } => {
            Failure::Error(plain_text(format!("{error} (--file-size)")))
        }
        error => Failure::Error(plain_text(error.to_string())),
    }
}
