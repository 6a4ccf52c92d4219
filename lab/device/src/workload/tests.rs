//! Workloads against what they are to be, and played to a disk.

use super::*;
use crate::device::Device;
use crate::hdd::{Hdd, HddProfile};
use crate::profile::SsdProfile;
use crate::request::{DeviceRequest, RequestKind, SimTime};
use crate::results::{Collector, DevicePower, EndedRequest, Fairness, Share};
use crate::ssd::Ssd;
use crate::trace;

fn workload() -> Workload {
    Workload {
        pattern: AccessPattern::Random,
        read_share: 0.7,
        sizes: Sizes::Fixed(4096),
        arrivals: Arrivals::Closed(8),
        requests: 20_000,
        start: 1 << 20,
        span_bytes: 1 << 30,
        align_bytes: 4096,
        seed: 42,
    }
}

fn all(of: &Workload) -> Vec<DeviceRequest> {
    of.requests().expect("sound").collect()
}

#[test]
fn a_seed_fixes_everything_and_another_changes_it() {
    for pattern in [AccessPattern::Random, AccessPattern::Zipf(0.99), AccessPattern::Mixed(0.5)] {
        let mut one =
            Workload { pattern, arrivals: Arrivals::Exponential(SimTime(1000)), ..workload() };
        let first = all(&one);
        assert_eq!(first, all(&one));
        one.seed = 43;
        assert_ne!(first, all(&one));
    }
    // The numbers themselves, so that another machine, or another version, is caught.
    let mut pinned = Workload {
        pattern: AccessPattern::Zipf(0.8),
        sizes: Sizes::Exponential(10_000),
        arrivals: Arrivals::Exponential(SimTime(50_000)),
        ..workload()
    };
    pinned.requests = 1000;
    let sum = all(&pinned).iter().fold(0_u64, |sum, r| {
        sum.rotate_left(7) ^ r.arrival.0 ^ r.offset.wrapping_mul(31) ^ r.len ^ (r.kind as u64)
    });
    assert_eq!(sum, PINNED);
}

const PINNED: u64 = 12_868_305_175_664_650_264;

#[test]
fn requests_are_aligned_and_inside() {
    for pattern in [
        AccessPattern::Sequential,
        AccessPattern::Strided(12_288),
        AccessPattern::Random,
        AccessPattern::Mixed(0.3),
        AccessPattern::Zipf(1.2),
    ] {
        for sizes in [
            Sizes::Fixed(8192),
            Sizes::Uniform(4096, 1 << 20),
            Sizes::Exponential(30_000),
            Sizes::Choice(vec![(4096, 1.0), (65_536, 3.0)]),
        ] {
            // An odd span, hardly larger than the largest request.
            let of = Workload { pattern, sizes, span_bytes: (1 << 20) + 4097, ..workload() };
            for request in all(&of) {
                assert!(request.offset.is_multiple_of(4096) && request.len.is_multiple_of(4096));
                assert!(request.offset >= of.start && request.len > 0, "{request:?}");
                assert!(request.offset + request.len <= of.start + of.span_bytes, "{request:?}");
            }
        }
    }
}

