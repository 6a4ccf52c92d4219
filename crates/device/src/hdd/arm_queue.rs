//! The jobs that wait for the arm, by their arrival and by their cylinder.
//!
//! A full write cache holds thousands of jobs. The search for the nearest one goes outward from the
//! arm's cylinder and ends at the distance whose seek alone takes longer than the best job found.

use std::collections::{BTreeMap, BTreeSet};

/// Jobs after which the search looks whether the others are too far. The bound of a distance takes longer than the cost
/// of a job.
const BOUND_PERIOD: u32 = 8;

/// The jobs that wait for the arm.
#[derive(Debug, Default)]
pub(super) struct ArmQueue {
    /// Slots by their number in the order of arrival.
    arrived: BTreeMap<u64, usize>,
    /// Cylinder, number and slot.
    cylinders: BTreeSet<(u64, u64, usize)>,
    /// Numbers of the jobs whose host waits: reads, and writes.
    reads: BTreeSet<u64>,
    writes: BTreeSet<u64>,
    /// Number and cylinder by slot.
    places: BTreeMap<usize, (u64, u64)>,
    next: u64,
}

impl ArmQueue {
    /// Adds the job in `slot`. The host does not wait for a job that is `answered`.
    pub fn push(&mut self, slot: usize, cylinder: u64, write: bool, answered: bool) {
        let number = self.next;
        self.next += 1;
        self.arrived.insert(number, slot);
        self.cylinders.insert((cylinder, number, slot));
        self.places.insert(slot, (number, cylinder));
        if !answered {
            let waiting = if write { &mut self.writes } else { &mut self.reads };
            waiting.insert(number);
        }
    }

    /// Removes the job in `slot`.
    pub fn remove(&mut self, slot: usize) {
        let (number, cylinder) = self.places.remove(&slot).expect("a job that waits");
        self.arrived.remove(&number);
        self.cylinders.remove(&(cylinder, number, slot));
        self.reads.remove(&number);
        self.writes.remove(&number);
    }

    /// The host got its answer to the write in `slot`.
    pub fn answer(&mut self, slot: usize) {
        self.writes.remove(&self.places[&slot].0);
    }

    pub fn is_empty(&self) -> bool {
        self.arrived.is_empty()
    }

    /// All jobs, in the order of their arrival.
    pub fn slots(&self) -> impl Iterator<Item = usize> + '_ {
        self.arrived.values().copied()
    }

    /// The read that arrived first of those in the cylinders from `first` to `last` that `fit`.
    pub fn oldest_read(&self, first: u64, last: u64, fit: impl Fn(usize) -> bool) -> Option<usize> {
        self.cylinders
            .range((first, 0, 0)..=(last, u64::MAX, usize::MAX))
            .filter(|(_, number, slot)| self.reads.contains(number) && fit(*slot))
            .min_by_key(|(_, number, _)| *number)
            .map(|(_, _, slot)| *slot)
    }

    /// The job that arrived first.
    pub fn oldest(&self) -> Option<usize> {
        self.slots().next()
    }

    /// The job that arrived first of those whose host waits.
    pub fn oldest_unanswered(&self) -> Option<usize> {
        let first = self.reads.first().into_iter().chain(self.writes.first()).min()?;
        Some(self.arrived[first])
    }

    /// The write that arrived first of those whose host waits.
    pub fn oldest_write(&self) -> Option<usize> {
        self.writes.first().map(|number| self.arrived[number])
    }

    /// The job with the least `cost`; of equal ones, the one that arrived first. `least` is a lower
    /// bound of the cost at a distance from `cylinder`, and does not fall with the distance.
    ///
    /// # Panics
    /// If no job waits.
    pub fn nearest(
        &self,
        cylinder: u64,
        least: impl Fn(u64) -> u64,
        cost: impl Fn(usize) -> u64,
    ) -> usize {
        let mut below = self.cylinders.range(..(cylinder, 0, 0)).rev().peekable();
        let mut above = self.cylinders.range((cylinder, 0, 0)..).peekable();
        let mut best: Option<(u64, u64, usize)> = None;
        for looked_at in 0.. {
            let distance = |job: &&(u64, u64, usize)| job.0.abs_diff(cylinder);
            let next = match (below.peek().map(distance), above.peek().map(distance)) {
                (Some(down), Some(up)) if down < up => below.next(),
                (_, Some(_)) => above.next(),
                (Some(_), None) => below.next(),
                (None, None) => None,
            };
            let Some(job) = next else { break };
            let too_far = |(cost, _, _)| least(job.0.abs_diff(cylinder)) > cost;
            if looked_at % BOUND_PERIOD == 0 && best.is_some_and(too_far) {
                break;
            }
            let found = (cost(job.2), job.1, job.2);
            best = Some(best.map_or(found, |best| best.min(found)));
        }
        best.expect("a job waits").2
    }
}

#[cfg(test)]
mod tests {
    use merganser_random::Random;

    use super::*;

    #[test]
    fn the_nearest_job_is_that_of_a_scan_of_all() {
        let mut random = Random::new(7);
        for _ in 0..200 {
            let mut queue = ArmQueue::default();
            let count = 1 + random.index(50);
            let jobs: Vec<(u64, u64)> =
                (0..count).map(|_| (random.below(1000), random.below(300))).collect();
            for (slot, (cylinder, _)) in jobs.iter().enumerate() {
                queue.push(slot, *cylinder, true, true);
            }
            let arm = random.below(1000);
            let cost = |slot: usize| jobs[slot].0.abs_diff(arm) + jobs[slot].1;
            let scan = (0..count).min_by_key(|slot| (cost(*slot), *slot)).expect("some");
            assert_eq!(queue.nearest(arm, |distance| distance, cost), scan);
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
                queue.push(slot, cylinder, write, false);
            }
            // Slots are not used in the order of arrival.
            let again = random.index(count);
            queue.remove(again);
            queue.push(again, jobs[again].0, jobs[again].1, false);
            let arrived: Vec<usize> = queue.slots().collect();
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
