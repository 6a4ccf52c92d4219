//! The sentences for errors of tables.

use merganser_objects::ObjectsError;
use merganser_shell::failure::{Failure, plain_text};
use merganser_tables::{FolderMisuse, ObjectError, TableError};

/// The end of a command with this error of an object store.
pub(crate) fn told_of_objects(error: ObjectsError) -> Failure {
    match error {
        ObjectsError::Cancelled => Failure::Cancelled,
        ObjectsError::Note(error) => error.into(),
        ObjectsError::File { file, error } => Failure::on(&file, &error),
        error @ ObjectsError::NotEmpty { .. } => {
            Failure::Error(plain_text(format!("{error}; move them away or give -o another name")))
        }
        error => Failure::Error(plain_text(error.to_string())),
    }
}

/// The end of a command with this error.
pub(crate) fn told(error: TableError) -> Failure {
    match error {
        TableError::Engine(error) => error.into(),
        TableError::Folder(misuse) => Failure::Error(plain_text(folder_sentence(&misuse))),
        TableError::Io { file, error } => Failure::on(&file, &error),
        TableError::Object { error: ObjectError::Cancelled, .. } => Failure::Cancelled,
        error @ TableError::NotInCsv { .. } => Failure::Error(plain_text(format!(
            "{error}; take --output-format jsonl, or name other columns (cat --columns)"
        ))),
        error @ (TableError::InnerDictionary { .. } | TableError::LongDictionary { .. }) => {
            let what = "take --output-format arrows, whose batches have dictionaries of their own";
            Failure::Error(plain_text(format!("{error}; {what}")))
        }
        error @ TableError::ShortIndices { .. } => {
            Failure::Error(plain_text(format!("{error}; take --output-format parquet or csv")))
        }
        error @ TableError::FolderColumns { .. } => {
            Failure::Error(plain_text(format!("{error}; --no-hive leaves such columns out")))
        }
        error @ TableError::TooManyFiles { .. } => {
            Failure::Error(plain_text(format!("{error} (--file-size)")))
        }
        error => Failure::Error(plain_text(error.to_string())),
    }
}

fn folder_sentence(misuse: &FolderMisuse) -> String {
    match misuse {
        FolderMisuse::SmallFiles => "--file-size: give at least 64K".to_owned(),
        FolderMisuse::Top => {
            "--partition-by: --top keeps the first rows of one order, and each folder has its own"
                .to_owned()
        }
        FolderMisuse::SortedInputs => {
            let what = "the files that -m merges are not in the order of these columns";
            format!("--partition-by: {what}; leave out -m")
        }
        FolderMisuse::Distinct { column } => {
            let what = "rows with equal keys may be in several folders";
            format!("--partition-by: {what}; add --key {column}, too")
        }
        misuse => format!("--partition-by: {misuse}"),
    }
}
