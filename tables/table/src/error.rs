//! The errors of tables.

use std::io;
use std::path::PathBuf;

use arrow_schema::{ArrowError, DataType};
use parquet::errors::ParquetError;

use crate::source::ObjectError;

/// Why a sort can't make such files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FolderMisuse {
    /// Files that are hardly more than their ends.
    #[error("files have at least 64K")]
    SmallFiles,
    /// Too many folders in folders.
    #[error("name at most 6 columns")]
    ManyColumns,
    /// The first rows are wanted.
    #[error("the first rows are those of one order, and each folder has its own")]
    Top,
    /// Inputs that are in order are to be merged.
    #[error("inputs in order are not in the order of these columns")]
    SortedInputs,
    /// One of equal rows is kept, and equal keys do not mean one folder.
    #[error("rows with equal keys may be in several folders; add column {column} to the keys")]
    Distinct {
        /// A column of the folders that is no key.
        column: String,
    },
}

/// An error of a table. Its sentence names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The engine's own: memory, disks, damage of runs and views, cancelled.
    #[error(transparent)]
    Engine(#[from] merganser_sort::Error),
    /// A folder of files that a sort can't make.
    #[error(transparent)]
    Folder(#[from] FolderMisuse),
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
    /// A row that is longer than a reader takes.
    #[error("a row has {bytes} bytes; at most {most} are taken here")]
    LongRow {
        /// Bytes of its key and its values.
        bytes: usize,
        /// As many as there may be.
        most: usize,
    },
    /// A file that a view names is not the one that it was made of.
    #[error("{}: was changed or replaced since the view {view} was made, whose rows are in it; make the view again", file.display())]
    ChangedFile {
        /// The file.
        file: PathBuf,
        /// The folder of the view.
        view: String,
    },
    /// A file that a view names can't be opened.
    #[error("{}: {error}; the rows of the view {view} are in it", file.display())]
    LostFile {
        /// The file.
        file: PathBuf,
        /// The folder of the view.
        view: String,
        /// The system's error.
        error: io::Error,
    },
    /// A file that was written to while its rows were read.
    #[error("{}: was changed while it was read", file.display())]
    ChangedWhileRead {
        /// The file.
        file: PathBuf,
    },
    /// A view of more files than can be open.
    #[error(
        "a view of {files} files has them all open when it is read, and this process can open {most} more"
    )]
    FilesAtOnce {
        /// The files of the view.
        files: u64,
        /// How many can be opened.
        most: u64,
    },
    /// Bytes of a view that are no row of its columns.
    #[error("a row does not have the columns of the table")]
    DamagedRow,
    /// A column whose lists or structs have dictionaries, for a file of Arrow.
    #[error(
        "column {column} has dictionaries in lists or structs, which a file of Arrow can't have here"
    )]
    InnerDictionary {
        /// The name.
        column: String,
    },
    /// A column that has more values than its indices can name.
    #[error(
        "column {column} has more different values than its indices of type {index_type} can name"
    )]
    ShortIndices {
        /// The name.
        column: String,
        /// The type of its indices.
        index_type: DataType,
    },
    /// A column whose dictionary is too long for a file of Arrow.
    #[error(
        "column {column} has more different values than one dictionary of a file of Arrow takes"
    )]
    LongDictionary {
        /// The name.
        column: String,
    },
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
