//! Look-alikes of the dissertation's traces, which are not public: streams of requests with the
//! published numbers of reads and writes, and stated guesses for everything else.

use merganser_device::request::{DeviceRequest, SimTime};
use merganser_device::workload::{AccessPattern, Arrivals, Sizes, Workload};
use merganser_random::Random;

use crate::error::ExperimentError;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;
/// In a burst, requests come this much faster than on average.
const BURST_SPEED: f64 = 8.;

/// A part of a look-alike.
pub(crate) struct LookStream {
    /// Share of the trace's requests of its kind.
    share: f64,
    reads: bool,
    pattern: AccessPattern,
    sizes: Sizes,
    start: u64,
    span: u64,
}

/// A look-alike of a trace.
pub(crate) struct Look {
    /// The name of the trace.
    pub name: &'static str,
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Mean time between requests.
    pub gap: SimTime,
    /// Requests that come together, of one stream.
    burst: u64,
    streams: Vec<LookStream>,
}

fn read(share: f64, pattern: AccessPattern, sizes: Sizes, start: u64, span: u64) -> LookStream {
    LookStream { share, reads: true, pattern, sizes, start, span }
}

fn write(share: f64, pattern: AccessPattern, sizes: Sizes, start: u64, span: u64) -> LookStream {
    LookStream { share, reads: false, pattern, sizes, start, span }
}

/// Requests of one page: the means of Figures 5.8 and 5.9 leave room for no more.
fn page() -> Sizes {
    Sizes::Fixed(4 * KIB)
}

/// A kernel is compiled: sources and headers are read once and often, objects are written once and in
/// order, the ext3 journal again and again. Numbers: Table 5.2.
pub(crate) fn kernel() -> Look {
    Look {
        name: "traceKernel",
        reads: 84_847,
        writes: 70_243,
        gap: SimTime(4_000_000),
        burst: 4,
        streams: vec![
            read(0.7, AccessPattern::Mixed(0.4), page(), 4 * GIB, 2 * GIB),
            read(0.3, AccessPattern::Zipf(0.9), page(), 6 * GIB, GIB),
            write(0.5, AccessPattern::Mixed(0.2), page(), 8 * GIB, 2 * GIB),
            write(0.2, AccessPattern::Sequential, page(), GIB, 128 * MIB),
            write(0.3, AccessPattern::Zipf(1.1), page(), 2 * GIB, GIB),
        ],
    }
}

/// WordCount of Phoenix: the input is read in order, intermediate pairs are paged out at random and read
/// back. Numbers: Table 5.2.
pub(crate) fn phoenix() -> Look {
    Look {
        name: "tracePhoenix",
        reads: 822_909,
        writes: 155_413,
        gap: SimTime(4_000_000),
        burst: 1,
        streams: vec![
            read(0.8, AccessPattern::Sequential, page(), 8 * GIB, 8 * GIB),
            read(0.2, AccessPattern::Random, page(), 2 * GIB, 4 * GIB),
            write(0.6, AccessPattern::Zipf(0.8), page(), 2 * GIB, 4 * GIB),
            write(0.4, AccessPattern::Mixed(0.1), page(), 16 * GIB, GIB),
        ],
    }
}

/// On-line transactions: small requests, a few pages much more often than others. Numbers: Table 5.2.
pub(crate) fn financial() -> Look {
    Look {
        name: "Financial",
        reads: 2_252_549,
        writes: 480_127,
        gap: SimTime(10_000_000),
        burst: 4,
        streams: vec![
            read(1., AccessPattern::Zipf(0.9), page(), GIB, 8 * GIB),
            write(1., AccessPattern::Zipf(0.9), page(), GIB, 8 * GIB),
        ],
    }
}

/// Iozone: a file is written in order, 360 KB each 9.4 ms (the public trace of DiskSim's SSD extension
/// has these means; the number of requests is ours).
pub(crate) fn iozone() -> Look {
    Look {
        name: "Iozone",
        reads: 0,
        writes: 20_000,
        gap: SimTime(9_400_000),
        burst: 1,
        streams: vec![write(
            1.,
            AccessPattern::Sequential,
            Sizes::Fixed(360 * KIB),
            4 * GIB,
            8 * GIB,
        )],
    }
}

