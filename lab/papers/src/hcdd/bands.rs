//! The experiments on SSDs of 1 GB and short traces: what they say at full size (docs/array/array.md) holds within
//! bands, and what they miss of the dissertation is missed here, too.

use std::path::PathBuf;
use std::sync::Arc;

use merganser_sort::Silent;
use serde_json::Value;

use super::dedup::Again;
use super::runs::{drawn, traces};
use crate::lab::{Caller, ExperimentSetup};

struct Nobody;

impl Caller for Nobody {
    fn folder_made(&self, _: &std::path::Path) {}
    fn folder_removed(&self, _: &std::path::Path) {}
}

/// The traces.
const NAMES: [&str; 3] = ["traceKernel", "tracePhoenix", "Financial"];

/// The figures of an experiment with this number of requests for each trace, at most.
fn outcome(name: &str, requests: u64) -> Value {
    let setup = ExperimentSetup {
        size_bytes: Some(requests * 4096),
        rounds: None,
        files: Vec::new(),
        settings: vec!["blocks_per_plane=64".to_owned()],
        device: None,
        dir: PathBuf::from("."),
        pool_bytes: None,
    };
    let experiment = crate::list().iter().find(|e| e.name == name).expect("listed");
    let caller: Arc<dyn Caller> = Arc::new(Nobody);
    experiment.run(&setup, &Silent, &caller).expect("run").json()
}

/// The row `what` in the section that begins with `section`: the paper's figure and ours.
#[track_caller]
fn row(outcome: &Value, section: &str, what: &str) -> (Option<f64>, f64) {
    let sections = outcome["sections"].as_array().expect("sections");
    let begins = |s: &&Value| s["title"].as_str().is_some_and(|t| t.starts_with(section));
    let rows = sections.iter().filter(begins).flat_map(|s| s["rows"].as_array());
    let row = rows.flatten().find(|row| row["what"] == what);
    let row = row.unwrap_or_else(|| panic!("{section}: {what}: {outcome:#}"));
    (row["paper"].as_f64(), row["ours"].as_f64().unwrap_or_else(|| panic!("{row}")))
}

/// Whether the bars of each trace are inside an axis (1) or not (0); the paper's always are.
#[track_caller]
fn are_inside(outcome: &Value, section: &str, what: &str, inside: [f64; 3]) {
    let found = NAMES.map(|name| row(outcome, section, &format!("{name}, {what}")));
    assert_eq!(found.map(|found| found.1), inside, "{section}: {what}");
    assert!(found.iter().all(|found| found.0 == Some(1.)), "{section}: {what}");
}

#[track_caller]
fn ours(outcome: &Value, section: &str, what: &str) -> f64 {
    row(outcome, section, what).1
}

#[track_caller]
fn within(found: f64, low: f64, high: f64, what: &str) {
    assert!((low..=high).contains(&found), "{what}: {found}");
}

/// Labels of Figure 5.10: removed writes (5.4.3) over the writes of Table 5.2.
const REMOVED_PERCENT: [f64; 3] = [29.51, 46.93, 28.90];

/// The share that is drawn is the dissertation's (Figure 5.10, an input).
#[test]
fn the_dissertations_share_of_duplicates_is_drawn() {
    for (trace, expected) in traces().into_iter().zip(REMOVED_PERCENT) {
        let requests = trace.requests(u64::MAX).expect("a look-alike");
        let again = Again::count(&requests, drawn(trace.duplicates()));
        let percent = again.drawn as f64 / again.writes as f64 * 100.;
        within(percent - expected, -1., 1., trace.look.name);
    }
}

/// HcDD shares what a page still has, and the SSDs get less than the hybrid's: at most the shared part less,
/// since journal and maps come in addition.
#[test]
fn duplicates_are_shared_and_the_ssds_get_less() {
    let dedup = outcome("hcdd-dedup", 6_000);
    for name in NAMES {
        let figure = |what: &str| ours(&dedup, "Figure 5.10", &format!("{name}, {what}"));
        let stored = figure("drawn, and a page has it still, percent");
        let shared = figure("shared by HcDD, percent");
        within(shared - stored, -1., 1., &format!("{name}, shared by HcDD"));
        let what = format!("{name}, bytes written");
        let bytes = ours(&dedup, "predicted: HcDD over", &what);
        within(bytes, 1. - shared / 100., 0.97, &what);
        // Moves as soon as possible cost a block of the journal for a page or two; moves when idle share it.
        let sweep =
            |what: &str| ours(&dedup, "predicted: bytes to the SSDs", &format!("{name}, {what}"));
        for percent in [0, 30, 90] {
            let idle = sweep(&format!("{percent} % duplicates, moved when idle"));
            let part = f64::from(100 - percent) / 100.;
            within(idle, 0.8 * part, 1.15 * part, &format!("{name}, {percent} %, moved when idle"));
            assert!(sweep(&format!("{percent} % duplicates")) > 1.3 * idle, "{name}, {percent} %");
        }
    }
}

/// Mean responses of docs/array/array.md, in ms, by trace: `hcdd`, `ssds` and `hdds`.
const MEANS_MS: [[f64; 3]; 3] = [[2.48, 0.21, 3.03], [0.530, 0.16, 1.12], [0.973, 0.16, 3.55]];

