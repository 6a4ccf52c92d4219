//! The disk against closed forms, its data against a vector, every setting against its effect.

use merganser_random::Random;
use merganser_storage::Buffer;
use proptest::prelude::*;

use super::*;
use crate::results::{Collector, DevicePower, DeviceResults};
use crate::workload::{AccessPattern, Arrivals, Sizes, Workload, play};

fn profile(name: &str, changes: &[&str]) -> HddProfile {
    let mut profile = HddProfile::preset(name).expect("a preset");
    for change in changes {
        profile.set(change).expect(change);
    }
    profile
}

fn disk(name: &str, changes: &[&str]) -> Hdd {
    Hdd::new(&profile(name, changes)).expect("a disk")
}

/// Random reads of one sector at a time, all over the disk.
fn workload(device: &Hdd) -> Workload {
    Workload {
        pattern: AccessPattern::Random,
        read_share: 1.0,
        sizes: Sizes::Fixed(512),
        arrivals: Arrivals::Closed(1),
        requests: 20_000,
        start: 0,
        span_bytes: device.capacity_bytes(),
        align_bytes: 512,
        seed: 1,
    }
}

fn run(device: &mut Hdd, workload: &Workload) -> DeviceResults {
    let mut collector = Collector::new(device);
    let requests = workload.requests().expect("sound").map(Ok);
    let played = play(device, requests, workload.pace(), &mut collector).expect("served");
    assert_eq!(played.requests, workload.requests);
    collector.finish(device, played, &DevicePower::hdd(1.0, 1.0, "a test"))
}

fn assert_near(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() < share, "{found}, expected {expected}");
}

/// A disk whose arm takes almost no time, with equal zones.
const NO_SEEKS: [&str; 9] = [
    "seek_track_read_ns=1",
    "seek_mean_read_ns=1",
    "seek_full_read_ns=1",
    "seek_track_write_ns=1",
    "seek_mean_write_ns=1",
    "seek_full_write_ns=1",
    "head_switch_ns=0",
    "sectors_inner=1115",
    "read_ahead=off",
];

#[test]
fn the_mean_turn_is_half_a_revolution() {
    let mut device = disk("cheetah", &NO_SEEKS);
    let mean = run(&mut device, &workload(&disk("cheetah", &NO_SEEKS))).reads.latency.mean();
    let sector_ns = 4e6 / 1115.0;
    let link_ns = 512.0 / 0.3;
    assert_near(mean, 100_000.0 + 2_000_000.0 + sector_ns + link_ns, 0.01);
}

#[test]
fn the_mean_seek_is_the_data_sheets() {
    for (share, seek_ns) in [(1.0, 3_500_000.0), (0.0, 4_000_000.0)] {
        let changes = ["sectors_inner=1115", "read_ahead=off"];
        let mut device = disk("cheetah", &changes);
        let mut random = workload(&device);
        random.read_share = share;
        let results = run(&mut device, &random);
        let mean = results.reads.with(&results.writes).latency.mean();
        let rest = 100_000.0 + 2_000_000.0 + 4e6 / 1115.0 + 512.0 / 0.3;
        assert_near(mean, rest + seek_ns, 0.01);
    }
}

#[test]
fn sequential_rates_are_those_of_the_zones() {
    for (name, outer, inner) in
        [("cheetah", 125e6, 73e6), ("barracuda", 125e6, 60e6), ("wd5000aakx", 126e6, 60e6)]
    {
        for depth in [1, 4] {
            let mut device = disk(name, &[]);
            let span_bytes = 200 << 20;
            let end = device.capacity_bytes() - span_bytes;
            let mut reads = Workload {
                pattern: AccessPattern::Sequential,
                sizes: Sizes::Fixed(256 << 10),
                arrivals: Arrivals::Closed(depth),
                requests: 800,
                span_bytes,
                ..workload(&device)
            };
            let at_start = run(&mut device, &reads);
            assert_near(at_start.rate(&at_start.reads), outer, 0.01);
            reads.start = end / 512 * 512;
            let at_end = run(&mut device, &reads);
            assert_near(at_end.rate(&at_end.reads), inner, 0.01);
        }
    }
}

#[test]
fn every_preset_gives_the_source_of_each_parameter() {
    for name in HddProfile::names() {
        let profile = profile(name, &[]);
        for parameter in hdd_parameters() {
            // A disk has no defaults.
            let source = profile.source(parameter.name);
            let said = crate::profile::is_source(source);
            assert!(said, "{name}: {} has no source: {source:?}", parameter.name);
        }
    }
}

