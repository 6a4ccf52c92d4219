//! Several streams of requests on one device: how much each slows the others down.
//!
//! ```text
//!   together  ├─ a ──────────────────────┤
//!                   ├─ b ────────────────────────┤
//!                   └─ requests compared ┘
//!   alone     ├─ a ──────────────────────┤         on a device in the same state
//! ```
//!
//! The *slowdown* of a stream is the mean response of its requests next to the others over the mean
//! response of the same requests alone. Only requests are compared that were submitted while all streams
//! were active. Slowdown, and the least over the greatest slowdown as fairness, are those of FLIN
//! (Tavakkol et al., ISCA 2018, after Gabor, Weiss and Mendelson, MICRO 2006). Jain's index (Jain, Chiu
//! and Hawe, DEC-TR-301, 1984) is that of the streams' speeds over their speeds alone, 1 / slowdown.

use std::ops::Range;

use super::{Class, EndedRequest, Histogram};
use crate::request::{RequestKind, SimTime};

/// The requests of one stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Share {
    /// Reads.
    pub reads: Class,
    /// Writes.
    pub writes: Class,
    /// When the first request was submitted.
    pub begin: SimTime,
    /// When the last one ended.
    pub end: SimTime,
    /// The numbers of the requests that are compared.
    pub compared: Range<u64>,
    /// Their response times, in nanoseconds.
    pub responses: Histogram,
}

impl Share {
    /// A stream alone, of which the requests with these numbers are compared.
    #[must_use]
    pub fn comparing(compared: Range<u64>) -> Self {
        Share { compared, ..Share::default() }
    }

    /// Counts a request next to other streams. It is compared if all streams were active.
    pub fn next_to_others(&mut self, ended: &EndedRequest) {
        self.count(ended);
        if ended.together {
            if self.responses.count() == 0 {
                self.compared = ended.number..ended.number + 1;
            }
            self.compared.start = self.compared.start.min(ended.number);
            self.compared.end = self.compared.end.max(ended.number + 1);
            self.responses.record(ended.at.0.saturating_sub(ended.submitted.0));
        }
    }

    /// Counts a request without other streams.
    pub fn alone(&mut self, ended: &EndedRequest) {
        self.count(ended);
        if self.compared.contains(&ended.number) {
            self.responses.record(ended.at.0.saturating_sub(ended.submitted.0));
        }
    }

    fn count(&mut self, ended: &EndedRequest) {
        let first = self.reads.requests + self.writes.requests == 0;
        self.begin = if first { ended.submitted } else { self.begin.min(ended.submitted) };
        self.end = self.end.max(ended.at);
        let latency_ns = ended.at.0.saturating_sub(ended.submitted.0);
        match ended.kind {
            RequestKind::Read => self.reads.served(ended.len, latency_ns),
            RequestKind::Write => self.writes.served(ended.len, latency_ns),
            RequestKind::Trim | RequestKind::Flush => {}
        }
    }

    /// Seconds from the first submission to the last end.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.end.0.saturating_sub(self.begin.0) as f64 / 1e9
    }

    /// The slowdown of this stream, which ran next to others, over the same one `alone`. `None` if
    /// the streams were never active together.
    #[must_use]
    pub fn slowdown(&self, alone: &Share) -> Option<f64> {
        let comparable = self.responses.count() > 0 && alone.responses.mean() > 0.0;
        comparable.then(|| self.responses.mean() / alone.responses.mean())
    }
}

/// How evenly streams are slowed down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fairness {
    /// The least slowdown over the greatest: 1 is fair.
    pub least_over_greatest: f64,
    /// Jain's index of 1 / slowdown: 1 is fair, 1 / n if only one of n streams makes progress.
    pub jain: f64,
}

impl Fairness {
    /// Of the slowdowns of all streams; `None` without any.
    #[must_use]
    pub fn of_slowdowns(slowdowns: &[f64]) -> Option<Fairness> {
        let least = slowdowns.iter().copied().reduce(f64::min)?;
        let greatest = slowdowns.iter().copied().reduce(f64::max)?;
        let speeds = || slowdowns.iter().map(|slowdown| 1.0 / slowdown);
        let (sum, squares): (f64, f64) = (speeds().sum(), speeds().map(|x| x * x).sum());
        Some(Fairness {
            least_over_greatest: least / greatest,
            jain: sum * sum / (slowdowns.len() as f64 * squares),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(number: u64, together: bool, response: u64) -> EndedRequest {
        let (submitted, at) = (SimTime(number * 100), SimTime(number * 100 + response));
        let (kind, len) = (RequestKind::Read, 4096);
        EndedRequest {
            stream: 0,
            number,
            order: number,
            together,
            kind,
            offset: 0,
            len,
            submitted,
            at,
        }
    }

    /// Only requests 2 and 3 are compared: 40 and 60 next to others, 10 and 30 alone.
    #[test]
    fn the_same_requests_are_compared() {
        let mut shared = Share::default();
        // They end in another order.
        for (number, together, response) in
            [(0, false, 999), (3, true, 60), (2, true, 40), (4, false, 9)]
        {
            shared.next_to_others(&ended(number, together, response));
        }
        assert_eq!((shared.compared.clone(), shared.reads.requests), (2..4, 4));
        let mut alone = Share::comparing(shared.compared.clone());
        for (number, response) in [(0, 5), (1, 5), (2, 10), (3, 30), (4, 5)] {
            alone.alone(&ended(number, true, response));
        }
        assert_eq!(alone.responses.count(), 2);
        assert_eq!(shared.slowdown(&alone), Some(2.5));
        assert_eq!((shared.begin, shared.end), (SimTime(0), SimTime(999)));
        assert_eq!(Share::default().slowdown(&alone), None, "never together");
    }

    #[test]
    fn fairness_is_one_if_all_are_slowed_down_alike() {
        let of = |slowdowns: &[f64]| Fairness::of_slowdowns(slowdowns).expect("some");
        assert_eq!(of(&[3.0, 3.0]), Fairness { least_over_greatest: 1.0, jain: 1.0 });
        // Speeds 1 and 1/4: (5/4)^2 / (2 (1 + 1/16)).
        let half = of(&[1.0, 4.0]);
        assert_eq!(half.least_over_greatest, 0.25);
        assert!((half.jain - 1.5625 / 2.125).abs() < 1e-12, "{half:?}");
        assert!((of(&[1.0, 1e12]).jain - 0.5).abs() < 1e-9);
        assert_eq!(Fairness::of_slowdowns(&[]), None);
    }
}
