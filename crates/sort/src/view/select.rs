//! Multi-sequence selection: from a place in the output to a bound near it, by fences alone.
//!
//! A bound's exact place in the output is known only after looking into one block of every run, but
//! fences bracket it: in each run it lies between two neighbouring fences. Selection looks for the
//! last fence whose place is surely not after the target, by bisecting all runs' fences at once
//! (after Frederickson and Johnson 1982; Varman et al. 1991). No I/O, O(k log k log n) compares.

use std::ops::Range;

use crate::Result;
use crate::merge::bound::Bound;
use crate::merge::plan::bound_at_fence;
use crate::merge::window::Segments;
use crate::run::Run;

/// What a place in the output is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Records,
}

impl Unit {
    /// Place of fence `i` in its run.
    fn of(self, run: &Run, i: usize) -> u64 {
        match self {
            Unit::Bytes => run.fence_position(i),
            Unit::Records => run.fence_record(i),
        }
    }
}

/// Bounds on both sides of a stretch of the output: nothing of it lies outside them.
pub(crate) struct Enclosure {
    pub(crate) lower: Option<Bound>,
    pub(crate) upper: Option<Bound>,
}

/// The narrowest bounds at fences that surely enclose `range` of the output.
pub(crate) fn enclose(segments: &Segments, unit: Unit, range: Range<u64>) -> Result<Enclosure> {
    let lower = last_fence(segments, |_, high| high <= range.start, unit)?;
    // The fence after the last one whose place may still be before the end.
    let upper = first_fence(segments, |low, _| low >= range.end, unit)?;
    Ok(Enclosure { lower, upper })
}

/// The last fence in the total order for which `holds(low, high)`, a condition that once false
/// stays false, on the sums of the places that bracket it.
fn last_fence(
    segments: &Segments,
    holds: impl Fn(u64, u64) -> bool,
    unit: Unit,
) -> Result<Option<Bound>> {
    bisect(segments, holds, unit).map(|(last, _)| last)
}

/// The first fence for which `holds`, a condition that once true stays true.
fn first_fence(
    segments: &Segments,
    holds: impl Fn(u64, u64) -> bool,
    unit: Unit,
) -> Result<Option<Bound>> {
    bisect(segments, |low, high| !holds(low, high), unit).map(|(_, first)| first)
}

/// The last fence for which `left` holds, and the first for which it does not.
fn bisect(
    segments: &Segments,
    left: impl Fn(u64, u64) -> bool,
    unit: Unit,
) -> Result<(Option<Bound>, Option<Bound>)> {
    let mut ranges: Vec<Range<usize>> = segments.runs.iter().map(|r| 0..r.fences()).collect();
    let (mut last, mut first) = (None, None);
    loop {
        let widest = (0..ranges.len()).max_by_key(|i| ranges[*i].len());
        let Some(pivot_run) = widest.filter(|i| !ranges[*i].is_empty()) else {
            return Ok((last, first));
        };
        let range = &ranges[pivot_run];
        let pivot_fence = range.start + range.len() / 2;
        let pivot = bound_at_fence(segments, pivot_run, pivot_fence)?;
        let (mut low, mut high) = (0, 0);
        let mut lefts = Vec::with_capacity(ranges.len());
        for (number, run) in segments.runs.iter().enumerate() {
            // Outside its range a run's fences are known to be left or right of the pivot, but
            // for one at the edge that a cut key leaves undecided.
            let n = pivot.fences_left(run, number, ranges[number].clone());
            lefts.push(n);
            if number == pivot_run {
                let place = unit.of(run, pivot_fence);
                (low, high) = (low + place, high + place);
            } else {
                low += if n == 0 { 0 } else { unit.of(run, n - 1) };
                high += unit.of(run, pivot.fences_maybe_left(run, number, n..run.fences()));
            }
        }
        if left(low, high) {
            for (range, n) in ranges.iter_mut().zip(lefts) {
                range.start = n.max(range.start).min(range.end);
            }
            ranges[pivot_run].start = pivot_fence + 1;
            last = Some(pivot);
        } else {
            for (range, n) in ranges.iter_mut().zip(lefts) {
                range.end = n.min(range.end).max(range.start);
            }
            ranges[pivot_run].end = pivot_fence;
            first = Some(pivot);
        }
    }
}
