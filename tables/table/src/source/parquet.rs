//! Files of Parquet.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use merganser_storage::contained::{self, Cause};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::{KeyValue, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, TypePtr};

use super::content::OpenContent;
use super::ends::ObjectTail;
use super::{AheadBytes, FileContent, Looked, TableFile, TablePart, pieces};
use crate::TableError;
use crate::types::{Held, plain_schema};

/// About how many bytes of values a batch has.
const BATCH_BYTES: u64 = 2 << 20;
/// Rows of a batch, at most.
const BATCH_ROWS: u64 = 8192;
/// Bytes that a page of a column has, at most, as writers make them.
const PAGE_BYTES: u64 = 1 << 20;

/// How a file of Parquet was written.
#[derive(Debug, Clone)]
pub(crate) struct ParquetOrigin {
    /// Its columns; `None` if files differ.
    pub(crate) columns: Option<TypePtr>,
    /// Notes of the program that wrote it, except Arrow's schema.
    pub(crate) notes: Vec<KeyValue>,
    /// How its leaves were packed.
    pub(crate) leaves: Vec<LeafOrigin>,
}

/// How a leaf of Parquet's schema was packed.
#[derive(Debug, Clone)]
pub(crate) struct LeafOrigin {
    pub(crate) path: ColumnPath,
    pub(crate) compression: Compression,
    /// Whether all its values are numbers of a dictionary.
    pub(crate) has_dictionary: bool,
    /// The encoding of its values, where it is a special one.
    pub(crate) encoding: Option<Encoding>,
}

impl ParquetOrigin {
    /// A file without rows that says the same, except how leaves were packed; `None` if columns are not known.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        let columns = Arc::clone(self.columns.as_ref()?);
        let notes = WriterProperties::builder().set_key_value_metadata(Some(self.notes.clone()));
        let mut bytes = Vec::new();
        let file = SerializedFileWriter::new(&mut bytes, columns, Arc::new(notes.build()));
        file.and_then(SerializedFileWriter::close).ok()?;
        Some(bytes)
    }

    /// The notes of such a file; `None` if it is damaged.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Option<ParquetOrigin> {
        let bytes = Bytes::from(bytes);
        let read = || ParquetMetaDataReader::new().parse_and_finish(&bytes);
        let metadata = contained::run(Cause::Input, read).ok()?.ok()?;
        Some(ParquetOrigin::of_file(&metadata))
    }

    pub(crate) fn without_columns(self) -> ParquetOrigin {
        ParquetOrigin { columns: None, ..self }
    }

    fn of_file(metadata: &ParquetMetaData) -> ParquetOrigin {
        let file = metadata.file_metadata();
        let notes = file.key_value_metadata().cloned().unwrap_or_default();
        let notes =
            notes.into_iter().filter(|note| note.key != parquet::arrow::ARROW_SCHEMA_META_KEY);
        let leaves = match metadata.row_groups().first() {
            None => Vec::new(),
            Some(first) => (0..first.num_columns())
                .map(|leaf| LeafOrigin::of_groups(leaf, metadata.row_groups()))
                .collect(),
        };
        ParquetOrigin {
            columns: Some(file.schema_descr().root_schema_ptr()),
            notes: notes.collect(),
            leaves,
        }
    }
}

impl LeafOrigin {
    fn of_groups(leaf: usize, groups: &[RowGroupMetaData]) -> LeafOrigin {
        let first = groups[0].column(leaf);
        let is_number = |encoding: Encoding| {
            matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY)
        };
        // A column whose dictionary grew too large has pages of plain values behind the others.
        let has_dictionary = groups.iter().map(|group| group.column(leaf)).all(|chunk| {
            chunk.dictionary_page_offset().is_some()
                && chunk
                    .page_encoding_stats_mask()
                    .is_none_or(|mask| mask.encodings().all(is_number))
        });
        let special = |encoding: &Encoding| {
            matches!(
                encoding,
                Encoding::DELTA_BINARY_PACKED
                    | Encoding::DELTA_LENGTH_BYTE_ARRAY
                    | Encoding::DELTA_BYTE_ARRAY
                    | Encoding::BYTE_STREAM_SPLIT
            )
        };
        LeafOrigin {
            path: first.column_path().clone(),
            compression: first.compression(),
            has_dictionary,
            encoding: first.encodings().find(special),
        }
    }
}

fn open(
    file: &TableFile,
    ahead_bytes: u64,
    tail: Option<ObjectTail>,
) -> Result<(OpenContent, ArrowReaderMetadata), TableError> {
    let opened = file.open(ahead_bytes, tail)?;
    let load = || ArrowReaderMetadata::load(&opened, ArrowReaderOptions::new());
    let metadata = file.guarded(&opened, "", load)?;
    Ok((opened, metadata))
}

