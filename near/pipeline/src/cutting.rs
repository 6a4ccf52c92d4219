//! The thread that cuts: where each partition ends, and how many there are.
//!
//! An automatic division begins with two small partitions. When they have passed all stages, a straight line
//! through the times of each stage gives its fixed part and its rate, and the rest of the input is divided into
//! the number that Equation 4.5 likes best ([`best_partitions`]). The two are part of the result, so the choice
//! costs no work, only that nothing else is done meanwhile.
//!
//! The threads of a single pool take whole partitions, so there its number is a multiple of them, and an input that
//! is not large has one for each thread at once.

use merganser_results::pipeline::{InputDivision, PARTITIONS_MAX, Partitions, PipelineEvent};
use merganser_sort::Budget;
use merganser_sort::journal::FileNote;

use super::cut::{Asks, Cutter};
use super::error::PipelineError;
use super::input::{PipelineInput, total_bytes};
use super::model::{StageLine, best_partitions};
use super::schedule::{DiskWriter, PipelineContext, ScheduleState};
use super::summary;

/// The first partitions of an automatic division.
pub(super) const SAMPLES: u32 = 2;
/// Their parts of the input: a 64th and a 16th.
const SAMPLE_PARTS: [u64; SAMPLES as usize] = [64, 16];
/// An input with fewer bytes is one partition.
const AUTO_BYTES_MIN: u64 = 1 << 20;
/// With one pool, an input with fewer bytes for each thread is divided without the first two: they would cost more time
/// than a better number of partitions saves.
const SAMPLED_BYTES_MIN: u64 = 256 << 20;
/// Partitions of an automatic division, at most.
const AUTO_MAX: f64 = 4096.0;

/// Cuts partitions until the inputs end. `look_again` looks at their files after that.
pub(super) fn cut_all(
    shared: &PipelineContext<'_>,
    inputs: &mut [PipelineInput],
    look_again: &dyn Fn() -> Vec<Option<FileNote>>,
) -> Result<(), PipelineError> {
    let settings = shared.settings;
    let budget = Budget::new(settings.memory_bytes);
    let stop = || shared.is_ending();
    let done = shared.lock().done.clone();
    if done.all_cut {
        return Ok(());
    }
    let mut goal = CutGoal {
        partitions: settings.partitions,
        total: done.total,
        split: done.split,
        most: settings.partition_bytes_max.unwrap_or(u64::MAX),
        threads: threads_of_one_pool(shared),
    };
    if goal.needs_total() {
        let bytes = match settings.total_bytes {
            Some(bytes) => bytes,
            None => total_bytes(inputs, settings.content, &budget, &stop)?,
        };
        let mut state = shared.lock();
        shared.note(&mut state, PipelineEvent::Sized { bytes })?;
        goal.total = Some(bytes);
        state.count_seconds = shared.seconds();
    }
    let known: Vec<_> = inputs.iter().map(|input| (input.name.clone(), input.note)).collect();
    let mut k = u32::try_from(done.cuts.len()).expect("six digits");
    let place = (k, done.cut_bytes());
    let what = (settings.records, settings.content);
    let mut cutter = Cutter::new(inputs, what, &budget, place, &stop)?;
    let asks = Asks {
        stop: &stop,
        freed: &|| shared.freed(),
        wait_for_space: &|freed| shared.wait_for_space(DiskWriter::Cut, freed),
    };
    loop {
        if goal.wants_choice(k) {
            let rest = goal.total.unwrap_or(0).saturating_sub(cutter.start());
            let Some(partitions) = choose(shared, rest, k > 0) else { return Ok(()) };
            let split = InputDivision { first: k, start: cutter.start(), partitions };
            let (first, start) = (split.first, split.start);
            let mut state = shared.lock();
            shared.note(&mut state, PipelineEvent::Split { first, start, partitions })?;
            summary::predict(shared, &mut state);
            drop(state);
            goal.split = Some(split);
        }
        let end = goal.end_of(k, cutter.start());
        let likely = end.min(goal.total.unwrap_or(end)).saturating_sub(cutter.start());
        if !shared.wait_to_cut(likely) {
            return Ok(());
        }
        let path = shared.folder.part(k.min(PARTITIONS_MAX));
        let started = shared.seconds();
        let Some(cut) = cutter.next(&path, end, &asks)? else { break };
        if k >= PARTITIONS_MAX {
            return Err(PipelineError::TooMany { max: PARTITIONS_MAX });
        }
        shared.was_cut(cut, started)?;
        shared.limit()?;
        k += 1;
    }
    // Before anything is concluded from having read all of it. A stream is no file that could be looked at.
    for ((input, was), now) in known.into_iter().zip(look_again()) {
        if was.is_some() && was != now {
            return Err(PipelineError::InputChanged { input });
        }
    }
    shared.note(&mut shared.lock(), PipelineEvent::AllCut { partitions: k })?;
    Ok(())
}

