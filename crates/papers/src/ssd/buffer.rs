//! Write buffers of an SSD: one list of pages per flash package. Each list evicts the same number
//! (dissertation 5.3.3, Algorithm 1), against one LRU list.
//!
//! Figures 5.6 to 5.9 are bars without numbers. The axes are in the text, so that each bar has an upper
//! and, in two figures, a lower bound; and the text says which buffer is better where. Both are compared:
//! 1 where ours is inside the axis, or the same buffer is better.
//!
//! The traces are not public (the kernel compile and Phoenix), or not here (Iozone, Postmark): see
//! `look_alike.rs`.

use merganser_device::device::Device;
use merganser_device::profile::{ProfileError, SsdProfile};
use merganser_device::request::{Request, RequestKind, SimTime};
use merganser_device::results::{Collector, Power};
use merganser_device::ssd::Ssd;
use merganser_device::workload::{Arrivals, Pace, Pattern, Sizes, Workload, play};

use crate::chart::{Chart, Series};
use crate::error::Error;
use crate::lab::Lab;
use crate::look_alike;
use crate::outcome::{Outcome, Section};

const KIB: u64 = 1024;

/// Sizes of the buffer that the dissertation tries, in MiB.
const SIZES: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];
/// A quarter of the dissertation's 32 GB: every device is filled before it is used.
const BLOCKS_PER_PLANE: u64 = 512;
/// Pages a package that a full buffer gives to flash at once.
const LEVELS: [u64; 4] = [8, 16, 32, 64];

/// An axis of mean responses, in ms: no bar is longer, and where it doesn't begin at 0, none is shorter.
struct Axis {
    figure: &'static str,
    least: f64,
    most: f64,
}

const FIGURE_5_6: Axis = Axis { figure: "5.6", least: 0., most: 7. };
const FIGURE_5_7: Axis = Axis { figure: "5.7", least: 0., most: 0.40 };
const FIGURE_5_8: Axis = Axis { figure: "5.8", least: 0.12, most: 0.30 };
const FIGURE_5_9: Axis = Axis { figure: "5.9", least: 0.125, most: 0.150 };

impl Axis {
    /// Adds whether all of `means` are inside it, and their ends.
    fn compare(&self, section: &mut Section, means: &[f64]) {
        let least = means.iter().copied().fold(f64::INFINITY, f64::min);
        let most = means.iter().copied().fold(0., f64::max);
        let Axis { figure, least: from, most: to } = self;
        let yes = |is_inside: bool| f64::from(u8::from(is_inside));
        section.both(format!("Figure {figure}, none above {to} ms (1: yes)"), 1., yes(most <= *to));
        section.ours(format!("Figure {figure}, longest bar, ms"), most);
        if *from > 0. {
            let what = format!("Figure {figure}, none below {from} ms (1: yes)");
            section.both(what, 1., yes(least >= *from));
        }
        section.ours(format!("Figure {figure}, shortest bar, ms"), least);
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

/// The mean responses of `requests` on DiskSim's SSD of 32 GB, whose pages have 4 KB, with this buffer.
fn means(lab: &Lab<'_>, requests: &[Request], buffer: Buffer, mib: u64) -> Result<Means, Error> {
    lab.check_cancelled()?;
    mean_of(requests, buffer, mib)
}

fn mean_of(requests: &[Request], buffer: Buffer, mib: u64) -> Result<Means, Error> {
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
            "dram_bytes=128M".to_owned(),
            format!("blocks_per_plane={BLOCKS_PER_PLANE}"),
        ] {
            profile.set(&change)?;
        }
        Ssd::new(&profile, 1)
    };
    let mut device = make().map_err(|error| Error::Model(error.to_string()))?;
    // Reads find what was written before.
    device.precondition(device.capacity_bytes());
    let mut collector = Collector::new(&device);
    // Addresses begin again at the end of the device.
    let span = device.capacity_bytes() - (16 << 20);
    let placed = requests.iter().map(|it| Ok(Request { offset: it.offset % span, ..it.clone() }));
    let played = play(&mut device, placed, Pace::Open, &mut collector);
    let played = played.map_err(|error| Error::Model(error.to_string()))?;
    let results = collector.finish(&device, played, &Power::ssd(0.0, "not asked for"));
    let all = results.reads.with(&results.writes).latency.mean() / 1e6;
    Ok(Means { all, writes: results.writes.latency.mean() / 1e6 })
}

