//! The space that a sort takes at least, known before it begins.

use std::sync::Arc;

use super::setup::total_bytes;
use super::{CompressionChoice, SortOptions, Sorter};
use crate::Result;
use crate::output::ALLOCATE_BYTES;
use crate::run::{Compression, SortInput};

/// Space that a sort takes at least, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceNeed {
    /// For temporary runs; 0 if all records fit into the memory, or the result is a view.
    pub runs_bytes: u64,
    /// For the result, in a file or in a view.
    pub result_bytes: u64,
    /// For both on one disk. It is less than the sum: runs are given back while the result is written, and all of them
    /// are still there only when the first bytes of the result get their space.
    pub both_bytes: u64,
}

/// The space that [`super::sort`] of `inputs` takes at least; `None` if that is not known: the size of an input is unknown, the
/// result has only some of the records, or compressed runs make up a view. Compressed temporary runs count as none. A
/// look at the first input tells whether there are runs.
///
/// # Errors
/// As [`super::sort`], before it begins.
pub fn space_needed(
    inputs: &[SortInput],
    to_view: bool,
    options: &SortOptions,
) -> Result<Option<SpaceNeed>> {
    let Some(result_bytes) = total_bytes(inputs) else { return Ok(None) };
    let is_plain = options.compression == CompressionChoice::Fixed(Compression::Off);
    if options.order.unique || options.top.is_some() || (to_view && !is_plain) {
        return Ok(None);
    }
    let runs_of = |runs_bytes: u64| {
        let both_bytes = match runs_bytes {
            0 => result_bytes,
            _ => runs_bytes.saturating_add(result_bytes.min(ALLOCATE_BYTES)),
        };
        Some(SpaceNeed { runs_bytes, result_bytes, both_bytes })
    };
    if to_view || !is_plain {
        return Ok(runs_of(0));
    }
    let again = inputs.iter().filter_map(|input| match input {
        SortInput::Storage(storage) => Some(SortInput::Storage(Arc::clone(storage))),
        SortInput::Stream { .. } | SortInput::Packed(_) => None,
    });
    let sorter = Sorter::prepare(again.collect(), options, to_view)?;
    let runs_bytes = if sorter.plan.chunks == 1 { 0 } else { result_bytes };
    Ok(runs_of(runs_bytes))
}
