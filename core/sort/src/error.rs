//! Everything that can go wrong in the engine.
//!
//! The texts name the file, the place and the numbers. They do not name flags: a program that has
//! flags matches on the variant and adds the advice.

use std::io;
use std::path::PathBuf;

use crate::key::KeyError;
use crate::record::{HeaderDifference, StrayQuote};
use crate::rows::RowsError;

/// The engine's errors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A storage failed; its own text names file, operation and offset.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Bytes on storage are not those that were written there.
    #[error("{file}: damaged at byte {offset}: {detail}; restore it from a copy or sort again")]
    Corrupt {
        /// The file.
        file: String,
        /// Where in it.
        offset: u64,
        /// The bytes that were found, and those that were expected.
        detail: String,
    },
    /// An input is not in its format.
    #[error("{file}: at byte {offset}: {detail}")]
    Input {
        /// The input's name.
        file: String,
        /// Where in it.
        offset: u64,
        /// The fault and the remedy.
        detail: String,
    },
    /// A csv row has a quote that only a lazy reader takes.
    #[error("{file}: {}at byte {offset}: {}", row_of(*.row), quote_fault(*.closed))]
    StrayQuote {
        /// The input's name.
        file: String,
        /// Number of the row, from 1, a header included, where that is known.
        row: Option<u64>,
        /// Where the quote is.
        offset: u64,
        /// Whether it closed its field, and text follows; else it is in an unquoted field.
        closed: bool,
    },
    /// The inputs have different columns.
    #[error("{file}: {difference}; take inputs with the same columns")]
    Header {
        /// The input's name.
        file: String,
        /// The first difference.
        difference: HeaderDifference,
    },
    /// The inputs have different header lines.
    #[error(
        "{file}: line {line} of its header is not that of an input before it; give inputs with the same header lines, or with none"
    )]
    HeaderLines {
        /// The input's name.
        file: String,
        /// The first line that differs, from 1.
        line: u64,
    },
    /// The last record of an input has no end.
    #[error("{file}: at byte {offset}: {detail}; repair the input or choose another format")]
    LastRecord {
        /// The input's name.
        file: String,
        /// Where the record begins.
        offset: u64,
        /// The missing part.
        detail: &'static str,
    },
    /// A record does not fit into the memory that there is for one.
    #[error(
        "{file}: at byte {offset}: a record is longer than {most_bytes} bytes, the most for this memory; give {}", more_memory(*.factor)
    )]
    RecordTooLong {
        /// The input's name.
        file: String,
        /// Where the record begins.
        offset: u64,
        /// The longest record that fits, in bytes.
        most_bytes: u64,
        /// How many times as much memory is needed at least, where that is known.
        factor: Option<u64>,
    },
    /// An input was written to while it was sorted.
    #[error(
        "{file}: was changed while it was sorted: it had {expected_bytes} bytes and has {found_bytes}; nothing more of it is given back"
    )]
    InputChanged {
        /// The input's name.
        file: String,
        /// Its size when the sort began, in bytes.
        expected_bytes: u64,
        /// Its size now, in bytes.
        found_bytes: u64,
    },
    /// The budget is too small.
    #[error(
        "a memory of {limit_bytes} bytes is too small for {owner}: at least {least_bytes} bytes are needed"
    )]
    Memory {
        /// The user of the memory.
        owner: &'static str,
        /// The least budget that is enough.
        least_bytes: u64,
        /// The budget.
        limit_bytes: u64,
    },
    /// The budget is too small for the threads, but not for fewer.
    #[error("a memory of {limit_bytes} bytes is enough for {most} threads, not for {threads}")]
    Threads {
        /// The threads that were asked for.
        threads: usize,
        /// The most that the budget is enough for.
        most: usize,
        /// The budget.
        limit_bytes: u64,
    },
    /// Temporary space would exceed its limit.
    #[error("temporary runs need more than their limit of {limit_bytes} bytes")]
    TempLimit {
        /// The limit.
        limit_bytes: u64,
    },
    /// The data needs temporary runs, and there is no folder for them.
    #[error("the data does not fit into the memory, and there is no folder for temporary runs")]
    NoTemp,
    /// A part of the view may be given back already, so it can't be read.
    #[error("{view}: this view is being consumed into {output:?}; finish that first")]
    BeingConsumed {
        /// The folder of the view.
        view: String,
        /// The output.
        output: std::ffi::OsString,
    },
    /// A command that consumes the view, or still makes it, has it locked.
    #[error("{view}: another command is consuming or finishing this view now")]
    ViewLocked {
        /// The folder of the view.
        view: String,
    },
    /// The view is being consumed into another output.
    #[error("{view}: this view is already being consumed into {output:?}; finish that first")]
    ConsumedElsewhere {
        /// The folder of the view.
        view: String,
        /// The other output.
        output: std::ffi::OsString,
    },
    /// The folder of unfinished work holds records of another view, and nothing else does.
    #[error(
        "{folder}: holds records of {view:?}, whose consumption was interrupted; finish that first"
    )]
    OtherCopy {
        /// The folder of unfinished work.
        folder: String,
        /// The other view.
        view: std::ffi::OsString,
    },
    /// A part of the view was given back, and the file that has it is gone.
    #[error("{view}: half consumed, but {partial}, which has the rest, is gone; put it back")]
    PartialGone {
        /// The folder of the view.
        view: String,
        /// The partial output.
        partial: String,
    },
    /// Something has the name of the view that is to be made.
    #[error("{}: exists already; a view never replaces anything", view.display())]
    ViewExists {
        /// The path of the view.
        view: PathBuf,
    },
    /// The folder in which a view would grow is in use, or has records that may be nowhere else.
    #[error(
        "{}: holds unfinished work, which another process does now, or which was interrupted; finish that first", folder.display()
    )]
    Unfinished {
        /// The folder of unfinished work.
        folder: PathBuf,
    },
    /// A file of a version that this program does not know.
    #[error("{file}: a {kind} of version {version}; this program reads {known}")]
    UnknownVersion {
        /// The file.
        file: String,
        /// The kind of file, as the file gives it.
        kind: String,
        /// Its version.
        version: u32,
        /// The versions that this program reads.
        known: String,
    },
    /// A folder without a manifest.
    #[error("{folder}: not a sorted view: it has no {manifest}")]
    NotAView {
        /// The folder.
        folder: String,
        /// The name that a manifest has.
        manifest: &'static str,
    },
    /// A view of a table has no runs: its rows are in files outside it.
    #[error("{view}: is a view of a table whose rows are in files of Parquet, which it only names")]
    RowsInFiles {
        /// The view's folder.
        view: String,
    },
    /// The records of equal keys in a view are still to be combined, so its bytes are no result yet.
    #[error(
        "{view}: the records of this map's result are combined when it is read, so it has no bytes of its own"
    )]
    Unreduced {
        /// The folder of the view.
        view: String,
    },
    /// A bucket of a view has several unsorted segments.
    #[error("{folder}: a bucket of several unsorted segments; this program reads one")]
    SeveralUnsorted {
        /// The folder of the view.
        folder: String,
    },
    /// The rows of a map's result can't be had.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// The order makes no sense, or not for these records.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Options that cannot be combined.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// A plan needs inputs whose size is known.
    #[error("a plan needs inputs whose size is known; name files")]
    UnknownSize,
    /// A distribution found no keys that split a bucket into buckets that fit into memory.
    #[error("a key range could not be split into pieces that fit into memory")]
    Indivisible,
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

