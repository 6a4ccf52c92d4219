//! What streams of views share: their memory, their ranges and the sentences of their errors.

use merganser_serve::session::{Grant, SessionError};
use merganser_sort::{Budget, Error};
use merganser_tables::TableError;

use crate::outlet::{BATCH_BYTES_MIN, COPIES, StreamLender};

/// Memory that a view's stream would like, in bytes: to read ahead on every run of it. It gets its share of the memory
/// for streams, or the least that works.
const MEMORY_BYTES: u64 = 64 << 20;
/// The least memory for the view itself.
const VIEW_BYTES_MIN: u64 = 4 << 20;
/// The share of a stream's memory that is for batches, 1 / 4. The view gets the rest.
const BATCH_SHARE: u64 = 4;
/// Bytes of a batch, if there is memory. A client that takes one in a few seconds does not stand still.
const BATCH_BYTES: usize = 256 << 10;
/// Threads that make the bytes of a view for one stream.
pub(crate) const THREADS: usize = 2;

/// Memory of a stream that reads a view.
pub(crate) struct ViewMemory {
    /// For batches, in bytes.
    pub(crate) batches: u64,
    /// It is given back when this is dropped.
    _grant: Grant,
}

/// Opens a view with a part of the memory for streams, or with the least that works; the rest is for batches.
pub(crate) fn with_memory<V>(
    lender: &StreamLender,
    path: &str,
    open: impl Fn(&Budget) -> Result<V, TableError>,
) -> Result<(V, ViewMemory), SessionError> {
    let mut least = VIEW_BYTES_MIN + (COPIES * BATCH_BYTES_MIN) as u64;
    loop {
        let grant = lender.memory(MEMORY_BYTES.max(least), least)?;
        let all = grant.memory_bytes();
        let most = (COPIES * BATCH_BYTES) as u64;
        let batches = (all / BATCH_SHARE).clamp((COPIES * BATCH_BYTES_MIN) as u64, most);
        match open(&Budget::new(all - batches)) {
            Ok(view) => return Ok((view, ViewMemory { batches, _grant: grant })),
            // Once more with what it says that it needs; the system says if that is never there.
            Err(TableError::Engine(Error::Memory { least_bytes, .. }))
                if least_bytes > all - batches =>
            {
                drop(grant);
                least = least_bytes + least_bytes / BATCH_SHARE + most;
            }
            Err(error) => return Err(told(path, &error)),
        }
    }
}

/// Refuses a range that ends before it begins, or begins behind the end of the view, which is at `there`.
pub(crate) fn refuse_unordered(
    path: &str,
    what: &str,
    (start, end): (u64, Option<u64>),
    there: u64,
) -> Result<(), SessionError> {
    let told = if end.is_some_and(|end| end < start) {
        format!("{path}: {what}: the range ends before it begins, at {start}")
    } else if start > there {
        format!("{path}: {what}: the range begins at {start}, and the view has {there}")
    } else {
        return Ok(());
    };
    Err(SessionError::Invalid(told))
}

/// An error of the engine on the view at `path`.
pub(crate) fn engine(path: &str, error: &Error) -> SessionError {
    match error {
        Error::NotAView { .. } => SessionError::Missing(format!("{path}: it is not a view")),
        // A client does not know the folder's own name.
        error => SessionError::Failed(format!(
            "{path}: {}",
            error.to_string().replace("/proc/self/fd/", "#")
        )),
    }
}

/// An error of the view at `path`.
pub(crate) fn told(path: &str, error: &TableError) -> SessionError {
    match error {
        TableError::Engine(error) => engine(path, error),
        // These name the view by a name of its own.
        TableError::NoColumn { column, has, .. } => SessionError::Invalid(format!(
            "{path}: has no column {column}; it has {}",
            has.join(", ")
        )),
        TableError::LongRow { .. } => SessionError::Invalid(format!(
            "{path}: {error}; read the view where it is, with merganser cat"
        )),
        TableError::NoValue { .. } => SessionError::Invalid(format!("{path}: {error}")),
        error => SessionError::Failed(format!("{path}: {error}")),
    }
}
