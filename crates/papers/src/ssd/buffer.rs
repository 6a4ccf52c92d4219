//! Write buffers of an SSD: a list of pages per flash package, each of which evicts the same number
//! (dissertation 5.3.3, Algorithm 1), against one LRU list.
//!
//! The dissertation plots mean response times; its text has no figure of them, only which buffer is
//! the better one where. That is what is compared: 1 where the lists answer sooner, 0 where LRU does.
//!
//! The traces are not public (the kernel compile and Phoenix), or not here (Iozone, Postmark).
//! Look-alikes are made of what is known: numbers of reads and writes (Table 5.2), and what the
//! programs do. Each is a sum of a few streams, which [`Look`] writes down.

use merganser_device::device::Device;
use merganser_device::profile::{ProfileError, SsdProfile};
use merganser_device::request::{Request, RequestKind, SimTime};
use merganser_device::results::{Collector, Power};
use merganser_device::ssd::Ssd;
use merganser_device::workload::{Arrivals, Pace, Pattern, Sizes, Workload, play};
use merganser_random::Random;

use crate::chart::{Chart, Series};
use crate::error::Error;
use crate::lab::Lab;
use crate::outcome::{Outcome, Section};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// Sizes of the buffer that the dissertation tries, in MiB.
const SIZES: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Pages a package that a full buffer gives to flash at once.
const LEVELS: [u64; 4] = [8, 16, 32, 64];

/// A part of a look-alike.
struct Stream {
    /// Share of the trace's requests of its kind.
    share: f64,
    reads: bool,
    pattern: Pattern,
    sizes: Sizes,
    /// Where it goes.
    start: u64,
    span: u64,
}

/// A look-alike of a trace.
struct Look {
    name: &'static str,
    reads: u64,
    writes: u64,
    /// Mean gap between requests.
    gap: SimTime,
    streams: Vec<Stream>,
}

/// Sizes of a file system's requests: mostly a block, sometimes what was put together.
fn blocks() -> Sizes {
    Sizes::Choice(vec![(4 * KIB, 6.), (8 * KIB, 2.), (16 * KIB, 1.), (64 * KIB, 1.)])
}

/// The kernel compiled: sources and headers are read once and often, objects are written once and in
/// order, the ext3 journal again and again.
fn kernel() -> Look {
    let stream = |share, reads, pattern, sizes, start, span| Stream {
        share,
        reads,
        pattern,
        sizes,
        start,
        span,
    };
    Look {
        name: "traceKernel",
        reads: 84_847,
        writes: 70_243,
        gap: SimTime(1_000_000),
        streams: vec![
            stream(0.7, true, Pattern::Mixed(0.4), blocks(), 4 * GIB, 2 * GIB),
            stream(0.3, true, Pattern::Zipf(0.9), blocks(), 6 * GIB, GIB),
            stream(0.5, false, Pattern::Mixed(0.2), blocks(), 8 * GIB, 2 * GIB),
            stream(0.2, false, Pattern::Sequential, Sizes::Fixed(4 * KIB), GIB, 128 * MIB),
            stream(0.3, false, Pattern::Zipf(1.1), Sizes::Fixed(4 * KIB), 2 * GIB, GIB),
        ],
    }
}

/// WordCount of Phoenix: the input is read in large pieces and in order, intermediate pairs are
/// paged out at random and read back.
fn phoenix() -> Look {
    let stream = |share, reads, pattern, sizes, start, span| Stream {
        share,
        reads,
        pattern,
        sizes,
        start,
        span,
    };
    Look {
        name: "tracePhoenix",
        reads: 822_909,
        writes: 155_413,
        gap: SimTime(500_000),
        streams: vec![
            stream(0.8, true, Pattern::Sequential, Sizes::Fixed(64 * KIB), 8 * GIB, 8 * GIB),
            stream(0.2, true, Pattern::Random, Sizes::Fixed(4 * KIB), 2 * GIB, 4 * GIB),
            stream(0.6, false, Pattern::Zipf(0.8), Sizes::Fixed(4 * KIB), 2 * GIB, 4 * GIB),
            stream(0.4, false, Pattern::Mixed(0.1), blocks(), 16 * GIB, GIB),
        ],
    }
}