#[test]
fn capacities_are_the_data_sheets() {
    assert_near(disk("cheetah", &[]).capacity_bytes() as f64, 146.8e9, 0.001);
    assert_near(disk("barracuda", &[]).capacity_bytes() as f64, 500.1e9, 0.001);
    let sectors = 976_773_168.0 * 512.0;
    assert_near(disk("wd5000aakx", &[]).capacity_bytes() as f64, sectors, 0.0001);
}

#[test]
fn a_queue_that_looks_ahead_serves_more() {
    let rate = |policy: &str, depth| {
        let mut device = disk("cheetah", &[&format!("queue_policy={policy}")]);
        let mut random = workload(&device);
        random.arrivals = Arrivals::Closed(depth);
        random.requests = 5000;
        let results = run(&mut device, &random);
        results.requests_per_second(&results.reads)
    };
    let (alone, fifo, sstf, sptf) =
        (rate("sptf", 1), rate("fifo", 32), rate("sstf", 32), rate("sptf", 32));
    // Only the firmware's time is hidden behind the arm's.
    assert!((1.0..1.05).contains(&(fifo / alone)), "{fifo} {alone}");
    assert!(sstf > 1.3 * fifo && sptf > 1.2 * sstf, "{fifo} {sstf} {sptf}");
}

#[test]
fn places_in_order_take_less_time_than_out_of_order() {
    let mut device = disk("cheetah", &["queue_policy=fifo"]);
    let mut random = workload(&device);
    random.requests = 5000;
    let shuffled = run(&mut device, &random).elapsed_ns;
    let mut sorted: Vec<_> = random.requests().expect("sound").collect();
    sorted.sort_by_key(|request| request.offset);
    let mut device = disk("cheetah", &["queue_policy=fifo"]);
    let mut collector = Collector::new(&device);
    let requests = sorted.into_iter().map(Ok);
    let played = play(&mut device, requests, random.pace(), &mut collector).expect("served");
    // Seeks of 16 cylinders, or to another head, instead of a third of the stroke: the turn
    // remains.
    let mean_ns = played.end.0 as f64 / 5000.0;
    assert!(mean_ns < 100_000.0 + 2_000_000.0 + 400_000.0, "{mean_ns}");
    assert!(shuffled as f64 / played.end.0 as f64 > 2.0);
}

#[test]
fn writing_in_order_without_a_cache_costs_a_turn_each() {
    let rate = |name, changes: &[&str], depth| {
        let mut device = disk(name, changes);
        let writes = Workload {
            pattern: AccessPattern::Sequential,
            read_share: 0.0,
            sizes: Sizes::Fixed(64 << 10),
            arrivals: Arrivals::Closed(depth),
            requests: 3000,
            ..workload(&device)
        };
        let results = run(&mut device, &writes);
        results.rate(&results.writes)
    };
    // 128 sectors of 1,115 pass, then the rest of the turn and a bit more must.
    let alone = rate("cheetah", &[], 1);
    assert!(alone < 65_536.0 / 4e-3, "{alone}");
    assert_near(rate("cheetah", &[], 8), 125e6, 0.02);
    assert_near(rate("cheetah", &["write_cache=on"], 1), 125e6, 0.1);
    assert_near(rate("barracuda", &[], 1), 125e6, 0.1);
}

fn ask(
    device: &mut Hdd,
    id: u64,
    kind: RequestKind,
    offset: u64,
    buffer: Option<Buffer>,
    len: u64,
) {
    let at = device.now();
    device.submit(at, IoCommand { id, kind, offset, len, buffer });
}

fn finish(device: &mut Hdd) -> Vec<CompletedCommand> {
    while device.advance() {}
    std::iter::from_fn(|| device.completed()).collect()
}

#[test]
fn a_flush_waits_for_the_platters() {
    let mut device = disk("barracuda", &[]);
    ask(&mut device, 1, RequestKind::Write, 100 << 30, None, 4096);
    ask(&mut device, 2, RequestKind::Flush, 0, None, 0);
    let done = finish(&mut device);
    assert_eq!(done.iter().map(|done| done.id).collect::<Vec<_>>(), [1, 2]);
    assert!(done[0].at.0 < 200_000 && done[1].at.0 > 1_000_000, "{done:?}");
    ask(&mut device, 3, RequestKind::Flush, 0, None, 0);
    assert_eq!(finish(&mut device)[0].at.0 - done[1].at.0, 150_000, "nothing is dirty");
}

