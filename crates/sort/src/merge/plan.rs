//! Cutting the output into windows.
//!
//! A fence gives the place of a block's first key in the order. Walking the fences of all runs in
//! key order means walking the output block by block. After about a window's worth of them, the
//! current fence becomes the bound. So each window needs a bounded number of blocks, however skewed
//! the keys are: a run that alone holds a whole stretch gives all blocks of that stretch, and the
//! other runs give no blocks.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::bound::Bound;
use super::window::{Segments, WindowPlan};
use crate::record::{Framing, with_framing};
use crate::run::Run;
use crate::{Error, Result};

/// Makes the plans of consecutive windows, lazily.
pub(crate) struct Planner {
    segments: Segments,
    /// Most bytes of input that a window may take.
    window_bytes: u64,
    heap: BinaryHeap<Reverse<Head>>,
    lower: Option<Bound>,
    end: Option<Bound>,
    finished: bool,
}

/// The next fence of a run.
struct Head {
    key: Vec<u8>,
    run: usize,
    fence: usize,
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Head {}
impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key).then(self.run.cmp(&other.run))
    }
}

impl Planner {
    /// Plans the output from `lower` to `end`; `None` is its start or its end.
    pub(crate) fn new(
        segments: Segments,
        window_bytes: u64,
        lower: Option<Bound>,
        end: Option<Bound>,
    ) -> Self {
        let mut planner = Planner {
            segments,
            window_bytes,
            heap: BinaryHeap::new(),
            lower,
            end,
            finished: false,
        };
        for run in 0..planner.segments.runs.len() {
            let fences = planner.segments.runs[run].fences();
            let first = planner
                .lower
                .as_ref()
                .map_or(0, |b| b.fences_left(&planner.segments.runs[run], run, 0..fences));
            planner.push(run, first);
        }
        planner
    }

    fn push(&mut self, run: usize, fence: usize) {
        let r = &self.segments.runs[run];
        if fence < r.fences() {
            self.heap.push(Reverse(Head { key: r.fence_key(fence).0.to_vec(), run, fence }));
        }
    }

    /// The next window; `None` at the end. Windows have at least one block's worth of output.
    pub(crate) fn next(&mut self) -> Result<Option<WindowPlan>> {
        if self.finished {
            return Ok(None);
        }
        // Every run may have to read the block before its first fence and the one after its last.
        let blocks_bytes = |run: &Run, n: u64| run.block_bytes() * n;
        let edges: u64 = self.segments.runs.iter().map(|r| blocks_bytes(r, 2)).sum();
        let room = self.window_bytes.saturating_sub(edges);
        let mut taken = 0;
        let upper = loop {
            let Some(Reverse(head)) = self.heap.pop() else { break None };
            let run = &self.segments.runs[head.run];
            let span = run.fence_position(head.fence + 1) - run.fence_position(head.fence);
            let (at_run, at_fence) = (head.run, head.fence);
            if taken > 0 && taken + span > room {
                let bound = self.bound_at(at_run, at_fence)?;
                let past = self.lower.as_ref().is_none_or(|lower| follows(lower, &bound));
                if past {
                    self.heap.push(Reverse(head));
                    break Some(bound);
                }
            }
            taken += span.max(run.block_bytes());
            self.push(at_run, at_fence + 1);
        };
        let upper = match (upper, &self.end) {
            (Some(upper), Some(end)) if follows(&upper, end) => Some(upper),
            (Some(upper), None) => Some(upper),
            _ => {
                self.finished = true;
                self.end.clone()
            }
        };
        let plan = WindowPlan::between(&self.segments, self.lower.clone(), upper.clone());
        self.lower = upper;
        Ok(Some(plan))
    }

    /// The bound at a fence. With `unique`, one that no equal keys straddle.
    fn bound_at(&self, number: usize, fence: usize) -> Result<Bound> {
        bound_at_fence(&self.segments, number, fence)
    }
}

/// The bound right before fence `fence` of run `number`.
pub(crate) fn bound_at_fence(segments: &Segments, number: usize, fence: usize) -> Result<Bound> {
    let run = &segments.runs[number];
    let (key, cut) = run.fence_key(fence);
    let position = run.fence_position(fence);
    let key = if cut { full_key(segments, run, position)? } else { key.to_vec() };
    if segments.unique {
        return Ok(Bound::before_key(key));
    }
    Ok(Bound { key, tie: Some((number, position)) })
}

/// Reads the record at `position` for its whole key.
fn full_key(segments: &Segments, run: &Run, position: u64) -> Result<Vec<u8>> {
    let first = run.block_of(position);
    let mut blocks = first..first + 1;
    loop {
        let bytes = run.read_blocks(blocks.clone())?;
        let record = &bytes[(position - first * run.block_bytes()) as usize..];
        let to_the_end = blocks.end * run.block_bytes() >= run.data_bytes();
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
        blocks.end += (blocks.end - blocks.start).min(run.footer().blocks - blocks.end);
    }
}

/// Whether `b` is a later place than `a`.
pub(crate) fn follows(a: &Bound, b: &Bound) -> bool {
    let rank = |bound: &Bound| bound.tie.map_or((0, 0), |(run, position)| (run + 1, position));
    a.key.cmp(&b.key).then_with(|| rank(a).cmp(&rank(b))) == Ordering::Less
}
