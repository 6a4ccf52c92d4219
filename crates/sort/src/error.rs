//! Everything that can go wrong in the engine.

use std::io;

/// The engine's errors. The texts are whole sentences for the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A storage failed; its own text names file, operation and offset.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Bytes on storage are not what was written there.
    #[error("{file}: damaged at byte {offset}: {detail}; restore it from a copy or sort again")]
    Corrupt {
        /// The file.
        file: String,
        /// Where in it.
        offset: u64,
        /// What was found, what was expected.
        detail: String,
    },
    /// An input is not what its format says.
    #[error("{file}: at byte {offset}: {detail}")]
    Input {
        /// The input's name.
        file: String,
        /// Where in it.
        offset: u64,
        /// What is wrong and what to do.
        detail: String,
    },
    /// A record does not fit into the memory that a sort has for one chunk of its input.
    #[error(
        "{file}: at byte {offset}: a record is longer than {most_bytes} bytes, the most for this --memory; give at least {factor} times as much"
    )]
    RecordTooLong {
        /// The input's name.
        file: String,
        /// Where the record begins.
        offset: u64,
        /// The longest record that fits, in bytes.
        most_bytes: u64,
        /// How many times as much memory is needed at least.
        factor: u64,
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
    /// The budget cannot hold what is needed.
    #[error(
        "--memory {limit_bytes} is too small for {owner}: at least {least_bytes} bytes are needed"
    )]
    Memory {
        /// What needed it.
        owner: &'static str,
        /// The least budget that would do.
        least_bytes: u64,
        /// The budget.
        limit_bytes: u64,
    },
    /// Temporary space would exceed its cap.
    #[error(
        "temporary runs need more than --temp-limit {limit_bytes} bytes; raise it or sort to a view"
    )]
    TempLimit {
        /// The cap.
        limit_bytes: u64,
    },
    /// A part of the view may be given back already, so it can't be read.
    #[error(
        "{view}: this view is being consumed into {output:?}; finish with 'merganser materialize {view} -o {output:?} --consume'"
    )]
    BeingConsumed {
        /// The folder of the view.
        view: String,
        /// The output.
        output: std::ffi::OsString,
    },
    /// The view is being consumed into another output.
    #[error(
        "{view}: this view is already being consumed into {output:?}; finish that first with 'merganser materialize --consume'"
    )]
    ConsumedElsewhere {
        /// The folder of the view.
        view: String,
        /// The other output.
        output: std::ffi::OsString,
    },
    /// The folder of unfinished work holds a copy of another view, which is its only place.
    #[error(
        "{folder}: holds records of {view:?}, whose 'materialize --consume' was interrupted; finish that first"
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
    /// What was asked cannot be done; the text says what to do instead.
    #[error("{0}")]
    Unsupported(String),
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

/// A failed read of an input, with the input's name. The cause stays its source, so that a caller
/// finds an error of its own reader in it.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {cause}")]
pub struct InputError {
    /// What to call the input.
    pub name: String,
    /// What its reader failed with.
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

impl From<&Error> for io::Error {
    /// For the layers below, which know only I/O errors: the text stays.
    fn from(error: &Error) -> Self {
        let kind = match error {
            Error::Io(e) => e.kind(),
            Error::Corrupt { .. } => io::ErrorKind::InvalidData,
            Error::Memory { .. } => io::ErrorKind::OutOfMemory,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error.to_string())
    }
}
