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

/// Without optimisation they take minutes, so they are run on smaller SSDs.
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
fn the_experiments_of_hcdd_print_their_figures() {
    for name in HCDD {
        prints_its_figures(name, &["--set", "blocks_per_plane=64"]);
    }
}

/// What an experiment prints, as JSON, and its sentences on what differs.
fn figures(words: &[&str]) -> (Value, String) {
    let dir = folder();
    let words = [&["reproduce"], words, &["--size", "1MB", "--json", "j", "--quiet"]].concat();
    prints(dir.path(), &words);
    let json = std::fs::read(dir.path().join("j")).expect("written");
    let json: Value = serde_json::from_slice(&json).expect("JSON");
    (json["sections"].clone(), json["differs"].to_string())
}

/// Issue 43: `--set` was refused, although these experiments run on a modelled device.
#[test]
fn i43_a_changed_device_gives_other_figures_and_the_report_says_so() {
    let small = "blocks_per_plane=64";
    for (name, own, change) in [
        ("hcdd-time", &["--set", small][..], "program_ns=900us"),
        ("ssd-buffer", &["--set", small], "program_ns=900us"),
        ("isc-breakdown", &[], "channel_bytes_per_second=40M"),
        ("activesort-throughput", &[], "channels=8"),
    ] {
        let words = [&[name], own].concat();
        let (before, _) = figures(&words);
        let (after, differs) = figures(&[&words[..], &["--set", change]].concat());
        assert_ne!(before, after, "{name}");
        assert!(
            differs.contains("Changed of the profile: ") && differs.contains(change),
            "{differs}"
        );
    }
}

/// Issue 43: ActiveSort ran on its prototype only.
#[test]
fn i43_active_sort_runs_on_other_devices() {
    for name in ["activesort-throughput", "activesort-sort", "activesort-channels"] {
        let mut found = vec![figures(&[name]).0];
        for device in ["nvme", "isc", "830", "tlc"] {
            let (sections, differs) = figures(&[name, "--device", device]);
            assert!(differs.contains(&format!("the device is {device}")), "{differs}");
            assert!(!found.contains(&sections), "{name} on {device}");
            found.push(sections);
        }
        assert_eq!(figures(&[name, "--device", "jasmine"]).0, found[0], "{name}");
    }
}

#[test]
fn a_device_that_an_experiment_cannot_use_is_one_sentence() {
    let dir = folder();
    let refused = |words: &[&str]| fails(dir.path(), &[&["reproduce"], words].concat());
    for (words, sentence) in [
        (
            &["ssd-buffer", "--set", "cache_bytes=2M"][..],
            "--set cache_bytes=2M: the experiment itself sets cache_policy, cache_bytes, cache_parallelism",
        ),
        (&["hcdd-time", "--set", "colour=1"], "--set colour is no parameter of a device"),
        (
            &["hcdd-response", "--set", "channels=0"],
            "--set channels=0: a value in count from 1 to 64",
        ),
        (&["isc-nodes", "--set", "channels"], "--set channels: a setting is written name=value"),
    ] {
        assert_eq!(refused(words), sentence, "{words:?}");
    }
    let together = refused(&["isc-energy", "--set", "cache_policy=lru", "--set", "cache_bytes=0"]);
    assert!(together.starts_with("--set cache_policy=lru, cache_bytes=0: isc: "), "{together}");
    let small = refused(&["activesort-sort", "--device", "msr"]);
    assert!(small.starts_with("--device: msr: the device holds "), "{small}");
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
