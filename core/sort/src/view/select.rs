//! Multi-sequence selection: from a place in the output to a bound near it, by fences.
//!
//! A bound's exact place in the output is known only after looking into one block of every run, but
//! fences bracket it: in each run it is between two neighbouring fences. Selection looks for the
//! last fence whose place is surely not after the target. It bisects all runs' fences at once
//! (after Frederickson and Johnson 1982; Varman et al. 1991), and aims its first steps at the
//! target. O(k log k log n) compares, and no I/O where fences hold whole keys.

use std::ops::Range;

use crate::Result;
use crate::bound::Bound;
use crate::merge::exact::fences_left;
use crate::merge::plan::bound_at_fence;
use crate::merge::segments::Segments;
use crate::run::Run;

/// The unit of a place in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Records,
}

impl Unit {
    /// Place of fence `i` in its run.
    fn of_run(self, run: &Run, i: usize) -> u64 {
        match self {
            Unit::Bytes => run.fence_position(i),
            Unit::Records => run.fence_record(i),
        }
    }
}

/// Bounds on both sides of a stretch of the output, which is wholly between them.
pub(crate) struct Enclosure {
    pub(crate) lower: Option<Bound>,
    pub(crate) upper: Option<Bound>,
}

/// The place of a fence in the output, as precisely as fences give it.
struct Bracket {
    /// The sums, over all runs, of the places of the fences around it.
    low: u64,
    high: u64,
    /// Sum of the squares of the gaps between those two.
    gaps_squared: f64,
}

/// Standard deviations of a fence's place that [`enclose_nearly`] allows for: one read in a hundred
/// has to be done again.
const DEVIATIONS: f64 = 2.5;

impl Bracket {
    fn add(&mut self, low: u64, high: u64) {
        self.low += low;
        self.high += high;
        self.gaps_squared += ((high - low) as f64).powi(2);
    }

    /// Where it most likely is, and how far it may well be from there. Where keys do not depend on
    /// the run that they are in, the place in each run is spread evenly between its two fences
    /// (variance: a twelfth of the square of their distance), and the runs' errors largely cancel.
    fn likely(&self) -> (f64, f64) {
        let middle = (self.low as f64 + self.high as f64) / 2.0;
        (middle, DEVIATIONS * (self.gaps_squared / 12.0).sqrt())
    }
}

/// The narrowest bounds at fences that surely enclose `range` of the output.
pub(crate) fn enclose(segments: &Segments, unit: Unit, range: Range<u64>) -> Result<Enclosure> {
    let Range { start, end } = range;
    search(segments, unit, range, |fence| fence.high <= start, |fence| fence.low >= end)
}

/// Narrower bounds than [`enclose`]'s, which nearly always enclose `range`; the caller sees whether
/// they do when it reads between them. With many runs, sure bounds include much more than the
/// range: a block of each run.
pub(crate) fn enclose_nearly(
    segments: &Segments,
    unit: Unit,
    range: Range<u64>,
) -> Result<Enclosure> {
    let Range { start, end } = range;
    let before = |fence: &Bracket| {
        let (middle, error) = fence.likely();
        fence.high <= start || middle + error <= start as f64
    };
    let after = |fence: &Bracket| {
        let (middle, error) = fence.likely();
        fence.low >= end || middle - error >= end as f64
    };
    search(segments, unit, range, before, after)
}

/// The last fence in the total order that is `before`, and the first one that is `after`:
/// conditions that once false, or true, stay so.
fn search(
    segments: &Segments,
    unit: Unit,
    range: Range<u64>,
    before: impl Fn(&Bracket) -> bool,
    after: impl Fn(&Bracket) -> bool,
) -> Result<Enclosure> {
    let mut lower = Search::new(segments, unit, range.start);
    let mut upper = Search::new(segments, unit, range.end);
    // The search for one bound narrows down the other one, too.
    while let Some(pivot) = lower.pivot(segments)? {
        let seen = pivot.look(segments, unit, &lower.ranges)?;
        upper.narrow(&pivot, &seen, !after(&seen.place));
        lower.narrow(&pivot, &seen, before(&seen.place));
    }
    while let Some(pivot) = upper.pivot(segments)? {
        let seen = pivot.look(segments, unit, &upper.ranges)?;
        upper.narrow(&pivot, &seen, !after(&seen.place));
    }
    Ok(Enclosure { lower: lower.last, upper: upper.first })
}

