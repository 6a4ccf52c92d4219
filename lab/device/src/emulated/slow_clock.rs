//! The clock of an emulation: the wall clock, or one that is slower by a whole factor.

use std::num::NonZeroU32;
use std::time::Duration;

use merganser_storage::{Clock, RealClock};

/// A clock that shows one second when the wall clock shows [`EmulatedOptions::slower`](super::EmulatedOptions::slower).
pub(super) struct SlowClock {
    wall: RealClock,
    slower: u32,
}

impl SlowClock {
    /// A clock that starts now.
    pub(super) fn new(slower: NonZeroU32) -> SlowClock {
        SlowClock { wall: RealClock::new(), slower: slower.get() }
    }

    /// Nanoseconds since the start, as this clock shows them.
    pub(super) fn now_ns(&self) -> u64 {
        self.shown_for(self.wall.now_ns())
    }

    /// The nanoseconds that this clock shows for `ns` of the wall clock.
    pub(super) fn shown_for(&self, ns: u64) -> u64 {
        ns / u64::from(self.slower)
    }

    /// How long `ns` of this clock take on the wall clock.
    pub(super) fn on_the_wall(&self, ns: u64) -> Duration {
        Duration::from_nanos(ns.saturating_mul(u64::from(self.slower)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn one_second_takes_as_many_of_the_wall() {
        for slower in [1, 4, 1000] {
            let before = Instant::now();
            let clock = SlowClock::new(NonZeroU32::new(slower).expect("not zero"));
            let after = Instant::now();
            while after.elapsed() < Duration::from_millis(3) {}
            let least = after.elapsed();
            let shown_ns = clock.now_ns();
            let most = before.elapsed();
            assert!(clock.on_the_wall(shown_ns) <= most, "{slower}: {shown_ns} ns in {most:?}");
            assert!(
                clock.on_the_wall(shown_ns + 1) > least,
                "{slower}: {shown_ns} ns in {least:?}"
            );
            assert_eq!(clock.on_the_wall(1_000), Duration::from_micros(slower.into()));
            assert_eq!(clock.on_the_wall(u64::MAX), Duration::from_nanos(u64::MAX));
        }
    }
}
