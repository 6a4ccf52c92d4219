//! Cutting the output into windows.
//!
//! A fence gives the place of a block's first key in the order. Walking the fences of all runs in
//! key order means walking the output block by block. After about a window's worth of them, the
//! current fence becomes the bound. So each window needs a bounded number of blocks, however skewed
//! the keys are: a run that alone holds a whole stretch gives all blocks of that stretch, and the
//! other runs give no blocks.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::Range;

use super::exact::{fences_left, full_key};
use super::segments::Segments;
use super::window::WindowPlan;
use crate::Result;
use crate::bound::Bound;

/// Makes the plans of consecutive windows, lazily.
pub(crate) struct Planner {
    segments: Segments,
    /// Most bytes of input that a window may take.
    window_bytes: u64,
    heap: BinaryHeap<Reverse<Head>>,
    lower: Option<Bound>,
    /// For each run, how many fences are on the left of `lower`.
    lower_left: Vec<usize>,
    /// For each run, how many fences were heads with whole keys, and are before all heads.
    passed: Vec<usize>,
    end: Option<Bound>,
    finished: bool,
}

/// The next fence of a run.
struct Head {
    /// Its key, as far as the order of heads depends on it.
    key: Vec<u8>,
    run: usize,
    fence: usize,
    /// Whether that is the whole key.
    whole: bool,
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
    ) -> Result<Self> {
        let mut lower_left = vec![0; segments.runs.len()];
        if let Some(lower) = &lower {
            for (number, run) in segments.runs.iter().enumerate() {
                lower_left[number] = fences_left(&segments, lower, number, 0..run.fences())?;
            }
        }
        let (heap, passed) = (BinaryHeap::new(), lower_left.clone());
        let finished = false;
        let mut planner =
            Planner { segments, window_bytes, heap, lower, lower_left, passed, end, finished };
        for run in 0..planner.segments.runs.len() {
            planner.push(run, planner.lower_left[run])?;
        }
        Ok(planner)
    }

    /// Adds a fence to the heads. If its cut key is that of its neighbour, too, there is more of its run under this key
    /// than one stretch, and its place among the heads of other runs needs the whole key.
    fn push(&mut self, run: usize, fence: usize) -> Result<()> {
        let r = &self.segments.runs[run];
        if fence >= r.fences() {
            return Ok(());
        }
        let (key, cut) = r.fence_key(fence);
        let shared = |other: usize| other < r.fences() && r.fence_key(other) == (key, true);
        let read = cut && (shared(fence + 1) || fence > 0 && shared(fence - 1));
        let key =
            if read { full_key(&self.segments, r, r.fence_position(fence))? } else { key.to_vec() };
        self.heap.push(Reverse(Head { key, run, fence, whole: read || !cut }));
        Ok(())
    }

    /// For each run, the fences that may be on either side of `bound`, which is at a head: what the heads tell without
    /// a look at records.
    fn open_fences(&self, bound: &Bound) -> Vec<Range<usize>> {
        let mut open: Vec<Range<usize>> = Vec::with_capacity(self.segments.runs.len());
        for (number, run) in self.segments.runs.iter().enumerate() {
            // Without a tie, a fence that was passed may have the bound's own key, and is on its right.
            let passed = if bound.tie.is_some() { self.passed[number] } else { 0 };
            open.push(self.lower_left[number].max(passed)..run.fences());
        }
        for Reverse(head) in self.heap.iter().filter(|Reverse(head)| head.whole) {
            let position = self.segments.runs[head.run].fence_position(head.fence);
            let range = &mut open[head.run];
            if bound.is_after(&head.key, head.run, position) {
                range.start = range.start.max(head.fence + 1);
            } else {
                range.end = range.end.min(head.fence).max(range.start);
            }
        }
        open
    }

    /// Bytes of a run that a window may have to read besides its own stretches: the one in which its lower bound is,
    /// and the block after its last.
    fn edge_bytes(&self, number: usize) -> u64 {
        let run = &self.segments.runs[number];
        let stretch = self.lower_left[number]
            .checked_sub(1)
            .map_or(0, |fence| run.fence_position(fence + 1) - run.fence_position(fence));
        stretch.max(run.block_bytes()) + run.block_bytes()
    }

    /// The next window; `None` at the end. Windows have at least one block's worth of output.
    pub(crate) fn next(&mut self) -> Result<Option<WindowPlan>> {
        if self.finished {
            return Ok(None);
        }
        let edges: u64 = (0..self.segments.runs.len()).map(|run| self.edge_bytes(run)).sum();
        // Where long records make the edges large, a window is larger than it should be, or all of it would be edges.
        let room = self.window_bytes.saturating_sub(edges).max(self.window_bytes / 2);
        let mut taken = 0;
        let upper = loop {
            let Some(Reverse(head)) = self.heap.pop() else { break None };
            if head.fence < self.lower_left[head.run] {
                self.push(head.run, self.lower_left[head.run])?;
                continue;
            }
            let run = &self.segments.runs[head.run];
            let span = run.fence_position(head.fence + 1) - run.fence_position(head.fence);
            if taken > 0 && taken + span > room {
                let bound = self.bound_at(&head)?;
                let past = self.lower.as_ref().is_none_or(|lower| follows(lower, &bound));
                if past {
                    self.heap.push(Reverse(head));
                    break Some(bound);
                }
            }
            taken += span.max(run.block_bytes());
            if head.whole {
                self.passed[head.run] = head.fence + 1;
            }
            self.push(head.run, head.fence + 1)?;
        };
        let (upper, open) = match (upper, &self.end) {
            (Some(upper), end) if end.as_ref().is_none_or(|end| follows(&upper, end)) => {
                let open = self.open_fences(&upper);
                (Some(upper), open)
            }
            _ => {
                self.finished = true;
                let runs = self.segments.runs.iter().zip(&self.lower_left);
                (self.end.clone(), runs.map(|(run, left)| *left..run.fences()).collect())
            }
        };
        let (lower, left) = (self.lower.take(), std::mem::take(&mut self.lower_left));
        let plan = WindowPlan::following(&self.segments, lower, left, upper.clone(), open)?;
        self.lower = upper;
        self.lower_left.clone_from(&plan.upper_left);
        Ok(Some(plan))
    }

    /// The bound at a head.
    fn bound_at(&self, head: &Head) -> Result<Bound> {
        if head.whole {
            let position = self.segments.runs[head.run].fence_position(head.fence);
            return Ok(bound_before(&self.segments, head.key.clone(), (head.run, position)));
        }
        bound_at_fence(&self.segments, head.run, head.fence)
    }
}