/// A fence that is compared with those of all runs.
struct Pivot {
    run: usize,
    fence: usize,
    bound: Bound,
}

/// The result of that comparison.
struct SeenRecords {
    /// For each run, how many of its fences are on the pivot's left.
    lefts: Vec<usize>,
    place: Bracket,
}

impl Pivot {
    /// Outside its range, a run's fences are known to be left or right of the pivot.
    fn look(
        &self,
        segments: &Segments,
        unit: Unit,
        ranges: &[Range<usize>],
    ) -> Result<SeenRecords> {
        let mut place = Bracket { low: 0, high: 0, gaps_squared: 0.0 };
        let mut lefts = Vec::with_capacity(ranges.len());
        for (number, run) in segments.runs.iter().enumerate() {
            let n = fences_left(segments, &self.bound, number, ranges[number].clone())?;
            lefts.push(n);
            if number == self.run {
                let at = unit.of_run(run, self.fence);
                place.add(at, at);
            } else {
                let low = if n == 0 { 0 } else { unit.of_run(run, n - 1) };
                place.add(low, unit.of_run(run, n));
            }
        }
        Ok(SeenRecords { lefts, place })
    }
}

/// Steps that aim at the target. After them the search continues by halves, and no data can make
/// that slow.
const AIMED_STEPS: u32 = 6;
/// Ranges up to this many fences are halved at once.
const AIMED_FROM: usize = 32;

/// A search for the border between fences that are left of something and those that are not.
struct Search {
    /// For each run, the fences that are not known to be on either side.
    ranges: Vec<Range<usize>>,
    last: Option<Bound>,
    first: Option<Bound>,
    /// The place looked for, and those between which it is known to be.
    target: f64,
    places: Range<f64>,
    steps: u32,
}

impl Search {
    fn new(segments: &Segments, unit: Unit, target: u64) -> Self {
        let all = segments.runs.iter().map(|run| unit.of_run(run, run.fences())).sum::<u64>();
        Search {
            ranges: segments.runs.iter().map(|run| 0..run.fences()).collect(),
            last: None,
            first: None,
            target: target as f64,
            places: 0.0..all as f64,
            steps: 0,
        }
    }

    /// The next fence to look at, in the run with the most candidates.
    fn pivot(&mut self, segments: &Segments) -> Result<Option<Pivot>> {
        let widest = (0..self.ranges.len()).max_by_key(|i| self.ranges[*i].len());
        let Some(run) = widest.filter(|i| !self.ranges[*i].is_empty()) else { return Ok(None) };
        let range = self.ranges[run].clone();
        let mut ahead = range.len() / 2;
        if range.len() > AIMED_FROM && self.steps < AIMED_STEPS {
            // Runs are mostly samples of the same keys, so the target is about equally far into
            // each. Aiming a little before and a little behind it, in turn, cuts off both sides.
            let share = (self.target - self.places.start) / (self.places.end - self.places.start);
            let beside = (range.len() as f64).sqrt();
            let beside = if self.steps.is_multiple_of(2) { -beside } else { beside };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "an estimate: what a `usize` can't hold becomes its nearest number"
            )]
            let aimed = (range.len() as f64 * share + beside).max(0.0) as usize;
            ahead = aimed;
        }
        self.steps += 1;
        let fence = range.start + ahead.min(range.len() - 1);
        Ok(Some(Pivot { run, fence, bound: bound_at_fence(segments, run, fence)? }))
    }

    /// Uses the records `seen` at `pivot`, which is `left` of the border or not.
    fn narrow(&mut self, pivot: &Pivot, seen: &SeenRecords, left: bool) {
        if !self.ranges[pivot.run].contains(&pivot.fence) {
            return;
        }
        let place = seen.place.likely().0;
        let ranges = self.ranges.iter_mut().zip(&seen.lefts);
        if left {
            ranges.for_each(|(range, n)| range.start = (*n).clamp(range.start, range.end));
            self.ranges[pivot.run].start = pivot.fence + 1;
            self.places.start = place;
            self.last = Some(pivot.bound.clone());
        } else {
            ranges.for_each(|(range, n)| range.end = (*n).clamp(range.start, range.end));
            self.ranges[pivot.run].end = pivot.fence;
            self.places.end = place;
            self.first = Some(pivot.bound.clone());
        }
    }
}