/// Iozone: a file is written, written again and read, in order.
fn iozone() -> Look {
    let of = |reads| Stream {
        share: 1.,
        reads,
        pattern: Pattern::Sequential,
        sizes: Sizes::Fixed(64 * KIB),
        start: 4 * GIB,
        span: 256 * MIB,
    };
    let streams = vec![of(true), of(false)];
    Look { name: "Iozone", reads: 20_000, writes: 60_000, gap: SimTime(2_000_000), streams }
}

/// Postmark: small files made, read, appended to and removed, anywhere.
fn postmark() -> Look {
    let of = |reads, pattern, share| Stream {
        share,
        reads,
        pattern,
        sizes: blocks(),
        start: 4 * GIB,
        span: 2 * GIB,
    };
    let streams = vec![
        of(true, Pattern::Random, 1.),
        of(false, Pattern::Mixed(0.5), 0.7),
        of(false, Pattern::Zipf(1.), 0.3),
    ];
    Look { name: "Postmark", reads: 30_000, writes: 60_000, gap: SimTime(1_000_000), streams }
}

impl Look {
    /// The requests, at most `most`, with reads and writes in their proportion.
    fn requests(&self, most: u64) -> Result<Vec<Request>, Error> {
        let all = self.reads + self.writes;
        let scale = (most as f64 / all as f64).min(1.);
        let mut sources = Vec::new();
        // Shares and requests given so far, of reads and of writes; so that rounding loses none.
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
            sources.push(workload.requests().map_err(|error| Error::Model(error.to_string()))?);
        }
        // Streams are shuffled together in bursts, as programs and the page cache do.
        let mut random = Random::new(3);
        let mut requests = Vec::new();
        let mut at_ns = 0;
        let mut left: Vec<u64> = sources.iter().map(|source| source.size_hint().0 as u64).collect();
        while let total @ 1.. = left.iter().sum::<u64>() {
            let mut drawn = random.below(total);
            let chosen = left.iter().position(|count| {
                let found = drawn < *count;
                drawn = drawn.saturating_sub(*count);
                found
            });
            let chosen = chosen.unwrap_or(0);
            for _ in 0..left[chosen].min(32) {
                left[chosen] -= 1;
                let Some(mut request) = sources[chosen].next() else { break };
                at_ns += random.below(self.gap.0 / 4);
                request.arrival = SimTime(at_ns);
                requests.push(request);
            }
            // Between bursts the device may rest: gaps have their mean in all.
            at_ns += random.below(self.gap.0 * 56);
        }
        Ok(requests)
    }
}

/// The kind of a buffer.
#[derive(Clone, Copy)]
enum Buffer {
    Lru,
    Lists(u64),
}

/// Mean responses in ms.
#[derive(Clone, Copy)]
struct Means {
    all: f64,
    /// Of writes alone.
    writes: f64,
}

/// What `requests` take on DiskSim's SSD of 32 GB with 8 KB pages and this buffer.
fn means(lab: &Lab<'_>, requests: &[Request], buffer: Buffer, mib: u64) -> Result<Means, Error> {
    lab.check_cancelled()?;
    let (policy, level) = match buffer {
        Buffer::Lru => ("lru", 8),
        Buffer::Lists(level) => ("parallel", level),
    };
    let make = || -> Result<Ssd, ProfileError> {
        let mut profile = SsdProfile::preset("msr")?;
        for change in [
            format!("cache_policy={policy}"),
            format!("cache_bytes={mib}M"),
            format!("cache_parallelism={level}"),
            "page_bytes=8K".to_owned(),
            "map_unit_bytes=8K".to_owned(),
            "transfer_unit_bytes=8K".to_owned(),
            "blocks_per_plane=1024".to_owned(),
            "dram_bytes=128M".to_owned(),
        ] {
            profile.set(&change)?;
        }
        Ssd::new(&profile, 1)
    };
    let mut device = make().map_err(|error| Error::Model(error.to_string()))?;
    // A few requests clean up nothing anyway.
    if requests.len() > 50_000 {
        device.precondition(device.capacity_bytes());
    }
    let mut collector = Collector::new(&device);
    let played = play(&mut device, requests.iter().copied().map(Ok), Pace::Open, &mut collector);
    let played = played.map_err(|error| Error::Model(error.to_string()))?;
    let results = collector.finish(&device, played, &Power::ssd(0.0, "not asked for"));
    let all = results.reads.with(&results.writes).latency.mean() / 1e6;
    Ok(Means { all, writes: results.writes.latency.mean() / 1e6 })
}

