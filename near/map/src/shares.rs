//! How a map divides its memory.
//!
//! ```text
//!   ┌─────────────────┬─────────────────────┬───────────────────────────────┐
//!   │ per worker:     │ tables (keyed), or  │ the sort of spills: its least │
//!   │ a chunk, the    │ chunks that wait    │ is kept from the beginning,   │
//!   │ SSDlet's own    │ for their turn      │ the rest until the first one  │
//!   └─────────────────┴─────────────────────┴───────────────────────────────┘
//! ```
//!
//! All sizes are known before the first byte is read. The least that a map needs is reserved then, so
//! that it can't be missing at the first spill; a record longer than a chunk takes of what is left.

use merganser_sort::Error;
use merganser_sort::rows::{CARRY_BYTES, KeepAll, RowSorter, TABLE_WRITER_BYTES};

use super::source::{FEED_BYTES_MIN, buffer_bytes};
use super::{MapInput, MapOptions, PartitionSize};
use crate::ssdlet::{SsdletDescription, SsdletOutput};

/// Chunks are about this long: a worker finds the one that it has just read in its second-level cache, which
/// has 1 MiB or more, next to the part of its table that is used most.
const CHUNK_BYTES: u64 = 512 << 10;
const CHUNK_BYTES_MIN: u64 = 64 << 10;
/// Chunks get up to this part (1 / 8) of the memory above the least.
const CHUNKS_SHARE: u64 = 8;
/// A stream is read ahead by this many chunks, so that its decompressor and the workers seldom wait for each other.
const FEED_CHUNKS: u64 = 8;
/// The queue of a stream takes more than a chunk of what is left then, up to this part, 1 / 16.
const FEED_SHARE: u64 = 16;
/// Chunks grow by whole pages, as their buffers do.
const PAGE_BYTES: u64 = 4096;
/// The part of the rest that the sort of spills has, in hundredths. Its merge reads all runs at once, so with
/// less of it there are more passes; with less for tables there are more runs.
const SORT_PERCENT: u64 = 45;
/// The sort has this much if tables then still have as much.
const SORT_BYTES_LIKED: u64 = 6 << 20;
/// The least table.
pub(super) const TABLE_BYTES_MIN: u64 = 128 << 10;
/// Ordered output that waits for its turn, in chunks of each worker.
const WAITING_CHUNKS: u64 = 4;
/// Sizes of one map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MapShares {
    pub(super) chunk_bytes: usize,
    /// How far a stream is read ahead, in bytes; 0 without a stream.
    pub(super) feed_bytes: usize,
    /// Of each worker's table, at most.
    pub(super) table_bytes: u64,
    /// Of each worker's ordered output.
    pub(super) waiting_bytes: usize,
    /// Whether there is a place to spill to.
    pub(super) spills: bool,
    /// Kept from the beginning: the least of the sort of spills, or of the writer of a view.
    pub(super) kept_bytes: u64,
    /// For the sort of spills.
    pub(super) sort_bytes: u64,
}

/// The least memory of a map, by its use.
struct Least {
    /// For chunks of the least length.
    chunk_bytes: u64,
    /// Workers with such chunks, and what they share.
    fixed_bytes: u64,
    /// For all tables, or for ordered output.
    output_bytes: u64,
    spills: bool,
    kept_bytes: u64,
}

impl Least {
    fn of_ssdlet(
        description: &SsdletDescription,
        inputs: &[MapInput],
        options: &MapOptions,
        to_view: bool,
    ) -> Self {
        let workers = options.threads.max(1) as u64;
        let chunk_bytes = wanted_chunk(options).min(CHUNK_BYTES_MIN);
        let decompressor = inputs.iter().map(MapInput::memory_bytes).max().unwrap_or(0);
        let fixed_bytes = workers
            .saturating_mul(worker_bytes(description, chunk_bytes))
            .saturating_add(stream_bytes(inputs, chunk_bytes) + CARRY_BYTES as u64)
            .saturating_add(decompressor);
        let keyed = matches!(description.output, SsdletOutput::Keyed { .. });
        let has_place = to_view || !options.temp.is_empty();
        let spills = keyed && has_place && options.partition != PartitionSize::Whole;
        let count = options.threads.max(1);
        let kept_bytes = match (spills, keyed && to_view) {
            (true, true) => RowSorter::<KeepAll>::least_view_bytes(count),
            (true, false) => RowSorter::<KeepAll>::least_bytes(count),
            (false, true) => TABLE_WRITER_BYTES,
            (false, false) => 0,
        };
        Least {
            chunk_bytes,
            fixed_bytes,
            output_bytes: workers * if keyed { TABLE_BYTES_MIN } else { chunk_bytes },
            spills,
            kept_bytes,
        }
    }

