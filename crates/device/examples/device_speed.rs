//! How fast the simulator is: page operations of flash a second, on one core.
//!
//! ```text
//! cargo run --release -p merganser-device --example device_speed
//! ```
#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use std::time::Instant;

use merganser_device::device::{Command, Device};
use merganser_device::profile::SsdProfile;
use merganser_device::request::RequestKind;
use merganser_device::ssd::Ssd;
use merganser_random::Random;
use merganser_storage::Buffer;

fn main() {
    // First, while what others freed is not used again.
    let kept: Vec<Ssd> = SsdProfile::names().map(memory).collect();
    drop(kept);
    for (preset, kind, sequential) in [
        ("msr", RequestKind::Read, true),
        ("msr", RequestKind::Read, false),
        ("msr", RequestKind::Write, true),
        ("msr", RequestKind::Write, false),
        ("nvme", RequestKind::Read, false),
        ("nvme", RequestKind::Write, false),
        ("jasmine", RequestKind::Read, true),
    ] {
        measure(preset, kind, sequential);
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
        ssd.submit(ssd.now(), Command { id, kind, offset, len, buffer: Some(buffer) });
        while ssd.advance() {}
        while ssd.completed().is_some() {}
    }
    let full = resident_mib() - before;
    println!("{preset:8} {empty:.0} MiB empty, {full:.0} MiB with 64 MiB of data");
    ssd
}

fn measure(preset: &str, kind: RequestKind, sequential: bool) {
    let mut profile = SsdProfile::preset(preset).expect("a preset");
    if preset == "nvme" {
        profile.set("blocks_per_plane=64").expect("a smaller device");
    }
    let mut ssd = Ssd::new(&profile, 1).expect("a device");
    let len = ssd.settings().map_unit_bytes;
    let pages = (ssd.capacity_bytes() / len).min(1 << 20);
    ssd.precondition(ssd.capacity_bytes());
    let mut random = Random::new(1);
    let (start, before) = (Instant::now(), ssd.statistics());
    let count = 2_000_000;
    let (mut given, mut flying) = (0, 0);
    loop {
        while flying < 32 && given < count {
            let page = if sequential { given % pages } else { random.below(pages) };
            let command = Command { id: given, kind, offset: page * len, len, buffer: None };
            ssd.submit(ssd.now(), command);
            (given, flying) = (given + 1, flying + 1);
        }
        if !ssd.advance() {
            break;
        }
        while ssd.completed().is_some() {
            flying -= 1;
        }
    }
    let (seconds, after) = (start.elapsed().as_secs_f64(), ssd.statistics());
    let (a, b) = (after.flash.expect("flash"), before.flash.expect("flash"));
    let operations = a.page_reads + a.page_programs - b.page_reads - b.page_programs;
    println!(
        "{preset:8} {kind:?} {}: {:.2} M requests/s, {:.2} M page operations/s, {:.1} M events/s",
        if sequential { "in order" } else { "at random" },
        count as f64 / seconds / 1e6,
        operations as f64 / seconds / 1e6,
        (after.events - before.events) as f64 / seconds / 1e6,
    );
}
