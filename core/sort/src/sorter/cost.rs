//! The cost model, which compares the two strategies.
//!
//! In each of two passes the processors and the disk work at the same time, so a pass takes as long
//! as the slower of them. Processor time is a sum of a time per record and a time per byte. The
//! figures are fits of measurements with records of 10 to 1,000 bytes on one machine
//! (docs/benchmarks.md), so they compare the strategies better than they predict seconds.

use super::{Sorter, merge_room};
use crate::distribute::DistributePlan;
use crate::merge::sizes::read_again;
use crate::record::Format;

/// Processor time of one pass, in nanoseconds.
struct PassCost {
    record_ns: f64,
    byte_ns: f64,
    /// For each record, times the logarithm of the number of runs.
    match_ns: f64,
}

const FORM_RUNS: PassCost = PassCost { record_ns: 32.0, byte_ns: 0.28, match_ns: 0.0 };

const MERGE_RUNS: PassCost = PassCost { record_ns: 9.0, byte_ns: 0.15, match_ns: 3.0 };

const PARTITION: PassCost = PassCost { record_ns: 10.0, byte_ns: 0.62, match_ns: 0.0 };

const SORT_BUCKETS: PassCost = PassCost { record_ns: 12.5, byte_ns: 0.15, match_ns: 0.0 };

impl PassCost {
    fn seconds(&self, records: f64, bytes: f64, runs: u64) -> f64 {
        let per_record = self.record_ns + self.match_ns * (runs.max(1) as f64).log2();
        (records * per_record + bytes * self.byte_ns) / 1e9
    }
}

/// The sizes of a distribution, where memory is enough for one: a merge takes longer records.
pub(super) fn distribute_plan(sorter: &Sorter<'_>, total: u64) -> Option<DistributePlan> {
    let (free, threads) = (sorter.options.budget.free_bytes(), sorter.workers.count());
    let plan = DistributePlan::new(free, Some(total), sorter.sample, threads).ok()?;
    match sorter.options.order.format {
        Format::Fixed { bytes } if bytes as u64 > plan.record_bytes_max() => None,
        _ => Some(plan),
    }
}

/// The part of the data that a merge reads a second time.
pub(super) fn merge_reads_again(sorter: &Sorter<'_>, total: u64) -> f64 {
    let runs = total.div_ceil(sorter.plan.chunk_bytes.max(1));
    let record_bytes = sorter.sample.record_bytes as u64;
    let sizes = (runs, u64::from(sorter.plan.block_bytes), record_bytes);
    read_again(sizes, merge_room(&sorter.options.budget), sorter.workers.count())
}

/// Processor seconds of the two passes of a strategy.
#[derive(Debug, Clone, Copy)]
pub(super) struct PassSeconds {
    pub(super) first: f64,
    pub(super) second: f64,
}

impl PassSeconds {
    pub(super) fn sum(self) -> f64 {
        self.first + self.second
    }
}

/// The passes of a merge, and those of a distribution.
pub(super) fn processor_seconds(sorter: &Sorter<'_>, total: u64) -> (PassSeconds, PassSeconds) {
    let (records, bytes) = (total as f64 / sorter.sample.record_bytes, total as f64);
    let runs = total.div_ceil(sorter.plan.chunk_bytes.max(1));
    let seconds = |cost: PassCost| cost.seconds(records, bytes, runs);
    // One run is copied: nothing is compared.
    let merge_runs = if runs <= 1 { PassCost { record_ns: 0.0, ..MERGE_RUNS } } else { MERGE_RUNS };
    (
        PassSeconds { first: seconds(FORM_RUNS), second: seconds(merge_runs) },
        PassSeconds { first: seconds(PARTITION), second: seconds(SORT_BUCKETS) },
    )
}
