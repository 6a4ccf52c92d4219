//! The jobs that wait for the arm, by their arrival and by their cylinder.
//!
//! A full write cache holds thousands of jobs. The search for the nearest one goes outward from the
//! arm's cylinder and ends at the distance whose seek alone takes longer than the best job found.

use std::collections::BTreeMap;

use super::layout::TrackPosition;

/// Jobs after which the search looks whether the others are too far. The bound of a distance takes longer than the cost
/// of a job.
const BOUND_PERIOD: u32 = 8;

/// A job that waits for the arm, with all that its cost depends on: the search would wait for the memory of the jobs
/// themselves.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArmJob {
    pub slot: usize,
    pub target: TrackPosition,
    pub write: bool,
}

/// The one who waits for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArmWaiter {
    /// The host, which reads.
    Reads,
    /// The host, which writes.
    Writes,
    /// Nobody: the host has its answer.
    Answered,
}

/// Where a job is in the queue.
#[derive(Debug, Clone, Copy)]
struct ArmPlace {
    number: u64,
    cylinder: u64,
    line: ArmWaiter,
}

/// The jobs that wait for the arm. They have numbers in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct ArmQueue {
    /// By cylinder and number.
    jobs: BTreeMap<(u64, u64), ArmJob>,
    /// The slots of each line, by number.
    lines: [BTreeMap<u64, usize>; 3],
    /// By slot; `None` where no job waits.
    places: Vec<Option<ArmPlace>>,
    next: u64,
}

impl ArmQueue {
    /// Adds the job in `slot`. The host does not wait for a job that is `answered`.
    pub(super) fn push(&mut self, slot: usize, target: TrackPosition, write: bool, answered: bool) {
        let number = self.next;
        self.next += 1;
        let line = match (answered, write) {
            (true, _) => ArmWaiter::Answered,
            (false, true) => ArmWaiter::Writes,
            (false, false) => ArmWaiter::Reads,
        };
        self.jobs.insert((target.cylinder, number), ArmJob { slot, target, write });
        self.lines[line as usize].insert(number, slot);
        if self.places.len() <= slot {
            self.places.resize(slot + 1, None);
        }
        self.places[slot] = Some(ArmPlace { number, cylinder: target.cylinder, line });
    }

    /// Removes the job in `slot`.
    pub(super) fn remove(&mut self, slot: usize) {
        let ArmPlace { number, cylinder, line } =
            self.places[slot].take().expect("a job that waits");
        self.jobs.remove(&(cylinder, number));
        self.lines[line as usize].remove(&number);
    }

    /// The host got its answer to the write in `slot`.
    pub(super) fn answer(&mut self, slot: usize) {
        let place = self.places[slot].as_mut().expect("a job that waits");
        self.lines[place.line as usize].remove(&place.number);
        place.line = ArmWaiter::Answered;
        self.lines[ArmWaiter::Answered as usize].insert(place.number, slot);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// The writes that wait in the buffer: the host has their answers.
    pub(super) fn answered(&self) -> impl Iterator<Item = usize> + '_ {
        self.lines[ArmWaiter::Answered as usize].values().copied()
    }

    /// The read that arrived first of those in the cylinders from `first` to `last` that `fit`.
    pub(super) fn oldest_read(
        &self,
        first: u64,
        last: u64,
        fit: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        self.jobs
            .range((first, 0)..=(last, u64::MAX))
            .filter(|(_, job)| !job.write && fit(job.slot))
            .min_by_key(|((_, number), _)| *number)
            .map(|(_, job)| job.slot)
    }

    /// The job that arrived first.
    pub(super) fn oldest(&self) -> Option<usize> {
        oldest_of(&self.lines)
    }

    /// The job that arrived first of those whose host waits.
    pub(super) fn oldest_unanswered(&self) -> Option<usize> {
        oldest_of(&self.lines[..ArmWaiter::Answered as usize])
    }

    /// The write that arrived first of those whose host waits.
    pub(super) fn oldest_write(&self) -> Option<usize> {
        self.lines[ArmWaiter::Writes as usize].first_key_value().map(|(_, slot)| *slot)
    }

    /// The job with the least `cost`; of equal ones, the one that arrived first. `least` is a lower
    /// bound of the cost at a distance from `cylinder`, and does not fall with the distance.
    ///
    /// # Panics
    /// If no job waits.
    pub(super) fn nearest(
        &self,
        cylinder: u64,
        least: impl Fn(u64) -> u64,
        cost: impl Fn(&ArmJob) -> u64,
    ) -> usize {
        let mut below = self.jobs.range(..(cylinder, 0)).rev().peekable();
        let mut above = self.jobs.range((cylinder, 0)..).peekable();
        let mut best: Option<(u64, u64, usize)> = None;
        for looked_at in 0.. {
            let distance = |(at, _): &(&(u64, u64), &ArmJob)| at.0.abs_diff(cylinder);
            let next = match (below.peek().map(distance), above.peek().map(distance)) {
                (Some(down), Some(up)) if down < up => below.next(),
                (_, Some(_)) => above.next(),
                (Some(_), None) => below.next(),
                (None, None) => None,
            };
            let Some((&(at, number), job)) = next else { break };
            let too_far = |(cost, _, _)| least(at.abs_diff(cylinder)) > cost;
            if looked_at % BOUND_PERIOD == 0 && best.is_some_and(too_far) {
                break;
            }
            let found = (cost(job), number, job.slot);
            best = Some(best.map_or(found, |best| best.min(found)));
        }
        best.expect("a job waits").2
    }
}

