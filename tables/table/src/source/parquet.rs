//! Files of Parquet.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use merganser_storage::contained::{self, Cause};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::{
    ColumnChunkMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, TypePtr};

use super::content::OpenContent;
use super::ends::ObjectTail;
use super::opened::OpenedFile;
use super::{
    AheadBytes, FileContent, FileKind, Looked, SelectedRows, TableFile, TablePart, pieces,
};
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

/// A file of Parquet on a disk that is open, for any number of readers.
#[derive(Clone)]
pub(crate) struct OpenedParquet {
    pub(crate) file: OpenedFile,
    /// With the plain forms of its columns.
    plain: ArrowReaderMetadata,
}

/// What a file says of itself.
fn load(file: &TableFile, content: &OpenContent) -> Result<ArrowReaderMetadata, TableError> {
    let load = || ArrowReaderMetadata::load(content, ArrowReaderOptions::new());
    file.guarded(content, "", load)
}

/// The same with the plain forms of its columns.
fn plain_forms(
    file: &TableFile,
    content: &OpenContent,
    loaded: &ArrowReaderMetadata,
) -> Result<ArrowReaderMetadata, TableError> {
    let plain = plain_schema(loaded.schema(), Held::AsViews);
    let options = ArrowReaderOptions::new().with_schema(plain);
    let forms = || ArrowReaderMetadata::try_new(Arc::clone(loaded.metadata()), options);
    file.guarded(content, "", forms)
}

impl OpenedParquet {
    /// Opens the file at `path` and looks at it.
    ///
    /// # Errors
    /// The system's own; damage.
    pub(super) fn open(path: &Path) -> Result<(OpenedParquet, Looked), TableError> {
        let table_file = TableFile::new(path, FileKind::Parquet, FileContent::Disk);
        let file = OpenedFile::open(&table_file.path)?;
        let content = OpenContent::Disk(file.clone());
        let loaded = load(&table_file, &content)?;
        let plain = plain_forms(&table_file, &content, &loaded)?;
        Ok((OpenedParquet { file, plain }, looked(table_file, &loaded)))
    }

    /// How many columns are in the file itself.
    pub(super) fn columns(&self) -> usize {
        self.plain.schema().fields().len()
    }

    /// About how much memory the pages take that a reader of these columns holds, in bytes.
    pub(super) fn page_bytes(&self, columns: &[usize]) -> u64 {
        let metadata = self.plain.metadata();
        let of_group = |group| chunks(metadata, group, Some(columns)).map(page_bytes).sum();
        metadata.row_groups().iter().map(of_group).max().unwrap_or(0)
    }
}

/// The leaves of a row group that are in these columns, or in all.
fn chunks<'a>(
    metadata: &'a ParquetMetaData,
    group: &'a RowGroupMetaData,
    // Rising numbers.
    columns: Option<&'a [usize]>,
) -> impl Iterator<Item = &'a ColumnChunkMetaData> {
    let schema = metadata.file_metadata().schema_descr();
    let leaves = group.columns().iter().enumerate();
    let is_wanted = move |leaf: usize| {
        columns
            .is_none_or(|columns| columns.binary_search(&schema.get_column_root_idx(leaf)).is_ok())
    };
    leaves.filter(move |(leaf, _)| is_wanted(*leaf)).map(|(_, chunk)| chunk)
}

