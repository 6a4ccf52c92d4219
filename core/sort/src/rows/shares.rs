//! How a sort of rows divides its memory.
//!
//! ```text
//!   in memory        ├ buffer of each producer ──────────────────────────────────────┤
//!   with runs        ├ writers of runs ┼ buffer of each producer ┼ one that is sorted ┤   the last one if there is one producer
//!   merging          ├ a reader of each run ┼ the last buffers, if they have room ────┤
//! ```

use super::row_run::{reader_bytes, writer_bytes};
use super::table::BUILDER_BYTES;
use super::view_runs::view_writers;
use crate::{Budget, Error, Result};

/// The longest blocks of runs, and the shortest.
const BLOCK_BYTES: u64 = 128 << 10;
const BLOCK_BYTES_MIN: u64 = 4 << 10;
/// A block takes 1 / 256 of the memory, so that many runs are merged at once.
const BLOCKS: u64 = 256;
/// The least buffer: runs would be very short.
const BUFFER_BYTES_MIN: u64 = 64 << 10;
/// When there are this many runs, some are merged while others come: each takes a few bytes, and some of them a file.
pub(super) const RUNS_MAX: usize = 2048;
/// Runs that one merge reads, at most: the blocks of more would not stay in the caches of the processor.
pub(super) const FAN_IN_MAX: u64 = 512;

/// The sizes of one sort, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowShares {
    pub(super) block_bytes: usize,
    /// The buffer of each producer.
    pub(super) buffer_bytes: u64,
    /// The buffer of one producer, when another buffer is sorted and written meanwhile; 0 if none is.
    pub(super) turn_bytes: u64,
}

impl RowShares {
    /// The shares of the free memory.
    ///
    /// # Errors
    /// Too little memory.
    pub(super) fn new(
        budget: &Budget,
        producers: usize,
        threads: usize,
        runs: RunPlace,
    ) -> Result<Self> {
        let (free, producers) = (budget.free_bytes(), producers.max(1) as u64);
        let least = least_bytes(producers as usize, runs);
        if free < least {
            let used = budget.limit_bytes() - free;
            return Err(Error::Memory {
                owner: "sorting rows",
                least_bytes: used.saturating_add(least),
                limit_bytes: budget.limit_bytes(),
            });
        }
        let view = if runs == RunPlace::View { view_bytes(free, producers as usize) } else { 0 };
        let blocks = ((free - view) / BLOCKS / producers).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES);
        let block_bytes = 1 << blocks.ilog2();
        let spills = runs != RunPlace::Nowhere;
        let writers = if spills { producers * writer_bytes(block_bytes) } else { 0 };
        let buffer_bytes = (free - writers - view) / producers;
        let takes_turns = spills && producers == 1 && threads > 1;
        let turn_bytes = if takes_turns { buffer_bytes / 2 } else { 0 };
        Ok(RowShares { block_bytes, buffer_bytes, turn_bytes })
    }
}

/// The least memory in which rows are sorted, in bytes, if they are short.
pub(super) fn least_bytes(producers: usize, runs: RunPlace) -> u64 {
    let block = BLOCK_BYTES_MIN as usize;
    let writer = if runs == RunPlace::Nowhere { 0 } else { writer_bytes(block) };
    let view = if runs == RunPlace::View { view_bytes(0, 1) } else { 0 };
    producers as u64 * (writer + 2 * BUFFER_BYTES_MIN) + 2 * reader_bytes(block, block) + view
}

/// The memory of the writers of a view's runs, where `free_bytes` are free: the fences of runs grow with them.
pub(super) fn view_bytes(free_bytes: u64, producers: usize) -> u64 {
    let writers = view_writers(free_bytes, producers) as u64;
    writers * BUILDER_BYTES + (free_bytes / 16).max(512 << 10)
}

/// Where runs go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunPlace {
    /// There is no place: all rows have to fit into memory.
    Nowhere,
    /// Temporary files.
    Temp,
    /// A view, and temporary files.
    View,
}

/// How many runs are merged at once in `free_bytes`, where each takes up to `run_bytes`; at least two.
pub(super) fn fan_in(free_bytes: u64, run_bytes: u64) -> usize {
    (free_bytes / run_bytes).clamp(2, FAN_IN_MAX) as usize
}
