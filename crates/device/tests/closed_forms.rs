//! Where theory gives the answer, the model gives the same.

mod common;

use common::{Ask, close, closed_loop, open_loop, random, sequential, ssd, throughput};
use merganser_device::device::Device;
use merganser_device::request::RequestKind::{Read, Write};
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
