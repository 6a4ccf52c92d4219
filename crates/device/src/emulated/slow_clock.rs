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
    pub fn new(slower: NonZeroU32) -> SlowClock {
        SlowClock { wall: RealClock::new(), slower: slower.get() }
    }

    /// Nanoseconds since the start, as this clock shows them.
    pub fn now_ns(&self) -> u64 {
        self.wall.now_ns() / u64::from(self.slower)
    }

    /// How long `ns` of this clock take on the wall clock.
    pub fn on_the_wall(&self, ns: u64) -> Duration {
        Duration::from_nanos(ns.saturating_mul(u64::from(self.slower)))
    }
}
