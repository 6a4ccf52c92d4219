//! What a sort is going to do and what that is likely to cost, for both strategies beside one
//! another: the ground on which `auto` chooses, and what a plan shows.
//!
//! The model: in each of two passes the processors and the disk work at the same time, so a pass
//! takes what the slower of them takes. Processor time is a sum of so much a record and so much a byte;
//! the figures are fits of measurements with records of 10 to 1,000 bytes on one machine
//! (docs/benchmarks.md), so they tell the strategies apart better than they tell seconds.

use std::fmt;

use merganser_storage::{Buffer, Completions, Operation, Storage};

use super::distribute::refusal;
use super::{SortOptions, Sorter, Strategy, merge_room};
use crate::distribute::DistributePlan;
use crate::distribute::one_pass::OnePass;
use crate::merge::sizes::read_again;
use crate::plan::sample_bytes;
use crate::record::Format;
use crate::run::Input;
use crate::{Error, Result};

/// Processor time of one pass, in nanoseconds.
struct Cost {
    record_ns: f64,
    byte_ns: f64,
    /// For each record, times the logarithm of the number of runs.
    match_ns: f64,
}

const FORM_RUNS: Cost = Cost { record_ns: 32.0, byte_ns: 0.28, match_ns: 0.0 };
const MERGE_RUNS: Cost = Cost { record_ns: 9.0, byte_ns: 0.15, match_ns: 3.0 };
const PART: Cost = Cost { record_ns: 10.0, byte_ns: 0.62, match_ns: 0.0 };
const SORT_BUCKETS: Cost = Cost { record_ns: 12.5, byte_ns: 0.15, match_ns: 0.0 };

/// `auto` distributes where that is likely to take at most this share of a merge's processor time:
/// up to some 20 bytes a record, 24 of many runs. From there to 32 neither was faster, and beyond the disk
/// bounds both, which a merge uses better (docs/benchmarks.md); a merge also takes what varies in length.
///
/// A view is judged by the same two passes, the second being its reader's: made, and read once from
/// end to end, it is the work of a file, and was measured as such. Who reads it more often gains by
/// buckets with every reading; who reads little pieces at random loses, a bucket to be sorted where
/// merging looks at a block or two of each run. Nobody can say beforehand which it will be, so that
/// does not weigh here: [`Estimate::reader_processor_seconds`] and the documents tell.
const WORTH_IT: f64 = 0.63;
/// `auto` distributes as well where a merge would read so much of the data again, as it
/// does of long records or many runs in little memory: two neighbouring windows both read what of each
/// run lies across their border (docs/benchmarks.md).
const READ_AGAIN_MAX: f64 = 0.75;
/// What a disk is measured with, in bytes.
const PROBE_BYTES: u64 = 32 << 20;

impl Cost {
    fn seconds(&self, records: f64, bytes: f64, runs: u64) -> f64 {
        let a_record = self.record_ns + self.match_ns * (runs.max(1) as f64).log2();
        (records * a_record + bytes * self.byte_ns) / 1e9
    }
}

/// What one strategy is likely to cost.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// Runs or buckets.
    pub pieces: u64,
    /// Bytes of one, about.
    pub piece_bytes: u64,
    /// Bytes read from disks.
    pub read_bytes: u64,
    /// Bytes written to disks.
    pub written_bytes: u64,
    /// Seconds of processor time, over all threads.
    pub processor_seconds: f64,
    /// The same for whoever reads all of a view once, afterwards; 0 where the result is none.
    pub reader_processor_seconds: f64,
    /// Seconds from start to end.
    pub seconds: f64,
}

/// A plan, and the other one.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Explanation {
    /// `one pass`, `merge` or `distribute`.
    pub strategy: &'static str,
    /// Why.
    pub reason: String,
    /// Bytes of the inputs.
    pub input_bytes: u64,
    /// Mean length of a record, in bytes.
    pub record_bytes: f64,
    /// Bytes a second that the disk of temporary files, or of the view, read just now.
    pub disk_read_rate: f64,
    /// Bytes a second that it wrote.
    pub disk_write_rate: f64,
    /// Sorted runs, merged. When all fits into memory: that.
    pub merge: Estimate,
    /// Buckets; none where the strategy cannot be used.
    pub distribute: Option<Estimate>,
}

/// Whether `auto` distributes.
pub(super) fn is_worth_distributing(sorter: &Sorter<'_>) -> bool {
    let Some(total) = sorter.total_bytes else { return false };
    // A record of one length cannot surprise.
    if !matches!(sorter.options.order.format, Format::Fixed { .. })
        || refusal(sorter).is_some()
        || distribute_plan(sorter, total).is_none()
    {
        return false;
    }
    let (merge, distribute) = processor_seconds(sorter, total);
    // Runs of what is in order already do not overlap, so that merging them costs next to nothing.
    let less_work = distribute.0 + distribute.1 < WORTH_IT * (merge.0 + merge.1);
    less_work && !sorter.sample.in_order || merge_reads_again(sorter, total) > READ_AGAIN_MAX
}

