//! The life of sessions.

use std::io::{self, Read};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arrow_flight::FlightDescriptor;
use merganser_flight::client::{NodeAddress, NodeClient};
use merganser_flight::wire::{GetTicket, SessionTicket, SetBody, TextAs};
use merganser_serve::session::SessionState;
use merganser_serve::session::request::{OpenRequest, SessionRange};

use crate::harness::{GOOD, GOOD_SHA256, Proxy, begin, node, node_with, of_ssdlet, rows, rows_of};

fn count(word: &str, count: i64) -> (Vec<u8>, Vec<u8>) {
    (word.as_bytes().to_vec(), count.to_le_bytes().to_vec())
}

#[test]
fn words_are_counted_on_the_node() {
    let node = node();
    node.write("a.txt", "b a\nb\n");
    node.write("c.txt", "c\n");
    let mut client = node.client();
    assert!(client.list().expect("listed").ssdlets.iter().any(|s| s.name == "wordcount"));
    let opened = client.open(&of_ssdlet("wordcount")).expect("opened");
    assert_eq!(opened.description.name, "wordcount");
    let session = opened.session;
    for path in ["a.txt", "c.txt", "a.txt"] {
        let ranges = vec![SessionRange::of_path(path)];
        client.set(&SetBody { session: session.clone(), ranges, run: false }).expect("set");
    }
    let all = [count("a", 2), count("b", 4), count("c", 1)];
    assert_eq!(rows(&mut client, rows_of(&session, 0)).expect("done"), all);
    assert_eq!(rows(&mut client, rows_of(&session, 2)).expect("done"), all[2..]);
    let status = client.status(&session).expect("open");
    assert_eq!((status.state, status.rows, status.run), (SessionState::Done, 3, 1));

    client
        .set(&SetBody {
            session: session.clone(),
            ranges: vec![SessionRange::of_path("c.txt")],
            run: true,
        })
        .expect("a new run");
    assert_eq!(rows(&mut client, rows_of(&session, 0)).expect("done"), [count("c", 1)]);

    let descriptor = FlightDescriptor::new_cmd(rows_of(&session, 0).to_json());
    let info = client.info(descriptor).expect("known");
    assert_eq!(info.total_records, 1);
    let schema = info.try_decode_schema().expect("a schema");
    assert_eq!(schema.field(1).data_type(), &arrow_schema::DataType::Int64);
    client.close(&session).expect("open");
    let gone = client.status(&session).expect_err("closed").to_string();
    assert!(gone.contains(&session) && gone.contains("open another one"), "{gone}");
}

#[test]
fn text_is_text_unless_it_is_not() {
    let node = node();
    node.write("a.txt", b"good\n\xff\n");
    let mut client = node.client();
    let session = begin(&mut client, "wordcount", &["a.txt"]).expect("begun");
    let text = |offset| {
        GetTicket::Session(SessionTicket { session: session.clone(), offset, text: TextAs::Utf8 })
    };
    let refused = rows(&mut client, text(0)).expect_err("not UTF-8").to_string();
    assert!(refused.contains("binary"), "{refused}");
    let all = rows(&mut client, rows_of(&session, 0)).expect("bytes");
    assert_eq!(all[1].0, b"\xff");
}

#[test]
fn a_blob_stays_on_the_node_and_is_an_input() {
    let node = node();
    let mut client = node.client();
    let session = client.open(&of_ssdlet("copy")).expect("opened").session;
    let lines: Vec<u8> = (0..400_000).flat_map(|i| format!("{i}\n").into_bytes()).collect();
    let kept = client.put(&session, "part", &mut &lines[..]).expect("kept");
    assert_eq!(kept.bytes, lines.len() as u64);
    let range = SessionRange { blob: Some("part".to_owned()), ..SessionRange::default() };
    client.set(&SetBody { session: session.clone(), ranges: vec![range], run: true }).expect("set");
    let all = rows(&mut client, rows_of(&session, 0)).expect("done");
    assert_eq!(all.len(), 400_000);
    assert!(all.iter().map(|(record, _)| &record[..]).eq(lines.split_inclusive(|b| *b == b'\n')));
    let refused = client.put(&session, "a/b", &mut &b"x"[..]).expect_err("a name").to_string();
    assert!(refused.contains("name of a blob"), "{refused}");
    let refused = client.put("nothing", "a", &mut &b"x"[..]).expect_err("no session").to_string();
    assert!(refused.contains("no open session"), "{refused}");
}

/// A reader whose disk fails.
struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the disk broke"))
    }
}

