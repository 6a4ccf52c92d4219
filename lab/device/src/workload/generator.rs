//! Made-up requests, drawn from one seed.

use merganser_random::Random;

use super::math;
use super::pattern::{AccessPattern, Offsets};
use super::play::SubmissionPace;
use crate::request::{DeviceRequest, RequestKind, SimTime};

/// How large requests are, in bytes; always a multiple of the alignment.
#[derive(Debug, Clone, PartialEq)]
pub enum Sizes {
    /// All have this size.
    Fixed(u64),
    /// From the first to the second, all equally likely.
    Uniform(u64, u64),
    /// An exponential distribution with this mean, rounded up to the alignment.
    Exponential(u64),
    /// One of these sizes, by their weights.
    Choice(Vec<(u64, f64)>),
}

/// When requests arrive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrivals {
    /// This number is always in flight; the next request arrives when one has ended.
    Closed(u32),
    /// One request per this time.
    Every(SimTime),
    /// Gaps from 0 to twice this mean, all equally likely.
    Uniform(SimTime),
    /// Gaps from an exponential distribution with this mean: a Poisson process.
    Exponential(SimTime),
}

/// Made-up requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Their offsets.
    pub pattern: AccessPattern,
    /// The share of reads, 0 to 1; the other requests write.
    pub read_share: f64,
    /// Their sizes.
    pub sizes: Sizes,
    /// Their arrivals.
    pub arrivals: Arrivals,
    /// Their number.
    pub requests: u64,
    /// The first byte that they may address.
    pub start: u64,
    /// The number of bytes that they may address.
    pub span_bytes: u64,
    /// All offsets and sizes are multiples of this many bytes.
    pub align_bytes: u64,
    /// The seed of all random numbers.
    pub seed: u64,
}

/// Why a workload is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A setting out of its range.
    #[error("{what}: {found}, expected {expected}")]
    Setting {
        /// The setting.
        what: &'static str,
        /// Its value.
        found: String,
        /// Its range.
        expected: &'static str,
    },
    /// A request does not fit into the addressed bytes.
    #[error("a request of {len} bytes does not fit in the {span} bytes to be asked for")]
    Span {
        /// The largest request.
        len: u64,
        /// The addressed bytes.
        span: u64,
    },
}

impl Workload {
    /// The mean size of a request, in bytes; at least 1.
    #[must_use]
    pub fn mean_bytes(&self) -> u64 {
        let mean = match &self.sizes {
            Sizes::Fixed(bytes) | Sizes::Exponential(bytes) => *bytes,
            Sizes::Uniform(from, to) => from / 2 + to / 2,
            Sizes::Choice(of) => {
                let weights: f64 = of.iter().map(|(_, weight)| weight).sum();
                let bytes: f64 = of.iter().map(|(bytes, weight)| *bytes as f64 * weight).sum();
                (bytes / weights) as u64
            }
        };
        mean.max(1)
    }

    /// The requests; every call gives the same.
    ///
    /// # Errors
    /// When a setting is out of its range.
    pub fn requests(&self) -> Result<WorkloadRequests, WorkloadError> {
        self.check()?;
        let mut seeds = Random::new(self.seed);
        let slots = self.span_bytes / self.align_bytes;
        Ok(WorkloadRequests {
            offsets: Offsets::new(self.pattern, slots, self.align_bytes, seeds.bits()),
            kinds: Random::new(seeds.bits()),
            lengths: Random::new(seeds.bits()),
            times: Random::new(seeds.bits()),
            clock_ns: 0.0,
            left: self.requests,
            of: self.clone(),
        })
    }

