//! Reports, as data and as pages.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::{fails, folder, names, prints};

/// A folder with more lines than fit into the least memory at once.
fn with_lines() -> TempDir {
    let dir = folder();
    let make = ["generate", "--format", "lines", "--records", "400K", "-o", "input"];
    prints(dir.path(), &make);
    dir
}

/// Runs a command with `--report`; gives the report.
fn reported(dir: &Path, arguments: &[&str]) -> Value {
    prints(dir, &[arguments, &["--report", "report.json"]].concat());
    serde_json::from_slice(&fs::read(dir.join("report.json")).expect("there")).expect("JSON")
}

fn sum(list: &Value) -> u64 {
    let numbers = list.as_array().expect("a list").iter();
    numbers.map(|number| number.as_u64().expect("a whole number")).sum()
}

#[test]
fn a_report_names_the_work_and_the_workers() {
    let dir = with_lines();
    let bytes = fs::metadata(dir.path().join("input")).expect("there").len();
    let sort = ["sort", "input", "-o", "out", "--memory", "16M", "--threads", "2"];
    let report = reported(dir.path(), &sort);
    let told = ["input_bytes", "output_bytes", "records", "inputs", "output"].map(|f| &report[f]);
    let expected: [Value; 5] =
        [bytes.into(), bytes.into(), 400_000.into(), ["input"][..].into(), "out".into()];
    assert_eq!(told, expected.each_ref());
    assert!(report["seconds"].as_f64().expect("a number") > 0.0);
    assert!(report["peak_rss_bytes"].as_u64().expect("a number") > 1 << 20);
    assert!(report["sort"]["runs"].as_u64().expect("a number") > 1);
    let activity = &report["activity"];
    let workers = activity["workers"].as_array().expect("a list");
    let names: Vec<_> = workers.iter().map(|w| w["name"].as_str().expect("a name")).collect();
    for name in ["read", "sort 1", "sort 2", "merge 1", "merge 2", "write"] {
        assert!(names.contains(&name), "{names:?}");
    }
    // The input is sampled and read, and each run is read and written with its index.
    let runs = report["sort"]["run_bytes"].as_u64().expect("a number");
    assert!(sum(&activity["reads"]["bytes"]) >= bytes + runs / 2, "{activity}");
    assert!(sum(&activity["writes"]["bytes"]) >= 2 * bytes, "{activity}");
    let owners = report["memory"].as_array().expect("a list").iter();
    let owners: Vec<_> = owners.map(|peak| peak["owner"].as_str().expect("a name")).collect();
    assert!(owners.contains(&"tags") && owners.contains(&"merging"), "{owners:?}");
}

#[test]
fn every_way_to_a_result_is_reported() {
    let dir = with_lines();
    let view = reported(dir.path(), &["sort", "input", "--view", "v.view"]);
    assert_eq!((&view["command"], &view["output"]), (&"sort".into(), &"v.view".into()));
    let copy = reported(dir.path(), &["materialize", "v.view", "-o", "out"]);
    assert_eq!(
        (&copy["command"], &copy["output_bytes"]),
        (&"materialize".into(), &view["output_bytes"])
    );
    assert!(
        sum(&copy["activity"]["writes"]["bytes"]) >= copy["output_bytes"].as_u64().expect("known")
    );
    let merged = reported(dir.path(), &["sort", "-m", "out", "out", "-o", "twice"]);
    assert_eq!((&merged["command"], &merged["records"]), (&"merge".into(), &800_000.into()));
    let consumed = reported(dir.path(), &["sort", "--consume", "input", "-o", "again"]);
    assert_eq!(&consumed["output_bytes"], &view["output_bytes"]);
    let read = |name: &str| fs::read(dir.path().join(name)).expect("there");
    assert!(read("again") == read("out"), "a report changes nothing");
}

