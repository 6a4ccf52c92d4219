//! The page map on flash: its traffic against formulas, and what it must not change.
#![allow(clippy::print_stdout, reason = "a test says what it saw")]

use crate::common::{Ask, close, closed_loop, random, sequential, ssd};
use merganser_device::device::{CompletedCommand, Device, FlashStatistics};
use merganser_device::request::RequestKind::{Read, Trim, Write};
use merganser_device::ssd::Ssd;

/// A device with small pages: 128 entries in a page of the map, so that there are many of them.
const SMALL: &[&str] = &[
    "page_bytes=512",
    "map_unit_bytes=512",
    "page_spare_bytes=0",
    "transfer_unit_bytes=512",
    "block_summary_bytes=0",
    "copy_back=off",
    "blocks_per_plane=64",
    "channels=4",
];

fn small(more: &[&str]) -> Ssd {
    ssd("msr", &[SMALL, more].concat())
}

fn flash(device: &Ssd) -> FlashStatistics {
    device.statistics().flash.expect("it is flash")
}

fn mean_ns(ended: &[CompletedCommand]) -> f64 {
    let sum: u64 = ended.iter().map(|done| done.at.0 - done.submitted.0).sum();
    sum as f64 / ended.len() as f64
}

/// A cache of C of N entries has C / N of what is read at random, and each miss reads a page of the map.
#[test]
fn random_reads_hit_by_the_share_of_entries_that_are_cached() {
    let mut device = small(&["map_cache_bytes=64K"]);
    let capacity = device.capacity_bytes();
    device.precondition(capacity);
    let share = 8192.0 / (capacity / 512) as f64;
    // The cache fills.
    closed_loop(&mut device, random(Read, 512, capacity, 30_000, 1), 16);
    let before = flash(&device);
    closed_loop(&mut device, random(Read, 512, capacity, 30_000, 2), 16);
    let after = flash(&device);
    let (hits, misses) = (after.map_hits - before.map_hits, after.map_misses - before.map_misses);
    assert_eq!(hits + misses, 30_000);
    close("hits", hits as f64 / 30_000.0, share, 0.05);
    let of_map = after.map_reads - before.map_reads;
    assert_eq!((of_map, after.page_reads - before.page_reads), (misses, 30_000 + misses));
    assert_eq!(after.map_programs, 0, "nothing was written");
}

/// A lone read that misses takes the time of two.
#[test]
fn a_miss_takes_the_time_of_a_page_of_the_map() {
    let read = |cache: &str| {
        let mut device = ssd("msr", &["blocks_per_plane=64", cache]);
        let capacity = device.capacity_bytes();
        device.precondition(capacity);
        mean_ns(&closed_loop(&mut device, random(Read, 4096, capacity, 500, 1), 1))
    };
    let more = read("map_cache_bytes=8") - read("map_cache_bytes=0");
    // Sensing, and a page with its spare bytes on the channel.
    close("a miss, ns", more, 25_000.0 + 105_600.0, 0.005);
}

/// With few entries of each page of the map in the cache, every write loads a page of the map, and writes
/// another one back.
#[test]
fn random_writes_write_the_map_too() {
    let mut device = small(&["map_cache_bytes=512"]);
    let half = device.capacity_bytes() / 2 / 512 * 512;
    device.precondition(half);
    let pages = half / 512 / 128;
    closed_loop(&mut device, random(Write, 512, half, 10_000, 1), 8);
    let flash = flash(&device);
    assert_eq!(flash.erases, 0, "there is room");
    assert_eq!(flash.map_reads, flash.map_misses + flash.map_programs, "each page is on flash");
    // Another dirty entry of the page that leaves is among the other 63 in 63 of `pages` cases.
    let expected = 1.0 / (1.0 + 63.0 / pages as f64);
    close(
        "pages of the map per miss",
        flash.map_programs as f64 / flash.map_misses as f64,
        expected,
        0.03,
    );
    assert_eq!(flash.page_programs, flash.host_programs + flash.map_programs);
    assert!((flash.write_amplification() - 1.9).abs() < 0.1, "{}", flash.write_amplification());
}

/// A request that is in order needs one load for all of its units.
#[test]
fn one_load_serves_a_request() {
    let mut device = small(&["map_cache_bytes=8K"]);
    device.precondition(device.capacity_bytes());
    closed_loop(&mut device, sequential(Read, 64 << 10, 4 << 20), 1);
    let flash = flash(&device);
    assert_eq!((flash.map_misses, flash.map_reads), (8192, 64));
}

/// A cache of all entries costs nothing once it is full.
#[test]
fn a_cache_of_the_whole_map_is_as_fast_as_none() {
    let run = |cache: &str| {
        let mut device = small(&[cache, "over_provisioning_permille=200"]);
        let space = 2 << 20;
        device.precondition(space);
        closed_loop(&mut device, sequential(Read, 64 << 10, space), 1);
        let before = flash(&device);
        let ended = closed_loop(&mut device, random(Read, 512, space, 5000, 3), 1);
        assert_eq!(flash(&device).map_reads, before.map_reads);
        mean_ns(&ended)
    };
    assert_eq!(run("map_cache_bytes=64K"), run("map_cache_bytes=0"));
}

