//! Devices act as physics says when their parts change; nothing is lost; runs repeat.
#![allow(clippy::print_stdout, reason = "a test says what it saw")]

use crate::common::{Ask, close, closed_loop, random, sequential, ssd, throughput};
use merganser_device::device::{CompletedCommand, Component, Device, IoCommand};
use merganser_device::request::RequestKind::{Read, Trim, Write};
use merganser_device::request::SimTime;
use merganser_device::ssd::Ssd;

fn read_speed(settings: &[&str]) -> f64 {
    let mut device = ssd("jasmine", settings);
    let total = 64 << 20;
    device.precondition(total);
    throughput(&closed_loop(&mut device, sequential(Read, 128 << 10, total), 32))
}

fn write_speed(settings: &[&str]) -> f64 {
    let mut device = ssd("jasmine", settings);
    throughput(&closed_loop(&mut device, sequential(Write, 128 << 10, 64 << 20), 32))
}

#[test]
fn twice_the_channels_carry_twice_until_the_link_is_full() {
    let usual = read_speed(&[]);
    close("2 channels", read_speed(&["channels=2"]), usual / 2.0, 0.01);
    close("8 channels", read_speed(&["channels=8"]), 260e6, 0.01);
    let wide = ["channels=8", "link_bytes_per_second=2G"];
    close("8 channels, wide link", read_speed(&wide), 2.0 * usual, 0.02);
    close("8 channels, writes", write_speed(&["channels=8"]), 2.0 * write_speed(&[]), 0.02);
}

#[test]
fn a_slower_link_bounds() {
    close("link", read_speed(&["link_bytes_per_second=50000000"]), 50e6, 0.01);
}

/// Firmware's work for a page is one after another for all channels.
#[test]
fn half_the_clock_halves_what_firmware_bounds() {
    let busy = "firmware_read_cycles=50000";
    let usual = read_speed(&[busy]);
    close("firmware-bound", usual, 32_768.0 * 87.5e6 / 50_000.0, 0.01);
    close("half the clock", read_speed(&[busy, "processor_hz=43750000"]), usual / 2.0, 0.01);
}

#[test]
fn more_dies_on_a_channel_hide_sensing() {
    let one = read_speed(&["link_bytes_per_second=2G"]);
    let two = read_speed(&["link_bytes_per_second=2G", "ways=2"]);
    // The channel is then busy all the time: its bytes and its overhead.
    close("two ways", two, 4.0 * 32_768e9 / (190_000.0 + 32_768e9 / 66.7e6), 0.02);
    let not = read_speed(&["link_bytes_per_second=2G", "ways=2", "interleaving=off"]);
    close("two ways without interleaving", not, one, 0.02);
}

#[test]
fn planes_together_share_the_time_of_a_program() {
    // 1.3 ms for two pages instead of one.
    let two = write_speed(&["planes=2", "multi_plane=on"]);
    let carry = 190_000.0 + 32_768e9 / 66.7e6;
    close("two planes", two, 4.0 * 2.0 * 32_768e9 / (1_300_000.0 + 2.0 * carry), 0.03);
}

/// Audit finding F3: a plane that had been collected got all pages until it was level with the
/// others, so planes never worked together again after the first erase.
#[test]
fn f3_planes_work_together_while_blocks_are_collected() {
    let speed = |multi_plane: &str| {
        let settings = ["planes=2", "blocks_per_plane=64", "channels=1", multi_plane];
        let mut device = ssd("jasmine", &settings);
        let capacity = device.capacity_bytes();
        device.precondition(capacity);
        let writes = random(Write, 32 << 10, capacity, 20_000, 1);
        let done = closed_loop(&mut device, writes, 32);
        let flash = device.statistics().flash.expect("it is flash");
        assert!(flash.erases > 100 && flash.moved_pages > 1000, "it collects");
        throughput(&done)
    };
    let (together, alone) = (speed("multi_plane=on"), speed("multi_plane=off"));
    assert!(together > 1.2 * alone, "{together:.0} and {alone:.0} bytes per second");
}