/// Options that cannot be combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Conflict {
    /// Unique keys, and a view.
    #[error(
        "a view cannot leave out records with equal keys: how many there are, and so the view's exact size, is known only after merging"
    )]
    UniqueView,
    /// The first records alone, and a view.
    #[error("a view holds all records, not the first ones alone")]
    TopView,
    /// The first records alone, and a distribution.
    #[error("a distribution sorts all records, not the first ones alone")]
    TopDistribute,
    /// Inputs that are consumed, and a distribution.
    #[error("a distribution does not consume its inputs")]
    ConsumeDistribute,
    /// Compressed runs, and a distribution.
    #[error("a distribution does not compress")]
    CompressDistribute,
    /// Inputs that are consumed, and records that are left out.
    #[error("a sort that consumes its inputs keeps every record")]
    ConsumeDrops,
    /// Buckets by the leading bits of a key, and keys without a fixed length.
    #[error("buckets by leading bits need a key of fixed length")]
    UniformKeys,
}

/// How much memory a record that is too long needs.
fn more_memory(factor: Option<u64>) -> String {
    factor.map_or_else(|| "more".to_owned(), |factor| format!("at least {factor} times as much"))
}

/// A failed read of an input, with the input's name. The cause stays its source, so that a caller
/// finds an error of its own reader in it.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {cause}")]
pub struct InputError {
    /// The name of the input.
    pub name: String,
    /// The error of its reader.
    #[source]
    pub cause: io::Error,
}

impl Error {
    /// A failed read of the input `name`.
    pub(crate) fn reading(name: &str, cause: io::Error) -> Self {
        let kind = cause.kind();
        Error::Io(io::Error::new(kind, InputError { name: name.to_owned(), cause }))
    }
}

/// The engine's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<Error> for io::Error {
    /// For the layers below, which know only I/O errors. Other errors stay inside, so that a caller
    /// finds them there.
    fn from(error: Error) -> Self {
        let kind = match error {
            Error::Io(error) => return error,
            Error::Corrupt { .. } => io::ErrorKind::InvalidData,
            Error::Memory { .. } => io::ErrorKind::OutOfMemory,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

fn row_of(row: Option<u64>) -> String {
    row.map_or_else(String::new, |row| format!("row {row}, "))
}

/// The fault of a quote in csv.
fn quote_fault(closed: bool) -> &'static str {
    if closed {
        "text follows a quote that closes its field"
    } else {
        "a quote is inside a field that does not begin with one"
    }
}

#[doc(hidden)]
/// The error for `quote`, in rows that begin at `place` of the input.
pub fn stray_quote(file: &str, place: u64, quote: StrayQuote) -> Error {
    let StrayQuote { row, at, closed } = quote;
    Error::StrayQuote { file: file.to_owned(), row, offset: place + at as u64, closed }
}
