//! A plan: what a sort is going to do, and the likely cost of both strategies next to each other.

use std::fmt;

use merganser_storage::page_size::{BufferPages, MEASURED_FROM_BYTES};

use super::choice::{READ_AGAIN_MAX, is_worth_distributing, refusal};
use super::cost::{PassSeconds, distribute_plan, merge_reads_again, processor_seconds};
use super::probe::probe;
use super::{SortOptions, Sorter, Strategy};
use crate::distribute::DistributePlan;
use crate::distribute::one_pass::OnePass;
use crate::plan::sample_bytes;
use crate::record::Format;
use crate::run::SortInput;
use crate::{Error, Result};

/// The likely cost of one strategy.
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
    /// The same for a reader that reads all of a view once, afterwards; 0 where the result is not a
    /// view.
    pub reader_processor_seconds: f64,
    /// Seconds from start to end.
    pub seconds: f64,
}

/// The plan, with the cost of both strategies.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Explanation {
    /// `one pass`, `merge` or `distribute`.
    pub strategy: &'static str,
    /// Why.
    pub reason: String,
    /// Bytes of the inputs, as they are sorted.
    pub input_bytes: u64,
    /// Whether that is assumed: compressed inputs are taken to expand like what was read of them.
    pub input_bytes_assumed: bool,
    /// Mean length of a record, in bytes.
    pub record_bytes: f64,
    /// Bytes a second that the disk of temporary files, or of the view, read just now.
    pub disk_read_rate: f64,
    /// Bytes a second that it wrote.
    pub disk_write_rate: f64,
    /// The pages of the large buffers; `None` where the sort has none that are worth a measurement.
    #[serde(serialize_with = "in_words")]
    pub buffer_pages: Option<BufferPages>,
    /// Sorted runs, merged. When all fits into memory: that.
    pub merge: Estimate,
    /// Buckets; `None` where the strategy cannot be used.
    pub distribute: Option<Estimate>,
}

fn in_words<S: serde::Serializer>(
    pages: &Option<BufferPages>,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&pages.map(|pages| pages.to_string()), to)
}

/// Says what [`super::sort`] would do with `inputs`, and the likely cost. Nothing is sorted; the disk is
/// measured with a little data. `to_view` says whether the result is to be a view.
///
/// # Errors
/// As [`super::sort`]; [`Error::UnknownSize`].
pub fn explain(
    inputs: Vec<SortInput>,
    to_view: bool,
    options: &SortOptions,
) -> Result<Explanation> {
    let mut sorter = Sorter::prepare(inputs, options, to_view)?;
    let assumed = match (sorter.total_bytes, sorter.unpacking.take()) {
        (None, Some(unpacking)) => unpacking.assumed_bytes(&mut sorter.inputs)?,
        _ => None,
    };
    let Some(input_bytes) = sorter.total_bytes.or(assumed) else {
        return Err(Error::UnknownSize);
    };
    let (disk_read_rate, disk_write_rate) = match options.temp.first() {
        Some(disk) => probe(&*disk.create_unnamed()?)?,
        None => (f64::INFINITY, f64::INFINITY),
    };
    let work = SortWork {
        input_bytes,
        to_view,
        threads: sorter.workers.count() as f64,
        disks: options.temp.len().max(1) as f64,
        disk_read_rate,
        disk_write_rate,
    };
    let one_pass = is_one_chunk(&sorter, assumed) && !to_view;
    let plan = distribute_plan(&sorter, input_bytes).filter(|_| refusal(&sorter).is_none());
    let again = merge_reads_again(&sorter, input_bytes);
    let (strategy, reason) = strategy(&sorter, to_view, assumed, again, plan.is_some())?;
    let passes = if one_pass || to_view { 1 } else { 2 };
    let front = sample_bytes(&sorter.inputs);
    let (order, sample) = (&options.order, sorter.sample);
    // Inputs that fit into memory are split by key while they are read, after a look at some places.
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
    let (merge, distribute) = processor_seconds(&sorter, input_bytes);
    let runs = input_bytes.div_ceil(sorter.plan.chunk_bytes.max(1)).max(1);
    let pieces = if one_pass { 1 } else { runs };
    let has_large_buffers = sorter.plan.chunk_bytes >= MEASURED_FROM_BYTES as u64;
    Ok(Explanation {
        strategy,
        reason,
        input_bytes,
        input_bytes_assumed: assumed.is_some(),
        record_bytes: sorter.sample.record_bytes,
        disk_read_rate,
        disk_write_rate,
        buffer_pages: has_large_buffers.then(BufferPages::choose),
        merge: work.estimate(merge, pieces, passes, front + sampled_at_once + read_again),
        distribute: plan.map(|plan| {
            let passes = if to_view { 1 } else { 2 };
            work.estimate(distribute, plan.buckets, passes, front + splitters(&plan))
        }),
    })
}