#[test]
fn shares_sizes_and_gaps_have_their_means() {
    let near = |found: f64, expected: f64| {
        assert!((found / expected - 1.0).abs() < 0.03, "{found} {expected}");
    };
    let mean = |of: &Workload, what: &dyn Fn(&DeviceRequest) -> f64| {
        let requests = all(of);
        requests.iter().map(what).sum::<f64>() / requests.len() as f64
    };
    let reads = |request: &DeviceRequest| f64::from(u8::from(request.kind == RequestKind::Read));
    near(mean(&workload(), &reads), 0.7);
    let sized = |sizes| Workload { sizes, align_bytes: 512, ..workload() };
    let len = |request: &DeviceRequest| request.len as f64;
    near(mean(&sized(Sizes::Uniform(512, 10_240)), &len), 5376.0);
    near(
        mean(&sized(Sizes::Choice(vec![(512, 1.0), (4096, 3.0)])), &len),
        (512.0 + 3.0 * 4096.0) / 4.0,
    );
    // Rounded up to sectors, an exponential is a geometric distribution: 512 / (1 - e^(-512/mean)).
    near(mean(&sized(Sizes::Exponential(4096)), &len), 512.0 / (1.0 - (-0.125_f64).exp()));
    for arrivals in [
        Arrivals::Every(SimTime(1000)),
        Arrivals::Uniform(SimTime(1000)),
        Arrivals::Exponential(SimTime(1000)),
    ] {
        let requests = all(&Workload { arrivals, ..workload() });
        assert!(requests.is_sorted_by_key(|request| request.arrival));
        assert_eq!(requests[0].arrival, SimTime(0));
        near(requests[19_999].arrival.0 as f64, 19_999_000.0);
    }
}

#[test]
fn patterns_go_where_they_say() {
    let offsets = |pattern, requests| {
        let of = Workload { pattern, requests, span_bytes: 10 * 4096, start: 0, ..workload() };
        all(&of).iter().map(|request| request.offset / 4096).collect::<Vec<_>>()
    };
    assert_eq!(offsets(AccessPattern::Sequential, 12), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]);
    assert_eq!(offsets(AccessPattern::Strided(8192), 5), [0, 3, 6, 9, 0]);
    let mut counts = [0; 10];
    offsets(AccessPattern::Zipf(1.0), 20_000).iter().for_each(|at| counts[*at as usize] += 1);
    assert!(counts.iter().all(|count| *count > 0), "every place is asked: {counts:?}");
    counts.sort_unstable();
    assert!(counts[9] > 9 * counts[0], "{counts:?}");
    let follows = |share| {
        let at = offsets(AccessPattern::Mixed(share), 20_000);
        at.windows(2).filter(|pair| pair[1] == (pair[0] + 1) % 10).count()
    };
    assert_eq!(follows(0.0), 19_999);
    // Half of them go anywhere, and one in ten of these by chance there too.
    assert!((10_500..11_500).contains(&follows(0.5)), "{}", follows(0.5));
}

#[test]
fn what_cannot_be_is_named() {
    let table: [(Workload, &str); 7] = [
        (Workload { read_share: 1.5, ..workload() }, "share of reads: 1.5, expected 0 to 1"),
        (Workload { read_share: f64::NAN, ..workload() }, "share of reads: NaN, expected 0 to 1"),
        (
            Workload { pattern: AccessPattern::Zipf(-1.0), ..workload() },
            "exponent of Zipf's law: -1, expected 0 to 10",
        ),
        (
            Workload { arrivals: Arrivals::Closed(0), ..workload() },
            "queue depth: 0, expected at least 1",
        ),
        (
            Workload { sizes: Sizes::Fixed(1000), ..workload() },
            "sizes: 1000 bytes, expected multiples of the alignment, above 0",
        ),
        (
            Workload { span_bytes: 4095, ..workload() },
            "a request of 4096 bytes does not fit in the 0 bytes to be asked for",
        ),
        (
            Workload { start: u64::MAX, ..workload() },
            "a request of 4096 bytes does not fit in the 1073741824 bytes to be asked for",
        ),
    ];
    for (of, sentence) in table {
        assert_eq!(of.requests().map(|_| ()).expect_err(sentence).to_string(), sentence);
    }
}

fn disk() -> Hdd {
    Hdd::new(&HddProfile::preset("cheetah").expect("a preset")).expect("a disk")
}

