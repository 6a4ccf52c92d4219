//! The errors of tables.

use std::io;
use std::path::PathBuf;

use arrow_schema::{ArrowError, DataType};
use parquet::errors::ParquetError;

use crate::source::ObjectError;

/// An error of a table. Its sentence names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The engine's own: memory, disks, damage of runs and views, cancelled.
    #[error(transparent)]
    Engine(#[from] merganser_sort::Error),
    /// A file that can't be read or written.
    #[error("{}: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// An object that can't be read.
    #[error("{}: {error}", object.display())]
    Object {
        /// The name of the object.
        object: PathBuf,
        /// The store's error.
        error: ObjectError,
    },
    /// The address of an object, where only files can be.
    #[error("{}: is the address of an object, and only files of this machine are read here", address.display())]
    Address {
        /// The address.
        address: PathBuf,
    },
    /// A file that is no table.
    #[error("{}: is neither Parquet nor Arrow", file.display())]
    NotATable {
        /// The file.
        file: PathBuf,
    },
    /// There is no file.
    #[error("{}: has no files of tables (.parquet, .arrow, .feather, .ipc, .arrows)", folder.display())]
    NoFiles {
        /// The folder or pattern.
        folder: PathBuf,
    },
    /// An encrypted file.
    #[error("{}: is encrypted, and keys for it can't be given", file.display())]
    Encrypted {
        /// The file.
        file: PathBuf,
    },
    /// A damaged file, or one that the library of Parquet or Arrow can't read.
    #[error("{}{place}: {why}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Where, such as `, row group 3`; empty if that isn't known.
        place: String,
        /// The damage.
        why: String,
    },
    /// The program that hands in the batches of a table has failed.
    #[error("{table}: {error}")]
    Given {
        /// The name of the table.
        table: String,
        /// Its error.
        error: ArrowError,
    },
    /// A column that is not there.
    #[error("{}: has no column {column}; it has {}", file.display(), has.join(", "))]
    NoColumn {
        /// The file.
        file: PathBuf,
        /// The name.
        column: String,
        /// The names of all columns.
        has: Vec<String>,
    },
    /// A column whose values have no order.
    #[error("{}: column {column} is of type {data_type}, which has no order", file.display())]
    NoOrder {
        /// The file.
        file: PathBuf,
        /// The name.
        column: String,
        /// The type.
        data_type: DataType,
    },
    /// A column that should be one of numbers.
    #[error("{}: column {column} is of type {data_type}, which are not numbers", file.display())]
    NotANumber {
        /// The file.
        file: PathBuf,
        /// The name.
        column: String,
        /// The type.
        data_type: DataType,
    },
    /// A key that names a column again.
    #[error("{}: column {column} is twice a key", file.display())]
    TwiceAKey {
        /// The file.
        file: PathBuf,
        /// The name.
        column: String,
    },
    /// A column whose values can't name folders.
    #[error("{}: column {column} is of type {data_type}, whose values can't name folders", file.display())]
    NoPartition {
        /// The file.
        file: PathBuf,
        /// The name.
        column: String,
        /// The type.
        data_type: DataType,
    },
    /// All columns name folders.
    #[error("{}: all its columns would name folders, and none would be in a file", file.display())]
    AllPartitions {
        /// The file.
        file: PathBuf,
    },
    /// A folder would have more files than their names can number.
    #[error("{}: would have more than 100,000 files; let them be larger", if folder.is_empty() { "the result" } else { folder })]
    TooManyFiles {
        /// The folder in the result.
        folder: String,
    },
    /// A column of a type that rows can't hold.
    #[error("{}: column {column} has the type {data_type}, which can't be sorted along", file.display())]
    UnknownType {
        /// The file.
        file: PathBuf,
        /// The name.
        column: String,
        /// The type, or the part of it.
        data_type: DataType,
    },
    /// A file whose columns are others than those of the first one.
    #[error("{}: {what}, and {} has {expected}", file.display(), first.display())]
    Different {
        /// The file.
        file: PathBuf,
        /// Its difference.
        what: String,
        /// The first file.
        first: PathBuf,
        /// The same of the first file.
        expected: String,
    },
    /// A file whose folders name other columns than those of the first one.
    #[error(
        "{}: its folders {} column {column}, {} those of {} do{}",
        file.display(),
        if *is_named { "name" } else { "do not name" },
        if *is_named { "and" } else { "as" },
        first.display(),
        if *is_named { " not" } else { "" }
    )]
    FolderColumns {
        /// The file.
        file: PathBuf,
        /// The name of the column.
        column: String,
        /// Whether the folders of this file name it, or those of the first file.
        is_named: bool,
        /// The first file.
        first: PathBuf,
    },
    /// Two folders of a file name one column.
    #[error("{}: two of its folders name column {column}", file.display())]
    TwiceAFolder {
        /// The file.
        file: PathBuf,
        /// The name of the column.
        column: String,
    },
    /// Rows of an input that should be in order and are not.
    #[error("{}: row {row} is out of order", file.display())]
    Disorder {
        /// The file.
        file: PathBuf,
        /// The number of the row, from 1.
        row: u64,
    },
    /// Bytes of a view that are no row of its columns.
    #[error("a row does not have the columns of the table")]
    DamagedRow,
    /// A column that csv can't hold.
    #[error("column {column} is of type {data_type}, which csv can't hold")]
    NotInCsv {
        /// The name.
        column: String,
        /// Its type.
        data_type: DataType,
    },
    /// An error of the library of Parquet while a file is written.
    #[error("writing Parquet: {0}")]
    Parquet(ParquetError),
    /// An error of the library of Arrow while a file is written.
    #[error("writing Arrow: {0}")]
    Arrow(ArrowError),
    /// A view that is no table, or one of a later version.
    #[error("{view}: {why}")]
    NotATableView {
        /// The view.
        view: String,
        /// Why it can't be read.
        why: String,
    },
    /// A typed value that a column can't have.
    #[error("{typed:?} is no value of column {column}, which is of type {data_type}")]
    NoValue {
        /// The typed text.
        typed: String,
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
    },
}

impl TableError {
    pub(crate) fn on(file: &std::path::Path) -> impl FnOnce(io::Error) -> TableError + '_ {
        |error| TableError::Io { file: file.to_owned(), error }
    }
}