/// Whether all records are sorted as one chunk. How much there is may be assumed.
fn is_one_chunk(sorter: &Sorter<'_>, assumed: Option<u64>) -> bool {
    sorter.plan.chunks == 1 || assumed.is_some_and(|bytes| bytes <= sorter.plan.chunk_bytes)
}

/// The strategy, and the reason for it. `assumed` is what is taken for the size of inputs; `again` is the part of the data that a merge would read twice;
/// `can_distribute` says whether the options, the records and the memory allow a distribution.
fn strategy(
    sorter: &Sorter<'_>,
    to_view: bool,
    assumed: Option<u64>,
    again: f64,
    can_distribute: bool,
) -> Result<(&'static str, String)> {
    let options = sorter.options;
    let one_chunk = is_one_chunk(sorter, assumed);
    let (strategy, reason) = match options.strategy {
        _ if one_chunk && !to_view => ("one pass", "all of it fits into memory"),
        Strategy::Distribute { .. } => match refusal(sorter) {
            Some(conflict) => return Err(conflict.into()),
            None => ("distribute", "asked for"),
        },
        Strategy::Merge => ("merge", "asked for"),
        Strategy::Auto if one_chunk => ("merge", "one run is a view that needs no merge"),
        Strategy::Auto if assumed.is_some() => {
            ("merge", "how much compressed inputs hold is not known before they are read")
        }
        Strategy::Auto if !can_distribute => {
            ("merge", "the options or the records ask for what it alone can do")
        }
        Strategy::Auto if !matches!(options.order.format, Format::Fixed { .. }) => {
            ("merge", "records differ in length")
        }
        Strategy::Auto if !is_worth_distributing(sorter) => {
            ("merge", "distributing would not save much")
        }
        Strategy::Auto if again > READ_AGAIN_MAX => {
            let reason = format!("a merge would read {again:.1} times the data again");
            return Ok(("distribute", reason));
        }
        Strategy::Auto if to_view => {
            ("distribute", "less work for the processors, its reader's included")
        }
        Strategy::Auto => ("distribute", "less work for the processors"),
    };
    Ok((strategy, reason.to_owned()))
}

/// The data, and the machine that sorts it.
struct SortWork {
    input_bytes: u64,
    to_view: bool,
    threads: f64,
    disks: f64,
    disk_read_rate: f64,
    disk_write_rate: f64,
}

impl SortWork {
    /// The cost of a strategy that reads and writes all data in each of `passes` passes, and reads
    /// `read_besides` bytes in addition.
    fn estimate(
        &self,
        processors: PassSeconds,
        pieces: u64,
        passes: u64,
        read_besides: u64,
    ) -> Estimate {
        let input_bytes = self.input_bytes;
        let rates = 1.0 / self.disk_read_rate + 1.0 / self.disk_write_rate;
        let device = input_bytes as f64 * rates / self.disks;
        let besides = read_besides as f64 / self.disk_read_rate / self.disks;
        let (second, second_device) =
            if passes == 1 { (0.0, 0.0) } else { (processors.second, device + besides) };
        Estimate {
            pieces,
            piece_bytes: input_bytes / pieces.max(1),
            read_bytes: input_bytes * passes + read_besides,
            written_bytes: input_bytes * passes,
            processor_seconds: processors.first + second,
            reader_processor_seconds: if self.to_view { processors.second } else { 0.0 },
            seconds: (processors.first / self.threads).max(device)
                + (second / self.threads).max(second_device),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gb = |bytes: u64| bytes as f64 / 1e9;
        writeln!(f, "strategy        {}: {}", self.strategy, self.reason)?;
        writeln!(
            f,
            "input           {:.2} GB in records of about {:.0} bytes{}",
            gb(self.input_bytes),
            self.record_bytes,
            if self.input_bytes_assumed {
                "; assumed: compressed inputs expand as what was read of them does"
            } else {
                ""
            }
        )?;
        writeln!(
            f,
            "disk            reads {:.0} MB/s, writes {:.0} MB/s",
            self.disk_read_rate / 1e6,
            self.disk_write_rate / 1e6
        )?;
        if let Some(pages) = &self.buffer_pages {
            writeln!(f, "buffers         {pages}")?;
        }
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
