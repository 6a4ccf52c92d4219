//! A program's memory that is larger than the machine's: pages move to a swap device and back, the
//! one that was used longest ago first.

use std::collections::BTreeMap;
use std::ops::Range;

use super::host::nanoseconds;

/// The unit of a move: eight pages, `page-cluster` 3 of Linux.
const CLUSTER_BYTES: u64 = 32 << 10;
/// Sequential rates and the latency of a read, Samsung 840 Pro data sheet.
const OUT_BYTES_PER_SECOND: u64 = 520_000_000;
const IN_BYTES_PER_SECOND: u64 = 540_000_000;
const IN_LATENCY_NS: u64 = 100_000;

#[derive(Debug, Clone, Copy, Default)]
struct Cluster {
    /// When it was used last, and whether it is in memory.
    stamp: Option<u64>,
    /// Changed since it was swapped out last.
    dirty: bool,
    /// Has a copy on the swap device, or had one.
    swapped: bool,
}

/// The memory of one program.
pub(super) struct Swap {
    clusters: Vec<Cluster>,
    oldest: BTreeMap<u64, usize>,
    next_stamp: u64,
    resident_max: usize,
    moved_out: u64,
    moved_in: u64,
}

impl Swap {
    /// A program of `bytes` on a machine that has `memory` for it.
    pub(super) fn new(bytes: u64, memory: u64) -> Self {
        Swap {
            clusters: vec![Cluster::default(); bytes.div_ceil(CLUSTER_BYTES) as usize],
            oldest: BTreeMap::new(),
            next_stamp: 0,
            resident_max: ((memory / CLUSTER_BYTES) as usize).max(4),
            moved_out: 0,
            moved_in: 0,
        }
    }

    /// Bytes swapped out and in so far.
    pub(super) fn swapped(&self) -> (u64, u64) {
        (self.moved_out * CLUSTER_BYTES, self.moved_in * CLUSTER_BYTES)
    }

    /// Uses a cluster; returns how long the program waits.
    fn touch(&mut self, at: usize, write: bool) -> u64 {
        let mut ns = 0;
        let cluster = self.clusters[at];
        if let Some(stamp) = cluster.stamp {
            self.oldest.remove(&stamp);
        } else {
            if self.oldest.len() >= self.resident_max {
                let (_, victim) = self.oldest.pop_first().expect("memory is full");
                let victim = &mut self.clusters[victim];
                victim.stamp = None;
                if victim.dirty {
                    (victim.dirty, victim.swapped) = (false, true);
                    self.moved_out += 1;
                    ns += nanoseconds(CLUSTER_BYTES, OUT_BYTES_PER_SECOND);
                }
            }
            if cluster.swapped {
                self.moved_in += 1;
                ns += IN_LATENCY_NS + nanoseconds(CLUSTER_BYTES, IN_BYTES_PER_SECOND);
            }
        }
        self.oldest.insert(self.next_stamp, at);
        let cluster = &mut self.clusters[at];
        cluster.stamp = Some(self.next_stamp);
        cluster.dirty |= write;
        self.next_stamp += 1;
        ns
    }

    /// Writes all of it once, in order.
    pub(super) fn fill(&mut self) -> u64 {
        (0..self.clusters.len()).map(|at| self.touch(at, true)).sum()
    }

    /// Reads `range` in order.
    pub(super) fn read(&mut self, range: Range<u64>) -> u64 {
        let end = range.end.div_ceil(CLUSTER_BYTES) as usize;
        ((range.start / CLUSTER_BYTES) as usize..end).map(|at| self.touch(at, false)).sum()
    }

    /// Sorts all of it in place: each partition is walked from both ends and cut in the middle,
    /// until one fits in memory, which then is there.
    pub(super) fn quicksort(&mut self) -> u64 {
        self.partition(0..self.clusters.len())
    }

    fn partition(&mut self, part: Range<usize>) -> u64 {
        let mut ns = 0;
        let middle = part.start + part.len() / 2;
        if part.len() <= self.resident_max * 9 / 10 {
            return part.map(|at| self.touch(at, true)).sum();
        }
        for step in 0..part.len() - part.len() / 2 {
            ns += self.touch(part.start + step, true);
            ns += self.touch(part.end - 1 - step, true);
        }
        ns + self.partition(part.start..middle) + self.partition(middle..part.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_never_swapped_and_what_does_not_is_swapped_once_per_level() {
        let mut fits = Swap::new(1 << 20, 1 << 20);
        assert_eq!((fits.fill(), fits.quicksort(), fits.read(0..1 << 20)), (0, 0, 0));
        assert_eq!(fits.swapped(), (0, 0));
        // Half of it fits: the first pass meets each cluster once, the halves go in one after the
        // other, and so does the reading.
        let mut half = Swap::new(4 << 20, (2 << 20) + (256 << 10));
        assert!(half.fill() > 0);
        assert_eq!(half.swapped().1, 0, "no cluster comes back before it is used");
        half.quicksort();
        half.read(0..4 << 20);
        let (moved_out, moved_in) = half.swapped();
        assert!((3 << 20..14 << 20).contains(&moved_out), "{moved_out}");
        assert!((3 << 20..14 << 20).contains(&moved_in), "{moved_in}");
    }
}