/// Figures 5.12 and 5.14: short traces have the means of whole ones within 15 %.
#[test]
fn responses_are_within_bands() {
    let response = outcome("hcdd-response", 3_000);
    let mean =
        |section: &str, name: &str, of: &str| ours(&response, section, &format!("{name}, {of}"));
    let (figures, cached) = ("predicted: Figures 5.12", "sensitivity: the disks' write cache");
    for (name, means) in NAMES.into_iter().zip(MEANS_MS) {
        for (of, expected) in ["hcdd", "ssds", "hdds"].into_iter().zip(means) {
            let found = mean(figures, name, of);
            within(found / expected, 0.85, 1.15, &format!("{name}, {of}, {found} ms"));
        }
        for section in [figures, cached] {
            let [hcdd, hybrid, hdds] = ["hcdd", "hybrid", "hdds"].map(|of| mean(section, name, of));
            assert!(hdds > hcdd, "{section}: {name}: {hdds} {hcdd}");
            // The dissertation's 0.87 is missed: deduplication doesn't shorten a write that ends on a disk.
            within(hcdd / hybrid, 0.98, 1.02, &format!("{section}: {name}, over the hybrid"));
        }
        // A write ends in the buffer of an enhanced SSD. HcDD alone has these (5.4.1).
        let enhanced = mean("sensitivity: the enhanced SSDs", name, "ssds");
        let plain = mean(figures, name, "ssds");
        assert!(enhanced < plain, "{name}: {enhanced} {plain}");
        for of in ["hcdd", "hdds"] {
            let (plain, cached) = (mean(figures, name, of), mean(cached, name, of));
            assert!(cached < plain, "{name}, {of}: {cached} {plain}");
        }
    }
    // Axes. When one of these changes, docs/array/array.md is wrong.
    let against = "predicted: text and axes";
    for (section, what, inside) in [
        (against, "HcDD below 1.2 ms (1: yes)", [0., 1., 1.]),
        (against, "hybrid below 1.2 ms (1: yes)", [0., 1., 1.]),
        (against, "SSDs below 1.8 ms (1: yes)", [1., 1., 1.]),
        (against, "HDDs below 1.8 ms (1: yes)", [0., 1., 0.]),
        (cached, "HcDD below 1.2 ms (1: yes)", [1., 1., 1.]),
        (cached, "HDDs below 1.8 ms (1: yes)", [1., 1., 0.]),
    ] {
        are_inside(&response, section, what, inside);
    }
    // A buffer of disks never answers sooner than SSDs alone (docs/array/array.md), and without duplicates it
    // saves no bytes.
    let plain = "predicted: HcDD over SSDs";
    let alike = "sensitivity: HcDD over SSDs alone";
    let (old, new) = ("msr and cheetah (2009)", "nvme and barracuda");
    for (section, pair) in [(plain, old), (plain, new), (alike, old)] {
        for rate in [50, 200, 800, 3200, 12_800, 51_200] {
            let of = |what: &str| ours(&response, section, what);
            let what = format!("{pair}, 0 % duplicates, {rate}/s");
            assert!(of(&format!("{what}: response")) > 1., "{what}");
            assert!(of(&format!("{what}: bytes to the SSDs")) > 1., "{what}");
        }
    }
}

/// Figures 5.11 and 5.13: disks alone over HcDD as in docs/array/array.md within 15 %; signs; and axes.
#[test]
fn sums_have_the_ratios_of_whole_traces() {
    let time = outcome("hcdd-time", 3_000);
    let against = "predicted: text to Figures 5.11";
    let alike = "sensitivity: the enhanced SSDs";
    let cached = "sensitivity: the disks' write cache";
    for (name, expected) in NAMES.into_iter().zip([1.22, 2.11, 3.65]) {
        let found = ours(&time, against, &format!("{name}, HDDs over HcDD"));
        within(found / expected, 0.85, 1.15, &format!("{name}: {found}"));
    }
    // "Takes 54 and 123 seconds longer", and "outgoes the SSDs scheme by 50": 1 is longer. With disks that sync
    // each record the sign of Financial is missed, with disks that have a write cache those of the other two.
    let papers = [54., 123., -50.];
    for (section, signs) in
        [(against, [1., 1., 1.]), (alike, [1., 1., 1.]), (cached, [-1., -1., -1.])]
    {
        for ((name, paper), sign) in NAMES.into_iter().zip(papers).zip(signs) {
            let (theirs, found) = row(&time, section, &format!("{name}, HcDD less SSDs, s"));
            assert_eq!(theirs, Some(paper));
            assert!(found.signum() == sign, "{section}: {name}: {found}");
        }
    }
    // Axes. When one of these changes, docs/array/array.md is wrong.
    for (section, what, inside) in [
        (against, "HcDD below 1400 s (Figure 5.11; 1: yes)", [1., 1., 0.]),
        (against, "hybrid below 1400 s (Figure 5.11; 1: yes)", [1., 1., 0.]),
        (against, "HcDD below 1000 s (Figure 5.13; 1: yes)", [1., 1., 0.]),
        (against, "SSDs below 1000 s (Figure 5.13; 1: yes)", [1., 1., 1.]),
        (cached, "HcDD below 1400 s (Figure 5.11; 1: yes)", [1., 1., 1.]),
        (cached, "HcDD below 1000 s (Figure 5.13; 1: yes)", [1., 1., 1.]),
    ] {
        are_inside(&time, section, what, inside);
    }
}