/// Looks at a file.
pub(super) fn look(mut file: TableFile, tail: Option<ObjectTail>) -> Result<Looked, TableError> {
    let tail_bytes = tail.as_ref().and_then(described_bytes);
    let (_, loaded) = open(&file, 0, tail)?;
    let is_object = match &mut file.content {
        FileContent::Object { tail_bytes: known, .. } => {
            // The next reader takes it in one request.
            *known = tail_bytes.unwrap_or(*known);
            true
        }
        FileContent::Disk | FileContent::Given(_) => false,
    };
    let metadata = loaded.metadata();
    let groups = metadata.row_groups();
    let descriptor = metadata.file_metadata().schema_descr();
    let positive = |number: i64| u64::try_from(number).unwrap_or(0);
    let part = |(number, group): (usize, &RowGroupMetaData)| TablePart {
        number,
        rows: positive(group.num_rows()),
        bytes: positive(group.total_byte_size()),
        reader_bytes: group
            .columns()
            .iter()
            .map(|chunk| positive(chunk.uncompressed_size()).min(PAGE_BYTES))
            .sum(),
        ahead: if is_object { ahead_of(group) } else { AheadBytes::default() },
    };
    let parts = groups.iter().enumerate().map(part).collect();
    // A column that is a leaf may have nulls, unless the statistics of all row groups count 0 of them.
    let mut may_be_null = vec![true; loaded.schema().fields().len()];
    for leaf in 0..descriptor.num_columns() {
        let root = descriptor.get_column_root_idx(leaf);
        if descriptor.get_column_root(leaf).is_primitive() {
            may_be_null[root] = groups.iter().any(|group| {
                let statistics = group.column(leaf).statistics();
                statistics.and_then(|statistics| statistics.null_count_opt()) != Some(0)
            });
        }
    }
    Ok(Looked {
        file: file.with_parts(parts),
        schema: Arc::clone(loaded.schema()),
        may_be_null,
        origin: Some(ParquetOrigin::of_file(metadata)),
    })
}

/// Bytes at the end of a file that describe it, as its last ones say.
fn described_bytes(tail: &ObjectTail) -> Option<u64> {
    let end = tail.bytes.len().checked_sub(8)?;
    let length = tail.bytes[end..].first_chunk::<4>()?;
    Some(u64::from(u32::from_le_bytes(*length)) + 8)
}

/// The memory for pieces of a row group that are read ahead.
fn ahead_of(group: &RowGroupMetaData) -> AheadBytes {
    let bytes =
        || group.columns().iter().map(|chunk| u64::try_from(chunk.compressed_size()).unwrap_or(0));
    AheadBytes { least: pieces::least_bytes(bytes()), most: pieces::most_bytes(bytes().sum()) }
}

/// Reads row groups.
pub(crate) struct ParquetReader {
    file: TableFile,
    parts: Range<usize>,
    opened: OpenContent,
    metadata: ArrowReaderMetadata,
    reader: Option<PartReader>,
}

/// A reader of one row group.
struct PartReader {
    number: usize,
    /// Where it reads, for errors.
    place: String,
    batches: ParquetRecordBatchReader,
}

impl ParquetReader {
    pub(super) fn open(
        file: &TableFile,
        parts: Range<usize>,
        ahead_bytes: u64,
    ) -> Result<ParquetReader, TableError> {
        let (opened, loaded) = open(file, ahead_bytes, None)?;
        let plain = plain_schema(loaded.schema(), Held::AsViews);
        let options = ArrowReaderOptions::new().with_schema(plain);
        let metadata = file.guarded(&opened, "", || {
            ArrowReaderMetadata::try_new(Arc::clone(loaded.metadata()), options)
        })?;
        Ok(ParquetReader { file: file.clone(), parts, opened, metadata, reader: None })
    }

    pub(super) fn next(&mut self) -> Result<Option<(usize, RecordBatch)>, TableError> {
        loop {
            if let Some(PartReader { number, place, batches }) = &mut self.reader {
                let batch =
                    self.file.guarded(&self.opened, place, || batches.next().transpose())?;
                if let Some(batch) = batch {
                    return Ok(Some((*number, batch)));
                }
                self.reader = None;
            }
            let Some(part) = self.parts.next() else { return Ok(None) };
            self.reader = Some(self.reader_of(self.file.parts[part])?);
        }
    }

    fn reader_of(&self, part: TablePart) -> Result<PartReader, TableError> {
        let place = format!(", row group {}", part.number);
        let row_bytes = part.bytes / part.rows.max(1);
        let rows = (BATCH_BYTES / row_bytes.max(1)).clamp(1, BATCH_ROWS);
        let next = self.parts.clone().next().map(|next| self.file.parts[next].number);
        let batches = self.file.guarded(&self.opened, &place, || {
            self.opened.read_ahead(part.number, next, |group| {
                let columns = self.metadata.metadata().row_group(group).columns().iter();
                let place = |(start, length): (u64, u64)| start..start.saturating_add(length);
                columns.map(|column| place(column.byte_range())).collect()
            });
            let opened = self.opened.clone();
            ParquetRecordBatchReaderBuilder::new_with_metadata(opened, self.metadata.clone())
                .with_row_groups(vec![part.number])
                .with_batch_size(rows as usize)
                .build()
        })?;
        Ok(PartReader { number: part.number, place, batches })
    }
}
