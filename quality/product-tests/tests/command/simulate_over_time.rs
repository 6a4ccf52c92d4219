//! Several workloads on one modelled device, a run over time, and a page map on flash.

use std::fs;

use serde_json::Value;

use crate::simulate::{data, number, text};
use crate::{fails, folder, prints};

const SMALL: [&str; 7] =
    ["run", "--device", "msr", "--set", "blocks_per_plane=64", "--span", "64M"];

#[test]
fn streams_slow_each_other_down_and_are_named() {
    let dir = folder();
    let streams = [
        "--filled",
        "--requests",
        "3000",
        "--stream",
        "name=db,depth=16",
        "--stream",
        "name=log,workload=sequential,read=0,size=4K:3,16K:1,depth=16,begin=10ms",
    ];
    let words = [&SMALL[..], &streams].concat();
    let run = data(dir.path(), &words);
    assert_eq!(run, data(dir.path(), &words), "the same again");
    let of = |path: &str| number(&run, path);
    assert_eq!(
        (of("/streams/0/together/reads/requests"), of("/streams/1/begin_ns")),
        (3000.0, 1e7)
    );
    assert_eq!(of("/results/reads/requests"), 3000.0);
    assert_eq!(of("/results/writes/requests"), of("/streams/1/together/writes/requests"));
    assert!(of("/streams/0/compared_requests") > 100.0, "{run}");
    // Reads wait for programs; the other way round it matters less.
    assert!(of("/streams/0/slowdown") > 1.3, "{run}");
    let (least, jain) = (of("/fairness/least_over_greatest"), of("/fairness/jain"));
    assert!((0.05..0.999).contains(&least) && (0.5..0.9999).contains(&jain), "{least} {jain}");
    let compared =
        of("/streams/0/together/compared_mean_ns") / of("/streams/0/alone/compared_mean_ns");
    assert!((compared - of("/streams/0/slowdown")).abs() < 1e-9);

    // A stream alone is a run without streams, and is not slowed down.
    let one = [&SMALL[..], &["--filled", "--requests", "500", "--stream", "depth=4"]].concat();
    let one = data(dir.path(), &one);
    let none = [&SMALL[..], &["--filled", "--requests", "500", "--depth", "4"]].concat();
    let none = data(dir.path(), &none);
    assert_eq!(one["results"]["digest"], none["results"]["digest"]);
    assert_eq!((number(&one, "/streams/0/slowdown"), number(&one, "/fairness/jain")), (1.0, 1.0));
    assert_eq!((&none["streams"], &none["fairness"]), (&Value::Array(Vec::new()), &Value::Null));

    let table = text(dir.path(), &[&words[..], &["--report", "r.html"]].concat());
    assert!(table.contains("db: random, 100 % reads, 4 KiB, 16 in flight"), "{table}");
    assert!(table.contains("fairness      least over greatest slowdown 0."), "{table}");
    let page = fs::read_to_string(dir.path().join("r.html")).expect("written");
    for part in ["<h2>Streams</h2>", "<th>db<br />", "<h2>Steady state</h2>"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("NaN"));
}

#[test]
fn streams_that_never_meet_have_no_slowdown() {
    let dir = folder();
    let streams = ["--filled", "--requests", "10", "--stream", "depth=1", "--stream", "begin=1s"];
    let run = data(dir.path(), &[&SMALL[..], &streams].concat());
    assert_eq!((&run["streams"][0]["slowdown"], &run["fairness"]), (&Value::Null, &Value::Null));
    let table = text(dir.path(), &[&SMALL[..], &streams].concat());
    assert!(table.contains("not known: the streams were never active together"), "{table}");
}

#[test]
fn streams_that_cannot_be_are_one_sentence() {
    let dir = folder();
    let said = |words: &[&str]| fails(dir.path(), &[&["simulate"], &SMALL[..], words].concat());
    let span = said(&["--stream", "name=far,start=1T", "--report", "r.html"]);
    assert!(
        span.starts_with("--stream far: span: byte 1099511627776 and 67108864 more, but msr"),
        "{span}"
    );
    let size = said(&["--stream", "size=1000", "--precondition"]);
    assert!(size.starts_with("--stream 1: size: sizes: 1000 bytes, expected"), "{size}");
    let both = fails(dir.path(), &["simulate", "run", "--stream", "depth=1", "--trace", "x"]);
    assert!(both.contains("--stream") && both.contains("--trace"), "{both}");
    assert!(crate::names(dir.path()).is_empty(), "nothing is left");
}

