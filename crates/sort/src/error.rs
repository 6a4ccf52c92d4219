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
    /// What was asked cannot be done; the text says what to do instead.
    #[error("{0}")]
    Unsupported(String),
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
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