/// The bytes before the error are no blob, and replace none.
#[test]
fn a_blob_whose_reader_fails_is_not_kept() {
    let node = node();
    let mut client = node.client();
    let session = client.open(&of_ssdlet("copy")).expect("opened").session;
    client.put(&session, "part", &mut &b"whole\n"[..]).expect("kept");
    let lines = b"line\n".repeat(1 << 20);
    for (name, bytes) in [("part", 0), ("part", 10), ("part", lines.len()), ("other", 10)] {
        let mut reader = lines[..bytes].chain(Broken);
        let broken = client.put(&session, name, &mut reader).expect_err("it broke").to_string();
        assert_eq!(broken, format!("the blob {name}: the disk broke"));
    }
    let run = |client: &mut NodeClient, name: &str| {
        let range = SessionRange { blob: Some(name.to_owned()), ..SessionRange::default() };
        client.set(&SetBody { session: session.clone(), ranges: vec![range], run: true })?;
        rows(client, rows_of(&session, 0))
    };
    let all = run(&mut client, "part").expect("the first one");
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].0, b"whole\n");
    let missing = run(&mut client, "other").expect_err("it was not kept").to_string();
    assert!(missing.contains("no blob called other"), "{missing}");
}

#[test]
fn a_broken_stream_continues_at_its_row() {
    let node = node();
    let lines: String = (0..300_000).map(|i| format!("line {i}\n")).collect();
    node.write("lines", &lines);
    let session = begin(&mut node.client(), "copy", &["lines"]).expect("begun");
    // 4.5 MB come in pieces: each connection is cut somewhere else.
    let proxy = Proxy::new(node.address, vec![1_000_000, 700_001, 1_300_007, 65_537]);
    let through = NodeAddress { address: proxy.address.to_string(), ..node.known.clone() };
    let mut client = NodeClient::connect(&through).expect("it answers");
    let all = rows(&mut client, rows_of(&session, 0)).expect("continued");
    assert_eq!(proxy.connections.load(Ordering::Relaxed), 5);
    assert_eq!(all.len(), 300_000);
    assert!(
        all.iter()
            .map(|(record, _)| &record[..])
            .eq(lines.as_bytes().split_inclusive(|b| *b == b'\n'))
    );
}

#[test]
fn a_connection_that_always_breaks_is_an_error() {
    let node = node();
    node.write("lines", "x\n".repeat(1_000_000));
    let session = begin(&mut node.client(), "copy", &["lines"]).expect("begun");
    let proxy = Proxy::new(node.address, [vec![100_000], vec![200; 99]].concat());
    let through = NodeAddress { address: proxy.address.to_string(), ..node.known.clone() };
    let mut client = NodeClient::connect(&through).expect("it answers");
    let broken = rows(&mut client, rows_of(&session, 0)).expect_err("it breaks").to_string();
    assert!(broken.starts_with("the connection failed"), "{broken}");
}

#[test]
fn a_run_fails_with_one_sentence_and_others_go_on() {
    let node = node();
    node.write("a", "x\n");
    let mut client = node.client();
    for (ssdlet, told) in [("fail", "it always fails"), ("panic", "mistake")] {
        let session = begin(&mut client, ssdlet, &["a"]).expect("begun");
        let failed = rows(&mut client, rows_of(&session, 0)).expect_err("it fails").to_string();
        assert!(failed.contains(told) && !failed.contains('\n'), "{failed}");
    }
    let session = begin(&mut client, "copy", &["a"]).expect("begun");
    assert_eq!(rows(&mut client, rows_of(&session, 0)).expect("done").len(), 1);
}

#[test]
fn idle_sessions_end_and_there_are_so_many_at_most() {
    let node = node_with(|options| {
        options.sessions.idle = Duration::from_secs(10);
        options.sessions.sessions_max = 2;
    });
    let mut client = node.client();
    let sessions = [(); 2].map(|()| client.open(&of_ssdlet("copy")).expect("opened").session);
    let busy = client.open(&of_ssdlet("copy")).expect_err("two are open").to_string();
    assert!(busy.contains("busy"), "{busy}");
    let until = Instant::now() + Duration::from_secs(60);
    while client.list().expect("listed").sessions > 0 {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(50));
    }
    client.status(&sessions[0]).expect_err("it was idle");
    client.open(&of_ssdlet("copy")).expect("there is room again");
}

#[test]
fn an_ssdlet_is_uploaded_only_where_that_is_allowed() {
    let refused = node().client().upload(GOOD.to_vec()).expect_err("not allowed").to_string();
    assert!(refused.contains("takes no SSDlets"), "{refused}");
    let node = node_with(|options| options.allow_upload = true);
    let mut client = node.client();
    let of_guest = OpenRequest { sha256: Some(GOOD_SHA256.to_owned()), ..OpenRequest::default() };
    client.open(&of_guest).expect_err("nothing was uploaded");
    let kept = client.upload(GOOD.to_vec()).expect("verified");
    assert_eq!(kept.sha256, GOOD_SHA256);
    client.open(&of_guest).expect("it is kept");
    let refused = client.upload(b"bad".to_vec()).expect_err("no module").to_string();
    assert!(refused.contains("no module"), "{refused}");
}

#[test]
fn a_server_that_ends_ends_its_runs() {
    let mut node = node();
    node.write("a", "x\n");
    let mut client = node.client();
    let session = begin(&mut client, "slow", &["a"]).expect("begun");
    let begun = Instant::now();
    node.stop().expect("it ends well");
    assert!(begun.elapsed() < Duration::from_secs(15));
    client.status(&session).expect_err("it is gone");
}