#[test]
fn every_request_is_served_in_both_paces() {
    for arrivals in [Arrivals::Closed(4), Arrivals::Exponential(SimTime(8_000_000))] {
        let of = Workload { arrivals, requests: 1000, ..workload() };
        let mut device = disk();
        let mut collector = Collector::new(&device);
        let requests = of.requests().expect("sound").map(Ok);
        let played = play(&mut device, requests, of.pace(), &mut collector).expect("served");
        let results = collector.finish(&device, played, &DevicePower::hdd(1.0, 1.0, "a test"));
        assert_eq!(results.reads.requests + results.writes.requests, 1000);
        assert_eq!(results.reads.bytes + results.writes.bytes, 4_096_000);
        let bins = results.timeline.read().iter().chain(results.timeline.written());
        assert_eq!(bins.sum::<u64>(), 4_096_000);
        let arm = results.utilisations()[1];
        match arrivals {
            Arrivals::Closed(_) => assert!(arm.2 > 0.99, "{arm:?}"),
            _ => assert!((0.2..0.9).contains(&arm.2), "{arm:?}"),
        }
    }
}

#[test]
fn a_refused_request_and_a_bad_line_end_the_play() {
    let text = "0.0 0 0 8 1\n1.0 0 999999999999 8 1\n";
    let options = trace::TraceOptions::default();
    let mut device = disk();
    let requests = trace::read(text.as_bytes(), &options).expect("DiskSim");
    let error = play(&mut device, requests, SubmissionPace::Open, &mut Collector::ignoring())
        .expect_err("beyond");
    let said = error.to_string();
    assert!(
        said.starts_with("request 2 (4096 bytes at byte 511999999999488): cheetah: "),
        "{said}"
    );
    let limit_bytes = Some(disk().capacity_bytes());
    let options = trace::TraceOptions { limit_bytes, ..options };
    let requests = trace::read(text.as_bytes(), &options).expect("DiskSim");
    let error = play(&mut disk(), requests, SubmissionPace::Open, &mut Collector::ignoring())
        .expect_err("beyond");
    assert!(error.to_string().starts_with("line 2, column 1: found '4096 bytes at"), "{error}");
}

/// Audit finding F12: a time near 2^64 ns once ended the process.
#[test]
fn f12_a_time_that_cannot_be_counted_on_is_refused() {
    let at = |ns: u64, pace| {
        let line = format!("# merganser trace 1\n{ns} R 0 4096\n");
        let requests = trace::read(line.as_bytes(), &trace::TraceOptions::default()).expect("ours");
        let mut ssd = Ssd::new(&SsdProfile::preset("msr").expect("a preset"), 1).expect("an SSD");
        let ssd = play(&mut ssd, requests, pace, &mut Collector::ignoring());
        let requests = trace::read(line.as_bytes(), &trace::TraceOptions::default()).expect("ours");
        let disk = play(&mut disk(), requests, pace, &mut Collector::ignoring());
        [ssd, disk].map(|played| played.map(|played| played.requests).map_err(|e| e.to_string()))
    };
    for ns in [u64::MAX, 18_446_744_073_709_551_000, (1 << 62) + 1] {
        let said = format!(
            "request 1 arrives {ns} ns after the start, expected at most 4611686018427387904"
        );
        assert_eq!(at(ns, SubmissionPace::Open), [Err(said.clone()), Err(said)]);
        // Without the times of the trace, they do not matter.
        assert_eq!(at(ns, SubmissionPace::Closed(1)), [Ok(1), Ok(1)]);
    }
    assert_eq!(at(1 << 62, SubmissionPace::Open), [Ok(1), Ok(1)]);
}

fn stream(
    workload: &Workload,
    begin: u64,
) -> RequestStream<impl Iterator<Item = Result<DeviceRequest, trace::TraceError>> + use<>> {
    let requests = workload.requests().expect("sound").map(Ok);
    RequestStream { requests, pace: workload.pace(), begin: SimTime(begin) }
}

fn small_ssd() -> Ssd {
    let mut profile = SsdProfile::preset("msr").expect("a preset");
    profile.set("blocks_per_plane=64").expect("a setting");
    let mut ssd = Ssd::new(&profile, 1).expect("an SSD");
    ssd.precondition(ssd.capacity_bytes());
    ssd
}

