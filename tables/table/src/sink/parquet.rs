//! Files of Parquet.
//!
//! ```text
//!   this thread     rows ─► piece ─► piece ─► piece ...             a piece is a row group
//!   each worker     piece ─► batches ─► columns, packed ─► file     in the order of the pieces
//! ```

use std::io::Write;
use std::str::FromStr;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use merganser_sort::{Budget, Progress};
use parking_lot::{Condvar, Mutex};
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowSchemaConverter, encode_arrow_schema};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{SchemaDescriptor, TypePtr};

use super::batches::WantedColumns;
use crate::TableError;
use crate::codec::{BatchDecoder, TableLayout};
use crate::key::NullsAt;
use crate::schema::parquet_type;
use crate::source::ParquetOrigin;
use crate::table_rows::{Piece, TableRows};
use crate::types::{Held, plain_schema};

/// Rows between two looks at whether the work was cancelled.
const CHECK_ROWS: u64 = 4096;
/// Pieces and what they become take half of the memory, at most.
const MEMORY_PARTS: u64 = 2;
/// A piece is never shorter than this, in bytes.
const PIECE_BYTES_MIN: u64 = 1 << 20;

/// How pages of columns are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParquetCompression {
    /// Not at all.
    None,
    /// Snappy: quick.
    Snappy,
    /// LZ4, as blocks.
    Lz4,
    /// Zstandard: small.
    Zstd,
    /// Deflate, for old readers.
    Gzip,
}

impl FromStr for ParquetCompression {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        Ok(match typed {
            "none" | "off" => ParquetCompression::None,
            "snappy" => ParquetCompression::Snappy,
            "lz4" => ParquetCompression::Lz4,
            "zstd" => ParquetCompression::Zstd,
            "gzip" => ParquetCompression::Gzip,
            _ => return Err("choose none, snappy, lz4, zstd or gzip".to_owned()),
        })
    }
}

impl ParquetCompression {
    fn codec(self) -> Compression {
        match self {
            ParquetCompression::None => Compression::UNCOMPRESSED,
            ParquetCompression::Snappy => Compression::SNAPPY,
            ParquetCompression::Lz4 => Compression::LZ4_RAW,
            ParquetCompression::Zstd => Compression::ZSTD(ZstdLevel::default()),
            ParquetCompression::Gzip => Compression::GZIP(GzipLevel::default()),
        }
    }
}

/// How Parquet is written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ParquetOptions {
    /// The packing of all columns; `None` for that of each column of the input.
    pub compression: Option<ParquetCompression>,
    /// Rows of a row group, at most.
    pub group_rows: u64,
    /// Bytes of values of a row group, about.
    pub group_bytes: u64,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        ParquetOptions { compression: None, group_rows: 128 << 10, group_bytes: 128 << 20 }
    }
}

/// The types of a result, and how its columns are packed.
fn plan(
    layout: &TableLayout,
    wanted: &WantedColumns,
    origin: Option<&ParquetOrigin>,
    options: &ParquetOptions,
) -> Result<(TypePtr, WriterPropertiesPtr), TableError> {
    let own = &wanted.schema;
    let derived = ArrowSchemaConverter::new().convert(own).map_err(TableError::Parquet)?;
    let columns = origin.and_then(|origin| origin.columns.as_ref());
    let root = match columns {
        Some(root) => parquet_type(root, derived.root_schema()),
        None => derived.root_schema_ptr(),
    };
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("merganser ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(options.compression.unwrap_or(ParquetCompression::Snappy).codec());
    let descriptor = SchemaDescriptor::new(Arc::clone(&root));
    for leaf in origin.iter().flat_map(|origin| &origin.leaves) {
        if !descriptor.columns().iter().any(|column| *column.path() == leaf.path) {
            continue;
        }
        let path = || leaf.path.clone();
        properties = properties.set_column_dictionary_enabled(path(), leaf.has_dictionary);
        if options.compression.is_none() {
            properties = properties.set_column_compression(path(), written(leaf.compression));
        }
        if let Some(encoding) = leaf.encoding.filter(|_| !leaf.has_dictionary) {
            properties = properties.set_column_encoding(path(), encoding);
        }
    }
    // Sorting columns are named by the number of their leaf.
    let leaf_of = |index: usize| {
        (0..descriptor.num_columns()).find(|leaf| descriptor.get_column_root_idx(*leaf) == index)
    };
    let sorting = layout.keys.iter().map_while(|key| {
        let index = wanted.numbers.iter().position(|number| *number == key.index)?;
        Some(SortingColumn {
            column_idx: i32::try_from(leaf_of(index)?).ok()?,
            descending: key.descending,
            nulls_first: key.nulls == NullsAt::First,
        })
    });
    let sorting: Vec<_> = sorting.collect();
    properties = properties.set_sorting_columns((!sorting.is_empty()).then_some(sorting));
    let mut notes = origin.map_or_else(Vec::new, |origin| origin.notes.clone());
    notes.push(KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(own)));
    properties = properties.set_key_value_metadata(Some(notes));
    Ok((root, Arc::new(properties.build())))
}

