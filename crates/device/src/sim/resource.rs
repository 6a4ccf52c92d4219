//! A thing that does one job at a time.

use crate::request::SimTime;

/// When a job has its resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// It begins, after those before it.
    pub start: SimTime,
    /// It ends.
    pub end: SimTime,
}

/// A thing that does one job at a time, in the order in which they are given: a bus, a processor, a
/// link. It counts how long it was busy.
///
/// Jobs must be given when they are ready, not ahead of their time: who is given a place later than
/// now would keep others from the time before it.
#[derive(Debug, Clone, Default)]
pub struct Resource {
    free_at: SimTime,
    busy: SimTime,
    services: u64,
}

impl Resource {
    /// A resource that is free at time 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A job of `span` that is ready at `ready` gets the next place.
    pub fn serve(&mut self, ready: SimTime, span: SimTime) -> Service {
        let start = ready.max(self.free_at);
        let end = SimTime(start.0 + span.0);
        self.free_at = end;
        self.busy.0 += span.0;
        self.services += 1;
        Service { start, end }
    }

    /// When all jobs that were given are done.
    #[must_use]
    pub fn free_at(&self) -> SimTime {
        self.free_at
    }

    /// Whether a job given at `now` would wait.
    #[must_use]
    pub fn is_busy(&self, now: SimTime) -> bool {
        self.free_at > now
    }

    /// The sum of all jobs' spans so far, also of those that have not ended.
    #[must_use]
    pub fn busy(&self) -> SimTime {
        self.busy
    }

    /// How many jobs there were.
    #[must_use]
    pub fn services(&self) -> u64 {
        self.services
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_follow_one_another() {
        let mut bus = Resource::new();
        let (t, s) = (SimTime, |start, end| Service { start: SimTime(start), end: SimTime(end) });
        assert_eq!(bus.serve(t(10), t(5)), s(10, 15));
        assert_eq!(bus.serve(t(11), t(5)), s(15, 20));
        assert_eq!(bus.serve(t(30), t(1)), s(30, 31));
        assert!(bus.is_busy(t(30)) && !bus.is_busy(t(31)));
        assert_eq!((bus.busy(), bus.services()), (t(11), 3));
    }
}