/// Measures everything.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, Error> {
    let most = lab.setup.size_bytes.map_or(u64::MAX, |bytes| (bytes / 4096).max(100));
    let mut counts = Section::new("Table 5.2, requests");
    let mut sections = Vec::new();
    let mut series = Vec::new();
    let mut general = Section::new("Figure 5.6, lists against LRU: 1 where lists answer sooner");
    for look in [iozone(), postmark()] {
        let requests = look.requests(most)?;
        let mut times = Section::new(format!("Figure 5.6, {}, mean response, ms", look.name));
        for mib in SIZES {
            let lru = means(lab, &requests, Buffer::Lru, mib)?;
            let lists = means(lab, &requests, Buffer::Lists(8), mib)?;
            times.ours(format!("{mib} MB, LRU"), lru.all);
            times.ours(format!("{mib} MB, lists of 8"), lists.all);
            let ratio = lists.writes / lru.writes;
            times.ours(format!("{mib} MB, writes alone, lists over LRU"), ratio);
            // "Small: 1 MB or 2 MB" is all that is said with certainty.
            if mib <= 2 {
                let of = format!("{}, {mib} MB", look.name);
                general.both(of.clone(), 1., sooner(lists.all, lru.all));
                general.both(of + ", writes alone", 1., sooner(lists.writes, lru.writes));
            }
        }
        sections.push(times);
    }
    sections.insert(0, general);
    sections.push(random_writes(lab, most)?);
    for (look, figure) in [(kernel(), "5.8"), (phoenix(), "5.9")] {
        let requests = look.requests(most)?;
        let reads = requests.iter().filter(|request| request.kind == RequestKind::Read).count();
        counts.both(format!("{}, reads", look.name), look.reads as f64, reads as f64);
        let writes = (requests.len() - reads) as f64;
        counts.both(format!("{}, writes", look.name), look.writes as f64, writes);
        let mut times = Section::new(format!("Figure {figure}, {}, mean response, ms", look.name));
        let buffers = [Buffer::Lru]
            .into_iter()
            .chain(LEVELS.into_iter().map(Buffer::Lists))
            .collect::<Vec<_>>();
        let (mut wins, mut write_wins) = (0, 0);
        let mut curves = vec![Vec::new(); buffers.len()];
        for mib in SIZES {
            let mut found = Vec::new();
            for (curve, buffer) in curves.iter_mut().zip(&buffers) {
                let one = means(lab, &requests, *buffer, mib)?;
                times.ours(format!("{mib} MB, {}", name(*buffer)), one.all);
                curve.push((mib as f64, one.all));
                found.push(one);
            }
            let ratio = found[1].writes / found[0].writes;
            times.ours(format!("{mib} MB, writes alone, lists of 8 over LRU"), ratio);
            wins += found[1..].iter().filter(|one| one.all < found[0].all).count();
            write_wins += found[1..].iter().filter(|one| one.writes < found[0].writes).count();
        }
        let cases = SIZES.len() * LEVELS.len();
        let most_of = |wins: usize| f64::from(u8::from(2 * wins > cases));
        times.both("lists sooner in most cases (1: yes)", 1., most_of(wins));
        times.both("the same of writes alone (1: yes)", 1., most_of(write_wins));
        times.ours(format!("of {cases} cases, lists sooner"), wins as f64);
        times.ours(format!("of {cases} cases, writes alone sooner"), write_wins as f64);
        let total = |at: usize| curves[at].iter().map(|point| point.1).sum::<f64>();
        let best = (2..buffers.len()).all(|at| total(1) <= total(at) * 1.000_001);
        times.both(
            "8 pages per package no worse than more (1: yes)",
            1.,
            f64::from(u8::from(best)),
        );
        for (buffer, points) in buffers.iter().zip(curves) {
            let name = format!("{}, {}", look.name, name(*buffer));
            series.push(Series { name, paper: false, points });
        }
        sections.push(times);
    }
    sections.insert(0, counts);
    Ok(Outcome {
        sections,
        differs: differs(most),
        chart: Chart::Lines {
            title: "Write buffers: lists a package against LRU".to_owned(),
            axes: ["buffer, MB (logarithmic)".to_owned(), "mean response, ms".to_owned()],
            series,
        },
    })
}

