//! Batches for other libraries, by Arrow's C stream.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef};
use merganser_tables::{TableError, ViewBatches};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::failure::Failure;
use crate::given::STREAM;
use crate::process;
use crate::work::internal;

/// A capsule with the batches of `reader`.
pub(crate) fn capsule<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

/// A capsule with a schema.
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema.as_ref());
    let schema = schema.map_err(|error| Failure::from(TableError::Arrow(error)))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// The work of all streams of a view so far.
#[derive(Default)]
pub(crate) struct StreamsDone {
    /// Rows that they have handed out.
    pub(crate) rows: AtomicU64,
    /// The last error. Arrow's interface has only a text for it.
    pub(crate) failure: Mutex<Option<Failure>>,
}

/// Batches of a view, counted.
pub(crate) struct CountedBatches {
    batches: ViewBatches,
    done: Arc<StreamsDone>,
}

impl CountedBatches {
    pub(crate) fn new(batches: ViewBatches, done: Arc<StreamsDone>) -> CountedBatches {
        CountedBatches { batches, done }
    }

    fn failed(&self, failure: Failure) -> Option<Result<RecordBatch, ArrowError>> {
        let sentence = failure.sentence();
        *self.done.failure.lock() = Some(failure);
        Some(Err(ArrowError::CDataInterface(sentence)))
    }
}

impl Iterator for CountedBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(forked) = process::check() {
            return self.failed(forked);
        }
        // Other libraries call this through C, where no panic may pass.
        match catch_unwind(AssertUnwindSafe(|| self.batches.next())) {
            Ok(Some(Ok(batch))) => {
                self.done.rows.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
                Some(Ok(batch))
            }
            Ok(Some(Err(error))) => self.failed(error.into()),
            Ok(None) => None,
            Err(panic) => self.failed(Failure::Other(internal(Some(&*panic)))),
        }
    }
}

impl RecordBatchReader for CountedBatches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.batches.schema())
    }
}

/// Rows in memory: a small result that other libraries read.
#[pyclass(frozen, module = "merganser")]
pub(crate) struct ArrowRows {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl ArrowRows {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> ArrowRows {
        ArrowRows { schema, batches }
    }
}

#[pymethods]
impl ArrowRows {
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer may ask for other types; it gets those of the table, as the interface allows.
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        capsule(py, Box::new(RecordBatchIterator::new(batches, Arc::clone(&self.schema))))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }
}
