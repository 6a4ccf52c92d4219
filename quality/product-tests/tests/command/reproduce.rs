//! Experiments of the papers, so small that they say nothing but that they run.

use std::process::Command;

use serde_json::Value;

use crate::{fails, folder, merganser, names, prints};

const EXPERIMENTS: [(&str, &[&str]); 12] = [
    ("triton-internal-sort", &["--rounds", "1"]),
    ("triton-disk", &["--files", "1,3,512"]),
    ("ssd-validate", &[]),
    ("ssd-buffer", &[]),
    ("activesort-throughput", &[]),
    ("activesort-sort", &[]),
    ("activesort-channels", &[]),
    ("isc-breakdown", &[]),
    ("isc-elapsed", &[]),
    ("isc-resources", &[]),
    ("isc-nodes", &[]),
    ("isc-energy", &[]),
];

/// They share all code but their tables. Without optimisation the two others take minutes, so they are run on smaller SSDs, in
/// lab/papers/src/hcdd/bands.rs.
const HCDD: [&str; 3] = ["hcdd-dedup", "hcdd-time", "hcdd-response"];

#[test]
fn the_list_names_every_experiment() {
    let dir = folder();
    let list = String::from_utf8(prints(dir.path(), &["reproduce", "--list"])).expect("UTF-8");
    let listed: Vec<&str> =
        list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let (before, after) = EXPERIMENTS.split_at(4);
    let name = |(name, _): &(&'static str, _)| *name;
    let names = before.iter().map(name).chain(HCDD).chain(after.iter().map(name));
    assert_eq!(listed, names.collect::<Vec<_>>());
}

#[test]
fn every_experiment_prints_its_figures_and_leaves_only_the_requested_files() {
    for (name, more) in EXPERIMENTS {
        prints_its_figures(name, more);
    }
}

#[test]
fn an_experiment_of_hcdd_prints_its_figures() {
    prints_its_figures("hcdd-time", &[]);
}

fn prints_its_figures(name: &str, more: &[&str]) {
    let dir = folder();
    let words = ["reproduce", name, "--json", "j", "--plot", "p.svg", "--size", "1MB"];
    let table = String::from_utf8(prints(dir.path(), &[&words[..], more].concat()));
    let table = table.expect("UTF-8");
    assert!(table.starts_with(&format!("{name}: ")), "{table}");
    assert!(table.contains("paper        ours    ratio"), "{table}");
    assert_eq!(names(dir.path()), ["j", "p.svg"]);

    let json = std::fs::read(dir.path().join("j")).expect("written");
    let json: Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(json["experiment"], name);
    assert!(!json["differs"].as_array().expect("sentences").is_empty());
    let rows = json["sections"].as_array().expect("sections").iter();
    let rows: Vec<&Value> =
        rows.flat_map(|section| section["rows"].as_array().expect("rows")).collect();
    let ours = rows.iter().filter_map(|row| row["ours"].as_f64());
    assert!(ours.clone().count() > 3 && ours.clone().all(f64::is_finite), "{json}");
    let compared = rows.iter().find(|row| row["ratio"].is_f64()).expect("a comparison");
    let part = |name| compared[name].as_f64().expect("a figure");
    assert!((part("ratio") - part("ours") / part("paper")).abs() < 1e-9);

    let plot = std::fs::read_to_string(dir.path().join("p.svg")).expect("written");
    assert!(plot.starts_with("<svg ") && plot.ends_with("</svg>\n") && !plot.contains("NaN"));
}

#[test]
fn a_refused_experiment_is_one_sentence() {
    let dir = folder();
    let unknown = fails(dir.path(), &["reproduce", "triton-magic"]);
    assert!(unknown.contains("triton-internal-sort"), "{unknown}");
    fails(dir.path(), &["reproduce"]);
    let missing = fails(dir.path(), &["reproduce", "triton-disk", "--dir", "missing"]);
    assert!(missing.starts_with("missing/.merganser-reproduce-"), "{missing}");
    let memory = fails(dir.path(), &["reproduce", "triton-internal-sort", "--size", "1000TB"]);
    assert!(memory.starts_with("--size: comparing sorts"), "{memory}");
    let pool = ["reproduce", "triton-disk", "--size", "1MB", "--memory", "1M", "--files", "512"];
    assert!(fails(dir.path(), &pool).contains("8388608"));
    assert!(names(dir.path()).is_empty(), "nothing is left");
}

#[test]
fn an_interrupted_experiment_leaves_nothing() {
    let dir = folder();
    let words = ["reproduce", "triton-disk", "--size", "4GB", "--files", "8"];
    let mut child = merganser(dir.path(), &words).spawn().expect("it starts");
    // Until its folder is there, which its own name tells.
    let begun = || !names(dir.path()).is_empty();
    let started = std::time::Instant::now();
    while !begun() && started.elapsed().as_secs() < 60 {
        std::thread::yield_now();
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").arg(&id).status().expect("kill").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(128 + 15));
    assert!(names(dir.path()).is_empty(), "{:?}", names(dir.path()));
}