    fn bytes(&self) -> u64 {
        (self.output_bytes + self.kept_bytes).saturating_add(self.fixed_bytes)
    }
}

/// Bytes of one worker.
fn worker_bytes(description: &SsdletDescription, chunk_bytes: u64) -> u64 {
    description.worker_bytes.saturating_add(buffer_bytes(chunk_bytes as usize) as u64)
}

/// The least memory of the queue of a stream: a chunk, if that is enough for its pieces.
fn stream_bytes(inputs: &[MapInput], chunk_bytes: u64) -> u64 {
    let streams = inputs.iter().any(|input| matches!(input, MapInput::Stream { .. }));
    if streams { chunk_bytes.max(FEED_BYTES_MIN as u64) } else { 0 }
}

fn wanted_chunk(options: &MapOptions) -> u64 {
    match options.partition {
        PartitionSize::Bytes(bytes) => bytes.clamp(1, CHUNK_BYTES),
        _ => CHUNK_BYTES,
    }
}

/// The least budget in which [`map`](super::map()) works with these options, in bytes, what is taken of it
/// already included. Records that are longer than a chunk, and rows longer than 13 KiB, may need more.
#[must_use]
pub fn least_memory_bytes(
    description: &SsdletDescription,
    inputs: &[MapInput],
    options: &MapOptions,
    to_view: bool,
) -> u64 {
    let used = options.budget.limit_bytes() - options.budget.free_bytes();
    used.saturating_add(Least::of_ssdlet(description, inputs, options, to_view).bytes())
}

impl MapOptions {
    /// The same with fewer workers where the memory is too little for all of them: for a caller whose user has not
    /// named a number. The result is rows.
    #[must_use]
    pub fn fitting(mut self, description: &SsdletDescription, inputs: &[MapInput]) -> Self {
        let limit_bytes = self.budget.limit_bytes();
        while self.threads > 1
            && least_memory_bytes(description, inputs, &self, false) > limit_bytes
        {
            self.threads -= 1;
        }
        self
    }
}

impl MapShares {
    /// Sizes for the free part of the budget.
    ///
    /// # Errors
    /// [`Error::Memory`] with the least that works.
    pub(super) fn new(
        description: &SsdletDescription,
        inputs: &[MapInput],
        options: &MapOptions,
        to_view: bool,
    ) -> Result<Self, Error> {
        let (budget, workers) = (&options.budget, options.threads.max(1) as u64);
        let free = budget.free_bytes();
        let least = Least::of_ssdlet(description, inputs, options, to_view);
        let Some(spare) = free.checked_sub(least.bytes()) else {
            return Err(Error::Memory {
                owner: "mapping",
                least_bytes: (budget.limit_bytes() - free).saturating_add(least.bytes()),
                limit_bytes: budget.limit_bytes(),
            });
        };
        // Each worker's buffer and waiting output, and those of a stream, grow with it: three at most.
        let longer = spare / CHUNKS_SHARE / workers / PAGE_BYTES * PAGE_BYTES;
        let chunk = wanted_chunk(options).min(least.chunk_bytes + longer);
        let stream = stream_bytes(inputs, chunk);
        let buffers = workers * (buffer_bytes(chunk as usize) as u64) + stream
            - workers * (buffer_bytes(least.chunk_bytes as usize) as u64)
            - stream_bytes(inputs, least.chunk_bytes);
        let rest = free - least.fixed_bytes - buffers;
        let spare = rest - least.output_bytes - least.kept_bytes;
        let ahead = if stream > 0 { (FEED_CHUNKS * chunk).saturating_sub(stream) } else { 0 };
        let ahead = ahead.min(spare / FEED_SHARE);
        let rest = rest - ahead;
        let spill = if least.spills {
            let wanted = (rest * SORT_PERCENT / 100).max(SORT_BYTES_LIKED.min(rest / 2));
            wanted.clamp(least.kept_bytes, rest - least.output_bytes)
        } else {
            least.kept_bytes
        };
        Ok(MapShares {
            chunk_bytes: chunk as usize,
            feed_bytes: (stream + ahead) as usize,
            table_bytes: (rest - spill) / workers,
            waiting_bytes: (rest / workers).min(WAITING_CHUNKS * chunk) as usize,
            spills: least.spills,
            kept_bytes: least.kept_bytes,
            sort_bytes: spill,
        })
    }
}