/// The slot with the least number.
fn oldest_of(lines: &[BTreeMap<u64, usize>]) -> Option<usize> {
    let firsts = lines.iter().filter_map(BTreeMap::first_key_value);
    firsts.min_by_key(|(number, _)| **number).map(|(_, slot)| *slot)
}

#[cfg(test)]
mod tests {
    use merganser_random::Random;

    use super::*;

    fn target(cylinder: u64) -> TrackPosition {
        TrackPosition { cylinder, ..TrackPosition::default() }
    }

    /// Random calls, against a list of the jobs in the order of their arrival.
    #[test]
    fn the_oldest_jobs_are_those_of_a_list() {
        let mut random = Random::new(9);
        let mut queue = ArmQueue::default();
        // Slot, whether it writes, whether the host waits.
        let mut list: Vec<(usize, bool, bool)> = Vec::new();
        for _ in 0..20_000 {
            match random.index(4) {
                0 | 1 if list.len() < 40 => {
                    let slot = (0..).find(|slot| list.iter().all(|job| job.0 != *slot));
                    let slot = slot.expect("one is free");
                    let (write, answered) = (random.one_in(2), random.one_in(2));
                    queue.push(slot, target(random.below(9)), write, write && answered);
                    list.push((slot, write, !(write && answered)));
                }
                2 => {
                    let writes = list.iter_mut().find(|job| job.1 && job.2);
                    assert_eq!(queue.oldest_write(), writes.as_ref().map(|job| job.0));
                    if let Some(job) = writes {
                        queue.answer(job.0);
                        job.2 = false;
                    }
                }
                _ if !list.is_empty() => queue.remove(list.remove(random.index(list.len())).0),
                _ => {}
            }
            assert_eq!(queue.is_empty(), list.is_empty());
            assert_eq!(queue.oldest(), list.first().map(|job| job.0));
            let unanswered = list.iter().find(|job| job.2);
            assert_eq!(queue.oldest_unanswered(), unanswered.map(|job| job.0));
            let answered = list.iter().filter(|job| !job.2).map(|job| job.0);
            assert!(queue.answered().eq(answered));
        }
    }

    #[test]
    fn the_nearest_job_is_that_of_a_scan_of_all() {
        let mut random = Random::new(7);
        for _ in 0..200 {
            let mut queue = ArmQueue::default();
            let count = 1 + random.index(50);
            let jobs: Vec<(u64, u64)> =
                (0..count).map(|_| (random.below(1000), random.below(300))).collect();
            for (slot, (cylinder, _)) in jobs.iter().enumerate() {
                queue.push(slot, target(*cylinder), true, true);
            }
            let arm = random.below(1000);
            let cost = |slot: usize| jobs[slot].0.abs_diff(arm) + jobs[slot].1;
            let scan = (0..count).min_by_key(|slot| (cost(*slot), *slot)).expect("some");
            assert_eq!(queue.nearest(arm, |distance| distance, |job| cost(job.slot)), scan);
        }
    }

    #[test]
    fn the_oldest_read_of_a_span_is_that_of_a_scan_of_all() {
        let mut random = Random::new(8);
        for _ in 0..200 {
            let mut queue = ArmQueue::default();
            let count = 1 + random.index(50);
            let jobs: Vec<(u64, bool)> =
                (0..count).map(|_| (random.below(20), random.one_in(3))).collect();
            for (slot, &(cylinder, write)) in jobs.iter().enumerate() {
                queue.push(slot, target(cylinder), write, false);
            }
            // Slots are not used in the order of arrival.
            let again = random.index(count);
            queue.remove(again);
            queue.push(again, target(jobs[again].0), jobs[again].1, false);
            let others = (0..count).filter(|slot| *slot != again);
            let arrived: Vec<usize> = others.chain([again]).collect();
            let first = random.below(20);
            let span = first..=first + random.below(20);
            let fit = |slot: usize| slot % 3 != 1;
            let scan = arrived
                .into_iter()
                .find(|&slot| !jobs[slot].1 && span.contains(&jobs[slot].0) && fit(slot));
            assert_eq!(queue.oldest_read(*span.start(), *span.end(), fit), scan);
        }
    }
}
