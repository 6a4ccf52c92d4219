//! Time, and the charges for work that a modelled processor takes.

use std::time::Instant;

/// Work done between I/Os. A real clock ignores it (the processor already took the time); a
/// modelled one advances by what the modelled processor would have needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Key comparisons.
    Compares(u64),
    /// Bytes copied from one buffer to another in one go.
    CopiedBytes(u64),
    /// Records handled, in addition to their comparisons and copies.
    Records(u64),
    /// Units of a program's own meter: fuel of a guest, or bytes that a built-in program looked at.
    Metered(u64),
    /// Bytes that a program reads from memory for work that is charged in another way.
    ReadBytes(u64),
}

/// Tells time and takes charges.
pub trait Clock: Send + Sync {
    /// Nanoseconds since this clock's own start.
    fn now_ns(&self) -> u64;

    /// Charges `work` to the caller.
    fn charge(&self, work: Work);

    /// Called by a waiter with nothing to do. A modelled clock moves to its next event and
    /// returns true; a real clock returns false and the waiter sleeps until a completion comes.
    fn advance(&self) -> bool;
}

/// The wall clock.
#[derive(Debug)]
pub struct RealClock {
    start: Instant,
}

impl RealClock {
    /// A clock that starts now.
    #[must_use]
    pub fn new() -> Self {
        RealClock { start: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn charge(&self, _work: Work) {}

    fn advance(&self) -> bool {
        false
    }
}
