//! The SSD extension of DiskSim: means of its validation runs, from our own generator of their
//! workloads. All parameters are in its `ssdmodel/valid/ssd-*.parv`; its random numbers are not
//! ours, so what depends on which were drawn differs by that much.
//!
//! A request has exponentially many pages of mean one, rounded up; requests come after times spread
//! evenly over 0 to 1 ms; sequential runs keep the size that was drawn first, random requests draw
//! a new place and size.

mod common;

use common::{Ask, close, open_loop, ssd};
use merganser_device::device::Device;
use merganser_device::request::RequestKind::{self, Read, Write};
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

fn mean_ms(asks: impl Iterator<Item = (u64, Ask)>) -> f64 {
    let mut msr = ssd("msr", &[]);
    let capacity = msr.capacity_bytes();
    msr.precondition(capacity);
    open_loop(&mut msr, asks) / 1e6
}

#[test]
fn sequential_reads_of_a_page() {
    close("sequential read, ms", mean_ms(sequential(Read, 250_000, 1)), 0.132511, 0.02);
}

#[test]
fn random_reads() {
    close("random read, ms", mean_ms(workload(Read, 250_000, 1)), 0.136118, 0.02);
}

#[test]
fn sequential_writes_of_a_page() {
    close("sequential write, ms", mean_ms(sequential(Write, 250_000, 1)), 0.310895, 0.02);
}

#[test]
fn random_writes() {
    close("random write, ms", mean_ms(workload(Write, 250_000, 1)), 0.329458, 0.02);
}
