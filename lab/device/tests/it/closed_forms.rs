//! Where theory gives the answer, the model gives the same.

use std::collections::VecDeque;

use crate::common::{Ask, close, closed_loop, open_loop, random, sequential, ssd, throughput};
use merganser_device::device::Device;
use merganser_device::request::RequestKind::{Read, Write};
use merganser_device::ssd::Ssd;
use merganser_random::Random;

/// A device of one die whose only time is that of sensing.
fn one_server() -> Vec<&'static str> {
    vec![
        "channels=1",
        "planes=1",
        "queue_depth=65536",
        "read_ns=100us",
        "page_spare_bytes=0",
        "channel_bytes_per_second=1T",
        "link_bytes_per_second=1T",
        "dram_bytes_per_second=4T",
    ]
}

/// Pollaczek and Khinchine: with constant service S and load r, a request waits r S / (2 (1 - r)).
#[test]
fn a_die_is_an_m_d_1_queue() {
    let service = 100_000.0 + 2.0 * 4.0 + 2.0; // channel, link and memory round to a few ns
    for load in [0.3, 0.6, 0.8] {
        let mut device = ssd("msr", &one_server());
        let capacity = device.capacity_bytes();
        device.precondition(capacity);
        let mut draw = Random::new(11);
        let mut at = 0.0;
        let asks = random(Read, 4096, capacity, 400_000, 5).map(|ask| {
            at += -(1.0 - draw.fraction()).ln() * service / load;
            (at as u64, ask)
        });
        let asks: Vec<(u64, Ask)> = asks.collect();
        let mean = open_loop(&mut device, asks);
        let expected = service + load * service / (2.0 * (1.0 - load));
        close(&format!("M/D/1 at load {load}, ns"), mean, expected, 0.02);
    }
}

/// The channel is busy all the time when its dies sense meanwhile.
#[test]
fn one_channel_carries_what_it_can() {
    let settings = ["channels=1", "ways=4", "channel_bytes_per_second=40000000"];
    let mut device = ssd("msr", &settings);
    device.precondition(64 << 20);
    let ended = closed_loop(&mut device, sequential(Read, 16 << 10, 64 << 20), 16);
    // 128 spare bytes cross with each 4,096.
    close("one channel, bytes/s", throughput(&ended), 40e6 * 4096.0 / 4224.0, 0.01);
}

#[test]
fn all_channels_carry_their_sum() {
    let settings = ["ways=4"];
    let mut device = ssd("msr", &settings);
    device.precondition(64 << 20);
    let ended = closed_loop(&mut device, sequential(Read, 128 << 10, 64 << 20), 16);
    close("eight channels, bytes/s", throughput(&ended), 8.0 * 40e6 * 4096.0 / 4224.0, 0.01);
}

#[test]
fn the_link_carries_what_it_can() {
    // Transfers of whole requests leave the link to no other request between.
    let settings = ["ways=4", "link_bytes_per_second=100000000", "whole_transfers=off"];
    let mut device = ssd("msr", &settings);
    device.precondition(64 << 20);
    let ended = closed_loop(&mut device, sequential(Read, 128 << 10, 64 << 20), 16);
    close("link, bytes/s", throughput(&ended), 100e6, 0.01);
}

/// Without a queue, dies that share nothing but the channel: sense, then carry.
#[test]
fn a_die_alone_senses_then_carries() {
    let mut device = ssd("msr", &["channels=1", "ways=1"]);
    device.precondition(16 << 20);
    let ended = closed_loop(&mut device, sequential(Read, 4 << 10, 16 << 20), 4);
    close("one die, bytes/s", throughput(&ended), 4096e9 / (25_000.0 + 105_600.0), 0.01);
}