/// A device that fills and then collects is steady before, changes, and is steady again.
#[test]
fn a_run_says_whether_it_was_steady() {
    let dir = folder();
    let device =
        ["run", "--device", "msr", "--set", "blocks_per_plane=16", "--set", "gc_free_permille=60"];
    let writes = ["--read", "0", "--depth", "16", "--requests", "150K"];
    let steady = "/results/steady_state/figures";
    let worn = data(dir.path(), &[&device[..], &writes, &["--precondition"]].concat());
    let figures = worn.pointer(steady).and_then(Value::as_array).expect("figures");
    let names: Vec<&str> = figures.iter().filter_map(|f| f["figure"].as_str()).collect();
    assert_eq!(names, ["requests per second", "mean latency, ns", "write amplification"]);
    assert_eq!(worn.pointer("/results/steady_state/steady"), Some(&Value::Bool(true)), "{worn}");
    // On an empty device, the first rounds program one byte for each byte.
    let fresh = data(dir.path(), &[&device[..], &writes].concat());
    let rounds = fresh.pointer(&format!("{steady}/2/rounds")).and_then(Value::as_array);
    let rounds: Vec<f64> = rounds.expect("rounds").iter().filter_map(Value::as_f64).collect();
    assert!(rounds[0] < 1.1 && rounds[rounds.len() - 1] > rounds[0] + 0.2, "{rounds:?}");

    let series = fresh.pointer("/results/over_time").expect("a series");
    let sum = |name: &str| -> u64 {
        series[name].as_array().expect(name).iter().filter_map(Value::as_u64).sum()
    };
    assert_eq!((sum("reads"), sum("writes")), (0, 150_000));
    let table = text(dir.path(), &[&device[..], &writes, &["--report", "r.html"]].concat());
    assert!(table.contains("steady state  requests per second "), "{table}");
    assert!(table.contains("SNIA SSS PTS"), "{table}");
    let page = fs::read_to_string(dir.path().join("r.html")).expect("written");
    for part in ["Requests per second", "99th percentile of latency", "Write amplification"] {
        assert!(page.contains(&format!("<h2>{part} over virtual time</h2>")), "{part}");
    }
    // A disk amplifies nothing, and five requests are no rounds.
    let few = ["run", "--device", "barracuda", "--requests", "5", "--report", "d.html"];
    text(dir.path(), &few);
    let page = fs::read_to_string(dir.path().join("d.html")).expect("written");
    assert!(!page.contains("Write amplification over"), "{page}");
}

#[test]
fn a_map_on_flash_is_counted() {
    let dir = folder();
    let words =
        [&SMALL[..], &["--filled", "--requests", "2000", "--set", "map_cache_bytes=8K"]].concat();
    let run = data(dir.path(), &words);
    let of = |name: &str| number(&run, &format!("/results/flash/{name}"));
    assert_eq!(of("map_hits") + of("map_misses"), 2000.0);
    assert_eq!(of("page_reads"), 2000.0 + of("map_reads"));
    assert!(text(dir.path(), &words).contains("\nmap           "));
    assert!(!text(dir.path(), &SMALL).contains("\nmap  "));
}

#[test]
fn an_experiment_on_a_changed_device_says_so() {
    let dir = folder();
    let run = |more: &[&str]| -> Value {
        let words =
            ["reproduce", "activesort-throughput", "--size", "8MB", "--quiet", "--json", "j"];
        prints(dir.path(), &[&words[..], more].concat());
        serde_json::from_slice(&fs::read(dir.path().join("j")).expect("written")).expect("JSON")
    };
    let plain = |of: &Value| of["sections"][0]["rows"][0]["ours"].as_f64().expect("plain read");
    let (usual, twice) = (run(&[]), run(&["--set", "channels=8"]));
    // Then the link is the limit.
    assert!((1.7..2.0).contains(&(plain(&twice) / plain(&usual))), "{twice}");
    let said = |of: &Value| of.to_string().contains("Changed of the profile: channels=8");
    assert!(said(&twice) && !said(&usual));
    let fails = |text: &str| fails(dir.path(), &["reproduce", "activesort-sort", "--set", text]);
    assert_eq!(fails("channels=0"), "--set channels=0: a value in count from 1 to 64");
    assert!(fails("chanels=2").starts_with("--set chanels is no parameter of a device"));
    let together = fails("page_bytes=3000");
    assert!(
        together.starts_with("--set page_bytes=3000: jasmine: page_bytes=3000 and map_unit_bytes="),
        "{together}"
    );
    let small = fails("channels=2");
    assert!(
        small.starts_with("--set channels=2: the device holds 63912804352 bytes, and"),
        "{small}"
    );
}
