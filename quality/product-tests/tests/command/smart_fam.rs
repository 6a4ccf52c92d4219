//! `serve --log-folder`, as a real process, and a client in this one: both share nothing but a folder.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use merganser_map::frame;
use merganser_random::Random;
use merganser_serve::smart_fam::{
    CallError, CallRequest, CallResult, MAGIC, ModuleClient, PollIntervals,
};
use merganser_testkit::word_counts;
use serde_json::json;

use crate::{fails, folder, merganser, names, signal};

const LIMIT: Duration = Duration::from_secs(60);

/// As over NFS, where no side hears of the other.
const POLLING: PollIntervals = PollIntervals {
    least: Duration::from_millis(1),
    most: Duration::from_millis(20),
    inotify: false,
};

/// Starts a node in `dir` that serves `data` through `calls`, and waits until it says so.
fn node(dir: &Path, more: &[&str]) -> Child {
    let words = ["serve", "--data", "data", "--log-folder", "calls", "--memory", "32M"];
    let mut child =
        merganser(dir, &[&words, more].concat()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let stderr = child.stderr.as_mut().expect("piped");
    BufReader::with_capacity(1, stderr).read_line(&mut line).expect("a line");
    assert!(line.starts_with("merganser: calls through files in "), "{line}");
    let started = Instant::now();
    while !dir.join("calls/wordcount").is_dir() {
        assert!(started.elapsed() < LIMIT, "no module");
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

/// A folder with some data: a short file, a long one, and the short one compressed.
fn place() -> tempfile::TempDir {
    let dir = folder();
    let data = dir.path().join("data");
    fs::create_dir_all(data.join("sub")).expect("made");
    fs::write(data.join("small"), "b a\na\n").expect("written");
    let many: String = (0..300_000).map(|n| format!("word{} same\n", n % 50_000)).collect();
    fs::write(data.join("sub/large"), many).expect("written");
    dir
}

fn counts(result: CallResult) -> BTreeMap<String, i64> {
    let CallResult::Rows(rows) = result else { panic!("{result:?}") };
    word_counts(rows)
}

fn small() -> BTreeMap<String, i64> {
    BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 1)])
}

fn ended(mut child: Child) {
    signal(&child, libc::SIGTERM);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_client_in_another_process_calls_with_inotify_and_by_polling() {
    for (more, waiting) in [(&["--poll"][..], POLLING), (&[], PollIntervals::default())] {
        let dir = place();
        let child = node(dir.path(), more);
        let calls = dir.path().join("calls");
        let mut client = ModuleClient::new(&calls, "c", waiting).expect("a name");
        let rows = client.call("wordcount", &json!({}), &["small"], LIMIT).expect("answered");
        assert_eq!(counts(rows), small());
        let inputs = ["sub/large", "small"];
        let rows = counts(client.call("wordcount", &json!({}), &inputs, LIMIT).expect("answered"));
        assert_eq!((rows.len(), rows["same"], rows["word7"], rows["a"]), (50_003, 300_000, 6, 2));
        let found = client.call("match", &json!({"keys": ["b"]}), &["small"], LIMIT);
        assert_eq!(found.expect("answered"), CallResult::Records(b"b a\n".to_vec()));
        let said =
            |refused: Result<CallResult, CallError>| refused.expect_err("refused").to_string();
        let refused = client.call("wordcount", &json!({}), &["../token"], LIMIT);
        assert_eq!(said(refused), "../token: a path has no .., no . and no empty name in it");
        let refused = client.call("wordcount", &json!({"x": 1}), &["small"], LIMIT);
        assert!(said(refused).starts_with("wordcount: "), "the SSDlet's own sentence");
        // Only one of two nodes serves.
        let words = ["serve", "--data", "data", "--log-folder", "calls"];
        let output = merganser(dir.path(), &words).output().expect("it starts");
        let told = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2));
        assert!(told.contains("another node serves this folder; stop it"), "{told}");
        client.close();
        let started = Instant::now();
        while !names(&calls.join("wordcount")).is_empty() {
            assert!(started.elapsed() < LIMIT, "the node removes what it made for the client");
            std::thread::sleep(Duration::from_millis(5));
        }
        ended(child);
    }
}

