//! A place in the total order of all records: by key, then by run, then by position in the run.
//!
//! It is total, so billions of equal keys are cut like any others, and equal keys keep the order of the input
//! without a counter in each record.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::run::Run;

/// Everything before a bound is on its left. It can be at a place where no run has a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bound {
    /// Full normalised key.
    pub(crate) key: Vec<u8>,
    /// Among records with this key, records of earlier runs are on the left, those of later runs on
    /// the right, and those of this run on the left if they are before `position`. With `None`, all
    /// of them are on the right.
    pub(crate) tie: Option<(usize, u64)>,
}

impl Bound {
    /// The place before all records.
    pub(crate) fn start() -> Self {
        Bound::before_key(Vec::new())
    }

    /// The place before every record whose full key is at least `key`.
    pub(crate) fn before_key(key: Vec<u8>) -> Self {
        Bound { key, tie: None }
    }

    /// Whether its tie, if it has one, is at a fence of one of `runs` and its key that fence's, as of
    /// every bound that a plan makes. A bound that was read from a file may say anything.
    pub(crate) fn fits(&self, runs: &[Arc<Run>]) -> bool {
        self.tie.is_none_or(|(run, position)| {
            runs.get(run).is_some_and(|run| {
                let fence = run.fence_floor(position);
                fence.is_some_and(|fence| {
                    let (key, cut) = run.fence_key(fence);
                    let own = if cut { self.key.starts_with(key) } else { self.key == key };
                    own && run.fence_position(fence) == position
                })
            })
        })
    }

    /// Whether the record of run `run` at `position` with full key `key` is on the left.
    pub(crate) fn is_after(&self, key: &[u8], run: usize, position: u64) -> bool {
        match key.cmp(&self.key) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => {
                self.tie.is_some_and(|tie| run < tie.0 || (run == tie.0 && position < tie.1))
            }
        }
    }

    /// The number of leading fences of run number `number` that are surely on the left, looked for
    /// in `range`.
    pub(crate) fn fences_left(
        &self,
        run: &Run,
        number: usize,
        range: std::ops::Range<usize>,
    ) -> usize {
        self.count(run, number, range, false)
    }

    /// As [`Bound::fences_left`], including those that may be on the left because their keys are cut; as many as
    /// `range.start` surely are.
    pub(crate) fn fences_maybe_left(
        &self,
        run: &Run,
        number: usize,
        range: std::ops::Range<usize>,
    ) -> usize {
        if run.has_cut_fences() { self.count(run, number, range, true) } else { range.start }
    }

    fn count(
        &self,
        run: &Run,
        number: usize,
        range: std::ops::Range<usize>,
        undecided: bool,
    ) -> usize {
        match self.tie {
            Some((tie_run, position)) if tie_run == number => {
                // Within its own run the bound is a position, whatever keys say.
                let (mut low, mut high) = (range.start, range.end);
                while low < high {
                    let mid = low + (high - low) / 2;
                    if run.fence_position(mid) < position {
                        low = mid + 1;
                    } else {
                        high = mid;
                    }
                }
                low
            }
            Some((tie_run, _)) => run.fences_below(&self.key, number < tie_run, undecided, range),
            None => run.fences_below(&self.key, false, undecided, range),
        }
    }
}
