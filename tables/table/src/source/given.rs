//! Batches that a program hands in, such as a data frame or the result of a query.
//!
//! They can be read once. Their memory is the program's own, so it isn't part of any budget.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use parking_lot::Mutex;

use super::{FileContent, FileKind, TableFile, TablePart, TableSource};
use crate::TableError;
use crate::schema::TableSchema;

/// Batches, one after the other.
pub(super) type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// A table that a program hands in.
#[derive(Clone)]
pub(crate) struct GivenBatches {
    schema: SchemaRef,
    /// `None` once they are read.
    batches: Arc<Mutex<Option<Batches>>>,
}

impl fmt::Debug for GivenBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenBatches").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl GivenBatches {
    pub(super) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The batches of the table `name`.
    ///
    /// # Errors
    /// They were read before.
    pub(super) fn take(&self, name: &Path) -> Result<Batches, TableError> {
        let again = "was read before, and its batches come once".to_owned();
        let again = || given(name, ArrowError::InvalidArgumentError(again));
        self.batches.lock().take().ok_or_else(again)
    }
}

/// The error of a program that hands in batches.
pub(super) fn given(name: &Path, error: ArrowError) -> TableError {
    TableError::Given { table: name.display().to_string(), error }
}

impl TableSource {
    /// A table of `batches`, which errors call `name`.
    ///
    /// # Errors
    /// A type that rows can't hold.
    pub(crate) fn of_batches(
        name: &str,
        schema: SchemaRef,
        batches: Batches,
    ) -> Result<TableSource, TableError> {
        let path: Arc<Path> = Arc::from(Path::new(name));
        let own = TableSchema::new(Arc::clone(&schema), &path)?;
        let may_be_null = vec![true; schema.fields().len()];
        let batches = Arc::new(Mutex::new(Some(batches)));
        let all = vec![TablePart::default()];
        let content = FileContent::Given(GivenBatches { schema, batches });
        let file = TableFile::new(&path, FileKind::ArrowStream, content).with_parts(all);
        Ok(TableSource { files: vec![file], schema: own, may_be_null, origin: None })
    }
}
