//! Views over the network read as the sorted file does.

use std::fs::{self, File, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use arrow_flight::FlightDescriptor;
use merganser_flight::client::NodeClient;
use merganser_flight::wire::{GetTicket, KeyRange, ViewTicket};
use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;

use crate::harness::{LINES, node, node_with, rows};

fn all(view: &str) -> ViewTicket {
    ViewTicket { view: view.to_owned(), ..ViewTicket::default() }
}

fn records(client: &mut NodeClient, ticket: ViewTicket) -> Vec<Vec<u8>> {
    let rows = rows(client, GetTicket::View(ticket)).expect("a view");
    rows.into_iter().map(|(record, _)| record).collect()
}

#[test]
fn parts_of_a_view_are_those_of_the_sorted_file() {
    let node = node();
    let lines: Vec<String> =
        (0..100_000_u64).map(|i| format!("{:08x}", i * 2_654_435_761 % (1 << 32))).collect();
    node.sort("v.view", (lines.join("\n") + "\n").as_bytes(), OrderSpec::new(LINES));
    let mut sorted = lines;
    sorted.sort();
    let expected: Vec<Vec<u8>> =
        sorted.iter().map(|line| format!("{line}\n").into_bytes()).collect();
    let mut client = node.client();
    assert_eq!(records(&mut client, all("v.view")), expected);
    for (start, end) in
        [(0, Some(1)), (99_999, None), (500, Some(70_000)), (7, Some(7)), (100_000, None)]
    {
        let part =
            records(&mut client, ViewTicket { records: Some((start, end)), ..all("v.view") });
        let last = end.unwrap_or(u64::MAX).min(100_000);
        let first = start.min(last);
        assert_eq!(part, expected[first as usize..last as usize], "{start}..{end:?}");
    }
    let whole = expected.concat();
    for (start, end) in
        [(0, Some(5)), (13, Some(400_000)), (899_990, Some(1 << 40)), (900_000, None), (9, Some(9))]
    {
        let part = records(&mut client, ViewTicket { bytes: Some((start, end)), ..all("v.view") })
            .concat();
        let last = end.unwrap_or(u64::MAX).max(start).min(900_000);
        let first = start.min(last);
        assert_eq!(part, whole[first as usize..last as usize], "{start}..{end:?}");
    }
    let keys = |from: &str, to: &str| {
        Some(KeyRange { from: Some(from.to_owned()), to: Some(to.to_owned()) })
    };
    for (wrong, told) in [
        (ViewTicket { records: Some((100_001, None)), ..all("v.view") }, "the view has 100000"),
        (ViewTicket { bytes: Some((900_001, None)), ..all("v.view") }, "the view has 900000"),
        (ViewTicket { bytes: Some((9, Some(3))), ..all("v.view") }, "ends before it begins"),
        (ViewTicket { keys: keys("5", "4"), ..all("v.view") }, "comes before"),
    ] {
        let refused = rows(&mut client, GetTicket::View(wrong)).expect_err(told).to_string();
        assert!(refused.contains(told), "{refused}");
    }
    let keys = KeyRange { from: Some("4".to_owned()), to: Some(r"\x35".to_owned()) };
    let part = records(&mut client, ViewTicket { keys: Some(keys), ..all("v.view") });
    let expected: Vec<_> = expected.into_iter().filter(|line| line[0] == b'4').collect();
    assert_eq!(part, expected);

    let info = client.info(FlightDescriptor::new_path(vec!["v.view".to_owned()])).expect("a view");
    assert_eq!((info.total_records, info.total_bytes, info.endpoint.len()), (100_000, 900_000, 1));
}

#[test]
fn every_format_is_cut_into_its_records() {
    let node = node();
    let mut client = node.client();
    let csv = Format::csv_rows(b',', true);
    node.sort("csv.view", b"name,n\nb,\"two\nlines\"\na,1\n", OrderSpec::new(csv));
    let rows = records(&mut client, all("csv.view"));
    assert_eq!(rows, [&b"name,n\n"[..], b"a,1\n", b"b,\"two\nlines\"\n"]);
    let info =
        client.info(FlightDescriptor::new_path(vec!["csv.view".to_owned()])).expect("a view");
    assert_eq!((info.total_records, info.total_bytes), (3, 25), "rows of the stream");
    let rows = records(&mut client, ViewTicket { records: Some((0, None)), ..all("csv.view") });
    assert_eq!(rows.len(), 2, "without the header");

    node.sort("fixed.view", b"cc1aa2bb3", OrderSpec::new(Format::Fixed { bytes: 3 }));
    assert_eq!(records(&mut client, all("fixed.view")), [b"aa2", b"bb3", b"cc1"]);

    let keyed = |key: &[u8], value: &[u8]| {
        let lens = [(key.len() as u32).to_le_bytes(), (value.len() as u32).to_le_bytes()].concat();
        [&lens, key, value].concat()
    };
    let (b, a) = (keyed(b"b", b""), keyed(b"a", b"long value"));
    node.sort("keyed.view", &[&b[..], &a].concat(), OrderSpec::new(Format::Keyed));
    assert_eq!(records(&mut client, all("keyed.view")), [a, b]);

    let fasta = b">b\nAC\nGT\n>a x\n\n>c";
    node.sort("fasta.view", fasta, OrderSpec::new(Format::Fasta));
    let expected = [&b">a x\n\n"[..], b">b\nAC\nGT\n", b">c\n"];
    assert_eq!(records(&mut client, all("fasta.view")), expected);
}

#[test]
fn long_records_cross_and_longer_ones_are_refused() {
    let node = node();
    let mut client = node.client();
    let long = |len: usize| format!("{}\n", "x".repeat(len - 1)).into_bytes();
    let lines = [long(2 << 20), b"y\n".to_vec(), long(3000)].concat();
    node.sort("long.view", &lines, OrderSpec::new(LINES));
    let lens: Vec<_> = records(&mut client, all("long.view")).iter().map(Vec::len).collect();
    assert_eq!(lens, [3000, 2 << 20, 2]);
    node.sort("longer.view", &[long(5 << 20), b"y\n".to_vec()].concat(), OrderSpec::new(LINES));
    let refused =
        rows(&mut client, GetTicket::View(all("longer.view"))).expect_err("too long").to_string();
    assert!(refused.contains("ask for bytes"), "{refused}");
    let bytes = ViewTicket { bytes: Some((0, None)), ..all("longer.view") };
    assert_eq!(records(&mut client, bytes).concat().len(), (5 << 20) + 2);
}

#[test]
fn what_is_no_view_is_said_before_the_stream() {
    let node = node();
    node.write("file", "x");
    fs::create_dir(node.dir.path().join("data/empty.view")).expect("made");
    std::os::unix::fs::symlink("empty.view", node.dir.path().join("data/link.view")).expect("made");
    let mut client = node.client();
    for (path, told) in [
        ("empty.view", "empty.view: it is not a view"),
        ("none.view", "none.view: there is no such file"),
        ("file", "file: on the way to it"),
        ("link.view", "link.view: on the way to it is a link"),
        ("../data/empty.view", "no .."),
    ] {
        let refused = rows(&mut client, GetTicket::View(all(path))).expect_err(path).to_string();
        assert!(refused.contains(told), "{refused}");
        let path = path.split('/').map(str::to_owned).collect();
        let refused = client.info(FlightDescriptor::new_path(path)).expect_err("none").to_string();
        assert!(refused.contains(told), "{refused}");
    }
}

#[test]
fn a_view_needs_no_more_than_the_servers_memory() {
    let node = node_with(|options| options.sessions.memory_bytes = 24 << 20);
    let lines: String = (0..50_000).map(|i| format!("{:08}\n", i * 7919 % 50_000)).collect();
    node.sort("v.view", lines.as_bytes(), OrderSpec::new(LINES));
    assert_eq!(records(&mut node.client(), all("v.view")).len(), 50_000);
}

/// A command that consumes a view locks its folder, and gives its blocks back.
#[test]
fn a_view_that_is_read_can_not_be_consumed_and_one_that_is_consumed_not_read() {
    let node = node();
    let lines: String =
        (0..1_000_000_u64).map(|i| format!("{:09}\n", i * 7919 % 1_000_000)).collect();
    node.sort("v.view", lines.as_bytes(), OrderSpec::new(LINES));
    let folder = File::open(node.dir.path().join("data/v.view")).expect("there");
    let mut client = node.client();
    let mut taken = client.rows(GetTicket::View(all("v.view")));
    assert!(taken.advance().expect("a first row"));
    assert!(matches!(folder.try_lock(), Err(TryLockError::WouldBlock)), "it is read");
    drop(taken);
    drop(client);
    let until = Instant::now() + Duration::from_secs(30);
    while folder.try_lock().is_err() {
        assert!(Instant::now() < until, "a reader that is gone does not keep it");
        thread::sleep(Duration::from_millis(20));
    }
    let mut client = node.client();
    let mut refused =
        || rows(&mut client, GetTicket::View(all("v.view"))).expect_err("it is locked").to_string();
    assert!(refused().contains("v.view"), "{}", refused());
    folder.unlock().expect("locked above");
    let marker = node.dir.path().join("data/v.view/consumed-into");
    fs::write(&marker, "/data/out\n").expect("written");
    assert!(refused().contains("/data/out"), "{}", refused());
    fs::remove_file(&marker).expect("there");
    assert_eq!(records(&mut node.client(), all("v.view")).len(), 1_000_000);
}