    /// How to play them.
    #[must_use]
    pub fn pace(&self) -> SubmissionPace {
        match self.arrivals {
            Arrivals::Closed(depth) => SubmissionPace::Closed(depth),
            Arrivals::Every(_) | Arrivals::Uniform(_) | Arrivals::Exponential(_) => {
                SubmissionPace::Open
            }
        }
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let wrong =
            |what, found: String, expected| Err(WorkloadError::Setting { what, found, expected });
        let share = |share: f64| (0.0..=1.0).contains(&share);
        if !share(self.read_share) {
            return wrong("share of reads", self.read_share.to_string(), "0 to 1");
        }
        match self.pattern {
            AccessPattern::Mixed(random) if !share(random) => {
                return wrong("share of random requests", random.to_string(), "0 to 1");
            }
            AccessPattern::Zipf(theta) if !(0.0..=10.0).contains(&theta) => {
                return wrong("exponent of Zipf's law", theta.to_string(), "0 to 10");
            }
            _ => {}
        }
        if self.align_bytes == 0 {
            return wrong("alignment", "0".into(), "at least 1 byte");
        }
        if self.arrivals == Arrivals::Closed(0) {
            return wrong("queue depth", "0".into(), "at least 1");
        }
        let aligned = |bytes: u64| bytes > 0 && bytes.is_multiple_of(self.align_bytes);
        let largest = match &self.sizes {
            Sizes::Fixed(bytes) if aligned(*bytes) => *bytes,
            Sizes::Uniform(from, to) if aligned(*from) && aligned(*to) && from <= to => *to,
            Sizes::Exponential(mean) if *mean > 0 => self.align_bytes,
            Sizes::Choice(of) => {
                let sound = of
                    .iter()
                    .all(|(bytes, weight)| aligned(*bytes) && weight.is_finite() && *weight >= 0.0);
                let total: f64 = of.iter().map(|(_, weight)| weight).sum();
                if !sound || total <= 0.0 {
                    let of: Vec<_> =
                        of.iter().map(|(bytes, weight)| format!("{bytes}:{weight}")).collect();
                    return wrong(
                        "sizes",
                        of.join(","),
                        "multiples of the alignment, with weights",
                    );
                }
                of.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0)
            }
            Sizes::Fixed(bytes) | Sizes::Exponential(bytes) => {
                let found = format!("{bytes} bytes");
                return wrong("sizes", found, "multiples of the alignment, above 0");
            }
            Sizes::Uniform(from, to) => {
                let found = format!("{from} to {to} bytes");
                return wrong("sizes", found, "multiples of the alignment, above 0");
            }
        };
        let span = self.span_bytes / self.align_bytes * self.align_bytes;
        if largest > span || self.start.checked_add(self.span_bytes).is_none() {
            return Err(WorkloadError::Span { len: largest, span });
        }
        Ok(())
    }
}

/// The requests of a [`Workload`].
#[derive(Debug, Clone)]
pub struct WorkloadRequests {
    of: Workload,
    left: u64,
    offsets: Offsets,
    kinds: Random,
    lengths: Random,
    times: Random,
    /// The arrival of the next request: the sum of all gaps as a float, so that rounding errors do
    /// not add up.
    clock_ns: f64,
}

impl WorkloadRequests {
    fn len(&mut self) -> u64 {
        let align = self.of.align_bytes;
        match &self.of.sizes {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Uniform(from, to) => from + self.lengths.below((to - from) / align + 1) * align,
            Sizes::Exponential(mean) => {
                let drawn = math::exponential(&mut self.lengths) * *mean as f64 / align as f64;
                let most = (self.of.span_bytes / align) as f64;
                (drawn.ceil().clamp(1.0, most) as u64) * align
            }
            Sizes::Choice(of) => {
                let total: f64 = of.iter().map(|(_, weight)| weight).sum();
                let mut drawn = self.lengths.fraction() * total;
                let found = of.iter().find(|(_, weight)| {
                    drawn -= weight;
                    drawn < 0.0
                });
                found.or(of.last()).map_or(align, |(bytes, _)| *bytes)
            }
        }
    }

    fn arrival(&mut self) -> SimTime {
        let now = SimTime(self.clock_ns as u64);
        self.clock_ns += match self.of.arrivals {
            Arrivals::Closed(_) => 0.0,
            Arrivals::Every(gap) => gap.0 as f64,
            Arrivals::Uniform(mean) => 2.0 * mean.0 as f64 * self.times.fraction(),
            Arrivals::Exponential(mean) => mean.0 as f64 * math::exponential(&mut self.times),
        };
        now
    }
}

impl Iterator for WorkloadRequests {
    type Item = DeviceRequest;

    fn next(&mut self) -> Option<DeviceRequest> {
        self.left = self.left.checked_sub(1)?;
        let len = self.len();
        let offset = self.of.start + self.offsets.next(len);
        let reads = self.kinds.fraction() < self.of.read_share;
        let kind = if reads { RequestKind::Read } else { RequestKind::Write };
        Some(DeviceRequest { arrival: self.arrival(), kind, offset, len, content: None })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}
