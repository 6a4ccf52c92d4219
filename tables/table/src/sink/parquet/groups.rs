//! Rows to row groups, by all processors, in order.
//!
//! ```text
//!   this thread     rows ─► piece ─► piece ─► piece ...                a piece is a row group
//!   each worker     piece ─► batches ─► columns, packed ─► GroupSink   in the order of the pieces
//! ```

use arrow_schema::SchemaRef;
use merganser_sort::{Budget, Progress};
use parking_lot::{Condvar, Mutex};
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, compute_leaves};

use super::ParquetOptions;
use super::group_sink::{EncodedGroup, GroupSink};
use crate::TableError;
use crate::codec::{BatchDecoder, TableLayout};
use crate::key::prefix_len;
use crate::sink::batches::WantedColumns;
use crate::table_rows::{Piece, TableRows};

/// Rows between two looks at whether the work was cancelled.
const CHECK_ROWS: u64 = 4096;
/// Pieces and what they become take half of the memory, at most.
const MEMORY_PARTS: u64 = 2;
/// A piece is never shorter than this, in bytes, unless its file is.
const PIECE_BYTES_MIN: u64 = 1 << 20;
/// A file of a size has this many row groups, at least, so that it can end near that size.
const GROUPS_PER_FILE: u64 = 4;

/// Where row groups end.
#[derive(Clone, Copy)]
pub(super) struct GroupCut {
    rows: u64,
    bytes: u64,
    /// Bytes of all pieces, and of what they become.
    all_bytes: u64,
    workers: usize,
}

impl GroupCut {
    /// Row groups of files of `file_bytes`, if there is such a limit. A piece, and about as much of its columns, for each
    /// worker; the piece that waits, and the piece that is filled.
    pub(super) fn new(
        budget: &Budget,
        threads: usize,
        options: &ParquetOptions,
        file_bytes: Option<u64>,
    ) -> GroupCut {
        let workers = threads.max(1);
        let pieces = 2 * workers as u64 + 2;
        let share = budget.limit_bytes() / MEMORY_PARTS / pieces;
        let bytes = share.min(options.group_bytes).max(PIECE_BYTES_MIN);
        let bytes = bytes.min(file_bytes.map_or(u64::MAX, |bytes| bytes / GROUPS_PER_FILE).max(1));
        GroupCut { rows: options.group_rows, bytes, all_bytes: bytes * pieces, workers }
    }

    /// The memory that [`write_groups`] takes.
    pub(super) fn memory_bytes(self) -> u64 {
        self.all_bytes
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
    sink: Option<&'a mut dyn GroupSink>,
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

/// The columns of row groups: how rows become columns, which of these are written, and how they are packed.
#[derive(Clone, Copy)]
pub(super) struct GroupColumns<'a> {
    pub(super) layout: &'a TableLayout,
    pub(super) wanted: &'a WantedColumns,
    pub(super) plain: &'a SchemaRef,
    pub(super) factory: &'a ArrowRowGroupWriterFactory,
}

/// Hands all rows to `sink` as row groups; how many rows.
///
/// # Errors
/// Those of the rows and of `sink`; [`merganser_sort::Error::Cancelled`].
pub(super) fn write_groups(
    rows: &mut dyn TableRows,
    columns: GroupColumns<'_>,
    sink: &mut dyn GroupSink,
    (cut, budget): (GroupCut, &Budget),
    progress: &dyn Progress,
) -> Result<u64, TableError> {
    let reserved = cut.all_bytes.min(budget.free_bytes());
    let _memory = budget.reserve(reserved, "writing Parquet")?;
    let written = Written {
        state: Mutex::new(WrittenState {
            waiting: None,
            free: Vec::new(),
            is_last: false,
            next: 0,
            sink: Some(sink),
            failure: None,
            failed: false,
        }),
        changed: Condvar::new(),
    };
    let count = std::thread::scope(|scope| {
        for _ in 0..cut.workers {
            let work = || {
                let _alarm = WriterAlarm(&written);
                if let Err(error) = work_on(&written, columns) {
                    written.fail(Some(error));
                }
            };
            if let Err(error) = merganser_storage::thread::spawn_scoped(scope, "parquet", work) {
                written.fail(Some(merganser_sort::Error::from(error).into()));
            }
        }
        let _alarm = WriterAlarm(&written);
        let sent = send_pieces(rows, &written, columns.layout, cut, progress);
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
    state.sink.take().expect("no worker holds it").finish()?;
    Ok(count)
}

/// Cuts rows into pieces, and hands them to workers.
fn send_pieces(
    rows: &mut dyn TableRows,
    written: &Written<'_>,
    layout: &TableLayout,
    cut: GroupCut,
    progress: &dyn Progress,
) -> Result<u64, TableError> {
    let (mut count, mut number, mut piece, mut told) = (0, 0, Piece::default(), 0);
    let mut partition = Vec::new();
    let cancelled = || TableError::from(merganser_sort::Error::Cancelled);
    while let Some((key, value)) = rows.next()? {
        if layout.partitions > 0 && !(count > 0 && key.starts_with(&partition)) {
            if piece.rows() > 0 {
                piece = send(piece, number, written).ok_or_else(cancelled)?;
                number += 1;
            }
            partition.clear();
            partition.extend_from_slice(partition_of(layout, key)?);
        }
        piece.push(key, value);
        count += 1;
        told += (key.len() + value.len()) as u64;
        if count % CHECK_ROWS == 0 {
            progress.advance(std::mem::take(&mut told));
            if progress.cancelled() {
                return Err(cancelled());
            }
        }
        if piece.rows() as u64 >= cut.rows || piece.bytes() as u64 >= cut.bytes {
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

/// The beginning of a key that the keys of its partition have, and no others.
fn partition_of<'a>(layout: &TableLayout, key: &'a [u8]) -> Result<&'a [u8], TableError> {
    let len = prefix_len(&layout.keys[..layout.partitions], key);
    len.map(|len| &key[..len]).ok_or(TableError::DamagedRow)
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
fn work_on(written: &Written<'_>, columns: GroupColumns<'_>) -> Result<(), TableError> {
    let mut decoder = BatchDecoder::new(columns.layout);
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
        let group = encode_group(&piece, number, &mut decoder, columns)?;
        let mut state = written.state.lock();
        state.free.push(piece);
        while state.next != number && !state.failed {
            written.changed.wait(&mut state);
        }
        if state.failed {
            return Ok(());
        }
        let sink = state.sink.take().expect("the one whose turn it is has it");
        drop(state);
        let ended = sink.append(group)?;
        let mut state = written.state.lock();
        state.sink = Some(sink);
        state.next += 1;
        written.changed.notify_all();
        drop(state);
        // The others continue while the disk makes the file durable.
        if let Some(ended) = ended {
            ended.complete()?;
        }
    }
}

fn encode_group(
    piece: &Piece,
    number: usize,
    decoder: &mut BatchDecoder<'_>,
    GroupColumns { layout, wanted, plain, factory }: GroupColumns<'_>,
) -> Result<EncodedGroup, TableError> {
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
    let chunks = writers.into_iter().map(|writer| writer.close().map_err(TableError::Parquet));
    let first = piece.keys_and_values().next();
    let partition = first.map(|(key, _)| partition_of(layout, key)).transpose()?;
    Ok(EncodedGroup {
        chunks: chunks.collect::<Result<_, _>>()?,
        partition: partition.unwrap_or_default().to_vec(),
    })
}
