//! One SSDlet on several nodes.

use merganser_flight::client::NodeAddress;
use merganser_flight::farm::{FarmError, FarmReport, map};
use merganser_node::map::RowSink;
use merganser_node::session::request::Range;
use merganser_node::ssdlet::SsdletError;

use crate::harness::{Node, node, of};

/// Collects rows; wants at most so many.
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

fn run(nodes: &[Node], ssdlet: &str, rows: &mut Rows) -> Result<FarmReport, FarmError> {
    let known: Vec<NodeAddress> = nodes.iter().map(|node| node.known.clone()).collect();
    map(&known, &of(ssdlet), &[Range::of("log")], rows, &|| false)
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
        let mut known: Vec<_> = nodes.iter().map(|node| node.known.clone()).collect();
        change(&mut known[1]);
        known
    };
    let fails = |known: &[NodeAddress], ssdlet: &str, path: &str| {
        let mut rows = Rows::default();
        let result = map(known, &of(ssdlet), &[Range::of(path)], &mut rows, &|| false);
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
}

#[test]
fn a_farm_can_be_cancelled() {
    let nodes = farm(&["a\n", "b\n"]);
    let known: Vec<_> = nodes.iter().map(|node| node.known.clone()).collect();
    let mut rows = Rows::default();
    let result = map(&known, &of("slow"), &[Range::of("log")], &mut rows, &|| true);
    assert!(matches!(result, Err(FarmError::Cancelled)));
}