/// Programs for each page written by the host, of greedy collection under uniformly random writes,
/// when the number of blocks goes to infinity (Van Houdt 2013, the limit of many choices; Desnoyers
/// 2012 has the same chain). `full` blocks of `pages` pages hold `valid` valid pages.
///
/// A valid page is overwritten at rate 1 / `valid` a write, so a block with i valid pages goes to
/// i - 1 at rate i / valid. Blocks enter full at rate R; above the level m at which blocks are
/// taken, the same flow R passes every level: R valid / i blocks are at level i. The rest of the
/// blocks is at level m, and balances the valid pages:
///
///   full  = R valid (H(pages) - H(m)) + n_m
///   valid = R valid (pages - m) + m n_m
fn greedy_write_amplification(full: f64, pages: u32, valid: f64) -> f64 {
    for m in (1..pages).rev() {
        let harmonic: f64 = (m + 1..=pages).map(|i| 1.0 / f64::from(i)).sum();
        // Two linear equations for R and n_m.
        let (a, b) = (valid * harmonic, valid * f64::from(pages - m));
        let m = f64::from(m);
        let rate = (valid - m * full) / (b - m * a);
        let at_m = full - rate * a;
        if rate > 0.0 && at_m >= 0.0 && at_m * m / valid <= rate {
            return rate * f64::from(pages);
        }
    }
    unreachable!("some level balances")
}

#[test]
fn greedy_collection_amplifies_as_theory_says() {
    for (reserve, pages) in [(100, 64_u32), (200, 64), (150, 32)] {
        let pages_text = format!("pages_per_block={pages}");
        let reserve_text = format!("over_provisioning_permille={reserve}");
        let settings = [
            "channels=1",
            "planes=1",
            "blocks_per_plane=2048",
            "block_summary_bytes=0",
            "gc_free_permille=1",
            &pages_text,
            &reserve_text,
        ];
        let mut device = ssd("msr", &settings);
        let capacity = device.capacity_bytes();
        let units = capacity / 4096;
        device.precondition(capacity);
        closed_loop(&mut device, random(Write, 4096, capacity, 4 * units, 2), 8);
        let before = device.statistics().flash.expect("it is flash");
        closed_loop(&mut device, random(Write, 4096, capacity, 2 * units, 3), 8);
        let after = device.statistics().flash.expect("it is flash");
        let measured = (after.page_programs - before.page_programs) as f64
            / (after.host_programs - before.host_programs) as f64;
        // Two free blocks and the open one hold no pages to collect.
        let expected = greedy_write_amplification(2048.0 - 3.0, pages, units as f64);
        // The second emptiest block would amplify by more than this.
        close(&format!("greedy, {reserve} permille, {pages} pages"), measured, expected, 0.003);
    }
}

/// Greedy collection alone, written from its description and not from the model: blocks that are filled one
/// after the other by the host, and by collection, which has an open block of its own if `own`.
struct Greedy {
    pages: usize,
    own: bool,
    /// Blocks to keep free.
    kept: usize,
    /// The page of each unit, and the unit that each page got.
    places: Vec<Option<usize>>,
    units: Vec<usize>,
    /// Valid pages of each block.
    valid: Vec<usize>,
    free: VecDeque<usize>,
    /// The open blocks of the host and of collection, and the pages that are used in them.
    open: [Option<(usize, usize)>; 2],
    programs: u64,
}

impl Greedy {
    fn new(blocks: usize, pages: usize, units: usize, kept: usize, own: bool) -> Greedy {
        Greedy {
            pages,
            own,
            kept,
            places: vec![None; units],
            units: vec![0; blocks * pages],
            valid: vec![0; blocks],
            free: (0..blocks).collect(),
            open: [None; 2],
            programs: 0,
        }
    }

    fn append(&mut self, unit: usize, by: usize) {
        let (block, used) = match self.open[by] {
            Some((block, used)) if used < self.pages => (block, used),
            _ => (self.free.pop_front().expect("a free block"), 0),
        };
        if let Some(old) = self.places[unit] {
            self.valid[old / self.pages] -= 1;
        }
        let place = block * self.pages + used;
        (self.places[unit], self.units[place]) = (Some(place), unit);
        self.valid[block] += 1;
        self.open[by] = Some((block, used + 1));
        self.programs += 1;
    }