/// Audit finding F6: write amplification is bytes programmed per byte of the host (JEDEC), not pages
/// per page.
#[test]
fn f6_write_amplification_counts_bytes() {
    let amplification = |settings: &[&str], len: u64| {
        let mut device = ssd("nvme", &[&["cache_policy=none"], settings].concat());
        closed_loop(&mut device, random(Write, len, 64 << 20, 2000, 1), 8);
        device.statistics().flash.expect("it is flash").write_amplification()
    };
    close("512 bytes in units of 4 KiB", amplification(&["page_bytes=4K"], 512), 8.0, 1e-9);
    close("4 KiB in pages of 16 KiB", amplification(&["page_bytes=16K"], 4096), 4.0, 1e-9);
    close("whole pages", amplification(&["page_bytes=4K"], 4096), 1.0, 1e-9);
}

/// Audit finding F9: a full LRU buffer evicted one page for each write that waited, so that a lone writer
/// used one package at a time: no faster than without a buffer.
#[test]
fn f9_a_full_buffer_of_one_list_uses_all_packages() {
    let rate = |policy: &str| {
        let mut device = ssd("msr", &[policy, "cache_bytes=1M"]);
        let capacity = device.capacity_bytes();
        throughput(&closed_loop(&mut device, random(Write, 4096, capacity, 20_000, 1), 1)) / 4096.0
    };
    let (none, lru) = (rate("cache_policy=none"), rate("cache_policy=lru"));
    let parallel = rate("cache_policy=parallel");
    // The classic has one page on its way for each that waits. For a lone writer that is no buffer at all.
    let classic = rate("cache_policy=lru-page");
    println!(
        "writes per second: {none:.0} without a buffer, {classic:.0} lru-page, {lru:.0} lru, {parallel:.0} parallel"
    );
    assert!((0.9..1.1).contains(&(classic / none)), "{classic:.0} and {none:.0} without a buffer");
    assert!(lru > 4.0 * none, "{lru:.0} and {none:.0} without a buffer");
    // Eight packages get unequal shares of the oldest 64 pages.
    assert!(lru < parallel, "{lru:.0} and {parallel:.0} in lists");
}

/// Audit finding F10: with one open block for both, old data that collection moves mix with new data, and
/// so every block keeps some of them. Data written in order after random writes should soon leave
/// nothing to move.
#[test]
fn f10_collection_has_a_block_of_its_own() {
    let passes = |own: &str| {
        let settings = ["blocks_per_plane=128", "channels=1", "block_summary_bytes=0", own];
        let mut device = ssd("msr", &settings);
        let capacity = device.capacity_bytes();
        let units = capacity / 4096;
        device.precondition(capacity);
        closed_loop(&mut device, random(Write, 4096, capacity, 2 * units, 1), 8);
        let mut amplifications = Vec::new();
        for _ in 0..3 {
            let before = device.statistics().flash.expect("it is flash");
            closed_loop(&mut device, sequential(Write, 4096, capacity), 8);
            let after = device.statistics().flash.expect("it is flash");
            let programmed = after.programmed_bytes - before.programmed_bytes;
            amplifications.push(programmed as f64 / (after.host_bytes - before.host_bytes) as f64);
        }
        println!("{own}: {amplifications:.3?}");
        amplifications
    };
    let (shared, own) = (passes("gc_own_block=off"), passes("gc_own_block=on"));
    assert!(own[1] < 1.05 && own[2] < 1.05, "{own:?}");
    assert!(shared[1] > 1.3, "{shared:?}");
}

