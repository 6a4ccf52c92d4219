//! How late answers were, compared with the model.

use crate::results::Histogram;

/// An answer that is later than this after its modelled end counts as late, in nanoseconds. A thread
/// that waits for a time usually wakes within a few tens of microseconds after it.
pub const LATE_NS: u64 = 100_000;

/// The largest share of late requests, and of the time that they were late in the time in which the
/// device was busy, with which a run is valid.
const SHARE_MAX: f64 = 0.01;

/// How late answers were.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lag {
    /// Requests that were answered.
    pub requests: u64,
    /// Requests whose real operation ended after the modelled one.
    pub overtaken: u64,
    /// Requests that were overtaken, or answered more than [`LATE_NS`] after their modelled end.
    pub late: u64,
    /// The sum of the times by which these were late.
    pub late_ns: u64,
    /// The time in which at least one request was in flight in the model.
    pub busy_ns: u64,
    /// From each request's modelled end to its answer, in nanoseconds.
    pub delays: Histogram,
}

impl Lag {
    /// An answer that came `delay_ns` after its modelled end; whether the real operation was what it
    /// waited for.
    pub(super) fn answered(&mut self, delay_ns: u64, overtaken: bool) {
        self.requests += 1;
        self.overtaken += u64::from(overtaken);
        if overtaken || delay_ns > LATE_NS {
            self.late += 1;
            self.late_ns += delay_ns;
        }
        self.delays.record(delay_ns);
    }

    /// The share of requests that were late.
    #[must_use]
    pub fn late_share(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.late as f64 / self.requests as f64 }
    }

    /// The time by which requests were late, as a share of the time in which the device was busy.
    #[must_use]
    pub fn time_share(&self) -> f64 {
        if self.busy_ns == 0 { 0.0 } else { self.late_ns as f64 / self.busy_ns as f64 }
    }

    /// Whether at most 1 % of the requests and 1 % of the busy time were late. A model that takes no
    /// time promises none.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        if self.busy_ns == 0 {
            return true;
        }
        self.late_share() <= SHARE_MAX && self.time_share() <= SHARE_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_hundred_may_be_late() {
        let lag = |late: u64, delay_ns: u64| {
            let mut lag = Lag { busy_ns: 101_000_000, ..Lag::default() };
            (0..1000).for_each(|i| lag.answered(if i < late { delay_ns } else { 9000 }, false));
            lag
        };
        let few = lag(10, LATE_NS + 1);
        assert!(few.is_valid(), "{} {}", few.late, few.late_ns);
        assert!(!lag(11, LATE_NS + 1).is_valid(), "by requests");
        assert!(!lag(1, 1_010_001).is_valid(), "by time");
        assert_eq!(lag(1000, LATE_NS).late, 0);
        assert!(Lag::default().is_valid());
    }

    #[test]
    fn an_overtaken_model_is_late_by_any_time() {
        let mut lag = Lag { busy_ns: 1000, ..Lag::default() };
        lag.answered(1, true);
        assert_eq!((lag.overtaken, lag.late, lag.late_ns), (1, 1, 1));
    }
}
