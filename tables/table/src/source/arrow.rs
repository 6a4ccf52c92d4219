//! Files and streams of Arrow.

use std::io::BufReader;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::content::{InOrder, OpenContent};
use super::ends::ObjectTail;
use super::given::{Batches, given};
use super::{AheadBytes, FileContent, FileKind, Looked, TableFile, TablePart, pieces};
use crate::TableError;
use crate::types::{Held, plain_schema};

/// Rows of a batch, at most: the batches of files may have millions.
const BATCH_ROWS: usize = 8192;

enum Opened {
    File(FileReader<BufReader<InOrder>>),
    Stream(StreamReader<BufReader<InOrder>>),
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

fn open(
    file: &TableFile,
    ahead_bytes: u64,
    tail: Option<ObjectTail>,
) -> Result<(OpenContent, Opened), TableError> {
    let content = file.open(ahead_bytes, tail)?;
    let opened = file.guarded(&content, "", || {
        let in_order = BufReader::with_capacity(1 << 20, content.clone().in_order());
        match file.kind {
            FileKind::ArrowFile => FileReader::try_new(in_order, None).map(Opened::File),
            _ => StreamReader::try_new(in_order, None).map(Opened::Stream),
        }
    })?;
    Ok((content, opened))
}

/// Looks at a file.
pub(super) fn look(file: TableFile, tail: Option<ObjectTail>) -> Result<Looked, TableError> {
    let bytes = file.bytes()?;
    let (_, opened) = open(&file, 0, tail)?;
    let count = match &opened {
        Opened::File(reader) => reader.num_batches(),
        Opened::Stream(_) | Opened::Given(..) => 1,
    };
    let schema = opened.schema();
    // The rows of a batch are known when it is read.
    let bytes = bytes / count.max(1) as u64;
    let ahead = match &file.content {
        FileContent::Object { .. } => AheadBytes {
            least: pieces::least_bytes([bytes].into_iter()),
            most: pieces::most_bytes(bytes),
        },
        FileContent::Disk | FileContent::Given(_) => AheadBytes::default(),
    };
    let parts = (0..count)
        .map(|number| TablePart { number, rows: 0, bytes, reader_bytes: bytes, ahead })
        .collect();
    let may_be_null = vec![true; schema.fields().len()];
    Ok(Looked { file: file.with_parts(parts), schema, may_be_null, origin: None })
}

/// Reads batches.
pub(crate) struct ArrowReader {
    file: TableFile,
    parts: Range<usize>,
    content: Option<OpenContent>,
    opened: Opened,
    plain: SchemaRef,
    /// The batch that is handed out, with its number, from this row on.
    batch: Option<(usize, RecordBatch, usize)>,
}

impl ArrowReader {
    pub(super) fn open(
        file: &TableFile,
        parts: Range<usize>,
        ahead_bytes: u64,
    ) -> Result<ArrowReader, TableError> {
        let (content, opened) = match &file.content {
            FileContent::Given(given) => {
                (None, Opened::Given(given.schema(), given.take(&file.path)?))
            }
            FileContent::Disk | FileContent::Object { .. } => {
                let (content, opened) = open(file, ahead_bytes, None)?;
                (Some(content), opened)
            }
        };
        let plain = plain_schema(&opened.schema(), Held::AsViews);
        Ok(ArrowReader { file: file.clone(), parts, content, opened, plain, batch: None })
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
                let batch = guarded(&self.file, self.content.as_ref(), &place, || {
                    reader.set_index(part)?;
                    reader.next().transpose()
                })?;
                Ok(batch.map(|batch| (part, batch)))
            }
            Opened::Stream(reader) => {
                let read = || reader.next().transpose();
                let batch = guarded(&self.file, self.content.as_ref(), "", read)?;
                Ok(batch.map(|batch| (0, batch)))
            }
            Opened::Given(_, batches) => {
                let batch = batches.next().transpose();
                let batch = batch.map_err(|error| given(&self.file.path, error))?;
                Ok(batch.map(|batch| (0, batch)))
            }
        }
    }

    /// The columns in their plain forms.
    fn plain_batch(&self, batch: &RecordBatch) -> Result<RecordBatch, TableError> {
        guarded(&self.file, self.content.as_ref(), "", || {
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

/// Calls a library on a file, or on batches of a program.
fn guarded<T, E: std::fmt::Display>(
    file: &TableFile,
    content: Option<&OpenContent>,
    place: &str,
    call: impl FnOnce() -> Result<T, E>,
) -> Result<T, TableError> {
    match content {
        Some(content) => file.guarded(content, place, call),
        None => super::guarded((&file.path, place), call),
    }
}
