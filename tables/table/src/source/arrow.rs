//! Files and streams of Arrow.

use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::given::{Batches, given};
use super::guard::guarded;
use super::{FileKind, Looked, TableFile, TablePart};
use crate::TableError;
use crate::types::{Held, plain_schema};

/// Rows of a batch, at most: the batches of files may have millions.
const BATCH_ROWS: usize = 8192;

enum Opened {
    File(FileReader<BufReader<File>>),
    Stream(StreamReader<BufReader<File>>),
    /// Batches of a program, which makes its own errors.
    Given(SchemaRef, Batches),
}

impl Opened {
    fn schema(&self) -> SchemaRef {
        match self {
            Opened::File(reader) => reader.schema(),
            Opened::Stream(reader) => reader.schema(),
            Opened::Given(schema, _) => Arc::clone(schema),
        }
    }
}

fn open(path: &Path, kind: FileKind) -> Result<Opened, TableError> {
    let file = File::open(path).map_err(TableError::on(path))?;
    let file = BufReader::with_capacity(1 << 20, file);
    guarded((path, ""), || match kind {
        FileKind::ArrowFile => FileReader::try_new(file, None).map(Opened::File),
        _ => StreamReader::try_new(file, None).map(Opened::Stream),
    })
}

/// Looks at the file at `path`.
pub(super) fn look(path: &Path, kind: FileKind) -> Result<Looked, TableError> {
    let bytes = std::fs::metadata(path).map_err(TableError::on(path))?.len();
    let opened = open(path, kind)?;
    let count = match &opened {
        Opened::File(reader) => reader.num_batches(),
        Opened::Stream(_) | Opened::Given(..) => 1,
    };
    let schema = opened.schema();
    // The rows of a batch are known when it is read.
    let bytes = bytes / count.max(1) as u64;
    let parts = (0..count)
        .map(|number| TablePart { number, rows: 0, bytes, reader_bytes: bytes })
        .collect();
    let may_be_null = vec![true; schema.fields().len()];
    let file = TableFile::new(path, kind, parts);
    Ok(Looked { file, schema, may_be_null, origin: None })
}

/// Reads batches.
pub(crate) struct ArrowReader {
    path: Arc<Path>,
    parts: Range<usize>,
    opened: Opened,
    plain: SchemaRef,
    /// The batch that is handed out, with its number, from this row on.
    batch: Option<(usize, RecordBatch, usize)>,
}

impl ArrowReader {
    pub(super) fn open(file: &TableFile, parts: Range<usize>) -> Result<ArrowReader, TableError> {
        let opened = match &file.given {
            Some(given) => Opened::Given(given.schema(), given.take(&file.path)?),
            None => open(&file.path, file.kind)?,
        };
        let plain = plain_schema(&opened.schema(), Held::AsViews);
        Ok(ArrowReader { path: Arc::clone(&file.path), parts, opened, plain, batch: None })
    }

    pub(super) fn next(&mut self) -> Result<Option<(usize, RecordBatch)>, TableError> {
        loop {
            if let Some((part, batch, from)) = &mut self.batch {
                let count = (batch.num_rows() - *from).min(BATCH_ROWS);
                if count > 0 {
                    let rows = batch.slice(*from, count);
                    *from += count;
                    let part = *part;
                    return Ok(Some((part, self.plain_batch(&rows)?)));
                }
                self.batch = None;
            }
            let Some((part, batch)) = self.next_batch()? else { return Ok(None) };
            self.batch = Some((part, batch, 0));
        }
    }

    fn next_batch(&mut self) -> Result<Option<(usize, RecordBatch)>, TableError> {
        match &mut self.opened {
            Opened::File(reader) => {
                let Some(part) = self.parts.next() else { return Ok(None) };
                let place = format!(", batch {part}");
                let batch = guarded((&self.path, &place), || {
                    reader.set_index(part)?;
                    reader.next().transpose()
                })?;
                Ok(batch.map(|batch| (part, batch)))
            }
            Opened::Stream(reader) => {
                let batch = guarded((&self.path, ""), || reader.next().transpose())?;
                Ok(batch.map(|batch| (0, batch)))
            }
            Opened::Given(_, batches) => {
                let batch = batches.next().transpose();
                let batch = batch.map_err(|error| given(&self.path, error))?;
                Ok(batch.map(|batch| (0, batch)))
            }
        }
    }

    /// The columns in their plain forms.
    fn plain_batch(&self, batch: &RecordBatch) -> Result<RecordBatch, TableError> {
        guarded((&self.path, ""), || {
            let columns = batch.columns().iter().zip(self.plain.fields());
            let columns: Result<Vec<ArrayRef>, ArrowError> = columns
                .map(|(array, field)| match array.data_type() {
                    own if own == field.data_type() => Ok(Arc::clone(array)),
                    _ => cast(array, field.data_type()),
                })
                .collect();
            RecordBatch::try_new(Arc::clone(&self.plain), columns?)
        })
    }
}