#[test]
fn what_cannot_be_is_refused() {
    let mut device = disk("cheetah", &[]);
    let end = device.capacity_bytes();
    ask(&mut device, 1, RequestKind::Read, end - 512, None, 1024);
    ask(&mut device, 2, RequestKind::Read, u64::MAX, None, 1024);
    ask(&mut device, 3, RequestKind::Write, 0, None, 0);
    ask(&mut device, 4, RequestKind::Read, end - 512, None, 512);
    let done = finish(&mut device);
    let results: Vec<_> =
        done.iter().map(|done| done.result.as_ref().map_err(ToString::to_string)).collect();
    let first = format!("cheetah: 1024 bytes at byte {}, but the device has {end}", end - 512);
    assert_eq!(results[0], Err(first));
    assert!(results[1].is_err() && results[2].is_err());
    assert_eq!(results[3], Ok(&512));
    let mut wrong = HddProfile::preset("cheetah").expect("a preset");
    let table = [
        (
            "skew_ns=300us",
            "skew_ns=300000 is at least 400000, the longest of head_switch_ns, seek_track_read_ns and seek_track_write_ns",
        ),
        (
            "seek_mean_read_ns=8ms",
            "seek_mean_read_ns=8000000 is not from 2600000 to 4040000, as seek_track_read_ns=200000 and seek_full_read_ns=7400000 need it",
        ),
        (
            "seek_full_write_ns=399us",
            "seek_full_write_ns=399000 is at least seek_track_write_ns=400000",
        ),
    ];
    for (change, sentence) in table {
        let mut changed = wrong.clone();
        changed.set(change).expect("in range");
        assert_eq!(Hdd::new(&changed).map(|_| ()).expect_err(change).to_string(), sentence);
    }
    // The two numbers are the least and the greatest that are accepted.
    for (mean, accepted) in
        [(2_599_999, false), (2_600_000, true), (4_040_000, true), (4_040_001, false)]
    {
        let mut changed = wrong.clone();
        changed.set(&format!("seek_mean_read_ns={mean}")).expect("in range");
        assert_eq!(changed.settings.check().is_ok(), accepted, "{mean}");
    }
    let said = wrong.set("rpm=fast").expect_err("no number").to_string();
    assert_eq!(said, "rpm=fast: a value in count from 1000 to 100000");
    let said = wrong.set("speed=1").expect_err("unknown").to_string();
    assert!(said.starts_with("speed is no parameter of a device"), "{said}");
}

/// A mix of all kinds of requests, so that every setting matters.
fn everything(profile: &HddProfile) -> (u64, u64) {
    let mut device = Hdd::new(profile).expect("a disk");
    let mut phases = Vec::new();
    let base = Workload { requests: 300, ..workload(&device) };
    for (pattern, read_share, depth, bytes, span_bytes) in [
        (AccessPattern::Random, 0.7, 40, 4096, 40 << 30),
        (AccessPattern::Random, 1.0, 1, 4096, 32 << 20),
        (AccessPattern::Sequential, 1.0, 1, 65_536, 40 << 30),
        (AccessPattern::Mixed(0.2), 0.5, 8, 16_384, 40 << 30),
        (AccessPattern::Sequential, 0.0, 4, 1 << 20, 40 << 30),
    ] {
        let sizes = Sizes::Fixed(bytes);
        let arrivals = Arrivals::Closed(depth);
        phases.push(Workload { pattern, read_share, sizes, arrivals, span_bytes, ..base.clone() });
    }
    // Two readers in turn, over all of the disk.
    let far = device.capacity_bytes() - (8 << 30);
    let mut total = 0;
    for phase in &phases {
        total += run(&mut device, phase).reads.latency.mean() as u64;
    }
    for step in 0..100 {
        for start in [0, far, far / 2] {
            ask(&mut device, step, RequestKind::Read, start + step * 8192, None, 8192);
            finish(&mut device);
        }
    }
    (device.now().0, total)
}

