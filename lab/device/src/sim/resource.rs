//! A resource that does one job at a time.

use crate::request::SimTime;

/// The time in which a job has its resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceTime {
    /// The job begins, after all jobs before it.
    pub start: SimTime,
    /// The job ends.
    pub end: SimTime,
}

/// A resource that does one job at a time, in the order in which the jobs are submitted: a bus, a
/// processor, a link. It counts the time for which it was busy.
///
/// Submit a job when it is ready, not ahead of time: a job that is served later than now keeps
/// other jobs from using the time before it.
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

    /// Serves a job of `span` that is ready at `ready`, after all jobs before it.
    pub fn serve(&mut self, ready: SimTime, span: SimTime) -> ServiceTime {
        let start = ready.max(self.free_at);
        let end = SimTime(start.0 + span.0);
        self.free_at = end;
        self.busy.0 += span.0;
        self.services += 1;
        ServiceTime { start, end }
    }

    /// The time at which all submitted jobs are done.
    #[must_use]
    pub fn free_at(&self) -> SimTime {
        self.free_at
    }

    /// Whether a job submitted at `now` would wait.
    #[must_use]
    pub fn is_busy(&self, now: SimTime) -> bool {
        self.free_at > now
    }

    /// The sum of the spans of all jobs so far, including jobs that have not ended.
    #[must_use]
    pub fn busy(&self) -> SimTime {
        self.busy
    }

    /// The number of jobs.
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
        let (t, s) =
            (SimTime, |start, end| ServiceTime { start: SimTime(start), end: SimTime(end) });
        assert_eq!(bus.serve(t(10), t(5)), s(10, 15));
        assert_eq!(bus.serve(t(11), t(5)), s(15, 20));
        assert_eq!(bus.serve(t(30), t(1)), s(30, 31));
        assert!(bus.is_busy(t(30)) && !bus.is_busy(t(31)));
        assert_eq!((bus.busy(), bus.services()), (t(11), 3));
    }
}
