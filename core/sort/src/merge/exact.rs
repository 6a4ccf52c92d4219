//! Whole keys of fences, where the cut ones leave open on which side of a bound a fence is.
//!
//! A fence holds the first 256 bytes of a key. Among records that share these, the index alone can't tell where a bound
//! is. A window that had to read all of them would be as large as they are together, and it would read again what earlier
//! windows had already given back. So the records themselves are looked at: few, because windows proceed in order and the
//! search begins where the last bound was.

use std::ops::Range;

use super::segments::Segments;
use crate::bound::Bound;
use crate::record::{Framing, with_framing};
use crate::run::Run;
use crate::{Error, Result};

/// The number of leading fences of run `number` that are on the left of `bound`; as many as `range.start` are, and those
/// from `range.end` on are not.
///
/// Records before a place that a merge has passed may be gone: a fence that can't be read counts as one on the left,
/// if a later one is there and on the left.
///
/// # Errors
/// [`Error::Corrupt`] of the record of the last fence on the left; the storage's own.
pub(crate) fn fences_left(
    segments: &Segments,
    bound: &Bound,
    number: usize,
    range: Range<usize>,
) -> Result<usize> {
    let run = &segments.runs[number];
    let mut low = bound.fences_left(run, number, range.clone());
    let mut high = bound.fences_maybe_left(run, number, low..range.end);
    let mut unreadable = None;
    // Steps double until a fence is on the right: it is mostly near.
    let mut step = Some(1);
    while low < high {
        let fence = step.map_or(low + (high - low) / 2, |step| (low + step - 1).min(high - 1));
        let position = run.fence_position(fence);
        let left = match full_key(segments, run, position) {
            Ok(key) => bound.is_after(&key, number, position),
            Err(error @ Error::Corrupt { .. }) => {
                unreadable = Some((fence, error));
                true
            }
            Err(error) => return Err(error),
        };
        if left {
            low = fence + 1;
            step = step.map(|step| 2 * step);
        } else {
            high = fence;
            step = None;
        }
    }
    match unreadable {
        Some((fence, error)) if fence + 1 == low => Err(error),
        _ => Ok(low),
    }
}

/// Reads the record at `position` for its whole key.
///
/// # Errors
/// [`Error::Corrupt`]; the storage's own.
pub(crate) fn full_key(segments: &Segments, run: &Run, position: u64) -> Result<Vec<u8>> {
    let first = run.block_of(position);
    let blocks = run.footer().blocks;
    let mut bytes = Vec::new();
    let mut read = first..first + 1;
    loop {
        bytes.extend(run.read_blocks(read.clone())?);
        let record = &bytes[(position - first * run.block_bytes()) as usize..];
        let to_the_end = read.end >= blocks;
        let len =
            with_framing!(segments.order.format(), framing => framing.len_in(record, to_the_end));
        if let Some(len) = len {
            let mut key = Vec::new();
            segments.order.encode_full(&record[..len], &mut key);
            return Ok(key);
        }
        if to_the_end {
            return Err(Error::Corrupt {
                file: run.storage().name().to_owned(),
                offset: position,
                detail: "the run's last record is cut short".to_owned(),
            });
        }
        read = read.end..(read.end + (read.end - first)).min(blocks);
    }
}
