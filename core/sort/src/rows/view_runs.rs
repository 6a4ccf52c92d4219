//! Runs that stay, as a view whose rows are combined when they are read.
//!
//! ```text
//!   buffer ─► run of the view                      as long as a reader has memory for the fences of all runs
//!   buffer ─► temporary run ─┬─► merged ─► one more run of the view
//!   buffer ─► temporary run ─┘
//! ```

use std::sync::Arc;

use merganser_storage::Directory;
use parking_lot::{Condvar, Mutex};

use super::merge::{CombinedRows, SHORT};
use super::table::BUILDER_BYTES;
use super::{Combiner, RowStream};
use crate::key::OrderSpec;
use crate::plan::RunPlan;
use crate::record::Format;
use crate::run::{Compression, RunBuilder, RunWriter};
use crate::view::Segment;
use crate::{Budget, Error};

/// The shortest blocks of such runs, and the longest.
const BLOCK_BYTES: u32 = 32 << 10;
const BLOCK_BYTES_MAX: u64 = 1 << 20;
/// Blocks of a run that a reader has memory for, its fences apart, and that memory at least, in bytes.
const RUN_BLOCKS: u64 = 8;
const RUN_BYTES_MIN: u64 = 2 << 20;
/// The most that a fence takes, in bytes.
const FENCE_BYTES: u64 = 400;

/// Appends the record of a row as the view has it: a length-prefixed record.
pub type RecordOfRow = Arc<dyn Fn(&[u8], &[u8], &mut Vec<u8>) + Send + Sync>;

/// The runs of a view, as far as they are written.
pub(super) struct ViewRuns {
    folder: Arc<dyn Directory>,
    record: RecordOfRow,
    packed: Compression,
    producers: usize,
    /// The memory of a sort: a view is read in about as much.
    memory_bytes: u64,
    written: Mutex<WrittenRuns>,
    /// Another run may be written.
    ended: Condvar,
}

#[derive(Default)]
struct WrittenRuns {
    /// Each with the number of its producer.
    segments: Vec<(usize, Segment)>,
    /// Runs that were begun.
    begun: usize,
    /// How many more may be written at once.
    free: usize,
    bytes: u64,
    records: u64,
    key_bytes: u64,
}

impl ViewRuns {
    pub(super) fn new(
        (folder, record, packed): (Arc<dyn Directory>, RecordOfRow, Compression),
        memory_bytes: u64,
        producers: usize,
    ) -> Self {
        let free = view_writers(memory_bytes, producers);
        let written = Mutex::new(WrittenRuns { free, ..WrittenRuns::default() });
        let ended = Condvar::new();
        ViewRuns { folder, record, packed, producers, memory_bytes, written, ended }
    }

    /// Whether a run of `bytes` has room in the view: a reader needs memory for the fences of all runs, and for a
    /// few blocks of each.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        let written = self.written.lock();
        let block = u64::from(block_bytes(written.bytes + bytes, self.memory_bytes));
        let run_bytes = (RUN_BLOCKS * block).max(RUN_BYTES_MIN);
        // Each producer may have one more, of what has no room.
        let runs = written.begun + self.producers - 1;
        if runs as u64 * run_bytes >= self.memory_bytes {
            return false;
        }
        let mean_key = written.key_bytes as f64 / written.records.max(1) as f64;
        written.begun == 0
            || written.bytes + bytes <= RunPlan::stream_bytes_max(self.memory_bytes, mean_key)
    }

    /// Writes all rows of `rows`, of about `bytes`, as one more run of this producer. As many are written at once as
    /// [`view_writers`] says.
    pub(super) fn write<S: RowStream, C: Combiner>(
        &self,
        producer: usize,
        rows: &mut CombinedRows<S, C>,
        bytes: u64,
        budget: &Budget,
        mut row: impl FnMut(u64) -> Result<(), C::Error>,
    ) -> Result<(), C::Error>
    where
        C::Error: From<S::Error>,
    {
        let turn = self.turn();
        let order = OrderSpec::new(Format::Keyed);
        let spec = serde_json::to_string(&order).expect("plain data");
        let _memory = budget.reserve(BUILDER_BYTES, "writing a view")?;
        let fences = budget.reserve(0, "writing a view")?;
        let mut copy = budget.reserve(0, "writing a view")?;
        let name = format!("{:06}.run", turn.number);
        let storage = self.folder.create(&name).map_err(Error::from)?;
        let block = block_bytes(turn.written_bytes + bytes, self.memory_bytes);
        let writer = RunWriter::new(storage, block, self.packed, None, fences)?;
        let mut builder = RunBuilder::new(writer, order.compile(None).map_err(Error::from)?)?;
        let mut record = Vec::new();
        let mut key_bytes = 0;
        let mut records = 0;
        while rows.advance_parts(|key, value| {
            record.clear();
            (self.record)(key, value, &mut record);
            key_bytes += key.len() as u64;
            records += 1;
            if record.len() > SHORT {
                copy.grow_to(record.capacity() as u64)?;
            }
            builder.append(&record)?;
            row(record.len() as u64)
        })? {}
        let segment = Segment::of_run(&builder.finish(&spec, true)?);
        let mut written = self.written.lock();
        written.bytes += segment.bytes;
        written.records += records;
        written.key_bytes += key_bytes;
        written.segments.push((producer, segment));
        Ok(())
    }

    /// Waits until one more run may be written.
    fn turn(&self) -> WriterTurn<'_> {
        let mut written = self.written.lock();
        while written.free == 0 {
            self.ended.wait(&mut written);
        }
        written.free -= 1;
        written.begun += 1;
        WriterTurn { runs: self, number: written.begun - 1, written_bytes: written.bytes }
    }

    /// All runs, in the order of their producers.
    pub(super) fn take(&self) -> Vec<Segment> {
        let mut segments = std::mem::take(&mut self.written.lock().segments);
        segments.sort_by_key(|(producer, _)| *producer);
        segments.into_iter().map(|(_, segment)| segment).collect()
    }
}

/// How many runs of a view are written at once, where `free_bytes` are free: as many as have a sixteenth of it for their
/// buffers.
pub(super) fn view_writers(free_bytes: u64, producers: usize) -> usize {
    ((free_bytes / 16 / BUILDER_BYTES) as usize).clamp(1, producers.max(1))
}

/// One of the runs that are written at once.
struct WriterTurn<'a> {
    runs: &'a ViewRuns,
    number: usize,
    /// Bytes of all runs before it.
    written_bytes: u64,
}

impl Drop for WriterTurn<'_> {
    fn drop(&mut self) {
        self.runs.written.lock().free += 1;
        self.runs.ended.notify_one();
    }
}

/// Blocks so long that the fences of all bytes take a sixteenth of the memory at most, if there are such blocks.
fn block_bytes(bytes: u64, memory_bytes: u64) -> u32 {
    let wanted = bytes.saturating_mul(16 * FENCE_BYTES) / memory_bytes.max(1);
    let wanted = wanted.clamp(u64::from(BLOCK_BYTES), BLOCK_BYTES_MAX);
    wanted.next_power_of_two() as u32
}
