//! The sentences for errors of tables.

use merganser_shell::failure::{Failure, plain_text};
use merganser_tables::TableError;

/// An error that ends a command with a sentence of this program.
pub(crate) trait Told {
    /// The end.
    fn told(self) -> Failure;
}

impl Told for TableError {
    fn told(self) -> Failure {
        match self {
            TableError::Engine(error) => error.into(),
            TableError::Io { file, error } => Failure::on(&file, &error),
            error @ TableError::NotInCsv { .. } => Failure::Error(plain_text(format!(
                "{error}; take --output-format jsonl, or name other columns (cat --columns)"
            ))),
            error => Failure::Error(plain_text(error.to_string())),
        }
    }
}