/// Both strategies, to a file and to a view, and one pass.
#[test]
fn a_report_compares_the_plan_with_the_counters() {
    let dir = folder();
    let make = ["generate", "--format", "gensort", "--records", "1200K", "-o", "input"];
    prints(dir.path(), &make);
    let cases = [
        ("merge", "60M", "-o", 2),
        ("merge", "60M", "--view", 1),
        ("distribute", "60M", "-o", 2),
        ("distribute", "60M", "--view", 1),
        ("distribute", "1G", "-o", 1),
    ];
    for (number, (strategy, memory, result, passes)) in cases.into_iter().enumerate() {
        let (out, strategy_flag) = (format!("out{number}"), format!("--strategy={strategy}"));
        let sort = ["sort", "input", "--format=fixed:100", "--key=0:10", "--memory", memory];
        let sort = [&sort[..], &[&strategy_flag, result, &out]].concat();
        let report = reported(dir.path(), &sort);
        let plan = &report["plan"];
        let what = format!("{strategy} {memory} {result}: {plan:#}");
        let planned = if passes == 1 && result == "-o" { "one pass" } else { strategy };
        assert_eq!(plan["strategy"], planned, "{what}");
        for (field, counted) in [("read_bytes", "reads"), ("written_bytes", "writes")] {
            let predicted = plan["predicted"][field].as_u64().expect("a number");
            // The forecast reads the front of the input twice. It also reads random places where the
            // input will be split.
            let looked_at = predicted - passes * 120_000_000;
            let expected = if field == "read_bytes" { 1 << 20..=16 << 20 } else { 0..=0 };
            assert!(expected.contains(&looked_at), "{field} {looked_at}: {what}");
            let counted = sum(&report["activity"][counted]["bytes"]);
            assert_eq!(plan["measured"][field], counted, "{what}");
            let ratio = plan["ratio"][field].as_f64().expect("a number");
            assert!((ratio - counted as f64 / predicted as f64).abs() < 1e-9, "{what}");
            // If only the input is read, the forecast misses only the bytes past the end of the input.
            let most = if passes == 1 && field == "read_bytes" { 0.002 } else { 0.05 };
            assert!((ratio - 1.0).abs() < most, "{field} {ratio}: {what}");
        }
        for field in ["seconds", "processor_seconds"] {
            assert!(plan["ratio"][field].as_f64().is_some_and(|ratio| ratio > 0.0), "{what}");
        }
        let workers = report["activity"]["workers"].as_array().expect("a list");
        let names = workers.iter().map(|worker| worker["name"].as_str().expect("a name"));
        let names: Vec<&str> = names.map(|name| name.split(' ').next().expect("one")).collect();
        let expected: &[&str] = match (planned, result) {
            ("distribute", "-o") => &["sort", "read", "split", "write", "bucket"],
            ("distribute", _) => &["sort", "read", "split", "write"],
            ("merge", "-o") => &["sort", "read", "merge", "write"],
            _ => &["sort", "read"],
        };
        assert!(expected.iter().all(|name| names.contains(name)), "{names:?}: {what}");
    }
    let copy = reported(dir.path(), &["materialize", "out3", "-o", "copy"]);
    assert!(copy["plan"].is_null());
    let workers = copy["activity"]["workers"].as_array().expect("a list").iter();
    let busy = |w: &Value| sum(&w["state_ns"]["busy"]) > 0 && w["name"] != "write";
    assert!(workers.clone().any(busy), "some worker sorts buckets: {workers:?}");
}

#[test]
fn a_page_shows_names_as_text() {
    let dir = with_lines();
    let name = "<script>alert(1)<!--";
    fs::rename(dir.path().join("input"), dir.path().join(name)).expect("renamed");
    let more = ["--price", "900", "--power", "45", "--endurance", "600TB"];
    let sort = ["sort", name, "-o", "out", "--report", "page.html"];
    prints(dir.path(), &[&sort[..], &more].concat());
    let page = fs::read_to_string(dir.path().join("page.html")).expect("there");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert(1)&lt;!--"));
    for words in ["Sorted per dollar", "Sorted per joule", "SSD life spent", "sort 1"] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn a_report_that_cannot_be_written_is_an_error_that_names_it() {
    let dir = with_lines();
    let error = fails(dir.path(), &["sort", "input", "-o", "out", "--report", "no/such.html"]);
    assert!(error.starts_with("no/such.html: "), "{error}");
    assert_eq!(names(dir.path()), ["input"], "found before the work");
}