/// Collection moves units whose entries are not cached: it reads and writes the map, too, and ends.
#[test]
fn collection_keeps_up_with_the_map() {
    let worn = |more: &[&str]| {
        let wide = ["channels=2", "planes=1", "blocks_per_plane=512", "gc_free_permille=10"];
        let settings = [&wide[..], &["over_provisioning_permille=200"], more].concat();
        let mut device = small(&settings);
        let capacity = device.capacity_bytes();
        device.precondition(capacity);
        closed_loop(&mut device, random(Write, 512, capacity, 50_000, 1), 16);
        let flash = flash(&device);
        assert_eq!(
            flash.page_programs,
            flash.host_programs + flash.moved_pages + flash.map_programs
        );
        assert!(flash.erases > 500, "{flash:?}");
        println!("{more:?}: {:.2}, {flash:?}", flash.write_amplification());
        flash
    };
    let none = worn(&[]);
    assert_eq!((none.map_programs, none.map_reads), (0, 0));
    let (small, large) = (worn(&["map_cache_bytes=512"]), worn(&["map_cache_bytes=64K"]));
    // A page of the map for nearly each miss, and one for nearly each unit that is moved.
    let of_map = |flash: &FlashStatistics| flash.map_programs as f64 / flash.host_programs as f64;
    assert!(of_map(&small) > 0.8 + 0.8 * (none.write_amplification() - 1.0), "{small:?}");
    assert!(of_map(&large) < of_map(&small) - 0.5, "{large:?}");
    let amplified = |flash: &FlashStatistics| flash.write_amplification();
    assert!(amplified(&none) < amplified(&large) && amplified(&large) < amplified(&small));
    // Other ways to collect and to place.
    for more in [
        &["map_cache_bytes=1K", "placement=fixed", "gc_policy=choices"][..],
        &["map_cache_bytes=1K", "planes=2", "multi_plane=on", "gc_own_block=off"],
        &["map_cache_bytes=1K", "blocks_per_plane=256", "gc_policy=cost-benefit", "wear_spread=4"],
    ] {
        worn(more);
    }
}

#[test]
fn a_trim_changes_entries() {
    let mut device = small(&["map_cache_bytes=512"]);
    let capacity = device.capacity_bytes();
    device.precondition(capacity);
    closed_loop(&mut device, random(Trim, 512, capacity, 2000, 1), 4);
    let trimmed = flash(&device);
    assert!(trimmed.map_programs > 1500, "{trimmed:?}");
    // Units without a place have no entry to change.
    let mut empty = small(&["map_cache_bytes=512"]);
    closed_loop(&mut empty, random(Trim, 512, capacity, 2000, 1), 4);
    assert_eq!((flash(&empty).map_misses, flash(&empty).map_programs), (0, 0));
}

/// The map takes a part of the flash, and the settings that can't be are refused.
#[test]
fn the_map_takes_space() {
    let capacity = |cache: &str| small(&[cache]).capacity_bytes() as f64;
    // An entry of 4 bytes for 512, and blocks that are open for it.
    let left = capacity("map_cache_bytes=8") / capacity("map_cache_bytes=0");
    assert!((0.95..=1.0 - 4.0 / 516.0).contains(&left), "{left}");
    let refused = |settings: &[&str]| {
        let mut profile = merganser_device::profile::SsdProfile::preset("msr").expect("a preset");
        settings.iter().for_each(|text| profile.set(text).expect("a setting"));
        Ssd::new(&profile, 1).err().expect("refused").to_string()
    };
    assert!(refused(&["map_cache_bytes=7"]).contains("holds no entry of 8 bytes"));
    let said = refused(&["map_cache_bytes=1M", "dram_bytes=512K"]);
    assert!(said.contains("together at most dram_bytes=524288"), "{said}");
}

/// A device that wears out refuses writes, whatever the map still owes.
#[test]
fn a_worn_out_device_ends() {
    let mut device = small(&[
        "map_cache_bytes=64",
        "endurance_cycles=3",
        "channels=1",
        "planes=2",
        "pages_per_block=16",
        "over_provisioning_permille=200",
    ]);
    let capacity = device.capacity_bytes();
    let mut refused = 0;
    for (id, ask) in random(Write, 512, capacity, 40_000, 1).enumerate() {
        let Ask { kind, offset, len } = ask;
        let command =
            merganser_device::device::IoCommand { id: id as u64, kind, offset, len, buffer: None };
        device.submit(device.now(), command);
        while device.advance() {}
        refused += u64::from(device.completed().expect("it ends").result.is_err());
    }
    assert!(refused > 100, "{refused}");
}