    fn write(&mut self, unit: usize) {
        while self.free.len() <= self.kept {
            let is_open = |block: usize| {
                self.open.iter().flatten().any(|&(b, used)| b == block && used < self.pages)
            };
            let closed = (0..self.valid.len()).filter(|b| !self.free.contains(b) && !is_open(*b));
            let victim = closed.min_by_key(|&block| self.valid[block]).expect("a closed block");
            for page in victim * self.pages..(victim + 1) * self.pages {
                if self.places[self.units[page]] == Some(page) {
                    self.append(self.units[page], usize::from(self.own));
                }
            }
            self.free.push_back(victim);
        }
        self.append(unit, 0);
    }
}

/// Audit finding F10: four of five writes go to a fifth of the units. With a block of its own, collection
/// keeps the cold units together, and moves less.
#[test]
fn f10_hot_and_cold_units_amplify_as_a_plain_model_of_greedy_collection_says() {
    const BLOCKS: usize = 512;
    const PAGES: usize = 64;
    let amplification = |own: bool| {
        let own_text = if own { "gc_own_block=on" } else { "gc_own_block=off" };
        let settings = [
            "channels=1",
            "planes=1",
            "blocks_per_plane=512",
            "block_summary_bytes=0",
            "gc_free_permille=1",
            "over_provisioning_permille=150",
            own_text,
        ];
        let mut device = ssd("msr", &settings);
        let capacity = device.capacity_bytes();
        let units = (capacity / 4096) as usize;
        let mut plain = Greedy::new(BLOCKS, PAGES, units, 1, own);
        device.precondition(capacity);
        (0..units).for_each(|unit| plain.write(unit));
        let mut draw = Random::new(17);
        let hot = units / 5;
        let mut pass = |device: &mut Ssd, plain: &mut Greedy, writes: usize| {
            let drawn: Vec<usize> = (0..writes)
                .map(|_| {
                    if draw.below(5) < 4 { draw.index(hot) } else { hot + draw.index(units - hot) }
                })
                .collect();
            let ask = |&unit: &usize| Ask { kind: Write, offset: unit as u64 * 4096, len: 4096 };
            closed_loop(device, drawn.iter().map(ask), 8);
            drawn.iter().for_each(|&unit| plain.write(unit));
            let flash = device.statistics().flash.expect("it is flash");
            (flash.page_programs, plain.programs)
        };
        let before = pass(&mut device, &mut plain, 4 * units);
        let after = pass(&mut device, &mut plain, 2 * units);
        let writes = (2 * units) as f64;
        let found = (after.0 - before.0) as f64 / writes;
        let expected = (after.1 - before.1) as f64 / writes;
        close(&format!("hot and cold, {own_text}"), found, expected, 0.01);
        found
    };
    let (own, shared) = (amplification(true), amplification(false));
    assert!(own < 0.99 * shared, "{own} with a block of its own, {shared} without");
}

/// A die alone does nothing at the same time: its busy time is that of the operations it did.
#[test]
fn collection_takes_the_time_of_its_operations() {
    let settings = [
        "channels=1",
        "planes=1",
        "blocks_per_plane=256",
        "block_summary_bytes=0",
        "copy_back=off",
        "gc_own_block=on",
    ];
    let mut device = ssd("msr", &settings);
    let capacity = device.capacity_bytes();
    device.precondition(capacity);
    let ended = closed_loop(&mut device, random(Write, 4096, capacity, 60_000, 4), 16);
    let flash = device.statistics().flash.expect("it is flash");
    assert!(flash.erases > 800 && flash.moved_pages > 10_000, "{flash:?}");
    // A page crosses the channel of its die before a program and after a read.
    let carry = 4224.0 * 25.0;
    let expected = flash.page_reads as f64 * (25_000.0 + carry)
        + flash.page_programs as f64 * (200_000.0 + carry)
        + flash.erases as f64 * 1_500_000.0;
    let took = ended.iter().map(|done| done.at.0).max().expect("some") as f64;
    close("a die that collects, ns", took, expected, 0.001);
}