/// The packing of an input, where it can be written.
fn written(input: Compression) -> Compression {
    match input {
        // Hadoop's own frame of LZ4, which Parquet gave up.
        Compression::LZ4 => Compression::LZ4_RAW,
        other => other,
    }
}

/// What all workers share.
struct Written<'a> {
    state: Mutex<WrittenState<'a>>,
    changed: Condvar,
}

struct WrittenState<'a> {
    /// Pieces that wait for a worker, with their numbers.
    waiting: Option<(usize, Piece)>,
    /// Pieces whose rows are written.
    free: Vec<Piece>,
    /// No more pieces will come.
    is_last: bool,
    /// The number of the group that is written next.
    next: usize,
    file: Option<SerializedFileWriter<&'a mut (dyn Write + Send)>>,
    failure: Option<TableError>,
    failed: bool,
}

impl Written<'_> {
    fn fail(&self, error: Option<TableError>) {
        let mut state = self.state.lock();
        if !std::mem::replace(&mut state.failed, true) {
            state.failure = error;
        }
        self.changed.notify_all();
    }
}

/// Ends the work of all when one thread panics.
struct WriterAlarm<'a, 'b>(&'a Written<'b>);

impl Drop for WriterAlarm<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(None);
        }
    }
}

/// The bytes of a piece, and those of all pieces and what they become: a piece, and about as much of its columns, for each
/// worker; the piece that waits, and the piece that is filled.
fn piece_bytes(budget: &Budget, workers: usize, options: &ParquetOptions) -> (u64, u64) {
    let pieces = 2 * workers as u64 + 2;
    let share = budget.limit_bytes() / MEMORY_PARTS / pieces;
    let piece = share.min(options.group_bytes).max(PIECE_BYTES_MIN);
    (piece, piece * pieces)
}

/// The memory that [`write_parquet`] takes.
pub(crate) fn writer_bytes(budget: &Budget, threads: usize, options: &ParquetOptions) -> u64 {
    piece_bytes(budget, threads.max(1), options).1
}

/// Writes all rows as a file of Parquet to `output`; how many.
///
/// # Errors
/// Those of the rows and of `output`; [`merganser_sort::Error::Cancelled`].
pub(crate) fn write_parquet(
    rows: &mut dyn TableRows,
    (layout, wanted, origin): (&TableLayout, &WantedColumns, Option<&ParquetOrigin>),
    output: &mut (dyn Write + Send),
    options: &ParquetOptions,
    (budget, threads): (&Budget, usize),
    progress: &dyn Progress,
) -> Result<u64, TableError> {
    let (root, properties) = plan(layout, wanted, origin, options)?;
    let file = SerializedFileWriter::new(output, root, properties).map_err(TableError::Parquet)?;
    let plain = plain_schema(&wanted.schema, Held::AsOffsets);
    let factory = ArrowRowGroupWriterFactory::new(&file, Arc::clone(&plain));
    let workers = threads.max(1);
    let (piece_bytes, pieces_bytes) = piece_bytes(budget, workers, options);
    let reserved = pieces_bytes.min(budget.free_bytes());
    let _memory = budget.reserve(reserved, "writing Parquet")?;
    let written = Written {
        state: Mutex::new(WrittenState {
            waiting: None,
            free: Vec::new(),
            is_last: false,
            next: 0,
            file: Some(file),
            failure: None,
            failed: false,
        }),
        changed: Condvar::new(),
    };
    let count = std::thread::scope(|scope| {
        for _ in 0..workers {
            let work = || {
                let _alarm = WriterAlarm(&written);
                if let Err(error) = write_groups(&written, layout, &factory, (wanted, &plain)) {
                    written.fail(Some(error));
                }
            };
            if let Err(error) = merganser_storage::thread::spawn_scoped(scope, "parquet", work) {
                written.fail(Some(merganser_sort::Error::from(error).into()));
            }
        }
        let _alarm = WriterAlarm(&written);
        let sent = send_pieces(rows, &written, (options.group_rows, piece_bytes), progress);
        if sent.is_err() {
            written.fail(None);
        }
        let mut state = written.state.lock();
        state.is_last = true;
        written.changed.notify_all();
        drop(state);
        sent
    });
    let mut state = written.state.into_inner();
    if let Some(error) = state.failure.take() {
        return Err(error);
    }
    let count = count?;
    if state.failed {
        return Err(merganser_sort::Error::Cancelled.into());
    }
    let file = state.file.take().expect("no worker holds it");
    file.close().map_err(of_output)?;
    Ok(count)
}