/// A request that comes in two parts, as NFS may show an append, is awaited.
#[test]
fn a_torn_request_is_awaited() {
    let dir = place();
    let child = node(dir.path(), &["--poll"]);
    let request = CallRequest { args: json!({}), inputs: vec!["small".to_owned()] };
    let record = frame::encode(MAGIC, 1, &request, 1000).expect("short");
    let module = dir.path().join("calls/wordcount");
    for cut in [1, 4, 15, 20, 21, record.len() - 1] {
        let name = format!("c{cut}");
        let path = module.join(format!("{name}.req"));
        fs::write(&path, &record[..cut]).expect("written");
        std::thread::sleep(Duration::from_millis(300));
        let answers = fs::read(module.join(format!("{name}.res"))).unwrap_or_default();
        assert!(answers.is_empty(), "{cut}");
        let mut file = OpenOptions::new().append(true).open(&path).expect("there");
        file.write_all(&record[cut..]).expect("written");
        let mut client =
            ModuleClient::new(&dir.path().join("calls"), &name, POLLING).expect("a name");
        let rows = client.ask("wordcount", 1, &json!({}), &["small"], LIMIT).expect("answered");
        assert_eq!(counts(rows), small(), "{cut}");
    }
    ended(child);
}

/// The node is killed again and again while a client calls. Every call has its answer, a number that is asked again has
/// the same one, and no file is left of a result that was cut.
#[test]
fn a_killed_node_is_replaced_and_answers_are_repeated() {
    let dir = place();
    let mut child = node(dir.path(), &["--poll"]);
    let calls = dir.path().join("calls");
    let mut client = ModuleClient::new(&calls, "c", POLLING).expect("a name");
    let mut random = Random::new(6);
    // A machine that answers within most of the waits gets more calls, and so as many kills as a slow one.
    let (mut number, mut killed) = (0, 0);
    while number < 8 || killed < 6 {
        number += 1;
        assert!(number <= 500, "only {killed} kills came before their answers");
        let inputs: &[&str] = if number % 2 == 0 { &["small"] } else { &["sub/large"] };
        let mut kills = 0;
        let rows = loop {
            let wait = Duration::from_millis(2 + random.below(60));
            match client.ask("wordcount", number, &json!({}), inputs, wait) {
                // A slow machine may need longer than any of the waits to start a node and to answer.
                Err(CallError::Timeout { .. }) if kills < 3 => {
                    child.kill().expect("killed");
                    child.wait().expect("it ends");
                    kills += 1;
                    child = node(dir.path(), &["--poll"]);
                }
                Err(CallError::Timeout { .. }) => {}
                answer => break counts(answer.expect("answered")),
            }
        };
        killed += kills;
        assert_eq!(rows.len(), if number % 2 == 0 { 2 } else { 50_001 }, "{number}");
    }
    // The data changes; what was answered does not.
    fs::write(dir.path().join("data/small"), "other\n").expect("written");
    let again = client.ask("wordcount", 2, &json!({}), &["small"], LIMIT).expect("answered");
    assert_eq!(counts(again), small());
    let left = names(&calls.join("wordcount"));
    assert!(left.iter().all(|name| !name.ends_with(".part")), "{left:?}");
    ended(child);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let dir = place();
    let refused = fails(dir.path(), &["serve", "--data", "none", "--log-folder", "calls"]);
    assert!(refused.contains("none: no such folder; --data names one"), "{refused}");
    let refused = fails(dir.path(), &["serve", "--data", "data", "--log-folder", "data/small"]);
    assert!(refused.contains("data/small"), "{refused}");
}