fn positive(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Bytes of a page of these values, at most, as writers make them.
fn page_bytes(chunk: &ColumnChunkMetaData) -> u64 {
    positive(chunk.uncompressed_size()).min(PAGE_BYTES)
}

/// Looks at a file.
pub(super) fn look(mut file: TableFile, tail: Option<ObjectTail>) -> Result<Looked, TableError> {
    let tail_bytes = tail.as_ref().and_then(described_bytes);
    let content = file.open(0, tail)?;
    let loaded = load(&file, &content)?;
    if let FileContent::Object { tail_bytes: known, .. } = &mut file.content {
        // The next reader takes it in one request.
        *known = tail_bytes.unwrap_or(*known);
    }
    Ok(looked(file, &loaded))
}

fn looked(file: TableFile, loaded: &ArrowReaderMetadata) -> Looked {
    let is_object = matches!(file.content, FileContent::Object { .. });
    let metadata = loaded.metadata();
    let groups = metadata.row_groups();
    let descriptor = metadata.file_metadata().schema_descr();
    let part = |(number, group): (usize, &RowGroupMetaData)| TablePart {
        number,
        rows: positive(group.num_rows()),
        bytes: positive(group.total_byte_size()),
        reader_bytes: chunks(metadata, group, None).map(page_bytes).sum(),
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
    Looked {
        file: file.with_parts(parts),
        schema: Arc::clone(loaded.schema()),
        may_be_null,
        origin: Some(ParquetOrigin::of_file(metadata)),
    }
}

/// Bytes at the end of a file that describe it, as its last ones say.
fn described_bytes(tail: &ObjectTail) -> Option<u64> {
    let end = tail.bytes.len().checked_sub(8)?;
    let length = tail.bytes[end..].first_chunk::<4>()?;
    Some(u64::from(u32::from_le_bytes(*length)) + 8)
}

/// The memory for pieces of a row group that are read ahead.
fn ahead_of(group: &RowGroupMetaData) -> AheadBytes {
    let bytes = || group.columns().iter().map(|chunk| positive(chunk.compressed_size()));
    AheadBytes { least: pieces::least_bytes(bytes()), most: pieces::most_bytes(bytes().sum()) }
}

/// Reads row groups.
pub(crate) struct ParquetReader {
    file: TableFile,
    content: OpenContent,
    /// With the plain forms of its columns.
    plain: ArrowReaderMetadata,
    parts: VecDeque<TablePart>,
    /// Rows of the next part that are left out.
    skipped: u64,
    /// The columns of the file that are read; `None` for all.
    columns: Option<Vec<usize>>,
    /// Bytes of values of a batch, about, and its rows at most.
    batch: (u64, u64),
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
        let content = file.open(ahead_bytes, None)?;
        let loaded = load(file, &content)?;
        let plain = plain_forms(file, &content, &loaded)?;
        let parts = file.parts[parts].iter().copied().collect();
        let (skipped, columns, batch) = (0, None, (BATCH_BYTES, BATCH_ROWS));
        let file = file.clone();
        Ok(ParquetReader { file, content, plain, parts, skipped, columns, batch, reader: None })
    }

    /// A reader of some rows and columns of a file that is open.
    pub(super) fn of_opened(
        opened: &OpenedParquet,
        file: &TableFile,
        selected: &SelectedRows,
    ) -> ParquetReader {
        let parts = &file.parts;
        let (mut skipped, mut first) = (selected.first_row, 0);
        while let Some(part) = parts.get(first).filter(|part| part.rows <= skipped) {
            skipped -= part.rows;
            first += 1;
        }
        let own = selected.columns.iter().copied().filter(|column| *column < opened.columns());
        ParquetReader {
            file: file.clone(),
            content: OpenContent::Disk(opened.file.clone()),
            plain: opened.plain.clone(),
            parts: parts[first..].iter().copied().collect(),
            skipped,
            columns: Some(own.collect()),
            batch: (selected.batch_bytes.min(BATCH_BYTES), selected.batch_rows.min(BATCH_ROWS)),
            reader: None,
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<(usize, RecordBatch)>, TableError> {
        loop {
            if let Some(PartReader { number, place, batches }) = &mut self.reader {
                let next = || batches.next().transpose();
                let batch = self.file.guarded(&self.content, place, next)?;
                if let Some(batch) = batch {
                    return Ok(Some((*number, batch)));
                }
                self.reader = None;
            }
            let Some(part) = self.parts.pop_front() else { return Ok(None) };
            let skipped = std::mem::take(&mut self.skipped);
            self.reader = Some(self.reader_of(part, skipped)?);
        }
    }

    /// A reader of the rows of a row group behind the first `skipped` ones.
    fn reader_of(&self, part: TablePart, skipped: u64) -> Result<PartReader, TableError> {
        let plain = &self.plain;
        let place = format!(", row group {}", part.number);
        let bytes = match &self.columns {
            None => part.bytes,
            Some(columns) => {
                let group = plain.metadata().row_group(part.number);
                let chunks = chunks(plain.metadata(), group, Some(columns));
                chunks.map(|chunk| positive(chunk.uncompressed_size())).sum()
            }
        };
        let (batch_bytes, batch_rows) = self.batch;
        let rows = (batch_bytes / (bytes / part.rows.max(1)).max(1)).clamp(1, batch_rows);
        let next = self.parts.front().map(|next| next.number);
        let batches = self.file.guarded(&self.content, &place, || {
            self.content.read_ahead(part.number, next, |group| {
                let columns = plain.metadata().row_group(group).columns().iter();
                let place = |(start, length): (u64, u64)| start..start.saturating_add(length);
                columns.map(|column| place(column.byte_range())).collect()
            });
            let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
                self.content.clone(),
                plain.clone(),
            )
            .with_row_groups(vec![part.number])
            .with_batch_size(rows as usize);
            if let Some(columns) = &self.columns {
                let roots = columns.iter().copied();
                let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
                builder = builder.with_projection(mask);
            }
            if skipped > 0 {
                // Pages of these rows are stepped over by their own headers. An index of pages could be wrong, and nothing
                // would tell.
                let others = part.rows - skipped;
                let selectors =
                    [RowSelector::skip(skipped as usize), RowSelector::select(others as usize)];
                builder = builder.with_row_selection(RowSelection::from(selectors.to_vec()));
            }
            builder.build()
        })?;
        Ok(PartReader { number: part.number, place, batches })
    }
}