fn differs(most: u64) -> Vec<String> {
    let mut differs = vec![
        "The dissertation's bars have no figures in its text; only which buffer is better is compared (1: as the row says).".to_owned(),
        "The traces are not here: look-alikes with the same numbers of reads and writes (Table 5.2), made of streams that ssd_buffer.rs writes down. Their arrival times are guessed, and mean responses hang on them.".to_owned(),
        "Random writes: the paper's '250 KB' and '5 MB' are the 250k and 5m requests of DiskSim's validation runs, by its parameter files; here 250,000, and 1,000,000 for the longer run.".to_owned(),
        "Our LRU gives as many of its oldest pages to flash as wait for space, whichever packages they go to; what the dissertation's LRU waits for is not said.".to_owned(),
        "Here a read waits while its package takes the pages that its list gave away. The dissertation says that its buffer does not affect reads, so writes alone are compared too.".to_owned(),
    ];
    if most < 1_000_000 {
        differs
            .push(format!("No workload has more than {most} requests, because of the given size."));
    }
    differs
}

/// 1 where the first is less.
fn sooner(one: f64, other: f64) -> f64 {
    f64::from(u8::from(one < other))
}

fn name(buffer: Buffer) -> String {
    match buffer {
        Buffer::Lru => "LRU".to_owned(),
        Buffer::Lists(level) => format!("lists of {level}"),
    }
}

fn random_writes(lab: &Lab<'_>, most: u64) -> Result<Section, Error> {
    let mut section = Section::new("Figure 5.7, random writes, mean response, ms");
    for (what, requests) in [("250k requests", 250_000), ("5m requests", 1_000_000)] {
        let workload = Workload {
            pattern: Pattern::Random,
            read_share: 0.,
            sizes: Sizes::Exponential(4 * KIB),
            arrivals: Arrivals::Uniform(SimTime(500_000)),
            requests: most.min(requests),
            start: 0,
            span_bytes: 877_363 * 4 * KIB,
            align_bytes: 4 * KIB,
            seed: 42,
        };
        let requests: Vec<Request> =
            workload.requests().map_err(|error| Error::Model(error.to_string()))?.collect();
        let lru = means(lab, &requests, Buffer::Lru, 1)?.all;
        let lists = means(lab, &requests, Buffer::Lists(8), 1)?.all;
        section.ours(format!("{what}, 1 MB, LRU"), lru);
        section.ours(format!("{what}, 1 MB, lists of 8"), lists);
        section.ours(format!("{what}, lists over LRU"), lists / lru);
    }
    Ok(section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_have_the_papers_numbers() {
        for look in [kernel(), phoenix(), iozone(), postmark()] {
            for (reads, expected) in [(true, look.reads), (false, look.writes)] {
                let share: f64 =
                    look.streams.iter().filter(|s| s.reads == reads).map(|s| s.share).sum();
                assert!((share - 1.).abs() < 1e-9, "{}", look.name);
                assert!(expected > 0);
            }
            let all = look.requests(u64::MAX).unwrap_or_default();
            let reads = all.iter().filter(|r| r.kind == RequestKind::Read).count() as u64;
            assert_eq!((reads, all.len() as u64 - reads), (look.reads, look.writes));
            let requests = look.requests(10_000).unwrap_or_default();
            assert!(requests.is_sorted_by_key(|request| request.arrival), "{}", look.name);
            let reads = requests.iter().filter(|r| r.kind == RequestKind::Read).count() as f64;
            let share = look.reads as f64 / (look.reads + look.writes) as f64;
            assert!((reads / requests.len() as f64 - share).abs() < 0.01, "{}", look.name);
            let last = requests.last().map_or(0, |request| request.arrival.0);
            let gap = last as f64 / requests.len() as f64;
            assert!((0.7..1.3).contains(&(gap / look.gap.0 as f64)), "{}: {gap}", look.name);
        }
    }
}
