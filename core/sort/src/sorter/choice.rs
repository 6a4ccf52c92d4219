//! Which strategy a sort uses.

use super::cost::{distribute_plan, merge_reads_again, processor_seconds};
use super::{CompressionChoice, SortOutput, Sorter, Strategy};
use crate::record::Format;
use crate::run::Compression;
use crate::{Conflict, Result};

/// `auto` distributes where that is likely to take at most this share of a merge's processor time. This
/// is so for records of up to 20 bytes, or 24 with many runs. From there to 32 bytes neither strategy was
/// faster, and beyond that the disk limits both, and a merge uses the disk better (docs/benchmarks.md).
/// Only a merge takes records that vary in length.
///
/// For a view the same two passes are compared; the second is its reader's. A view that is read once
/// from end to end takes the same work as a file, and was measured so. Buckets save time with every
/// further reading. They cost time when small pieces are read at random, because a whole bucket is
/// sorted where a merge looks at a block or two of each run. How a view will be read is not known here,
/// so it has no influence; `Estimate::reader_processor_seconds` and the documents show it.
const WORTH_IT: f64 = 0.63;

/// `auto` distributes as well where a merge would read more than this part of the data a second time. It
/// does so with long records, or many runs in little memory: two neighbouring windows both read the
/// blocks of each run at their border (docs/benchmarks.md).
pub(super) const READ_AGAIN_MAX: f64 = 0.75;

/// Whether `auto` distributes.
pub(super) fn is_worth_distributing(sorter: &Sorter<'_>) -> bool {
    let Some(total) = sorter.total_bytes else { return false };
    // Where all records have one length, no record is longer than expected.
    if !matches!(sorter.options.order.format, Format::Fixed { .. })
        || refusal(sorter).is_some()
        || distribute_plan(sorter, total).is_none()
    {
        return false;
    }
    let (merge, distribute) = processor_seconds(sorter, total);
    // Runs of sorted inputs do not overlap, so merging them costs next to nothing.
    let less_work = distribute.sum() < WORTH_IT * merge.sum();
    less_work && !sorter.sample.in_order || merge_reads_again(sorter, total) > READ_AGAIN_MAX
}

/// Whether to distribute, and if so whether to trust the leading bits of keys.
pub(super) fn wanted(sorter: &Sorter<'_>, output: &SortOutput<'_>) -> Result<Option<bool>> {
    let view = matches!(output, SortOutput::View { .. });
    // Inputs that fit into memory are sorted at once, without temporary files.
    let fits = sorter.plan.chunks == 1 && !view;
    match sorter.options.strategy {
        Strategy::Merge => Ok(None),
        // One run is a view that needs no merge.
        Strategy::Auto if sorter.plan.chunks == 1 => Ok(None),
        Strategy::Auto => Ok(is_worth_distributing(sorter).then_some(false)),
        Strategy::Distribute { uniform } => match refusal(sorter) {
            Some(conflict) => Err(conflict.into()),
            None => Ok((!fits).then_some(uniform)),
        },
    }
}

/// Why these options need a merge.
pub(super) fn refusal(sorter: &Sorter<'_>) -> Option<Conflict> {
    let options = sorter.options;
    if options.top.is_some() {
        Some(Conflict::TopDistribute)
    } else if sorter.journal.is_some() {
        // Its buckets are whole only when all inputs have been read. Until then records are in
        // memory and in files without an index, and no input may be given back.
        Some(Conflict::ConsumeDistribute)
    } else if !matches!(options.compression, CompressionChoice::Fixed(Compression::Off)) {
        Some(Conflict::CompressDistribute)
    } else {
        None
    }
}