/// Measures everything.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, Error> {
    let most = lab.setup.size_bytes.map_or(u64::MAX, |bytes| (bytes / 4096).max(100));
    let mut counts = Section::new("input: Table 5.2, requests");
    let mut sections = Vec::new();
    let mut series = Vec::new();
    let mut bounds = Section::new("predicted: inside the axes of the figures");
    let mut general = Section::new("Figure 5.6, lists against LRU: 1 where lists answer sooner");
    let mut bars = Vec::new();
    for look in [look_alike::iozone(), look_alike::postmark()] {
        let requests = look.requests(most)?;
        let mut times = Section::new(format!("Figure 5.6, {}, mean response, ms", look.name));
        for mib in SIZES {
            let lru = means(lab, &requests, Buffer::Lru, mib)?;
            let lists = means(lab, &requests, Buffer::Lists(8), mib)?;
            bars.extend([lru.all, lists.all]);
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
    FIGURE_5_6.compare(&mut bounds, &bars);
    sections.insert(0, general);
    sections.push(random_writes(lab, most, &mut bounds)?);
    let looks = [(look_alike::kernel(), FIGURE_5_8), (look_alike::phoenix(), FIGURE_5_9)];
    for (look, axis) in looks {
        let requests = look.requests(most)?;
        let (mut bars, figure) = (Vec::new(), axis.figure);
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
                bars.push(one.all);
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
        axis.compare(&mut bounds, &bars);
        sections.push(times);
    }
    sections.insert(0, bounds);
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
        "The figures are bars without numbers: their axes, which the text has, bound each bar, and the text says which buffer is better (1: as the row says).".to_owned(),
        "Pages have 4 KB. \"8 KB\" of the dissertation is DiskSim's \"Page size = 8\", which counts sectors; with pages of 8 KB, the bars of Figure 5.9 are impossible.".to_owned(),
        "The device has 8 GB instead of 32, and addresses begin again at its end: it is filled before each run, and filling 32 GB takes longer than the run.".to_owned(),
        "The traces are not here: look-alikes with the same numbers of reads and writes (Table 5.2), written down in look_alike.rs. Sizes of one page and times between requests of the kernel and Phoenix were chosen for the axes of Figures 5.8 and 5.9 (fitted); which buffer is better was not looked at.".to_owned(),
        "A write that a large buffer takes ends in 0.02 ms here, so that means of the kernel and Phoenix go below the axes of Figures 5.8 and 5.9. Those need about 0.1 ms, which is the transfer of a page to its package: the dissertation's buffer seems to be behind that bus.".to_owned(),
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

/// The gap between requests and the mean size are those of DiskSim's validation runs.
fn random_writes(lab: &Lab<'_>, most: u64, bounds: &mut Section) -> Result<Section, Error> {
    let mut section = Section::new("Figure 5.7, random writes, mean response, ms");
    let mut bars = Vec::new();
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
        for mib in SIZES {
            let lru = means(lab, &requests, Buffer::Lru, mib)?.all;
            let lists = means(lab, &requests, Buffer::Lists(8), mib)?.all;
            section.ours(format!("{what}, {mib} MB, LRU"), lru);
            section.ours(format!("{what}, {mib} MB, lists of 8"), lists);
            section.ours(format!("{what}, {mib} MB, lists over LRU"), lists / lru);
            bars.extend([lru, lists]);
        }
    }
    FIGURE_5_7.compare(bounds, &bars);
    Ok(section)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buffers of all kinds, on short traces: no mean is above the axis of its figure.
    #[test]
    fn no_mean_is_above_its_axis() {
        let looks = [
            (look_alike::kernel(), FIGURE_5_8),
            (look_alike::phoenix(), FIGURE_5_9),
            (look_alike::iozone(), FIGURE_5_6),
            (look_alike::postmark(), FIGURE_5_6),
        ];
        for (look, axis) in looks {
            let requests = look.requests(4000).unwrap_or_default();
            for (buffer, mib) in [(Buffer::Lru, 1), (Buffer::Lists(8), 64), (Buffer::Lists(64), 1)]
            {
                let mean = mean_of(&requests, buffer, mib).map(|means| means.all);
                let mean = mean.unwrap_or(f64::NAN);
                let what = format!("{}, {}, {mib} MB", look.name, name(buffer));
                assert!(mean > 0.01 && mean <= axis.most, "{what}: {mean} ms");
            }
        }
    }
}
