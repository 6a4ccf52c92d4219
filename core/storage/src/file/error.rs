//! The error of an operation on a file.

use std::fmt;
use std::io;

/// An I/O error with the file, the operation and the offset it happened at. It is the inner error
/// of the [`io::Error`] that a completion carries, which keeps the kind.
#[derive(Debug)]
pub struct FileError {
    /// Path of the file, as it was given.
    pub path: String,
    /// The operation that was tried, for example `read of 4096 bytes at 8192`.
    pub operation: String,
    /// The system's own error, with its raw number.
    pub cause: io::Error,
}

impl FileError {
    /// `cause`, wrapped so that its kind stays.
    pub(super) fn wrap(path: &str, operation: impl Into<String>, cause: io::Error) -> io::Error {
        let kind = cause.kind();
        io::Error::new(
            kind,
            FileError { path: path.to_owned(), operation: operation.into(), cause },
        )
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.operation {
            // The cause says enough: there is no such file, it may not be written, ...
            "open" | "create" => write!(f, "{}: {}", self.path, self.cause),
            operation => write!(f, "{}: {operation}: {}", self.path, self.cause),
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}
