//! What an emulated disk did, as a page: addresses over time, throughput, requests in flight.

use std::fmt::Write;

use merganser_pages::frame::{REPORT_AS_DATA, document};
use merganser_pages::{frame, text};
use merganser_shell::report::page::chart::{Columns, Curves};
use merganser_sort::activity::{ActivityReport, TransferReport};

use super::report::EmulatedRun;
use text::Escaped;

/// The plot of addresses, in its own units.
const WIDTH: u64 = 1000;
const HEIGHT: u64 = 400;
const MARK: u64 = 2;

const PLOT: &str = ".points svg { height: 24rem; } .points path { fill-opacity: .7; }\n\
    .invalid { border: 2px solid #c62828; border-radius: .6rem; padding: .6rem .8rem; font-weight: 600; }\n";

/// The page's text.
pub(super) fn page(run: &EmulatedRun) -> String {
    let mut body = head(run);
    body.push_str("<main>\n");
    body.push_str(&addresses(run));
    body.push_str(&curves(run));
    let _ = writeln!(
        body,
        "<section>\n<details><summary>All figures, as the command prints them</summary>\n<pre>{}</pre></details>\n</section>\n\
         </main>",
        run.table().lines().map(|line| format!("{}\n", Escaped(line))).collect::<String>(),
    );
    document(&format!("merganser emulate: {}", run.name()), PLOT, &body, REPORT_AS_DATA)
}

fn head(run: &EmulatedRun) -> String {
    let results = &run.ended.results;
    let all = results.reads.with(&results.writes);
    let late = run.ended.lag.late_share() * 100.0;
    let figures = [
        ("Time", text::seconds(results.seconds())),
        ("Read", text::bytes(results.reads.bytes)),
        ("Written", text::bytes(results.writes.bytes)),
        ("Requests per second", text::significant(results.requests_per_second(&all))),
        ("Mean latency", text::seconds(all.latency.mean() / 1e9)),
        ("Reads in order", text::percent(EmulatedRun::in_order(&run.activity.reads))),
        ("Writes in order", text::percent(EmulatedRun::in_order(&run.activity.writes))),
        ("Late requests", format!("{late:.2} %")),
    ];
    let invalid = if run.ended.lag.is_valid() {
        ""
    } else {
        "<p class=\"invalid\">This run is not valid: more than 1 % of the requests or of the busy time were late.</p>\n"
    };
    format!(
        "<header>\n<h1>merganser emulate</h1>\n<p class=\"lead\">{} in real time</p>\n<p>{}</p>\n{invalid}\
         <p class=\"quiet\">{}.</p>\n{}</header>\n",
        run.name(),
        Escaped(run.about()),
        run.lag_words(),
        frame::figures(&figures)
    )
}

const LEGEND: &str = "<ul class=\"legend\"><li><i class=\"reading\"></i>reads</li><li><i class=\"writing\"></i>writes</li></ul>\n";

fn ticks(end_ns: u64) -> String {
    let end = end_ns as f64 / 1e9;
    let tick = |quarter| format!("<span>{}</span>", text::seconds(end * f64::from(quarter) / 4.0));
    let ticks: String = (0..=4).map(tick).collect();
    format!("<div class=\"row\"><div class=\"who\"></div><div class=\"axis\">{ticks}</div></div>\n")
}

/// Each request at its arrival and its first byte (Figures 3 and 4 of "A Case for Flash Memory SSD in
/// Hadoop Applications").
fn addresses(run: &EmulatedRun) -> String {
    let activity = &run.activity;
    let (low, high) = activity.range.unwrap_or((0, 1));
    let end_ns = activity.end_ns.max(1);
    let mut paths = [String::new(), String::new()];
    for point in &activity.points {
        let part = |of: u64, whole: u64, size: u64| {
            (u128::from(of) * u128::from(size - MARK) / u128::from(whole.max(1))) as u64
        };
        let x = part(point.at_ns, end_ns, WIDTH);
        let y = HEIGHT - MARK - part(point.offset - low, high - low, HEIGHT);
        let path = &mut paths[usize::from(!point.read)];
        let _ = write!(path, "M{x} {y}h{MARK}v{MARK}h-{MARK}z");
    }
    let [reads, writes] = paths;
    let each = match activity.stride {
        1 => "every request".to_owned(),
        stride => format!("one request in {}", text::count(stride)),
    };
    format!(
        "<section>\n<h2>Addresses over time</h2>\n{LEGEND}\
         <div class=\"row points\"><div class=\"who\">byte {}<small>to {}; {each}</small></div>\
         <div class=\"scale\"><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"First bytes of requests over time\"><path class=\"reading\" d=\"{reads}\" />\
         <path class=\"writing\" d=\"{writes}\" /></svg></div></div>\n{}</section>\n",
        text::bytes(low),
        text::bytes(high),
        ticks(end_ns)
    )
}

fn curves(run: &EmulatedRun) -> String {
    let activity = &run.activity;
    let [reads, writes] = activity.flows().map(|flow| TransferReport {
        count: flow.requests,
        in_flight_max: u64::from(activity.depth_max),
        bytes: flow.bytes,
        in_flight_ns: flow.in_flight_ns,
    });
    let shown = ActivityReport {
        end_ns: activity.end_ns.max(1),
        bin_ns: activity.bin_ns,
        phases: Vec::new(),
        workers: Vec::new(),
        reads,
        writes,
    };
    let columns = Columns::of_activity(&shown);
    let axis = ticks(shown.end_ns);
    let section = |title: &str, curves: &Curves, top: &str, words: &str| {
        format!(
            "<section>\n<h2>{title} over time</h2>\n{LEGEND}<div class=\"row curves\"><div class=\"who\"><small>{words}</small></div>\
             <div class=\"scale\" data-top=\"{top}\">{}</div></div>\n{axis}</section>\n",
            curves.draw(&columns, &format!("{title} over time: {words}"))
        )
    };
    let results = &run.ended.results;
    let rates = Curves::rates(&columns, &shown);
    let depths = Curves::depths(&columns, &shown);
    let mean = format!(
        "read {}, written {} on average",
        text::rate(results.rate(&results.reads)),
        text::rate(results.rate(&results.writes))
    );
    let top = format!("{} MB/s", text::short(rates.top / 1e6));
    let deepest = format!("at most {} at once", activity.depth_max);
    section("Throughput", &rates, &top, &mean)
        + &section("Requests in flight", &depths, &text::short(depths.top), &deepest)
}
