//! How fast the simulator is: page operations of flash per second of processor time, on one core. Requests
//! are drawn, played and counted as by `merganser simulate run`.
//!
//! ```text
//! cargo run --release -p merganser-device --example device_speed [DEVICE...] [LOAD...]
//! ```
//!
//! Words that are no device choose the loads whose names contain one of them.
#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use std::time::Duration;

use merganser_device::device::{Device, DeviceStatistics, FlashStatistics, IoCommand};
use merganser_device::profile::SsdProfile;
use merganser_device::request::RequestKind;
use merganser_device::results::Collector;
use merganser_device::ssd::Ssd;
use merganser_device::workload::{AccessPattern, Arrivals, Sizes, Workload, play};
use merganser_storage::Buffer;
use rustix::time::{ClockId, clock_gettime};

const REQUESTS: u64 = 1_000_000;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (mut names, loads): (Vec<&str>, Vec<&str>) =
        words.iter().map(String::as_str).partition(|word| SsdProfile::preset(word).is_ok());
    if names.is_empty() {
        names = vec!["msr", "jasmine", "830", "nvme"];
    }
    // First, while what others freed is not used again.
    let kept: Vec<Ssd> = names.iter().map(|name| memory(name)).collect();
    drop(kept);
    for name in names {
        speeds(name, &loads);
    }
}

/// Resident memory of this process, in MiB, where the system says.
fn resident_mib() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|field| field.parse().ok());
    pages.unwrap_or(0.0) * 4096.0 / f64::from(1 << 20)
}

/// The memory of a device: empty, and with 64 MiB of data.
fn memory(preset: &str) -> Ssd {
    let profile = SsdProfile::preset(preset).expect("a preset");
    let before = resident_mib();
    let mut ssd = Ssd::new(&profile, 1).expect("a device");
    let empty = resident_mib() - before;
    for id in 0..64 {
        let mut buffer = Buffer::new(1 << 20);
        buffer.fill(id as u8);
        let (kind, offset, len) = (RequestKind::Write, id << 20, 1 << 20);
        ssd.submit(ssd.now(), IoCommand { id, kind, offset, len, buffer: Some(buffer) });
        while ssd.advance() {}
        while ssd.completed().is_some() {}
    }
    let full = resident_mib() - before;
    println!("{preset:8} {empty:.0} MiB empty, {full:.0} MiB with 64 MiB of data");
    ssd
}

/// The processor time of this process.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Reads and writes of one preset, with a full device.
fn speeds(preset: &str, loads: &[&str]) {
    let mut profile = SsdProfile::preset(preset).expect("a preset");
    if preset == "nvme" {
        profile.set("blocks_per_plane=1024").expect("an eighth of the device");
    }
    let mut ssd = Ssd::new(&profile, 1).expect("a device");
    let unit = ssd.settings().map_unit_bytes;
    let before = processor_time();
    ssd.precondition(ssd.capacity_bytes());
    let took = (processor_time() - before).as_secs_f64();
    let units = ssd.capacity_bytes() / unit;
    println!("{preset:8} filled: {:.2} M units/s", units as f64 / took / 1e6);
    for (told, pattern, read_share, bytes) in [
        ("reads in order, a unit each", AccessPattern::Sequential, 1.0, unit),
        ("reads at random, 4 KiB", AccessPattern::Random, 1.0, 4096),
        ("writes in order, a unit each", AccessPattern::Sequential, 0.0, unit),
        ("writes at random, 4 KiB", AccessPattern::Random, 0.0, 4096),
    ] {
        if !loads.is_empty() && !loads.iter().any(|load| told.contains(load)) {
            continue;
        }
        if (pattern, read_share) == (AccessPattern::Random, 0.0) {
            use_up(&mut ssd);
        }
        let load = workload(&ssd, pattern, read_share, bytes);
        measure(&mut ssd, told, &load);
    }
}

/// Overwrites at random until collection moves pages.
fn use_up(ssd: &mut Ssd) {
    for seed in 0.. {
        let requests = REQUESTS / 10;
        let some = Workload { requests, seed, ..workload(ssd, AccessPattern::Random, 0.0, 4096) };
        let requests = some.requests().expect("a workload").map(Ok);
        play(ssd, requests, some.pace(), &mut Collector::ignoring()).expect("they fit the device");
        if flash(&ssd.statistics()).moved_pages > 0 {
            return;
        }
    }
}

/// 32 requests in flight over the whole device.
fn workload(ssd: &Ssd, pattern: AccessPattern, read_share: f64, bytes: u64) -> Workload {
    Workload {
        pattern,
        read_share,
        sizes: Sizes::Fixed(bytes),
        arrivals: Arrivals::Closed(32),
        requests: REQUESTS,
        start: 0,
        span_bytes: ssd.capacity_bytes(),
        align_bytes: bytes,
        seed: 1000,
    }
}

fn flash(statistics: &DeviceStatistics) -> FlashStatistics {
    statistics.flash.expect("an SSD")
}

fn measure(ssd: &mut Ssd, told: &str, of: &Workload) {
    let (before, counted) = (processor_time(), ssd.statistics());
    let mut collector = Collector::new(ssd);
    let requests = of.requests().expect("a workload").map(Ok);
    play(ssd, requests, of.pace(), &mut collector).expect("they fit the device");
    let seconds = (processor_time() - before).as_secs_f64();
    let now = ssd.statistics();
    let (a, b) = (flash(&now), flash(&counted));
    let operations = (a.page_reads + a.page_programs - b.page_reads - b.page_programs) as f64;
    println!(
        "{:8} {told:28} {:5.2} M page operations/s, {:5.2} M requests/s, {:5.1} M events/s, digest {:016x}",
        ssd.name(),
        operations / seconds / 1e6,
        of.requests as f64 / seconds / 1e6,
        (now.events - counted.events) as f64 / seconds / 1e6,
        now.digest,
    );
}