/// Each stream keeps its own pace, and its requests come in their order.
#[test]
fn streams_are_played_together_each_at_its_pace() {
    let span_bytes = 64 << 20;
    let closed = Workload { requests: 500, start: 0, span_bytes, ..workload() };
    let gap = SimTime(1_000_000);
    let open = Workload { arrivals: Arrivals::Every(gap), requests: 30, seed: 7, ..closed.clone() };
    let late = Workload { arrivals: Arrivals::Closed(2), requests: 40, seed: 9, ..closed.clone() };
    let begin = 5_500_000;
    let mut ssd = small_ssd();
    let mut seen: Vec<Vec<EndedRequest>> = vec![Vec::new(); 3];
    let streams = vec![stream(&closed, 0), stream(&open, 0), stream(&late, begin)];
    let played = play_streams(&mut ssd, streams, &mut |_, ended| seen[ended.stream].push(*ended));
    assert_eq!(played.expect("served").requests, 570);
    let counts: Vec<usize> = seen.iter().map(Vec::len).collect();
    assert_eq!(counts, [500, 30, 40]);
    for (of, depth) in seen.iter().zip([8, usize::MAX, 2]) {
        let mut by_number = of.clone();
        by_number.sort_by_key(|ended| ended.number);
        assert!(by_number.windows(2).all(|two| two[0].submitted <= two[1].submitted));
        for ended in of {
            let flying = |other: &&EndedRequest| {
                other.submitted <= ended.submitted && other.at > ended.submitted
            };
            assert!(of.iter().filter(flying).count() <= depth, "{ended:?}");
        }
    }
    // Arrivals count from the begin of the stream.
    for ended in &seen[1] {
        assert_eq!(ended.submitted.0, ended.number * gap.0);
    }
    let first = seen[2].iter().map(|ended| ended.submitted.0).min();
    assert_eq!(first, Some(begin));
    // Together: from the begin of the last stream until one of them has submitted all.
    let ends = |of: &[EndedRequest]| of.iter().map(|ended| ended.submitted.0).max().expect("some");
    let end = seen.iter().map(|of| ends(of)).min().expect("three");
    for ended in seen.iter().flatten() {
        let expected = (begin..=end).contains(&ended.submitted.0);
        assert!(ended.together == expected || ended.submitted.0 == end, "{ended:?} {begin} {end}");
    }
    assert!(seen.iter().all(|of| of.iter().any(|ended| ended.together)));
}

/// One stream is played as requests without streams are, event by event.
#[test]
fn a_lone_stream_is_a_play() {
    let span_bytes = 64 << 20;
    for arrivals in [Arrivals::Closed(8), Arrivals::Exponential(SimTime(50_000))] {
        let load = Workload { arrivals, requests: 3000, start: 0, span_bytes, ..workload() };
        let (mut one, mut other) = (small_ssd(), small_ssd());
        let requests = load.requests().expect("sound").map(Ok);
        let mut collector = Collector::new(&one);
        play(&mut one, requests, load.pace(), &mut collector).expect("served");
        play_streams(&mut other, vec![stream(&load, 0)], &mut |_, _| {}).expect("served");
        assert_eq!(one.statistics(), other.statistics());
    }
}

