//! How late answers were, compared with the model.
//!
//! ```text
//!   arrival ────────── modelled time ──────────► modelled end ── lag ──► answer
//! ```
//!
//! Each answer is given by a thread, so each comes a little after its modelled end. Two shares say
//! whether that matters, and neither may be above [`SHARE_MAX`]:
//!
//! - **Requests.** A request is late if its real operation ended after the modelled end, by any time.
//! - **Time.** All lag, however short and whatever its cause, as a share of the busy time: the sum of the
//!   modelled times. So the mean of all requests is at most 1 % above the model's.
//!
//! A third share is reported and decides nothing: requests that were slow, because their lag was more than
//! [`SHARE_MAX`] of their modelled time. For a request of 30 us, as a hard disk takes for a write into its
//! buffer, that is 300 ns, which no thread can promise.
//!
//! A request may take no time, as a flush of a disk whose buffer is empty does: it is late if its real
//! operation ended later, and all its lag counts. Only a model for which nothing takes time
//! ([`super::Null`]) promises none, and no lag makes its run invalid.

use crate::results::Histogram;

/// A run with a larger share of late requests, or of lag in the busy time, is not valid. A request
/// whose lag is a larger share of its modelled time is slow.
const SHARE_MAX: f64 = 0.01;

/// How late answers were.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EmulationLag {
    /// Requests that were answered.
    pub requests: u64,
    /// Requests whose real operation ended after the modelled one.
    pub overtaken: u64,
    /// Requests whose lag was more than [`SHARE_MAX`] of their modelled time, or that were overtaken.
    slow: u64,
    /// The sum of all times between a modelled end and its answer.
    pub late_ns: u64,
    /// The sum of the modelled times: the busy time that [`EmulationLag::late_ns`] is compared with.
    pub busy_ns: u64,
    /// From each request's modelled end to its answer, in nanoseconds.
    pub delays: Histogram,
}

impl EmulationLag {
    /// An answer that came `delay_ns` after its modelled end, to a request for which the model took
    /// `modelled_ns`; whether the real operation was what it waited for.
    pub(super) fn answered(&mut self, modelled_ns: u64, delay_ns: u64, overtaken: bool) {
        self.requests += 1;
        self.delays.record(delay_ns);
        self.overtaken += u64::from(overtaken);
        let slow = modelled_ns > 0 && delay_ns as f64 > modelled_ns as f64 * SHARE_MAX;
        self.slow += u64::from(overtaken || slow);
        self.late_ns += delay_ns;
        self.busy_ns += modelled_ns;
    }

    /// Requests that were late, by the rule of this module.
    #[must_use]
    pub fn late(&self) -> u64 {
        // A model that takes no time promises none.
        if self.busy_ns == 0 { 0 } else { self.overtaken }
    }

    /// Requests that were late, or answered more than 1 % of their modelled time after their end.
    #[must_use]
    pub fn slow(&self) -> u64 {
        if self.busy_ns == 0 { 0 } else { self.slow }
    }

    /// The share of requests that were late.
    #[must_use]
    pub fn late_share(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.late() as f64 / self.requests as f64 }
    }

    /// All lag as a share of the busy time.
    #[must_use]
    pub fn time_share(&self) -> f64 {
        if self.busy_ns == 0 { 0.0 } else { self.late_ns as f64 / self.busy_ns as f64 }
    }

    /// Whether at most 1 % of the requests were late, and the lag was at most 1 % of the busy time.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.late_share() <= SHARE_MAX && self.time_share() <= SHARE_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thousand requests of 1 ms: `late` of them have this lag, and the others 1 us.
    fn lag(late: u64, delay_ns: u64, overtaken: bool) -> EmulationLag {
        let mut lag = EmulationLag::default();
        for i in 0..1000 {
            let (delay_ns, overtaken) =
                if i < late { (delay_ns, overtaken) } else { (1000, false) };
            lag.answered(1_000_000, delay_ns, overtaken);
        }
        lag
    }

    #[test]
    fn one_request_in_a_hundred_may_be_late() {
        assert!(lag(10, 1, true).is_valid());
        assert!(!lag(11, 1, true).is_valid());
        assert_eq!(lag(11, 1, true).late(), 11);
    }

    #[test]
    fn slow_answers_are_counted_and_only_their_time_decides() {
        assert_eq!(lag(1000, 10_000, false).slow(), 0);
        let few = lag(7, 10_001, false);
        assert_eq!((few.slow(), few.late()), (7, 0));
        assert_eq!(lag(7, 1, true).slow(), 7);
        assert!(lag(500, 10_001, false).is_valid());
        assert!(
            !lag(500, 20_000, false).is_valid(),
            "half a percent more than 1 %, for half of the requests"
        );
    }

    #[test]
    fn lag_may_be_a_hundredth_of_the_busy_time() {
        // No request is slow; together they are by 0.99 and 1.01 % of their time.
        assert!(lag(1000, 9_900, false).is_valid());
        let few = lag(1, 9_001_001, false);
        assert!(few.slow() == 1 && few.late_ns == 10_000_001 && !few.is_valid(), "{few:?}");
        assert!(lag(1, 9_001_000, false).is_valid());
    }

    #[test]
    fn a_model_without_time_promises_none() {
        let mut lag = EmulationLag::default();
        assert!(lag.is_valid());
        lag.answered(0, 1_000_000, true);
        assert_eq!(
            (lag.overtaken, lag.late(), lag.late_share(), lag.time_share()),
            (1, 0, 0.0, 0.0)
        );
        assert!(lag.is_valid());
    }

    /// A hard disk answers a flush at once when nothing waits in its buffer; the backing file does not.
    #[test]
    fn a_flush_that_the_model_answers_at_once_may_be_late_too() {
        let mut few = lag(0, 0, false);
        for _ in 0..10 {
            few.answered(0, 100_000, true);
        }
        assert!(few.late() == 10 && few.is_valid(), "{few:?}");
        few.answered(0, 100_000, true);
        assert!(few.late() == 11 && !few.is_valid(), "more than 1 % of the requests");
        let mut long = lag(0, 0, false);
        long.answered(0, 10_000_000, true);
        assert!(long.late() == 1 && !long.is_valid(), "more than 1 % of the busy time");
        // The thread that keeps the time can't answer in no time.
        let mut prompt = lag(0, 0, false);
        (0..1000).for_each(|_| prompt.answered(0, 500, false));
        assert!(prompt.late() == 0 && prompt.is_valid(), "{prompt:?}");
    }
}