/// Where partitions end.
#[derive(Debug, Clone, Copy)]
struct CutGoal {
    partitions: Partitions,
    total: Option<u64>,
    split: Option<InputDivision>,
    /// Bytes of a partition of an automatic division, at most.
    most: u64,
    /// The threads, if all are in one pool.
    threads: Option<usize>,
}

impl CutGoal {
    fn needs_total(&self) -> bool {
        self.total.is_none() && !matches!(self.partitions, Partitions::Bytes(_))
    }

    /// Whether the rest has to be divided before partition `k` is cut.
    fn wants_choice(&self, k: u32) -> bool {
        let total = self.total.unwrap_or(0);
        let is_sampled =
            self.threads.is_none_or(|threads| total / threads as u64 >= SAMPLED_BYTES_MIN);
        let samples = if is_sampled { SAMPLES } else { 0 };
        let is_large = total >= AUTO_BYTES_MIN;
        self.partitions == Partitions::Auto && self.split.is_none() && k == samples && is_large
    }

    /// Where partition `k` ends if it begins at `start`, but for the rest of its last record.
    fn end_of(&self, k: u32, start: u64) -> u64 {
        // The total leaves out terminators that are added, so the last partition goes to the very end.
        let part = |begin: u64, total: u64, at: u32, of: u32| match at >= of {
            true => u64::MAX,
            false => {
                let share = u128::from(total - begin) * u128::from(at) / u128::from(of);
                begin + u64::try_from(share).expect("less than the total")
            }
        };
        let total = self.total.unwrap_or(0);
        match (self.partitions, self.split) {
            (Partitions::Bytes(bytes), _) => start.saturating_add(bytes),
            (Partitions::Count(count), _) => part(0, total, k + 1, count),
            (Partitions::Auto, Some(split)) => {
                let begin = split.start.min(total);
                part(begin, total, (k + 1).saturating_sub(split.first), split.partitions)
            }
            (Partitions::Auto, None) if total < AUTO_BYTES_MIN => start.saturating_add(self.most),
            (Partitions::Auto, None) => {
                let parts = SAMPLE_PARTS.get(k as usize).copied().unwrap_or(1);
                start.saturating_add((total / parts).min(self.most))
            }
        }
    }
}

/// The threads of the only pool; `None` if there are several pools.
fn threads_of_one_pool(shared: &PipelineContext<'_>) -> Option<usize> {
    match &shared.plan.pools[..] {
        [pool] => Some(pool.threads),
        _ => None,
    }
}

/// Chooses the number of the other partitions, if there are samples when they have passed all stages; `None` if the
/// pipeline ends.
fn choose(shared: &PipelineContext<'_>, rest: u64, sampled: bool) -> Option<u32> {
    let mut state = shared.lock();
    while !state.in_flight.is_empty() {
        if shared.is_ending() {
            return None;
        }
        shared.wait(&mut state);
    }
    let best = if sampled { best_of_samples(shared, &state, rest) } else { 1.0 };
    // All that are in flight have to fit into the temporary space.
    let at_once = shared.plan.in_flight as f64 * state.growth() * rest as f64;
    let least = shared.settings.temp_limit_bytes.map_or(1.0, |limit| at_once / limit as f64);
    let most = shared.settings.partition_bytes_max;
    let small = most.map_or(1.0, |most| (rest as f64 / most.max(1) as f64).ceil());
    let chosen = best.max(least).round().clamp(1.0, AUTO_MAX).max(small);
    let even = threads_of_one_pool(shared).map_or(chosen, |threads| {
        let threads = threads as f64;
        (chosen / threads).ceil() * threads
    });
    Some(even.min(f64::from(PARTITIONS_MAX)) as u32)
}