/// The sizes of a distribution, where memory is enough for one: a merge takes longer records.
fn distribute_plan(sorter: &Sorter<'_>, total: u64) -> Option<DistributePlan> {
    let (free, threads) = (sorter.options.budget.free_bytes(), sorter.workers.count());
    let plan = DistributePlan::new(free, Some(total), sorter.sample, threads).ok()?;
    match sorter.options.order.format {
        Format::Fixed { bytes } if bytes as u64 > plan.record_bytes_max() => None,
        _ => Some(plan),
    }
}

/// The part of the data that a merge reads a second time.
fn merge_reads_again(sorter: &Sorter<'_>, total: u64) -> f64 {
    let runs = total.div_ceil(sorter.plan.chunk_bytes.max(1));
    let record_bytes = sorter.sample.record_bytes as u64;
    let sizes = (runs, u64::from(sorter.plan.block_bytes), record_bytes);
    read_again(sizes, merge_room(&sorter.options.budget), sorter.workers.count())
}

/// Of the two passes of a merge, and of those of a distribution.
fn processor_seconds(sorter: &Sorter<'_>, total: u64) -> ((f64, f64), (f64, f64)) {
    let (records, bytes) = (total as f64 / sorter.sample.record_bytes, total as f64);
    let runs = total.div_ceil(sorter.plan.chunk_bytes.max(1));
    let of = |cost: Cost| cost.seconds(records, bytes, runs);
    // One run is copied: nothing is compared.
    let merge_runs = if runs <= 1 { Cost { record_ns: 0.0, ..MERGE_RUNS } } else { MERGE_RUNS };
    ((of(FORM_RUNS), of(merge_runs)), (of(PART), of(SORT_BUCKETS)))
}

/// Says what [`super::sort`] would do with `inputs`, and what that is likely to cost. Nothing is
/// sorted; the disk is measured with a little data. `to_view`: the result is to be a view.
///
/// # Errors
/// As [`super::sort`]; [`Error::UnknownSize`].
pub fn explain(inputs: Vec<Input>, to_view: bool, options: &SortOptions) -> Result<Explanation> {
    let sorter = Sorter::prepare(inputs, options, to_view)?;
    let Some(input_bytes) = sorter.total_bytes else {
        return Err(Error::UnknownSize);
    };
    let (disk_read_rate, disk_write_rate) = match options.temp.first() {
        Some(disk) => probe(&*disk.create_unnamed()?)?,
        None => (f64::INFINITY, f64::INFINITY),
    };
    let threads = sorter.workers.count() as f64;
    let disks = options.temp.len().max(1) as f64;
    let device = input_bytes as f64 * (1.0 / disk_read_rate + 1.0 / disk_write_rate) / disks;
    let (merge, distribute) = processor_seconds(&sorter, input_bytes);
    let one_pass = sorter.plan.chunks == 1 && !to_view;
    let estimate = |(first, last): (f64, f64), pieces: u64, passes: u64, read_besides: u64| {
        let besides = read_besides as f64 / disk_read_rate / disks;
        let (second, second_device) =
            if passes == 1 { (0.0, 0.0) } else { (last, device + besides) };
        Estimate {
            pieces,
            piece_bytes: input_bytes / pieces.max(1),
            read_bytes: input_bytes * passes + read_besides,
            written_bytes: input_bytes * passes,
            processor_seconds: first + second,
            reader_processor_seconds: if to_view { last } else { 0.0 },
            seconds: (first / threads).max(device) + (second / threads).max(second_device),
        }
    };
    let passes = if one_pass || to_view { 1 } else { 2 };
    let runs = input_bytes.div_ceil(sorter.plan.chunk_bytes.max(1)).max(1);
    let plan = distribute_plan(&sorter, input_bytes);
    let again = merge_reads_again(&sorter, input_bytes);
    let refused = refusal(&sorter);
    let can = refused.is_none() && plan.is_some();
    let (strategy, reason) = match options.strategy {
        _ if one_pass => ("one pass", "all of it fits into memory".to_owned()),
        Strategy::Distribute { .. } => {
            if let Some(refused) = refused {
                return Err(refused.into());
            }
            ("distribute", "asked for".to_owned())
        }
        Strategy::Merge => ("merge", "asked for".to_owned()),
        Strategy::Auto if sorter.plan.chunks == 1 => {
            ("merge", "one run is a view that needs no merge".to_owned())
        }
        Strategy::Auto if !can => {
            ("merge", "the options or the records ask for what it alone can do".to_owned())
        }
        Strategy::Auto if !matches!(options.order.format, Format::Fixed { .. }) => {
            ("merge", "records differ in length".to_owned())
        }
        Strategy::Auto if is_worth_distributing(&sorter) => {
            let whose = if to_view { ", its reader's included" } else { "" };
            let reason = if again > READ_AGAIN_MAX {
                format!("a merge would read {again:.1} times the data again")
            } else {
                format!("less work for the processors{whose}")
            };
            ("distribute", reason)
        }
        Strategy::Auto => ("merge", "distributing would not save much".to_owned()),
    };
    let front = sample_bytes(&sorter.inputs);
    let (order, sample) = (&options.order, sorter.sample);
    // What fits into memory is parted while it is read, by places that are looked at before.
    let sampled_at_once = if sorter.can_part_while_reading() {
        OnePass::sample_bytes(&sorter.inputs, order.format, sample, input_bytes)
    } else {
        0
    };
    let read_again = if passes == 1 { 0 } else { (input_bytes as f64 * again) as u64 };
    let splitters = |plan: &DistributePlan| match options.strategy {
        Strategy::Distribute { uniform: true } => 0,
        _ => plan.sample_bytes(&sorter.inputs, order.format, sample),
    };
    Ok(Explanation {
        strategy,
        reason,
        input_bytes,
        record_bytes: sorter.sample.record_bytes,
        disk_read_rate,
        disk_write_rate,
        merge: estimate(
            merge,
            if one_pass { 1 } else { runs },
            passes,
            front + sampled_at_once + read_again,
        ),
        distribute: plan.filter(|_| can).map(|plan| {
            let passes = if to_view { 1 } else { 2 };
            estimate(distribute, plan.buckets, passes, front + splitters(&plan))
        }),
    })
}

