//! The SSD extension of DiskSim: means, deviations, maxima and counts of its validation runs, from our own generator of their
//! workloads. All parameters are in its `ssdmodel/valid/ssd-*.parv`; its random numbers are not
//! ours, so what depends on which were drawn differs by that much.
//!
//! A request has exponentially many pages of mean one, rounded up; requests come after times spread
//! evenly over 0 to 1 ms; sequential runs keep the size that was drawn first, random requests draw
//! a new place and size.

use crate::common::{Ask, close, responses, ssd};
use merganser_device::device::Device;
use merganser_device::request::RequestKind::{self, Read, Write};
use merganser_device::ssd::Ssd;
use merganser_random::Random;

/// DiskSim's generator: 8,192 pages short of the device's own capacity.
const PAGES: u64 = 7_018_904 / 8;

fn draw_pages(random: &mut Random) -> u64 {
    loop {
        // Sectors of mean 8, cut to a whole number, in pages of 8, rounded up; none is drawn again.
        let sectors = (-(1.0 - random.fraction()).ln() * 8.0) as u64;
        if sectors > 0 {
            return sectors.div_ceil(8);
        }
    }
}

fn workload(kind: RequestKind, count: u64, seed: u64) -> impl Iterator<Item = (u64, Ask)> {
    let mut random = Random::new(seed);
    let mut at = 0;
    (0..count).map(move |_| {
        at += random.below(1_000_000);
        let pages = draw_pages(&mut random);
        let page = random.below(PAGES - pages);
        (at, Ask { kind, offset: page * 4096, len: pages * 4096 })
    })
}

fn sequential(kind: RequestKind, count: u64, seed: u64) -> impl Iterator<Item = (u64, Ask)> {
    let mut random = Random::new(seed);
    let mut at = 0;
    (0..count).map(move |i| {
        at += random.below(1_000_000);
        (at, Ask { kind, offset: i * 4096, len: 4096 })
    })
}

/// A run of DiskSim's: what its `outv` file says of all requests, in milliseconds.
struct Published {
    mean: f64,
    deviation: f64,
    max: f64,
}

/// Our own run, in nanoseconds: virtual time is the same on every machine, so a change of one of these is a
/// change of the model.
struct Ours {
    /// Of all responses together.
    total: u128,
    max: u64,
}

/// The aim for a longest response, as a part of the published one.
const MAXIMUM: f64 = 0.02;

/// Whether a longest response meets the aim. It depends on which numbers were drawn: how many requests met at
/// one package.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Longest {
    Meets,
    Misses,
}

/// Runs `asks` on a full device. A longest response that is said to miss its aim must miss it: one that meets
/// it has to leave that list.
fn check(
    what: &str,
    asks: impl Iterator<Item = (u64, Ask)>,
    published: &Published,
    longest: Longest,
    ours: &Ours,
) -> Ssd {
    let mut msr = ssd("msr", &[]);
    let capacity = msr.capacity_bytes();
    msr.precondition(capacity);
    let found = responses(&mut msr, asks);
    // The mean of a sequential read deviates by the microsecond in which two requests meet on the link.
    let deviation = if published.deviation < 0.001 { 0.1 } else { 0.015 };
    close(&format!("{what}, mean, ms"), found.mean / 1e6, published.mean, 0.003);
    close(&format!("{what}, deviation, ms"), found.deviation / 1e6, published.deviation, deviation);
    assert_eq!((found.total, found.max as u64), (ours.total, ours.max), "{what}: our own run");
    let off = found.max / 1e6 / published.max - 1.0;
    let is = if off.abs() <= MAXIMUM { Longest::Meets } else { Longest::Misses };
    assert_eq!(is, longest, "{what}, maximum: {:+.1} %", off * 100.0);
    msr
}

#[test]
fn sequential_reads_of_a_page() {
    let published = Published { mean: 0.132511, deviation: 0.000072, max: 0.135805 };
    let ours = Ours { total: 33_129_437_823, max: 134_423 };
    check("sequential read", sequential(Read, 250_000, 1), &published, Longest::Meets, &ours);
}

#[test]
fn random_reads() {
    let published = Published { mean: 0.136118, deviation: 0.015205, max: 0.485446 };
    let ours = Ours { total: 34_031_333_147, max: 415_470 };
    check("random read", workload(Read, 250_000, 1), &published, Longest::Misses, &ours);
}

#[test]
fn sequential_writes_of_a_page() {
    let published = Published { mean: 0.310895, deviation: 0.026646, max: 0.522476 };
    let ours = Ours { total: 77_724_902_469, max: 521_310 };
    check("sequential write", sequential(Write, 250_000, 1), &published, Longest::Meets, &ours);
}

#[test]
fn random_writes() {
    let published = Published { mean: 0.329458, deviation: 0.068898, max: 1.579052 };
    let ours = Ours { total: 82_355_015_390, max: 1_820_580 };
    check("random write", workload(Write, 250_000, 1), &published, Longest::Misses, &ours);
}

/// Five million random writes; most of them are collected: DiskSim's counts of cleans and of pages that
/// they moved, summed over its eight elements.
#[test]
fn five_million_random_writes() {
    let published = Published { mean: 0.593438, deviation: 0.970446, max: 6.518651 };
    let ours = Ours { total: 2_970_425_656_418, max: 6_580_819 };
    let asks = workload(Write, 5_000_000, 1);
    let msr = check("random write, 5m", asks, &published, Longest::Meets, &ours);
    let flash = msr.statistics().flash.expect("it is flash");
    close("cleans", flash.erases as f64, 143_179.0, 0.005);
    close("moved pages", flash.moved_pages as f64, 1_929_239.0, 0.005);
}
