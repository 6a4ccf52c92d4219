//! One SSDlet on several nodes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use merganser_flight::client::NodeAddress;
use merganser_flight::farm::{FarmError, FarmReport, SessionFarm};
use merganser_map::RowSink;
use merganser_map::ssdlet::SsdletError;
use merganser_serve::session::request::{OpenRequest, SessionRange};
use merganser_sort::{Progress, Silent};

use crate::harness::{GOOD, GOOD_SHA256, Node, node, node_with, of_ssdlet};

/// Collects rows; wants at most `most`.
struct Rows {
    keyed: Vec<(String, i64)>,
    records: Vec<u8>,
    most: usize,
}

impl Default for Rows {
    fn default() -> Self {
        Rows { keyed: Vec::new(), records: Vec::new(), most: usize::MAX }
    }
}

impl RowSink for Rows {
    fn keyed(&mut self, key: &[u8], value: &[u8]) -> Result<bool, SsdletError> {
        let value = i64::from_le_bytes(value.try_into().expect("8 bytes"));
        self.keyed.push((String::from_utf8(key.to_vec()).expect("UTF-8"), value));
        Ok(self.keyed.len() < self.most)
    }

    fn records(&mut self, records: &[u8]) -> Result<bool, SsdletError> {
        self.records.extend_from_slice(records);
        Ok(true)
    }
}

fn farm(texts: &[&str]) -> Vec<Node> {
    let made = texts.iter().map(|text| {
        let node = node();
        node.write("log", text);
        node
    });
    made.collect()
}

fn known(nodes: &[Node]) -> Vec<NodeAddress> {
    nodes.iter().map(|node| node.known.clone()).collect()
}

fn map(
    known: &[NodeAddress],
    ssdlet: &str,
    path: &str,
    rows: &mut Rows,
    progress: &dyn Progress,
) -> Result<FarmReport, FarmError> {
    let farm = SessionFarm::open(known, &of_ssdlet(ssdlet), None, &|| progress.cancelled())?;
    farm.map(&[SessionRange::of_path(path)], rows, progress)
}

fn run(nodes: &[Node], ssdlet: &str, rows: &mut Rows) -> Result<FarmReport, FarmError> {
    map(&known(nodes), ssdlet, "log", rows, &Silent)
}

/// Sessions that are open on all nodes.
fn sessions(nodes: &[Node]) -> usize {
    nodes.iter().map(|node| node.client().list().expect("listed").sessions).sum()
}

#[test]
fn keyed_rows_are_merged_and_ordered_ones_follow_the_nodes() {
    let nodes = farm(&["b a\nb\n", "c a\n", "b\n"]);
    let mut rows = Rows::default();
    let report = run(&nodes, "wordcount", &mut rows).expect("counted");
    let expected = [("a", 2), ("b", 3), ("c", 1)].map(|(word, n)| (word.to_owned(), n));
    assert_eq!(rows.keyed, expected);
    assert_eq!((report.rows, report.nodes.len()), (3, 3));
    let mut rows = Rows::default();
    run(&nodes, "copy", &mut rows).expect("copied");
    assert_eq!(rows.records, b"b a\nb\nc a\nb\n");
    let mut first = Rows { most: 1, ..Rows::default() };
    run(&nodes, "wordcount", &mut first).expect("no more is wanted");
    assert_eq!(first.keyed, expected[..1]);
    assert_eq!(sessions(&nodes), 0, "all are closed");
}