/// Bytes a second that `disk`, an empty storage, reads and writes.
fn probe(disk: &dyn Storage) -> Result<(f64, f64)> {
    const STEP: u64 = 1 << 20;
    let clock = disk.clock();
    let completions = Completions::new();
    let mut buffers: Vec<Buffer> =
        (0..8).map(|_| Buffer::try_new(STEP as usize)).collect::<std::io::Result<_>>()?;
    let mut pass = |write: bool| -> Result<f64> {
        let (started, mut in_flight, mut failed) = (clock.now_ns(), 0, Ok(()));
        for offset in (0..PROBE_BYTES).step_by(STEP as usize).map(Some).chain([None; 8]) {
            if offset.is_none() || buffers.is_empty() {
                if in_flight == 0 {
                    break;
                }
                let done = completions.wait(&*clock);
                in_flight -= 1;
                buffers.extend(done.buffer);
                failed = failed.and(done.result.map(|_| ()));
            }
            let Some(offset) = offset else { continue };
            let buffer = buffers.pop().expect("just waited for");
            let operation = match write {
                true => Operation::Write { offset, buffer },
                false => Operation::Read { offset, buffer },
            };
            disk.submit(offset, operation, &completions);
            in_flight += 1;
        }
        failed?;
        Ok(PROBE_BYTES as f64 * 1e9 / (clock.now_ns() - started).max(1) as f64)
    };
    let write = pass(true)?;
    Ok((pass(false)?, write))
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gb = |bytes: u64| bytes as f64 / 1e9;
        writeln!(f, "strategy        {}: {}", self.strategy, self.reason)?;
        writeln!(
            f,
            "input           {:.2} GB in records of about {:.0} bytes",
            gb(self.input_bytes),
            self.record_bytes
        )?;
        writeln!(
            f,
            "disk            reads {:.0} MB/s, writes {:.0} MB/s",
            self.disk_read_rate / 1e6,
            self.disk_write_rate / 1e6
        )?;
        let mut row = |name: &str, what: &str, estimate: &Estimate| {
            write!(
                f,
                "{name:<15} {} {what} of {:.1} MB, reads {:.2} GB, writes {:.2} GB, {:.1} s of processors, {:.1} s",
                estimate.pieces,
                estimate.piece_bytes as f64 / 1e6,
                gb(estimate.read_bytes),
                gb(estimate.written_bytes),
                estimate.processor_seconds,
                estimate.seconds,
            )?;
            match estimate.reader_processor_seconds {
                0.0 => writeln!(f),
                reader => writeln!(f, "; {reader:.1} s of processors to read it all"),
            }
        };
        row(if self.strategy == "one pass" { "one pass" } else { "merge" }, "runs", &self.merge)?;
        match &self.distribute {
            Some(estimate) => row("distribute", "buckets", estimate),
            None => Ok(()),
        }
    }
}