/// Postmark: 83 % reads, 222 KB on average (as the public trace; its times are guessed).
pub(crate) fn postmark() -> Look {
    let sizes = || Sizes::Exponential(222 * KIB);
    Look {
        name: "Postmark",
        reads: 51_780,
        writes: 10_477,
        gap: SimTime(9_400_000),
        burst: 2,
        streams: vec![
            read(1., AccessPattern::Random, sizes(), 4 * GIB, 8 * GIB),
            write(1., AccessPattern::Mixed(0.5), sizes(), 4 * GIB, 8 * GIB),
        ],
    }
}

impl Look {
    /// The requests, at most about `most`, with reads and writes in their proportion.
    pub(crate) fn requests(&self, most: u64) -> Result<Vec<DeviceRequest>, ExperimentError> {
        let all = self.reads + self.writes;
        let scale = (most as f64 / all as f64).min(1.);
        let mut sources = Vec::new();
        // Shares and requests given so far, of writes and of reads; so that rounding loses none.
        let mut given = [(0., 0), (0., 0)];
        for (at, stream) in self.streams.iter().enumerate() {
            let count = if stream.reads { self.reads } else { self.writes };
            let (share, before) = &mut given[usize::from(stream.reads)];
            *share += stream.share;
            let end = (count as f64 * scale * *share).round() as u64;
            let requests = end - std::mem::replace(before, end);
            let workload = Workload {
                pattern: stream.pattern,
                read_share: f64::from(u8::from(stream.reads)),
                sizes: stream.sizes.clone(),
                arrivals: Arrivals::Closed(1),
                requests,
                start: stream.start,
                span_bytes: stream.span,
                align_bytes: 4 * KIB,
                seed: 7 + at as u64,
            };
            sources.push(
                workload.requests().map_err(|error| ExperimentError::Model(error.to_string()))?,
            );
        }
        let mut random = Random::new(3);
        let mut requests = Vec::new();
        let mut at_ns = 0.;
        let gap = self.gap.0 as f64;
        let (burst, within) = (self.burst as f64, gap / BURST_SPEED);
        // Gaps have their mean in all.
        let between = burst * gap - (burst - 1.) * within;
        let mut left: Vec<u64> = sources.iter().map(|source| source.size_hint().0 as u64).collect();
        while let total @ 1.. = left.iter().sum::<u64>() {
            let mut drawn = random.below(total);
            let chosen = left.iter().position(|count| {
                let found = drawn < *count;
                drawn = drawn.saturating_sub(*count);
                found
            });
            let chosen = chosen.unwrap_or(0);
            for place in 0..left[chosen].min(self.burst) {
                left[chosen] -= 1;
                let Some(mut request) = sources[chosen].next() else { break };
                let mean = if place == 0 { between } else { within };
                at_ns -= (1. - random.fraction()).ln() * mean;
                request.arrival = SimTime(at_ns as u64);
                requests.push(request);
            }
        }
        Ok(requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use merganser_device::request::RequestKind;

    #[test]
    fn look_alikes_have_the_published_numbers() {
        for look in [kernel(), phoenix(), financial(), iozone(), postmark()] {
            for reads in [true, false] {
                let count = if reads { look.reads } else { look.writes };
                let own = look.streams.iter().filter(|stream| stream.reads == reads);
                let share: f64 = own.map(|stream| stream.share).sum();
                assert!(count == 0 || (share - 1.).abs() < 1e-9, "{}", look.name);
            }
            let all = look.requests(200_000).unwrap_or_default();
            assert!(all.is_sorted_by_key(|request| request.arrival), "{}", look.name);
            let reads = all.iter().filter(|r| r.kind == RequestKind::Read).count() as f64;
            let share = look.reads as f64 / (look.reads + look.writes) as f64;
            assert!((reads / all.len() as f64 - share).abs() < 0.001, "{}", look.name);
            let last = all.last().map_or(0, |request| request.arrival.0);
            let gap = last as f64 / all.len() as f64 / look.gap.0 as f64;
            assert!((0.95..1.05).contains(&gap), "{}: {gap}", look.name);
        }
        let kernel = kernel();
        let all = kernel.requests(u64::MAX).unwrap_or_default();
        assert_eq!(all.len() as u64, kernel.reads + kernel.writes);
    }
}