#[test]
fn the_header_of_a_table_comes_once() {
    let project = OpenRequest {
        args: serde_json::json!({ "columns": ["b"], "header": true }),
        ..of_ssdlet("project")
    };
    let map = |texts: &[&str]| {
        let nodes = farm(texts);
        let mut rows = Rows::default();
        let farm = SessionFarm::open(&known(&nodes), &project, None, &|| false).expect("opened");
        let mapped = farm.map(&[SessionRange::of_path("log")], &mut rows, &Silent);
        mapped.map(|report| (report.rows, rows.records)).map_err(|e| e.to_string())
    };
    let (rows, records) = map(&["a,b\n1,2\n", "a,b\n", "a,b\n3,4\n5,6\n"]).expect("one table");
    assert_eq!((rows, &records[..]), (4, &b"b\n2\n4\n6\n"[..]));
    let told = map(&["a,b\n1,2\n", "b,c\n3,4\n"]).map(|(_, records)| records);
    assert_eq!(told, Ok(b"b\n2\n3\n".to_vec()), "the columns that were asked for");
    let all = OpenRequest {
        args: serde_json::json!({ "columns": [1], "header": true }),
        ..of_ssdlet("project")
    };
    let nodes = farm(&["a,b\n1,2\n", "x,y\n3,4\n"]);
    let farm = SessionFarm::open(&known(&nodes), &all, None, &|| false).expect("opened");
    let told = farm
        .map(&[SessionRange::of_path("log")], &mut Rows::default(), &Silent)
        .expect_err("two tables");
    assert!(told.to_string().starts_with(&nodes[1].known.address), "{told}");
}

#[test]
fn large_results_of_several_nodes_are_merged() {
    let text = |node: usize| -> String {
        (0..60_000).map(|i| format!("w{:06}\n", i * 3 + node % 2)).collect()
    };
    let texts = [0, 1, 2].map(text);
    let nodes = farm(&[&texts[0], &texts[1], &texts[2]]);
    let mut rows = Rows::default();
    run(&nodes, "wordcount", &mut rows).expect("counted");
    assert_eq!(rows.keyed.len(), 120_000);
    assert!(rows.keyed.is_sorted());
    assert_eq!(rows.keyed.iter().map(|(_, n)| n).sum::<i64>(), 180_000);
}

#[test]
fn a_node_that_fails_is_named() {
    let nodes = farm(&["a\n", "b\n"]);
    let known = |change: &dyn Fn(&mut NodeAddress)| {
        let mut known = known(&nodes);
        change(&mut known[1]);
        known
    };
    let fails = |known: &[NodeAddress], ssdlet: &str, path: &str| {
        let result = map(known, ssdlet, path, &mut Rows::default(), &Silent);
        result.expect_err("a node fails").to_string()
    };
    let second = nodes[1].known.address.clone();
    let told = fails(&known(&|node| node.token = None), "wordcount", "log");
    assert!(told.starts_with(&second) && told.contains("token"), "{told}");
    let told = fails(&known(&|node| node.address = "127.0.0.1:1".to_owned()), "wordcount", "log");
    assert!(told.starts_with("127.0.0.1:1: the connection failed"), "{told}");
    nodes[0].write("only", "x\n");
    let told = fails(&known(&|_| {}), "wordcount", "only");
    assert_eq!(told, format!("{second}: only: there is no such file"));
    let told = fails(&known(&|_| {}), "fail", "log");
    assert!(told.ends_with("it always fails"), "{told}");
    assert_eq!(sessions(&nodes), 0, "all are closed");
}

/// A chunk of it takes `slow` 300 ms. On two threads of a node that is 10 seconds and more. It takes `slower` more than
/// a minute.
fn much() -> String {
    "x\n".repeat(20 << 20)
}

#[test]
fn the_failure_of_a_later_node_ends_the_earlier_ones() {
    let nodes = farm(&[&much(), ""]);
    std::fs::remove_file(nodes[1].dir.path().join("data/log")).expect("there");
    let begun = Instant::now();
    let told = run(&nodes, "slower", &mut Rows::default()).expect_err("one node has no such file");
    assert!(told.to_string().starts_with(&nodes[1].known.address), "{told}");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(sessions(&nodes), 0, "all are closed");
}

