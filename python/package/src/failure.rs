//! Errors of the engine as exceptions.
//!
//! ```text
//!   merganser.Error ├ MemoryLimit   the memory is too small      ├ BadKey, a ValueError   columns, keys, values of keys
//!                   ├ Damaged       bytes changed on a disk      ├ Cancelled              the caller asked for the end
//!                   └ DiskFull, an OSError
//!   OSError and its kinds           all else that the system refuses: FileNotFoundError, FileExistsError, ...
//! ```

use std::error::Error as StdError;
use std::io;
use std::path::Path;

use merganser_results::ResultsError;
use merganser_results::output::OutputError;
use merganser_results::stopped::Stopped;
use merganser_results::unfinished::WorkError;
use merganser_sort::Error;
use merganser_sort::key::KeyError;
use merganser_tables::{FolderMisuse, TableError};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// Everything that ends a job.
#[derive(Debug)]
pub(crate) enum Failure {
    Table(TableError),
    Engine(Error),
    Results(ResultsError),
    /// A key or value that makes no sense.
    Key(String),
    /// Any other.
    Other(String),
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Engine(error) => Failure::Engine(error),
            TableError::Folder(FolderMisuse::SmallFiles) => {
                Failure::Key("file_size: give at least '64K'".to_owned())
            }
            TableError::Folder(misuse) => Failure::Key(format!("partition_by: {misuse}")),
            error => Failure::Table(error),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Engine(error)
    }
}

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Self {
        Failure::Results(error)
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        Failure::Key(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Engine(error.into())
    }
}

/// The class of an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Error,
    MemoryLimit,
    DiskFull,
    Damaged,
    BadKey,
    Cancelled,
    /// `OSError`, which becomes the kind of this number.
    System(i32),
}

impl Class {
    fn name(self) -> &'static str {
        match self {
            Class::Error | Class::System(_) => "Error",
            Class::MemoryLimit => "MemoryLimit",
            Class::DiskFull => "DiskFull",
            Class::Damaged => "Damaged",
            Class::BadKey => "BadKey",
            Class::Cancelled => "Cancelled",
        }
    }
}

impl Failure {
    fn class(&self) -> Class {
        match self {
            Failure::Table(error) => of_table(error),
            Failure::Engine(error) => of_engine(error),
            Failure::Results(error) => of_results(error),
            Failure::Key(_) => Class::BadKey,
            Failure::Other(_) => Class::Error,
        }
    }

    /// The sentence, without the system's numbers.
    pub(crate) fn sentence(&self) -> String {
        let text = match self {
            Failure::Table(error) => error.to_string(),
            Failure::Engine(error) => error.to_string(),
            Failure::Results(error) => error.to_string(),
            Failure::Key(text) | Failure::Other(text) => text.clone(),
        };
        without_number(text)
    }
}

fn of_table(error: &TableError) -> Class {
    match error {
        TableError::Engine(error) => of_engine(error),
        TableError::Io { error, .. } | TableError::LostFile { error, .. } => of_io(error),
        TableError::NoFiles { .. } => Class::System(libc::ENOENT),
        TableError::Damaged { .. }
        | TableError::DamagedRow
        | TableError::ChangedFile { .. }
        | TableError::ChangedWhileRead { .. } => Class::Damaged,
        TableError::NoColumn { .. }
        | TableError::NoOrder { .. }
        | TableError::NotANumber { .. }
        | TableError::TwiceAKey { .. }
        | TableError::NoValue { .. } => Class::BadKey,
        _ => Class::Error,
    }
}

fn of_engine(error: &Error) -> Class {
    match error {
        Error::Io(error) => of_io(error),
        Error::Corrupt { .. } => Class::Damaged,
        Error::Memory { .. } | Error::Threads { .. } | Error::RecordTooLong { .. } => {
            Class::MemoryLimit
        }
        Error::Key(_) | Error::Conflict(_) => Class::BadKey,
        Error::ViewExists { .. } => Class::System(libc::EEXIST),
        Error::Cancelled => Class::Cancelled,
        _ => Class::Error,
    }
}

fn of_results(error: &ResultsError) -> Class {
    match error {
        ResultsError::File { error, .. } | ResultsError::Named(error) => of_io(error),
        ResultsError::Sort(error) => of_engine(error),
        ResultsError::Work(
            WorkError::NotFree(_) | WorkError::ViewExists(_) | WorkError::Taken(_),
        ) => Class::System(libc::EEXIST),
        ResultsError::Output(OutputError::Directory(_)) => Class::System(libc::EISDIR),
        ResultsError::Output(OutputError::NoRoomBeside(_)) => Class::System(libc::EACCES),
        _ => Class::Error,
    }
}

fn of_io(error: &io::Error) -> Class {
    if Stopped::of_error(error) == Some(Stopped::Cancelled) {
        return Class::Cancelled;
    }
    // The engine's own errors come through the layers below it, and the system's have names around them.
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<Error>() {
            return of_engine(error);
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            if let Some(number) = error.raw_os_error() {
                return of_number(number);
            }
            cause = error.get_ref().map(|inner| inner as _);
        } else {
            cause = error.source();
        }
    }
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Class::DiskFull,
        io::ErrorKind::NotFound => Class::System(libc::ENOENT),
        io::ErrorKind::PermissionDenied => Class::System(libc::EACCES),
        io::ErrorKind::IsADirectory => Class::System(libc::EISDIR),
        io::ErrorKind::NotADirectory => Class::System(libc::ENOTDIR),
        io::ErrorKind::AlreadyExists => Class::System(libc::EEXIST),
        io::ErrorKind::InvalidData => Class::Damaged,
        io::ErrorKind::OutOfMemory => Class::MemoryLimit,
        _ => Class::Error,
    }
}

fn of_number(number: i32) -> Class {
    match number {
        libc::ENOSPC | libc::EDQUOT => Class::DiskFull,
        number => Class::System(number),
    }
}

/// The system's words without the error number.
fn without_number(mut text: String) -> String {
    if let Some(at) = text.find(" (os error ")
        && let Some(len) = text[at..].find(')')
    {
        text.replace_range(at..=at + len, "");
    }
    text
}

/// The module with the classes.
static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    let load = || py.import("merganser._errors").map(Bound::unbind);
    let classes = CLASSES.get_or_try_init(py, load)?.bind(py);
    Ok(classes.getattr(name)?.cast_into::<PyType>()?)
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        let (kind, sentence) = (failure.class(), failure.sentence());
        Python::attach(|py| match kind {
            Class::System(number) => PyOSError::new_err((number, sentence)),
            Class::DiskFull => match class(py, kind.name()) {
                Ok(class) => PyErr::from_type(class, (libc::ENOSPC, sentence)),
                Err(error) => error,
            },
            _ => match class(py, kind.name()) {
                Ok(class) => PyErr::from_type(class, sentence),
                Err(error) => error,
            },
        })
    }
}

/// An error of the system on `path`.
pub(crate) fn on(path: &Path) -> impl FnOnce(io::Error) -> Failure + '_ {
    move |error| Failure::Table(TableError::Io { file: path.to_owned(), error })
}
