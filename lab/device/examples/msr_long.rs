//! DiskSim's two long validation runs, five million writes each: too long for a test.
//!
//! ```text
//! cargo run --release -p merganser-device --example msr_long [SEEDS]
//! ```
//!
//! The random run is fully specified but for the numbers drawn. The sequential one is not: its
//! generator continues until a run meets the end of the disk, and then starts at a random place with
//! a new size, which all later requests of the run keep; so the mean hangs on some fifteen draws.
//! Several seeds are shown.
#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use merganser_device::device::{Device, IoCommand};
use merganser_device::profile::SsdProfile;
use merganser_device::request::{RequestKind, SimTime};
use merganser_device::ssd::Ssd;
use merganser_random::Random;

const COUNT: u64 = 5_000_000;
const PAGES: u64 = 7_018_904 / 8;

fn main() {
    let seeds = std::env::args().nth(1).map_or(3, |text| text.parse().expect("a number"));
    for seed in 1..=seeds {
        let (mean, size) = run(seed, false);
        println!(
            "random write, seed {seed}: {mean:.6} ms, {size:.3} sectors a request; DiskSim 0.593438, 12.661"
        );
    }
    // The sequential run, for such draws as gave requests of the size that DiskSim's gave.
    let alike = (1..).filter(|&seed| (mean_sectors(seed) - 9.127).abs() < 0.1);
    for seed in (1..=seeds).chain(alike.take(seeds as usize)) {
        let (mean, size) = run(seed, true);
        println!(
            "sequential write, seed {seed}: {mean:.6} ms, {size:.3} sectors a request; DiskSim 0.334365, 9.127"
        );
    }
}

fn draw_pages(random: &mut Random) -> u64 {
    loop {
        let sectors = (-(1.0 - random.fraction()).ln() * 8.0) as u64;
        if sectors > 0 {
            return sectors.div_ceil(8);
        }
    }
}

/// The requests' places and lengths, in pages, of a run.
struct Places {
    random: Random,
    sequential: bool,
    page: u64,
    pages: u64,
}

impl Places {
    fn next(&mut self) -> (u64, u64) {
        if self.sequential && self.page + 2 * self.pages < PAGES {
            self.page += self.pages;
        } else {
            self.pages = draw_pages(&mut self.random);
            self.page = self.random.below(PAGES - self.pages);
        }
        (self.page, self.pages)
    }

    fn new(seed: u64, sequential: bool) -> Places {
        Places { random: Random::new(seed), sequential, page: PAGES, pages: 0 }
    }
}

/// Mean request of the sequential run, in sectors.
fn mean_sectors(seed: u64) -> f64 {
    let mut places = Places::new(seed, true);
    (0..COUNT).map(|_| places.next().1 * 8).sum::<u64>() as f64 / COUNT as f64
}

/// Mean response in milliseconds, and mean request in sectors.
fn run(seed: u64, sequential: bool) -> (f64, f64) {
    let profile = SsdProfile::preset("msr").expect("a preset");
    let mut ssd = Ssd::new(&profile, seed).expect("a device");
    ssd.precondition(ssd.capacity_bytes());
    let (mut times, mut places) = (Random::new(!seed), Places::new(seed, sequential));
    let (mut at, mut total, mut sectors) = (0, 0_u128, 0);
    for id in 0..COUNT {
        at += times.below(1_000_000);
        let (page, pages) = places.next();
        sectors += pages * 8;
        let (offset, len, kind) = (page * 4096, pages * 4096, RequestKind::Write);
        while ssd.next_at().is_some_and(|next| next.0 < at) {
            ssd.advance();
        }
        ssd.submit(SimTime(at), IoCommand { id, kind, offset, len, buffer: None });
        while let Some(done) = ssd.completed() {
            total += u128::from(done.at.0 - done.submitted.0);
        }
    }
    while ssd.advance() {}
    while let Some(done) = ssd.completed() {
        total += u128::from(done.at.0 - done.submitted.0);
    }
    (total as f64 / COUNT as f64 / 1e6, sectors as f64 / COUNT as f64)
}