/// A node that is done waits for one that is not, for longer than it keeps idle sessions.
#[test]
fn rows_that_wait_for_another_node_are_kept() {
    let quick = node_with(|options| {
        options.sessions.threads = 17;
        options.sessions.idle = Duration::from_secs(6);
        options.batch_patience = Duration::from_millis(200);
    });
    // A chunk takes 300 ms: 15 seconds and more on two threads, one or two on 16. And the rows of the quick
    // node are more than what fits into all buffers on the way.
    let lines = |count: usize| (0..count).map(|i| format!("{i:099}\n")).collect::<String>();
    let (long, short) = (lines(600_000), lines(250_000));
    quick.write("log", &short);
    let nodes = [farm(&[&long]).remove(0), quick];
    let mut rows = Rows::default();
    run(&nodes, "slow", &mut rows).expect("both nodes");
    assert!(rows.records == (long + &short).into_bytes());
}

#[test]
fn a_node_that_ends_during_its_run_is_named() {
    let mut nodes = farm(&["a\n", &much()]);
    let (known, second) = (known(&nodes), nodes[1].known.address.clone());
    std::thread::scope(|scope| {
        let mapped = scope.spawn(|| map(&known, "slow", "log", &mut Rows::default(), &Silent));
        while nodes[1].client().list().expect("listed").sessions == 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
        nodes[1].stop().expect("it ends well");
        let told = mapped.join().expect("no panic").expect_err("it is gone").to_string();
        assert!(told.starts_with(&second), "{told}");
    });
}

/// Counts the calls, and says whether the test cancelled the run.
#[derive(Default)]
struct Counted {
    phases: AtomicU64,
    total: AtomicU64,
    done: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress for Counted {
    fn phase(&self, _: &'static str, total: Option<u64>) {
        self.phases.fetch_add(1, Ordering::Relaxed);
        self.total.store(total.unwrap_or(0), Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }

    fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

#[test]
fn a_farm_says_how_far_its_nodes_are() {
    let nodes = farm(&["b a\nb\n", "c a\n"]);
    let counted = Counted::default();
    map(&known(&nodes), "wordcount", "log", &mut Rows::default(), &counted).expect("counted");
    assert_eq!(counted.phases.into_inner(), 2);
    assert_eq!((counted.total.into_inner(), counted.done.into_inner()), (10, 10));
}

#[test]
fn a_farm_can_be_cancelled() {
    let nodes = farm(&[&much(), "b\n"]);
    let counted = Counted { cancelled: AtomicBool::new(true), ..Counted::default() };
    let known = known(&nodes);
    let result = map(&known, "slower", "log", &mut Rows::default(), &counted);
    assert!(matches!(result, Err(FarmError::Cancelled)), "before it is opened");
    let counted = Counted::default();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let mapped = scope.spawn(|| map(&known, "slower", "log", &mut Rows::default(), &counted));
        while counted.phases.load(Ordering::Relaxed) == 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
        counted.cancelled.store(true, Ordering::Relaxed);
        let result = mapped.join().expect("no panic");
        assert!(matches!(result, Err(FarmError::Cancelled)), "while it runs");
    });
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(sessions(&nodes), 0, "all are closed");
}

#[test]
fn a_guest_goes_to_the_nodes_that_lack_it_and_take_it() {
    let open = OpenRequest { sha256: Some(GOOD_SHA256.to_owned()), ..OpenRequest::default() };
    let takes = || node_with(|options| options.allow_upload = true);
    let nodes = [takes(), takes()];
    nodes.iter().for_each(|node| node.write("log", "a\n"));
    nodes[0].client().upload(GOOD.to_vec()).expect("it has it already");
    for module in [Some(GOOD), None] {
        let farm = SessionFarm::open(&known(&nodes), &open, module, &|| false).expect("opened");
        let mut rows = Rows::default();
        farm.map(&[SessionRange::of_path("log")], &mut rows, &Silent).expect("copied");
        assert_eq!(rows.records, b"a\na\n");
    }
    let nodes = [takes(), node()];
    let refused = SessionFarm::open(&known(&nodes), &open, Some(GOOD), &|| false).err();
    let refused = refused.expect("one node takes none");
    assert!(matches!(&refused, FarmError::Guest { node, .. } if *node == nodes[1].known.address));
    assert!(refused.to_string().contains("takes no SSDlets"), "{refused}");
    assert_eq!(sessions(&nodes), 0, "all are closed");
}
