//! How a map divides its memory.
//!
//! ```text
//!   ┌──────────────────────────┬───────────────────────────────┬──────────────────────────────┐
//!   │ per worker: a chunk,     │ tables (keyed) or chunks that │ the sort of spills: reserved │
//!   │ the SSDlet's own memory  │ wait for their turn (ordered) │ when the first one comes     │
//!   └──────────────────────────┴───────────────────────────────┴──────────────────────────────┘
//! ```
//!
//! All sizes are known before the first byte is read, but only the memory that is used is reserved.

use merganser_sort::Error;

use super::source::buffer_bytes;
use super::spill::{BATCH_BYTES, BATCHES};
use super::{MapInput, MapOptions, PartitionSize};
use crate::ssdlet::{Description, Output};

/// Chunks are about this long: a worker finds the one that it has just read in its second-level cache, which
/// has 1 MiB or more, next to the part of its table that is used most.
const CHUNK_BYTES: u64 = 512 << 10;
const CHUNK_BYTES_MIN: u64 = 64 << 10;
/// Chunks take at most this part of the memory.
const CHUNKS_SHARE: u64 = 8;
/// The part of the rest that the sort of spills has, in hundredths. Its merge reads all runs at once, so with
/// less of it there are more passes; with less for tables there are more runs.
const SORT_PERCENT: u64 = 45;
/// The sort has this much if tables then still have as much.
const SORT_BYTES_MIN: u64 = 6 << 20;
/// The least table.
pub(super) const TABLE_BYTES_MIN: u64 = 128 << 10;
/// Ordered output that waits for its turn, in chunks of each worker.
const WAITING_CHUNKS: u64 = 4;

/// Sizes of one map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shares {
    pub(super) chunk_bytes: usize,
    /// Of each worker's table, at most.
    pub(super) table_bytes: u64,
    /// Of the sort of spills.
    pub(super) sort_bytes: u64,
    /// Of each worker's ordered output.
    pub(super) waiting_bytes: usize,
}

impl Shares {
    /// Sizes for the free part of the budget.
    ///
    /// # Errors
    /// [`Error::Memory`] with the least that works.
    pub(super) fn new(
        description: &Description,
        inputs: &[MapInput],
        options: &MapOptions,
    ) -> Result<Self, Error> {
        let (budget, workers) = (&options.budget, options.threads.max(1) as u64);
        let free = budget.free_bytes();
        let wanted = match options.partition {
            PartitionSize::Bytes(bytes) => bytes.clamp(1, CHUNK_BYTES),
            _ => CHUNK_BYTES,
        };
        let most = (free / CHUNKS_SHARE / workers).max(CHUNK_BYTES_MIN);
        let chunk = wanted.min(most);
        let streams = inputs.iter().any(|input| matches!(input, MapInput::Stream { .. }));
        // A stream's buffers are as long as a chunk; each has 16 KiB at least.
        let stream = if streams { chunk.max(64 << 10) } else { 0 };
        let carry = 64 << 10;
        let buffer = buffer_bytes(chunk as usize) as u64;
        let fixed = workers * (buffer + description.worker_bytes) + stream + carry;
        let least = match description.output {
            Output::Keyed { .. } => workers * TABLE_BYTES_MIN,
            Output::Ordered { .. } => workers * chunk,
        };
        let Some(rest) = free.checked_sub(fixed).filter(|rest| *rest >= least) else {
            let used = budget.limit_bytes() - free;
            return Err(Error::Memory {
                owner: "mapping",
                least_bytes: used + fixed + least,
                limit_bytes: budget.limit_bytes(),
            });
        };
        let batches = (workers + BATCHES as u64 + 4) * BATCH_BYTES as u64;
        let sort = match options.partition {
            PartitionSize::Whole => 0,
            _ => (rest * SORT_PERCENT / 100).max(SORT_BYTES_MIN.min(rest / 2)),
        };
        let tables = rest - sort;
        Ok(Shares {
            chunk_bytes: chunk as usize,
            table_bytes: (tables / workers).max(TABLE_BYTES_MIN),
            sort_bytes: sort.saturating_sub(batches),
            waiting_bytes: (rest / workers).min(WAITING_CHUNKS * chunk) as usize,
        })
    }
}