/// The bound right before fence `fence` of run `number`.
pub(crate) fn bound_at_fence(segments: &Segments, number: usize, fence: usize) -> Result<Bound> {
    let run = &segments.runs[number];
    let (key, cut) = run.fence_key(fence);
    let position = run.fence_position(fence);
    let key = if cut { full_key(segments, run, position)? } else { key.to_vec() };
    Ok(bound_before(segments, key, (number, position)))
}

/// The bound right before the record with `key` at `place` (run, position). With `unique`, one that no equal keys straddle.
fn bound_before(segments: &Segments, key: Vec<u8>, place: (usize, u64)) -> Bound {
    if segments.unique { Bound::before_key(key) } else { Bound { key, tie: Some(place) } }
}

/// Whether `b` is a later place than `a`.
pub(crate) fn follows(a: &Bound, b: &Bound) -> bool {
    let rank = |bound: &Bound| bound.tie.map_or((0, 0), |(run, position)| (run + 1, position));
    a.key.cmp(&b.key).then_with(|| rank(a).cmp(&rank(b))) == Ordering::Less
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use merganser_random::Random;
    use merganser_storage::memory::MemoryDirectory;
    use merganser_storage::{Buffer, Directory};

    use super::*;
    use crate::Budget;
    use crate::key::OrderSpec;
    use crate::merge::window::LoadingWindow;
    use crate::record::Format;
    use crate::run::builder::RunBuilder;
    use crate::run::{Compression, RunWriter};

    const BLOCK_BYTES: u32 = 4096;

    /// Runs of lines that `line` makes.
    fn segments(runs: usize, lines: usize, line: &mut dyn FnMut() -> String) -> Segments {
        let folder = MemoryDirectory::new();
        let order =
            OrderSpec::new(Format::Lines { delimiter: b'\n' }).compile(None).expect("an order");
        let mut run = |number: usize| {
            let mut lines: Vec<String> = (0..lines).map(|_| line()).collect();
            lines.sort();
            let storage = folder.create(&format!("{number}")).expect("creates");
            let memory = Budget::new(1 << 30).reserve(0, "fences").expect("fits");
            let writer = RunWriter::new(storage, BLOCK_BYTES, Compression::Off, None, memory);
            let mut builder =
                RunBuilder::new(writer.expect("begins"), order.clone()).expect("there is memory");
            builder.append(lines.concat().as_bytes()).expect("whole lines");
            Arc::new(builder.finish("{}", false).expect("ends"))
        };
        let runs: Vec<_> = (0..runs).map(&mut run).collect();
        let order = Arc::new(order);
        Segments { runs: runs.into(), order, unique: false, width: Arc::default() }
    }

    /// Where fences say nothing, windows are still as large as they should be, each begins where the last one ended, and
    /// none reads what an earlier one has left behind.
    #[test]
    fn windows_of_keys_that_begin_alike_are_bounded() {
        let mut random = Random::new(3);
        let stem = "s".repeat(300);
        for stems in [1, 4, 1000] {
            let mut line = || format!("{stem}{} {:020}\n", random.index(stems), random.bits());
            let segments = segments(6, 1500, &mut line);
            let window_bytes = 200_000;
            for unique in [false, true] {
                let segments = Segments { unique, ..segments.clone() };
                let planner = Planner::new(segments.clone(), window_bytes, None, None);
                let mut planner = planner.expect("plans");
                let (mut from, mut offset, mut windows) = (vec![0; 6], 0, 0);
                while let Some(plan) = planner.next().expect("plans") {
                    let bytes = plan.memory_bytes(&segments);
                    // A block of each run may be there because a stretch goes past the end of its block.
                    let most = window_bytes + 6 * u64::from(BLOCK_BYTES);
                    assert!(bytes <= most, "{stems} stems, window {windows}: {bytes} bytes");
                    assert!(plan.from.iter().zip(&from).all(|(now, then)| now >= then), "{stems}");
                    from.clone_from(&plan.from);
                    let window = LoadingWindow::start(&segments, plan, Buffer::empty());
                    let window = window.and_then(|window| window.finish(&segments)).expect("reads");
                    assert_eq!(window.output_offset, offset, "{stems} stems, window {windows}");
                    offset += window.bytes();
                    windows += 1;
                }
                assert_eq!(offset, segments.data_bytes(), "{stems} stems");
                assert!((10..40).contains(&windows), "{stems} stems: {windows} windows");
            }
        }
    }
}