#[test]
fn every_setting_has_an_effect() {
    for name in HddProfile::names() {
        let plain = profile(name, &[]);
        let before = everything(&plain);
        assert_eq!(before, everything(&plain), "the same again");
        for parameter in hdd_parameters() {
            let value = parameter.value(&plain.settings);
            let other = match (parameter.name, parameter.unit) {
                (_, crate::profile::ParameterUnit::Switch) => 1 - value,
                ("queue_policy", _) => 0,
                ("queue_depth", _) => 2,
                ("queue_patience_ns", _) => 20_000_000,
                ("buffer_bytes", _) => 1 << 20,
                ("buffer_segments", _) => 1,
                ("skew_ns", _) => value + 300_000,
                // Longer than the seek to the next track, which is at the same time.
                ("head_switch_ns", _) => plain.settings.skew_ns,
                ("zones", _) => 2,
                _ => value + (value / 10).max(1),
            };
            let mut changed = plain.clone();
            if parameter.name == "head_switch_ns" && other == value {
                changed.set(&format!("skew_ns={}", value + 300_000)).expect("a setting");
                let wider = everything(&changed);
                changed.set(&format!("head_switch_ns={}", value + 300_000)).expect("a setting");
                assert_ne!(wider, everything(&changed), "{name}: head_switch_ns");
                continue;
            }
            parameter.assign(&mut changed.settings, other);
            if parameter.name.starts_with("seek_track") {
                changed.settings.skew_ns = changed.settings.skew_ns.max(other);
            }
            assert_ne!(before, everything(&changed), "{name}: {}", parameter.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_read_is_what_was_written(
        cached: bool,
        ops in prop::collection::vec((0..4_u8, 0..200_000_u64, 1..60_000_usize, any::<u8>(), any::<bool>()), 1..40),
    ) {
        let cache = if cached { "write_cache=on" } else { "write_cache=off" };
        let mut device = disk("cheetah", &[cache, "buffer_bytes=64K", "buffer_segments=2"]);
        let mut model = vec![0_u8; 300_000];
        let mut given = 0;
        let mut served = 0;
        for (id, (op, offset, len, byte, wait)) in ops.into_iter().enumerate() {
            let (id, len64) = (id as u64, len as u64);
            // An operation may overlap one in flight only when that has ended.
            if wait {
                served += finish(&mut device).len();
            }
            match op {
                0 | 1 => {
                    served += finish(&mut device).len();
                    let mut buffer = Buffer::new(len);
                    buffer.fill(byte);
                    model[offset as usize..offset as usize + len].fill(byte);
                    ask(&mut device, id, RequestKind::Write, offset, Some(buffer), len64);
                }
                2 => {
                    served += finish(&mut device).len();
                    ask(&mut device, id, RequestKind::Read, offset, Some(Buffer::new(len)), len64);
                    let done = finish(&mut device);
                    served += done.len();
                    let buffer = done[0].buffer.as_ref().expect("its buffer");
                    prop_assert_eq!(&buffer[..], &model[offset as usize..offset as usize + len]);
                }
                _ => ask(&mut device, id, RequestKind::Flush, 0, None, 0),
            }
            given += 1;
        }
        served += finish(&mut device).len();
        prop_assert_eq!(served, given);
        prop_assert_eq!(device.dirty_bytes, 0);
    }
}

/// Audit finding F4: a read reserved the link from its start to its end, seek and turn included.
#[test]
fn f4_a_cached_write_next_to_a_read_takes_the_link_alone() {
    let mut disk = disk("barracuda", &[]);
    let settings = disk.settings.clone();
    let far = disk.capacity_bytes() / 2;
    let command = |id, kind, offset| IoCommand { id, kind, offset, len: 4096, buffer: None };
    disk.submit(SimTime(0), command(1, RequestKind::Read, far));
    // The arm is on its way to the read.
    let at = SimTime(2_000_000);
    while disk.next_at().is_some_and(|next| next < at) {
        disk.advance();
    }
    disk.submit(at, command(2, RequestKind::Write, 0));
    while disk.advance() {}
    let done: Vec<CompletedCommand> = std::iter::from_fn(|| disk.completed()).collect();
    let write = done.iter().find(|done| done.id == 2).expect("ended");
    let link_ns = (4096 * 1_000_000_000_u64).div_ceil(settings.link_bytes_per_second);
    assert_eq!(write.at.0, at.0 + settings.command_ns + link_ns);
    let read = done.iter().find(|done| done.id == 1).expect("ended");
    assert!(read.at > write.at, "the read needs a seek");
}

/// A read at the end of the disk among writes at its start that never end: the nearest request is always
/// a write. Returns the nanoseconds that the read takes.
fn far_read_among_near_writes(patience: &str) -> u64 {
    let mut disk = disk("barracuda", &["write_cache=off", "read_ahead=off", patience]);
    let mut random = Random::new(5);
    let mut write = |disk: &mut Hdd, id| {
        let offset = random.below(8192) * 4096;
        ask(disk, id, RequestKind::Write, offset, None, 4096);
    };
    // The arm takes the first write. Then the read is the oldest request that waits.
    write(&mut disk, 1);
    let far = disk.capacity_bytes() / 4096 * 4096 - 4096;
    ask(&mut disk, 0, RequestKind::Read, far, None, 4096);
    (2..=30).for_each(|id| write(&mut disk, id));
    let mut next = 31;
    loop {
        assert!(disk.advance(), "the read was not served");
        while let Some(done) = disk.completed() {
            if done.id == 0 {
                return done.at.0 - done.submitted.0;
            }
            // So many that they end after the longer patience.
            if next < 2000 {
                write(&mut disk, next);
                next += 1;
            }
        }
    }
}

/// A request that no other one lets pass is served when its patience has ended, after the job of that moment.
#[test]
fn a_far_read_among_near_writes_is_served_within_its_patience_and_a_job() {
    let ms = 1_000_000;
    let settings = profile("barracuda", &[]).settings;
    // To the next track or a few farther, a turn, and the sectors; then the read's own command, seek and turn.
    let job = 2 * settings.seek_track_write_ns + settings.turn_ns() + ms;
    let own = settings.command_ns + settings.seek_full_read_ns + settings.turn_ns() + ms;
    for patience_ms in [50, 200] {
        let took = far_read_among_near_writes(&format!("queue_patience_ns={patience_ms}ms"));
        let most = patience_ms * ms + job + own;
        assert!((patience_ms * ms..most).contains(&took), "{took} ns, the most is {most}");
    }
    // Without patience, it waits for all writes.
    let starved = far_read_among_near_writes("queue_patience_ns=3600s");
    assert!(starved > 1000 * ms, "{starved} ns");
}

/// The other half of F4: the last sector of a read has the link for itself.
#[test]
fn f4_the_link_is_reserved_to_the_end_of_a_read() {
    let command = |id, kind, offset| IoCommand { id, kind, offset, len: 4096, buffer: None };
    let read = |disk: &mut Hdd| {
        let far = disk.capacity_bytes() / 2;
        disk.submit(SimTime(0), command(1, RequestKind::Read, far));
    };
    let mut alone = disk("barracuda", &[]);
    let settings = alone.settings.clone();
    read(&mut alone);
    while alone.advance() {}
    let end = alone.completed().expect("it ends").at;
    let link_ns = |len: u64| (len * 1_000_000_000).div_ceil(settings.link_bytes_per_second);
    // The disk understands a write while that sector crosses.
    let at = SimTime(end.0 - link_ns(512) / 2 - settings.command_ns);
    let mut disk = disk("barracuda", &[]);
    read(&mut disk);
    while disk.next_at().is_some_and(|next| next < at) {
        disk.advance();
    }
    disk.submit(at, command(2, RequestKind::Write, 0));
    while disk.advance() {}
    let done: Vec<CompletedCommand> = std::iter::from_fn(|| disk.completed()).collect();
    let write = done.iter().find(|done| done.id == 2).expect("ended");
    assert_eq!(write.at.0, end.0 + link_ns(4096), "the write waits for the read's last sector");
}

/// Audit finding F5: with a full write cache, all writes in it were past the patience, so the arm
/// served them in the order of their arrival. A cache made the disk slower.
#[test]
fn f5_a_full_write_cache_serves_more_writes_than_a_queue_alone() {
    let rate = |cache: &str| {
        let mut disk = disk("barracuda", &[cache, "buffer_bytes=4M"]);
        let workload = Workload {
            read_share: 0.0,
            sizes: Sizes::Fixed(4096),
            arrivals: Arrivals::Closed(32),
            requests: 6000,
            align_bytes: 4096,
            ..workload(&disk)
        };
        let results = run(&mut disk, &workload);
        // Without the writes that the empty cache took at once.
        let cached = if cache == "write_cache=on" { 1024 } else { 0 };
        (workload.requests - cached) as f64 / results.seconds()
    };
    let (with, without) = (rate("write_cache=on"), rate("write_cache=off"));
    assert!(with > 1.5 * without, "{with:.0} and {without:.0} writes per second");
}
