//! Tables of other libraries: any object with `__arrow_c_stream__`.

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_schema::ArrowError;
use merganser_storage::contained::{self, Cause};
use merganser_tables::Table;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use crate::failure::Failure;
use crate::work::internal;

/// The name of a capsule that holds a stream.
pub(crate) const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// Asks `object` for its stream. Its batches are read later, without the interpreter's lock.
///
/// # Errors
/// The object's own; a stream that is no table.
pub(crate) fn table_of(object: &Bound<'_, PyAny>) -> PyResult<Table> {
    let name = object.get_type().name()?.to_string();
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>().map_err(|_| {
        PyTypeError::new_err(format!("{name}.__arrow_c_stream__ has returned no capsule"))
    })?;
    let pointer = capsule.pointer_checked(Some(STREAM))?;
    // SAFETY: a capsule of this name holds a stream by Arrow's PyCapsule interface, and the capsule lives until the end of
    // this function. `from_raw` moves the stream out and leaves a released one.
    let reader = unsafe {
        RecordBatchStreamReader::from_raw(pointer.as_ptr().cast::<FFI_ArrowArrayStream>())
    };
    let not_a_table = |error: ArrowError| {
        Failure::Other(format!("{name}: its stream is no table with columns: {error}"))
    };
    let reader = reader.map_err(not_a_table)?;
    let schema = reader.schema();
    let table = Table::from_batches(&name, schema, Guarded { reader });
    Ok(table.map_err(Failure::from)?)
}

/// Batches of another library. A panic about what it hands in is its error.
struct Guarded {
    reader: RecordBatchStreamReader,
}

impl Iterator for Guarded {
    type Item = Result<arrow_array::RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match contained::run(Cause::Input, || self.reader.next()) {
            Ok(next) => next,
            Err(panic) => Some(Err(ArrowError::CDataInterface(internal(Some(&*panic))))),
        }
    }
}