#[test]
fn a_smaller_write_buffer_takes_less() {
    // Random writes into a hot set that the larger buffer holds.
    let programs = |cache: &str| {
        let mut device = ssd("msr", &["cache_policy=lru", "cache_parallelism=1", cache]);
        closed_loop(&mut device, random(Write, 4096, 4 << 20, 20_000, 1), 8);
        device.statistics().flash.expect("it is flash").page_programs
    };
    let (small, large) = (programs("cache_bytes=1M"), programs("cache_bytes=8M"));
    assert_eq!(large, 0, "what fits never leaves");
    // A random unit of 1,024 is among the last 256 written a quarter of the time.
    close("programs", small as f64, 20_000.0 * 0.75, 0.05);
}

#[test]
fn reading_ahead_fills_the_device_for_a_lone_reader() {
    let speed = |settings: &[&str]| {
        let mut device = ssd("jasmine", settings);
        device.precondition(64 << 20);
        throughput(&closed_loop(&mut device, sequential(Read, 32 << 10, 64 << 20), 1))
    };
    let (alone, ahead) = (speed(&[]), speed(&["read_ahead_pages=16"]));
    assert!(ahead > 3.0 * alone, "{ahead} with read-ahead, {alone} without");
}

/// Bytes that the host gave arrive on flash, and those that it asked for cross the link.
#[test]
fn nothing_is_lost_or_invented() {
    let mut device = ssd("msr", &["blocks_per_plane=64", "queue_depth=64"]);
    let capacity = device.capacity_bytes();
    device.precondition(capacity);
    let writes = random(Write, 4096, capacity, 60_000, 1);
    let reads = random(Read, 8192, capacity, 20_000, 2);
    let trims = random(Trim, 4096, capacity, 1_000, 3);
    let ended = closed_loop(&mut device, writes.chain(reads).chain(trims), 32);
    let statistics = device.statistics();
    let flash = statistics.flash.expect("it is flash");
    assert_eq!(ended.len(), 81_000);
    assert_eq!((statistics.reads, statistics.writes, statistics.others), (20_000, 60_000, 1_000));
    assert_eq!(statistics.written_bytes, 60_000 * 4096);
    assert_eq!(statistics.read_bytes, 20_000 * 8192);
    assert_eq!(flash.host_programs, 60_000);
    assert!(flash.moved_pages > 0 && flash.erases > 0, "it collected");
    // Every block that was filled has one summary page; those of preconditioning took no time.
    let summaries = flash.page_programs - flash.host_programs - flash.moved_pages;
    let filled = (flash.host_programs + flash.moved_pages) / 63;
    assert!(summaries.abs_diff(filled) <= 64, "{summaries} summaries of {filled} blocks");
    let busy = |part| {
        let uses = statistics.uses.iter().filter(move |u| u.part == part);
        uses.map(|u| (u.busy.0, u.services)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    };
    assert!(busy(Component::Die).0 <= 8 * device.now().0, "no die works twice at once");
    assert!(busy(Component::Channel).0 <= 8 * device.now().0);
}

fn run(settings: &[&str], seed: u64) -> (Ssd, Vec<CompletedCommand>) {
    let mut device = ssd("msr", settings);
    let capacity = device.capacity_bytes();
    let mixed = random(Write, 4096, capacity, 30_000, seed)
        .zip(random(Read, 8192, capacity, 30_000, seed + 1))
        .flat_map(|(a, b): (Ask, Ask)| [a, b]);
    let ended = closed_loop(&mut device, mixed, 16);
    (device, ended)
}

#[test]
fn two_runs_of_one_seed_are_the_same() {
    let settings = ["blocks_per_plane=32", "gc_policy=choices"];
    let (a, b) = (run(&settings, 5), run(&settings, 5));
    assert_eq!(a.0.statistics(), b.0.statistics());
    let times = |ended: &[CompletedCommand]| ended.iter().map(|d| (d.id, d.at)).collect::<Vec<_>>();
    assert_eq!(times(&a.1), times(&b.1));
    assert_ne!(a.0.statistics().digest, run(&settings, 6).0.statistics().digest);
}

#[test]
fn cold_data_move_when_wear_differs() {
    let spread = |wear: &str| {
        let mut device = ssd("msr", &["blocks_per_plane=32", "channels=1", "planes=1", wear]);
        let capacity = device.capacity_bytes();
        device.precondition(capacity);
        // A tenth of the space is written again and again.
        closed_loop(&mut device, random(Write, 4096, capacity / 10, 100_000, 1), 8);
        let flash = device.statistics().flash.expect("it is flash");
        flash.erases_max - flash.erases_min
    };
    let (without, with) = (spread("wear_spread=0"), spread("wear_spread=4"));
    assert!(with <= 12 && without > 4 * with, "{with} with levelling, {without} without");
}

/// Reads of a page among writes that keep all dies busy: mean and longest response, in nanoseconds, and
/// the writes per second.
fn reads_among_writes(settings: &[&str]) -> (f64, f64, f64) {
    let mut device = ssd("msr", &[&["queue_depth=64"], settings].concat());
    let capacity = device.capacity_bytes();
    device.precondition(capacity);
    let writes = random(Write, 4096, capacity, 20_000, 1);
    let reads = random(Read, 4096, capacity, 2_000, 2);
    let asks: Vec<Ask> = writes.collect::<Vec<_>>().chunks(10).zip(reads).fold(
        Vec::new(),
        |mut asks, (ten, read)| {
            asks.extend(ten);
            asks.push(read);
            asks
        },
    );
    let kinds: Vec<bool> = asks.iter().map(|ask| ask.kind == Read).collect();
    let ended = closed_loop(&mut device, asks, 32);
    let last = ended.iter().map(|done| done.at.0).max().expect("some") as f64;
    let of_reads = ended.iter().filter(|done| kinds[done.id as usize]);
    let spans: Vec<f64> = of_reads.map(|done| (done.at.0 - done.submitted.0) as f64).collect();
    let max = spans.iter().copied().fold(0.0, f64::max);
    (spans.iter().sum::<f64>() / spans.len() as f64, max, 20_000e9 / last)
}

/// A read needs 132 us alone. Behind a program it waits 305 us for each that is before it.
#[test]
fn reads_first_wait_for_one_operation_and_suspend_for_none() {
    let (in_order, ..) = reads_among_writes(&[]);
    let (first, _, writes) = reads_among_writes(&["reads_first=16"]);
    let (suspending, _, more) = reads_among_writes(&["reads_first=16", "suspend_ns=10us"]);
    println!(
        "reads among writes: {in_order:.0} ns in order, {first:.0} first, {suspending:.0} suspending; {writes:.0} and {more:.0} writes per second"
    );
    assert!(first < 0.6 * in_order && suspending < 0.9 * first);
    assert!(suspending > 132_000.0, "a read takes as long as alone");
    assert!(more > 0.8 * writes, "programs go on");
}

/// Reads that never end must not keep a write from flash.
#[test]
fn writes_are_served_among_reads_that_come_first() {
    let mut device = ssd("msr", &["channels=1", "reads_first=4", "suspend_ns=10us"]);
    let capacity = device.capacity_bytes();
    device.precondition(capacity);
    let mut asks: Vec<Ask> = random(Read, 4096, capacity, 4_000, 2).collect();
    asks.insert(100, Ask { kind: Write, offset: 0, len: 4096 });
    let ended = closed_loop(&mut device, asks, 16);
    let write = ended.iter().find(|done| done.id == 100).expect("it ends");
    // Sixteen reads of 131 us at most are before it or overtake it.
    let took = write.at.0 - write.submitted.0;
    assert!(took < 6_000_000, "{took} ns");
}

/// A suspended program takes as long as it has left, and nothing of it is lost or counted twice.
#[test]
fn a_suspended_erase_ends_later_by_what_interrupted_it() {
    let run = |suspend: &str, interrupted: bool| {
        let settings = ["channels=1", "program_ns=10ms", "reads_first=16", suspend];
        let mut device = ssd("msr", &settings);
        device.precondition(64 << 20);
        let command = |id, kind, offset| IoCommand { id, kind, offset, len: 4096, buffer: None };
        device.submit(SimTime(0), command(1, Write, 0));
        if interrupted {
            let at = SimTime(5_000_000);
            while device.next_at().is_some_and(|next| next < at) {
                device.advance();
            }
            device.submit(at, command(2, Read, 32 << 20));
        }
        while device.advance() {}
        let mut at = [0; 3];
        while let Some(done) = device.completed() {
            at[done.id as usize] = done.at.0;
        }
        let flash = device.statistics().flash.expect("it is flash");
        assert_eq!((flash.page_programs, flash.page_reads), (1, u64::from(interrupted)));
        at
    };
    let (alone, waited) = (run("suspend_ns=0", false), run("suspend_ns=0", true));
    let suspended = run("suspend_ns=10us", true);
    // Two microseconds more on the link, for the read.
    assert!(waited[1] == alone[1] && waited[2] > alone[1], "{waited:?} {alone:?}");
    let read = 10_000 + 25_000 + 105_600;
    assert!(suspended[2].abs_diff(5_000_000 + read) < 5_000, "{suspended:?}");
    assert!(suspended[1].abs_diff(alone[1] + read + 10_000) < 5_000, "{suspended:?} {alone:?}");
}

/// Pages of a block take turns at the times of their bits.
#[test]
fn pages_have_the_times_of_their_bits() {
    let settings = [
        "channels=1",
        "planes=1",
        "cell_bits=3",
        "read_2_ns=50us",
        "read_3_ns=90us",
        "program_2_ns=1ms",
        "program_3_ns=3ms",
        "block_summary_bytes=0",
        "pages_per_block=48",
    ];
    let mut device = ssd("msr", &settings);
    let total = 48 * 4096;
    let carry = 105_600.0;
    let wrote = closed_loop(&mut device, sequential(Write, 4096, total), 1);
    let start = wrote.iter().map(|done| done.at.0).max().expect("some") as f64;
    close("programs, ns", start / 48.0, (200e3 + 1e6 + 3e6) / 3.0 + carry, 0.002);
    let read = closed_loop(&mut device, sequential(Read, 4096, total), 1);
    let end = read.iter().map(|done| done.at.0).max().expect("some") as f64;
    close("reads, ns", (end - start) / 48.0, (25e3 + 50e3 + 90e3) / 3.0 + carry, 0.02);
}

/// Audit finding F11: reads overtook a write whose bytes were still on the link. With whole transfers, a
/// read that comes meanwhile waits behind all pages of the write.
#[test]
fn f11_a_read_waits_for_the_whole_write_before_it() {
    let read = |whole: &str| {
        let mut device = ssd("msr", &[whole]);
        device.precondition(64 << 20);
        let command = |id, kind, offset, len| IoCommand { id, kind, offset, len, buffer: None };
        device.submit(SimTime(0), command(0, Write, 0, 4 << 20));
        // The bytes cross in 1.95 ms.
        let at = SimTime(200_000);
        while device.next_at().is_some_and(|next| next < at) {
            device.advance();
        }
        device.submit(at, command(1, Read, 32 << 20, 4096));
        while device.advance() {}
        let ended: Vec<CompletedCommand> = std::iter::from_fn(|| device.completed()).collect();
        let [read, write] =
            [1, 0].map(|id| ended.iter().find(|done| done.id == id).expect("ended"));
        (read.at.0, write.at.0)
    };
    let (waited, write) = read("whole_transfers=on");
    // 128 programs at each of eight packages, and the read is at one of these.
    assert!(write > 39_000_000 && waited > 39_000_000, "{waited} {write}");
    let (overtook, _) = read("whole_transfers=off");
    assert!(overtook < 10_000_000, "{overtook}");
}
