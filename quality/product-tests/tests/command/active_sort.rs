//! The ActiveSort experiments, small, and the bands that their figures must stay in. All of it is
//! virtual time: the figures are the same on every machine, so a change of one is a change of the
//! model or of the merge.

use serde_json::Value;

use crate::{folder, prints};

fn outcome(name: &str, size: &str) -> Value {
    let dir = folder();
    prints(dir.path(), &["reproduce", name, "--size", size, "--json", "j", "--quiet"]);
    let json = std::fs::read(dir.path().join("j")).expect("written");
    serde_json::from_slice(&json).expect("JSON")
}

/// The paper's figure, if it has one, and ours.
fn row(outcome: &Value, what: &str) -> (f64, f64) {
    let sections = outcome["sections"].as_array().expect("sections");
    let mut rows = sections.iter().flat_map(|section| section["rows"].as_array().expect("rows"));
    let row = rows.find(|row| row["what"] == what).unwrap_or_else(|| panic!("{what} in {outcome}"));
    (row["paper"].as_f64().unwrap_or(f64::NAN), row["ours"].as_f64().expect("a figure"))
}

fn within_percent(outcome: &Value, what: &str, percent: f64) {
    let (paper, ours) = row(outcome, what);
    let off = 100. * (ours / paper - 1.);
    assert!(off.abs() <= percent, "{what}: {ours}, the paper {paper}: {off:.1} %");
}

fn within_points(outcome: &Value, what: &str, points: f64) {
    let (paper, ours) = row(outcome, what);
    assert!((ours - paper).abs() <= points, "{what}: {ours}, the paper {paper}");
}

/// A figure that misses its aim: docs/lab/active-sort.md says why, and the report names it. One that meets it has
/// to leave this list. Virtual time is the same on every machine, so our own figure is held, too.
fn missed(outcome: &Value, what: &str, own: f64) {
    let (paper, ours) = row(outcome, what);
    assert!((ours / own - 1.).abs() < 1e-4, "{what}: {ours}, and it was {own}; the paper {paper}");
    let differs = outcome["differs"].as_array().expect("sentences");
    let named =
        |said: &&Value| said.as_str().is_some_and(|s| s.starts_with(&format!("Missed: {what}: ")));
    assert!(differs.iter().find(named).is_some(), "{what} is not named: {differs:?}");
}

#[test]
fn reading_a_merge_is_as_fast_as_the_paper_says() {
    let outcome = outcome("activesort-throughput", "64MB");
    within_percent(&outcome, "plain read, MB/s", 3.);
    within_percent(&outcome, "plain write, MB/s", 3.);
    for what in [
        "32 KB records, 4-byte key",
        "32 KB records, 4-byte key, pages asked for first",
        "merged over plain read, 32 KB records",
        "merged over plain write, 32 KB records",
    ] {
        within_percent(&outcome, what, 5.);
    }
    // Fitted at 128 MB.
    within_points(&outcome, "fall from 32 KB to 128-byte records, percent", 0.5);
    // Small records and long keys cost more, as long as the processor is the limit. Where flash is, at
    // nine tenths of the highest rate and above, which pages meet at a channel decides.
    for key in [4, 10] {
        let rates: Vec<f64> = (7..15)
            .map(|power| row(&outcome, &format!("{}-byte records, {key}-byte key", 1 << power)).1)
            .collect();
        let flash = 0.9 * rates.iter().copied().fold(0., f64::max);
        let grows = |pair: &[f64]| pair[1] > pair[0] || (pair[0] >= flash && pair[1] >= flash);
        assert!(rates.windows(2).all(grows), "{rates:?}");
        assert!(rates[3] < flash, "the processor is the limit of four sizes: {rates:?}");
    }
    let of = |key: u64| row(&outcome, &format!("128-byte records, {key}-byte key")).1;
    assert!(of(10) < 0.9 * of(4));
}

#[test]
fn sorting_moves_the_bytes_of_table_3_and_takes_the_time_of_figure_9() {
    let outcome = outcome("activesort-sort", "256MB");
    for what in
        ["ActiveSort, read", "ActiveSort, written", "merge sort, read", "merge sort, written"]
    {
        within_percent(&outcome, what, 1.);
    }
    // The aim is 5 points.
    missed(&outcome, "1 GB, direct", 47.7198);
    within_points(&outcome, "1 GB, buffered", 5.);
    let sections = outcome["sections"].as_array().expect("sections");
    let says = |section: &&Value| section["title"].as_str().expect("text").starts_with("what the");
    let statements = sections.iter().find(says).expect("statements");
    for statement in statements["rows"].as_array().expect("rows") {
        assert_eq!(statement["ours"], 1., "{statement}");
    }
}

/// The layout on which skipping is slower than waiting, and our own ratio.
const SLOWER_WHEN_SKIPPING: [(&str, f64); 1] =
    [("16 records of each in turn, staggered chunks", 0.996)];

#[test]
fn skipping_busy_channels_beats_waiting_and_is_beaten_by_queues() {
    let outcome = outcome("activesort-channels", "32MB");
    let gain = |what: &str| row(&outcome, what).1;
    assert!(gain("random keys, aligned chunks") > 1.3);
    assert!(gain("chunks in turn, aligned chunks") > 2.);
    assert!(gain("skewed keys, staggered chunks") > 1.3);
    for keys in ["random keys", "chunks in turn", "16 records of each in turn", "skewed keys"] {
        for start in ["aligned chunks", "staggered chunks"] {
            let layout = format!("{keys}, {start}");
            let found = gain(&layout);
            // The aim is that skipping is never slower. One layout misses it (docs/lab/active-sort.md).
            match SLOWER_WHEN_SKIPPING.iter().find(|(slower, _)| *slower == layout) {
                Some((_, own)) => assert!((found - own).abs() < 0.001, "{layout}: {found}"),
                None => assert!(found >= 1., "{layout}: {found}"),
            }
            let rate = |policy: &str| gain(&format!("{keys}, {start}, {policy}"));
            assert!(rate("queues at them") > 0.98 * rate("skips busy channels"));
        }
    }
    let pages = |count: u64| gain(&format!("{count} pages, skips busy channels"));
    assert!(pages(8) > 1.2 * pages(2) && pages(16) < 1.05 * pages(8), "8 pages are enough");
}

/// Two runs of one experiment are the same to the last bit.
#[test]
fn virtual_time_is_the_same_every_time() {
    let run = || outcome("activesort-throughput", "1MB")["sections"].clone();
    assert_eq!(run(), run());
}
