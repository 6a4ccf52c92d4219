//! How large windows are, and how much memory they take.
//!
//! Windows are small, so that the bytes are still in a cache when they are merged. Blocks are small (8 KiB) if the
//! budget has room for their fences: a random read looks at a block or two of every run, and two neighbouring
//! windows share few bytes (figures: lab/bench/results/2026-11-22.md, "Choices that were measured").

use super::segments::Segments;
use super::stream::{StreamSize, windows_held};
use crate::pipeline::Workers;
use crate::run::format::Footer;
use crate::{Budget, Error, Result, shares};

/// The largest window, in bytes, of few runs: larger ones leave the caches before they are merged.
const WINDOW_BYTES_MAX: u64 = 8 << 20;
/// Bytes of output that one random read merges at a time.
pub(crate) const RANDOM_BYTES: usize = 256 << 10;

/// Memory that stays free, however much the streams of runs with these footers hold: one read at
/// random must be possible.
pub(crate) fn random_bytes<'a>(runs: impl Iterator<Item = &'a Footer>) -> u64 {
    3 * least_window_bytes(runs) + 3 * RANDOM_BYTES as u64
}

/// The least memory in which a view of runs with these footers can be read, in bytes.
pub(crate) fn least_memory_bytes<'a>(runs: impl Iterator<Item = &'a Footer> + Clone) -> u64 {
    // Each is bounded, but there may be many of them.
    let fences = runs.clone().map(Footer::memory_bytes).fold(0, u64::saturating_add);
    let least =
        StreamSize { window_bytes: least_window_bytes(runs.clone()), workers: Workers::new(1) };
    let rest = random_bytes(runs.clone()) + least.memory_bytes_of(runs);
    fences.saturating_add(rest)
}

/// The window size for merging `segments` in `room` bytes of a budget with at most these `workers`.
pub(crate) fn stream_size(
    segments: &Segments,
    budget: &Budget,
    room: u64,
    mut workers: Workers,
) -> Result<StreamSize> {
    let least = least_window_bytes(segments.footers());
    // A window reads the stretch of each run that its lower bound cuts, and should have as much of its own.
    let stretches = segments.runs.iter().map(|run| 2 * run.stretch_bytes_max());
    let good = least.max(stretches.sum());
    let biggest = segments.data_bytes().next_multiple_of(4096) + least;
    loop {
        let one = StreamSize { window_bytes: 1, workers };
        let share = room / one.memory_bytes(segments);
        if share >= good || workers.count() == 1 {
            let window_bytes = share
                .saturating_sub(4096)
                .min(window_bytes_max(segments.footers().map(shared_bytes).sum()))
                .min(biggest)
                .max(least);
            let size = StreamSize { window_bytes: window_bytes.next_multiple_of(4096), workers };
            if share < least {
                let others = budget.limit_bytes() - budget.free_bytes();
                let one = StreamSize { window_bytes: least, workers };
                return Err(Error::Memory {
                    owner: "merging this many runs",
                    least_bytes: others + shares::for_stream(one.memory_bytes(segments)),
                    limit_bytes: budget.limit_bytes(),
                });
            }
            return Ok(size);
        }
        workers = Workers::new(workers.count() - 1);
    }
}

/// The largest window where two neighbours both read `shared_bytes`, which must stay a small part.
fn window_bytes_max(shared_bytes: u64) -> u64 {
    WINDOW_BYTES_MAX.max(32 * shared_bytes)
}

/// Bytes of a run that two neighbouring windows both read: a block, or the record across their
/// border.
fn shared_bytes(run: &Footer) -> u64 {
    u64::from(run.block_bytes).max(run.data_bytes / run.records.max(1))
}

/// The part of the data that a merge of this many runs in `room` bytes will read a second time: the
/// blocks that neighbouring windows share, or all data when the merge takes another pass.
pub(crate) fn read_again(
    (runs, block_bytes, record_bytes): (u64, u64, u64),
    room: u64,
    threads: usize,
) -> f64 {
    if runs <= 1 {
        return 0.0;
    }
    let share = |threads| room / windows_held(threads);
    let least = 4 * runs * block_bytes;
    let threads = (1..=threads).rev().find(|threads| share(*threads) >= least);
    let shared_bytes = runs * block_bytes.max(record_bytes);
    let window_bytes = share(threads.unwrap_or(1)).min(window_bytes_max(shared_bytes)).max(1);
    let another_pass = if threads.is_none() { 1.0 } else { 0.0 };
    another_pass + shared_bytes as f64 / window_bytes as f64
}

/// How many runs with blocks of `block_bytes` a merge in `room` bytes takes at once, whether they are `packed` or not.
pub(crate) fn runs_at_once(block_bytes: u64, packed: bool, room: u64) -> u64 {
    let packed = if packed { 2 } else { 0 };
    room / (4 * block_bytes * (windows_held(1) + packed))
}

/// The least window of runs with these footers that makes progress: each run's edges, and as much
/// again.
fn least_window_bytes<'a>(runs: impl Iterator<Item = &'a Footer>) -> u64 {
    runs.map(|run| 4 * u64::from(run.block_bytes)).sum::<u64>().max(4096)
}