/// The error of a file that is written: that of its output, if that failed.
pub(super) fn of_output(error: ParquetError) -> TableError {
    match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(error) => merganser_sort::Error::from(*error).into(),
            Err(inner) => TableError::Parquet(ParquetError::External(inner)),
        },
        other => TableError::Parquet(other),
    }
}

/// Cuts rows into pieces, and hands them to workers.
fn send_pieces(
    rows: &mut dyn TableRows,
    written: &Written<'_>,
    (group_rows, piece_bytes): (u64, u64),
    progress: &dyn Progress,
) -> Result<u64, TableError> {
    let (mut count, mut number, mut piece, mut told) = (0, 0, Piece::default(), 0);
    let cancelled = || TableError::from(merganser_sort::Error::Cancelled);
    while let Some((key, value)) = rows.next()? {
        piece.push(key, value);
        count += 1;
        told += (key.len() + value.len()) as u64;
        if count % CHECK_ROWS == 0 {
            progress.advance(std::mem::take(&mut told));
            if progress.cancelled() {
                return Err(cancelled());
            }
        }
        if piece.rows() as u64 >= group_rows || piece.bytes() as u64 >= piece_bytes {
            piece = send(piece, number, written).ok_or_else(cancelled)?;
            number += 1;
        }
    }
    progress.advance(told);
    if piece.rows() > 0 {
        send(piece, number, written).ok_or_else(cancelled)?;
    }
    Ok(count)
}

/// Waits until a worker can take a piece, and returns another one to be filled; `None` if the work has failed.
fn send(piece: Piece, number: usize, written: &Written<'_>) -> Option<Piece> {
    let mut state = written.state.lock();
    while state.waiting.is_some() && !state.failed {
        written.changed.wait(&mut state);
    }
    if state.failed {
        return None;
    }
    state.waiting = Some((number, piece));
    written.changed.notify_all();
    let mut next = state.free.pop().unwrap_or_default();
    next.clear();
    Some(next)
}

/// Writes pieces as row groups until no more come.
fn write_groups(
    written: &Written<'_>,
    layout: &TableLayout,
    factory: &ArrowRowGroupWriterFactory,
    columns: (&WantedColumns, &SchemaRef),
) -> Result<(), TableError> {
    let mut decoder = BatchDecoder::new(layout);
    loop {
        let mut state = written.state.lock();
        let (number, piece) = loop {
            if state.failed {
                return Ok(());
            }
            if let Some(taken) = state.waiting.take() {
                break taken;
            }
            if state.is_last {
                return Ok(());
            }
            written.changed.wait(&mut state);
        };
        written.changed.notify_all();
        drop(state);
        let chunks = encode_group(&piece, number, &mut decoder, factory, columns)?;
        let mut state = written.state.lock();
        state.free.push(piece);
        while state.next != number && !state.failed {
            written.changed.wait(&mut state);
        }
        if state.failed {
            return Ok(());
        }
        let mut file = state.file.take().expect("the one whose turn it is has it");
        drop(state);
        append(chunks, &mut file)?;
        let mut state = written.state.lock();
        state.file = Some(file);
        state.next += 1;
        written.changed.notify_all();
    }
}

fn encode_group(
    piece: &Piece,
    number: usize,
    decoder: &mut BatchDecoder<'_>,
    factory: &ArrowRowGroupWriterFactory,
    (wanted, plain): (&WantedColumns, &SchemaRef),
) -> Result<Vec<ArrowColumnChunk>, TableError> {
    let mut writers = factory.create_column_writers(number).map_err(TableError::Parquet)?;
    decoder.decode(piece, |batch| {
        let mut leaf_writers = writers.iter_mut();
        for (field, number) in plain.fields().iter().zip(&wanted.numbers) {
            for leaf in compute_leaves(field, batch.column(*number)).map_err(TableError::Parquet)? {
                let writer = leaf_writers.next().expect("a writer for each leaf");
                writer.write(&leaf).map_err(TableError::Parquet)?;
            }
        }
        Ok(())
    })?;
    writers.into_iter().map(|writer| writer.close().map_err(TableError::Parquet)).collect()
}

fn append(
    chunks: Vec<ArrowColumnChunk>,
    file: &mut SerializedFileWriter<&mut (dyn Write + Send)>,
) -> Result<(), TableError> {
    let mut group = file.next_row_group().map_err(of_output)?;
    for chunk in chunks {
        chunk.append_to_row_group(&mut group).map_err(of_output)?;
    }
    group.close().map_err(of_output)?;
    Ok(())
}
