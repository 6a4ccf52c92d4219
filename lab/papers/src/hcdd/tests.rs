//! Nodes of all arrangements on short traces.

use std::convert::Infallible;

use merganser_array::Migration;
use merganser_device::request::{DeviceRequest, RequestHashes, RequestKind, SimTime};

use super::*;
use crate::look_alike;

fn play(
    setup: &NodeSetup,
    requests: &[DeviceRequest],
    contents: &mut Contents,
    pace: SubmissionPace,
) -> Result<ResponseTimes, String> {
    let node = HybridNode::new(setup)?;
    let given = requests.iter().map(|request| Ok::<_, Infallible>(contents.give(request.clone())));
    node.play(given, pace).map_err(|error| error.to_string())
}

/// The dissertation's node with SSDs of 1 GB, which are filled sooner.
fn paper(arrangement: Arrangement) -> NodeSetup {
    let mut setup = NodeSetup::paper(arrangement).expect("the presets are there");
    setup.ssd.set("blocks_per_plane=64").expect("in range");
    setup.buffer_bytes = 256 << 20;
    setup
}

fn write(at_ms: u64, page: u64, content: u128) -> DeviceRequest {
    let arrival = SimTime(at_ms * 1_000_000);
    let (kind, offset, len) = (RequestKind::Write, page * 4096, 4096);
    DeviceRequest { arrival, kind, offset, len, content: Some(RequestHashes::Whole(content)) }
}

/// Four writes of two contents, far apart: the disks answer, two pages reach the SSDs.
#[test]
fn duplicates_do_not_reach_the_ssds() {
    let requests: Vec<_> = (0..4).map(|i| write(i * 100, i, u128::from(i % 2))).collect();
    let hcdd =
        play(&paper(Arrangement::Hcdd), &requests, &mut Contents::Trace, SubmissionPace::Open);
    let hcdd = hcdd.expect("served");
    let counters = hcdd.counters.expect("a volume");
    assert_eq!((counters.pages_stored, counters.pages_duplicate), (2, 2));
    assert_eq!((hcdd.writes.count(), hcdd.hashed_ns), (4, 4 * 47_548));
    // Two blocks each.
    assert_eq!(hcdd.hdd_bytes, 4 * 8192);
    assert_eq!(hcdd.flash.host_bytes, 2 * 4096 + counters.journal_bytes);
    let hybrid =
        play(&paper(Arrangement::Hybrid), &requests, &mut Contents::Trace, SubmissionPace::Open);
    let hybrid = hybrid.expect("served").counters.expect("a volume");
    assert_eq!((hybrid.pages_stored, hybrid.pages_duplicate), (4, 0));
    // A disk without a write cache: within a turn of 4 ms, a seek and the transfer.
    let mean_ms = hcdd.writes.mean() / 1e6;
    assert!((1.0..12.0).contains(&mean_ms), "{mean_ms}");
    let ssds =
        play(&paper(Arrangement::Ssds), &requests, &mut Contents::Trace, SubmissionPace::Open);
    let ssds = ssds.expect("served");
    assert_eq!((ssds.flash.host_bytes, ssds.hdd_bytes, ssds.counters), (4 * 4096, 0, None));
}

/// Every request is answered, in every arrangement, and twice the same run is twice the same result.
#[test]
fn all_arrangements_serve_a_trace() {
    let mut requests = look_alike::kernel().requests(3000).unwrap_or_default();
    requests.iter_mut().for_each(|request| request.offset %= 1 << 30);
    let reads = requests.iter().filter(|it| it.kind == RequestKind::Read).count() as u64;
    for arrangement in Arrangement::ALL {
        for pace in [SubmissionPace::Open, SubmissionPace::Closed(16)] {
            let contents = || Contents::Drawn(Duplicates::new(0.3, 1));
            let run = || play(&paper(arrangement), &requests, &mut contents(), pace);
            let measured = run().expect("served");
            let name = arrangement.name();
            assert_eq!(measured.reads.count(), reads, "{name}");
            assert_eq!(measured.writes.count(), requests.len() as u64 - reads, "{name}");
            assert!(measured.drained >= measured.elapsed && measured.mean_ms() > 0.05, "{name}");
            if let Some(counters) = measured.counters {
                let moved = counters.pages_stored + counters.pages_duplicate;
                // A page that was overwritten while it moved counts as both.
                let all = moved + counters.pages_absorbed;
                let written = counters.pages_written;
                assert!(all >= written && moved <= written, "{name}: {counters:?}");
                assert_eq!(counters.pages_written, measured.writes.count(), "{name}");
            }
            let again = run().expect("served");
            assert_eq!((again.drained, again.elapsed), (measured.drained, measured.elapsed));
        }
    }
}

/// A small buffer, and writes faster than the disks: they wait, and none is lost.
#[test]
fn writes_wait_for_a_full_buffer() {
    for migration in [Migration::Immediate, Migration::Idle, Migration::HighWater] {
        let mut setup = paper(Arrangement::Hcdd);
        (setup.buffer_bytes, setup.migration) = (8 << 20, migration);
        let requests: Vec<_> = (0..8000).map(|i| write(0, i * 7 % 5000, u128::from(i))).collect();
        let measured =
            play(&setup, &requests, &mut Contents::Trace, SubmissionPace::Open).expect("served");
        assert_eq!(measured.writes.count(), 8000);
        assert!(measured.held > 0, "{migration:?}");
    }
}

/// Requests of other shapes: several pages, parts of pages, trims, flushes; and refused ones.
#[test]
fn any_request_is_served_or_refused() {
    let kinds = [RequestKind::Write, RequestKind::Read, RequestKind::Trim, RequestKind::Flush];
    let requests: Vec<_> = (0..400_u64)
        .map(|i| DeviceRequest {
            arrival: SimTime(i * 2_000_000),
            kind: kinds[(i / 3 % 4) as usize],
            offset: i * 1536 % 100_000,
            len: 512 + i * 700 % 30_000,
            content: (i % 2 == 0).then_some(RequestHashes::Whole(u128::from(i % 5))),
        })
        .collect();
    for arrangement in Arrangement::ALL {
        let measured =
            play(&paper(arrangement), &requests, &mut Contents::Trace, SubmissionPace::Open);
        let measured = measured.expect("served");
        let all = measured.all().count() + measured.others.count();
        assert_eq!(all, 400, "{}", arrangement.name());
        let beyond = [write(0, 1 << 40, 1)];
        let refused =
            play(&paper(arrangement), &beyond, &mut Contents::Trace, SubmissionPace::Open);
        let refused = refused.expect_err("refused");
        assert!(refused.contains("request 1 (4096 bytes at byte"), "{refused}");
        let late = [DeviceRequest { arrival: SimTime(u64::MAX), ..write(0, 1, 1) }];
        assert!(
            play(&paper(arrangement), &late, &mut Contents::Trace, SubmissionPace::Open).is_err()
        );
    }
}