/// Equal streams slow each other down alike, and a stream does not slow itself down.
#[test]
fn equal_streams_are_slowed_down_alike() {
    let of = |seed, depth| {
        let arrivals = Arrivals::Closed(depth);
        Workload { arrivals, requests: 2000, start: 0, span_bytes: 1 << 25, seed, ..workload() }
    };
    let shares = |loads: &[Workload]| {
        let mut shares = vec![Share::default(); loads.len()];
        let streams = loads.iter().map(|load| stream(load, 0)).collect();
        play_streams(&mut small_ssd(), streams, &mut |_, ended| {
            shares[ended.stream].next_to_others(ended);
        })
        .expect("served");
        shares
    };
    let alone = |load: &Workload, share: &Share| {
        let mut alone = Share::comparing(share.compared.clone());
        play_streams(&mut small_ssd(), vec![stream(load, 0)], &mut |_, ended| alone.alone(ended))
            .expect("served");
        share.slowdown(&alone).expect("compared")
    };
    let lone = of(1, 8);
    assert_eq!(alone(&lone, &shares(std::slice::from_ref(&lone))[0]), 1.0);
    let loads = [of(1, 16), of(2, 16)];
    let both = shares(&loads);
    let slowdowns: Vec<f64> = loads.iter().zip(&both).map(|(l, s)| alone(l, s)).collect();
    let fairness = Fairness::of_slowdowns(&slowdowns).expect("two");
    assert!(slowdowns.iter().all(|slowdown| (1.4..2.2).contains(slowdown)), "{slowdowns:?}");
    assert!(fairness.least_over_greatest > 0.95 && fairness.jain > 0.999, "{fairness:?}");
    // Next to 64 in flight, one at a time suffers more.
    let loads = [of(1, 1), of(2, 64)];
    let both = shares(&loads);
    let slowdowns: Vec<f64> = loads.iter().zip(&both).map(|(l, s)| alone(l, s)).collect();
    assert!(slowdowns[0] > 2.0 * slowdowns[1], "{slowdowns:?}");
}

fn preconditioning<'a>(progress: &'a dyn Fn(u64)) -> Preconditioning<'a> {
    let bounds = Bounds::default();
    Preconditioning { bounds, seed: 1, by: None, progress, cancelled: &|| false }
}

#[test]
fn a_disk_needs_no_preconditioning() {
    let done = precondition(&mut disk(), &preconditioning(&|_| {})).expect("nothing to do");
    assert!(done.steady && done.filled_bytes == 0);
}

/// Audit finding F14: preconditioning was always uniform and told nothing of its progress.
#[test]
fn f14_a_device_is_preconditioned_by_its_workload() {
    let small = || {
        let mut profile = SsdProfile::preset("msr").expect("a preset");
        for text in ["channels=1", "planes=1", "blocks_per_plane=128"] {
            profile.set(text).expect("a parameter");
        }
        Ssd::new(&profile, 1).expect("an SSD")
    };
    let capacity = small().capacity_bytes();
    let hot = Workload {
        pattern: AccessPattern::Random,
        read_share: 0.5,
        sizes: Sizes::Fixed(4096),
        arrivals: Arrivals::Closed(1),
        requests: 10,
        start: 0,
        span_bytes: capacity / 8 / 4096 * 4096,
        align_bytes: 4096,
        seed: 3,
    };
    let run = |by| {
        let wrote = std::cell::Cell::new(0);
        let progress = |bytes| wrote.set(wrote.get() + bytes);
        let how = Preconditioning { by, ..preconditioning(&progress) };
        let mut device = small();
        let done = precondition(&mut device, &how).expect("done");
        assert_eq!(wrote.get(), done.filled_bytes + done.overwritten_bytes);
        assert!(wrote.get() <= how.bytes_max(capacity) + hot.span_bytes, "{done:?}");
        assert_eq!(done.filled_bytes, capacity);
        assert_eq!(device.statistics().read_bytes, 0);
        done
    };
    let (uniform, by) = (run(None), run(Some(&hot)));
    assert!(uniform.overwritten_bytes >= capacity);
    // An eighth of the device is overwritten a few times, and has far more room than all of it.
    assert!((hot.span_bytes..=6 * hot.span_bytes).contains(&by.overwritten_bytes), "{by:?}");
    assert!(by.write_amplification < uniform.write_amplification - 0.5, "{by:?} {uniform:?}");
    let cancelled = Preconditioning { cancelled: &|| true, ..preconditioning(&|_| {}) };
    let error = precondition(&mut small(), &cancelled).expect_err("cancelled");
    assert!(matches!(error, PreconditionError::Cancelled));
}
