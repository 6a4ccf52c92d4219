//! A run over virtual time: requests per second, 99th percentile of latency, write amplification; and
//! whether it was in a steady state.

use std::fmt::Write;

use merganser_device::results::{Bin, DeviceResults, RANGE, SLOPE, Steadiness, Tracked, WINDOW};
use merganser_pages::text;
use merganser_shell::report::page::chart::{Columns, Curves};
use serde_json::{Value, json};

/// A curve of reads and one of writes, over the bins of a run.
fn curves(results: &DeviceResults, of: impl Fn(&Bin, u64) -> [f64; 2]) -> Curves {
    let series = &results.series;
    let bins = series.bins().iter().enumerate();
    let values = bins.map(|(at, bin)| of(bin, series.covered_ns(at, results.elapsed_ns)));
    let (reads, writes) = values.map(|[read, write]| (read, write)).unzip();
    Curves::of_values(reads, writes)
}

/// The axis of virtual time.
pub(super) fn ticks(results: &DeviceResults) -> String {
    let tick = |quarter| text::seconds(results.seconds() * f64::from(quarter) / 4.0);
    let ticks: String = (0..=4).map(|quarter| format!("<span>{}</span>", tick(quarter))).collect();
    format!("<div class=\"row\"><div class=\"who\"></div><div class=\"axis\">{ticks}</div></div>\n")
}

const LEGEND: &str = "<ul class=\"legend\"><li><i class=\"reading\"></i>reads</li>\
                      <li><i class=\"writing\"></i>writes</li></ul>\n";

/// The sections of the page.
pub(super) fn sections(results: &DeviceResults) -> String {
    if results.series.bins().is_empty() {
        return String::new();
    }
    let columns = Columns::each(results.series.bin_ns(), results.elapsed_ns);
    let section = |title: &str, legend: &str, curves: &Curves, top: &str, words: &str| {
        format!(
            "<section>\n<h2>{title} over virtual time</h2>\n{legend}\
             <div class=\"row curves\"><div class=\"who\"><small>{words}</small></div>\
             <div class=\"scale\" data-top=\"{top}\">{}</div></div>\n{}</section>\n",
            curves.draw(&columns, title),
            ticks(results)
        )
    };
    let rates = curves(results, |bin, covered_ns| {
        [&bin.reads, &bin.writes].map(|of| of.count() as f64 * 1e9 / covered_ns as f64)
    });
    let top = format!("{} per second", text::short(rates.top));
    let words = "requests that ended";
    let mut sections = section("Requests per second", LEGEND, &rates, &top, words);
    let latencies =
        curves(results, |bin, _| [&bin.reads, &bin.writes].map(|of| of.percentile(0.99) as f64));
    let top = text::seconds(latencies.top / 1e9);
    let words = "99 of 100 requests that ended took at most this";
    sections += &section("99th percentile of latency", LEGEND, &latencies, &top, words);
    if results.flash.is_some_and(|flash| flash.host_bytes > 0) {
        let amplification =
            curves(results, |bin, _| [0.0, bin.write_amplification().unwrap_or(0.0)]);
        let top = text::short(amplification.top);
        let words = "bytes programmed per byte that the host wrote; 0 where it wrote none";
        sections += &section("Write amplification", "", &amplification, &top, words);
    }
    if let Some(found) = results.steadiness() {
        sections += &steady_section(&found);
    }
    sections
}

fn steady_section(found: &Steadiness) -> String {
    let mut rows = String::new();
    for Tracked { name, rounds, reached, last } in &found.tracked {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let _ = writeln!(
            rows,
            "<tr><th>{name}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            reached
                .map_or("never".to_owned(), |round| format!("round {round} of {}", rounds.len())),
            text::significant(last.mean),
            percent(last.range),
            percent(last.slope),
            if last.is_steady() { "steady" } else { "not steady" }
        );
    }
    format!(
        "<section>\n<h2>Steady state</h2>\n<table>\n<thead><tr><th>Figure</th><th>First reached</th>\
         <th>Last {WINDOW} rounds: mean</th><th>Range</th><th>Slope</th><th></th></tr></thead>\n<tbody>\n{rows}</tbody>\n\
         </table>\n<p class=\"quiet\">{}.</p>\n</section>\n",
        rule(found)
    )
}

/// The definition, and the length of a round.
fn rule(found: &Steadiness) -> String {
    format!(
        "SNIA SSS PTS: over {WINDOW} rounds a range of at most {:.0} % of the mean, and a slope of at most {:.0} %; \
         rounds of {}",
        RANGE * 100.0,
        SLOPE * 100.0,
        text::seconds(found.round_ns as f64 / 1e9)
    )
}

/// In words.
pub(super) fn words(found: &Steadiness) -> String {
    let of = |tracked: &Tracked| {
        let (name, last) = (tracked.name.trim_end_matches(", ns"), tracked.last);
        let not = if last.is_steady() { "" } else { "NOT " };
        format!("{name} {not}steady at the end (range {:.1} %)", last.range * 100.0)
    };
    let all: Vec<String> = found.tracked.iter().map(of).collect();
    format!("{}. {}", all.join(", "), rule(found))
}

/// The steady state as data.
pub(super) fn steady(found: &Steadiness) -> Value {
    let tracked = |of: &Tracked| {
        json!({
            "figure": of.name,
            "rounds": of.rounds,
            "reached_in_round": of.reached,
            "last_mean": of.last.mean,
            "last_range": of.last.range,
            "last_slope": of.last.slope,
            "steady": of.last.is_steady(),
        })
    };
    json!({
        "definition": "SNIA SSS PTS",
        "window_rounds": WINDOW,
        "range_max": RANGE,
        "slope_max": SLOPE,
        "round_ns": found.round_ns,
        "steady": found.is_steady(),
        "figures": found.tracked.iter().map(tracked).collect::<Vec<_>>(),
    })
}

/// The series as data; null if only the device has seen the requests.
pub(super) fn data(results: &DeviceResults) -> Value {
    let bins = results.series.bins();
    if bins.is_empty() {
        return Value::Null;
    }
    let of = |figure: &dyn Fn(&Bin) -> Value| bins.iter().map(figure).collect::<Vec<_>>();
    json!({
        "bin_ns": results.series.bin_ns(),
        "reads": of(&|bin| json!(bin.reads.count())),
        "writes": of(&|bin| json!(bin.writes.count())),
        "read_p99_ns": of(&|bin| json!(bin.reads.percentile(0.99))),
        "write_p99_ns": of(&|bin| json!(bin.writes.percentile(0.99))),
        "write_amplification": of(&|bin| json!(bin.write_amplification())),
    })
}
