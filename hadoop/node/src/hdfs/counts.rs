//! What the process did since it started, for operators.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::protocol::{HdfsErrorKind, Totals};
use super::task::MapCounters;

/// Counts from many threads. Each number is right by itself; two of them may be of different moments.
#[derive(Debug)]
pub(super) struct MapServerCounts {
    began: Instant,
    maps: AtomicU64,
    read_bytes: AtomicU64,
    spill_bytes: AtomicU64,
    cpu_ns: AtomicU64,
    left: AtomicU64,
    /// By the place of the kind in [`HdfsErrorKind::ALL`].
    errors: [AtomicU64; HdfsErrorKind::ALL.len()],
}

impl MapServerCounts {
    pub(super) fn new() -> Self {
        MapServerCounts {
            began: Instant::now(),
            maps: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            spill_bytes: AtomicU64::new(0),
            cpu_ns: AtomicU64::new(0),
            left: AtomicU64::new(0),
            errors: [const { AtomicU64::new(0) }; HdfsErrorKind::ALL.len()],
        }
    }

    /// A map was done, and its client has the result.
    pub(super) fn done(&self, counters: &MapCounters) {
        self.maps.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(counters.read_bytes, Ordering::Relaxed);
        self.spill_bytes.fetch_add(counters.spill_bytes, Ordering::Relaxed);
        self.cpu_ns.fetch_add(counters.cpu_ns, Ordering::Relaxed);
    }

    /// The client of a map left, or was too slow.
    pub(super) fn left(&self) {
        self.left.fetch_add(1, Ordering::Relaxed);
    }

    /// A request was refused or failed.
    pub(super) fn error(&self, kind: HdfsErrorKind) {
        let place = HdfsErrorKind::ALL.iter().position(|other| *other == kind);
        self.errors[place.expect("all kinds")].fetch_add(1, Ordering::Relaxed);
    }

    /// All of them now.
    pub(super) fn totals(&self) -> Totals {
        let now = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let errors = HdfsErrorKind::ALL.iter().zip(&self.errors);
        Totals {
            seconds: self.began.elapsed().as_secs(),
            maps: now(&self.maps),
            read_bytes: now(&self.read_bytes),
            spill_bytes: now(&self.spill_bytes),
            cpu_ns: now(&self.cpu_ns),
            left: now(&self.left),
            errors: errors
                .map(|(kind, number)| (*kind as u16, now(number)))
                .filter(|(_, number)| *number > 0)
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_number() {
        let counts = MapServerCounts::new();
        for (n, kind) in HdfsErrorKind::ALL.into_iter().enumerate() {
            (0..=n).for_each(|_| counts.error(kind));
        }
        counts.done(&MapCounters {
            read_bytes: 3,
            spill_bytes: 4,
            cpu_ns: 5,
            ..MapCounters::default()
        });
        counts.left();
        let found = counts.totals();
        let expected: Vec<_> =
            HdfsErrorKind::ALL.iter().map(|kind| *kind as u16).zip(1..).collect();
        assert_eq!(found.errors, expected);
        let Totals { maps, read_bytes, spill_bytes, cpu_ns, left, .. } = found;
        assert_eq!((maps, read_bytes, spill_bytes, cpu_ns, left), (1, 3, 4, 5, 1));
        assert_eq!(MapServerCounts::new().totals().errors, []);
    }
}