/// The best number by Equation 4.5 and the times of the first partitions.
fn best_of_samples(shared: &PipelineContext<'_>, state: &ScheduleState, rest: u64) -> f64 {
    let shape = summary::shape_of(shared.plan, state);
    let times = summary::times_of(state, &shape);
    let lines: Vec<StageLine> = match times.of_first(SAMPLES as usize) {
        Some(known) => times.lines(&known, (0, 1)),
        // Another process ran them, so their times are not known: a fixed part that is usual, and a rate that
        // makes the stages equal.
        None => {
            vec![StageLine { fixed_seconds: 0.1, seconds_per_byte: 1e-7 }; shared.plan.stages.len()]
        }
    };
    best_partitions(rest as f64, &lines, &shape.pool_of, &shape.threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(goal: CutGoal, total: u64) -> Vec<u64> {
        let mut ends = Vec::new();
        let mut start = 0;
        while start < total {
            let k = u32::try_from(ends.len()).expect("few");
            start = goal.end_of(k, start).min(total);
            ends.push(start);
        }
        ends
    }

    #[test]
    fn partitions_are_balanced_by_bytes() {
        let goal = |partitions, total| CutGoal {
            partitions,
            total,
            split: None,
            most: u64::MAX,
            threads: None,
        };
        assert_eq!(ends(goal(Partitions::Count(4), Some(10)), 10), [2, 5, 7, 10]);
        assert_eq!(ends(goal(Partitions::Count(1), Some(10)), 10), [10]);
        assert_eq!(ends(goal(Partitions::Bytes(4), None), 10), [4, 8, 10]);
        assert_eq!(ends(goal(Partitions::Auto, Some(1000)), 1000), [1000]);
        // No overflow at sizes that no disk has.
        assert_eq!(ends(goal(Partitions::Count(3), Some(u64::MAX)), u64::MAX).len(), 3);
    }

    fn automatic(total: u64, threads: Option<usize>) -> CutGoal {
        let partitions = Partitions::Auto;
        CutGoal { partitions, total: Some(total), split: None, most: u64::MAX, threads }
    }

    #[test]
    fn one_pool_divides_small_inputs_at_once() {
        let small = automatic(2 * SAMPLED_BYTES_MIN - 1, Some(2));
        assert!(small.wants_choice(0) && !small.wants_choice(SAMPLES));
        let large = automatic(2 * SAMPLED_BYTES_MIN, Some(2));
        assert!(!large.wants_choice(0) && large.wants_choice(SAMPLES));
        let tiny = automatic(AUTO_BYTES_MIN - 1, Some(2));
        assert!(!tiny.wants_choice(0) && !tiny.wants_choice(SAMPLES));
        let several_pools = automatic(2 * SAMPLED_BYTES_MIN - 1, None);
        assert!(!several_pools.wants_choice(0) && several_pools.wants_choice(SAMPLES));
    }

    #[test]
    fn the_rest_is_divided_after_the_samples() {
        let total = 64 << 20;
        let mut goal = automatic(total, None);
        assert!(goal.wants_choice(2) && !goal.wants_choice(1));
        assert_eq!(goal.end_of(0, 0), 1 << 20);
        assert_eq!(goal.end_of(1, 1 << 20), 5 << 20);
        goal.split = Some(InputDivision { first: 2, start: 5 << 20, partitions: 2 });
        assert!(!goal.wants_choice(2));
        assert_eq!(goal.end_of(2, 5 << 20), (5 << 20) + (59 << 19));
        assert_eq!(goal.end_of(3, 0), u64::MAX);
        goal.split = None;
        goal.most = 1 << 10;
        assert_eq!(goal.end_of(1, 1 << 20), (1 << 20) + (1 << 10));
    }
}
