//! The sentences for errors of tables.

use merganser_shell::failure::{Failure, plain_text};
use merganser_tables::TableError;

/// The end of a command with this error.
pub(crate) fn told(error: TableError) -> Failure {
    match error {
        TableError::Engine(error) => error.into(),
        TableError::Io { file, error } => Failure::on(&file, &error),
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
