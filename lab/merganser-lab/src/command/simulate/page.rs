//! The results of a run as one page that is complete in itself, in the style of a sort's report.

use std::fmt::Write;

use merganser_device::results::{Class, DeviceResults};
use merganser_pages::frame::{REPORT_AS_DATA, document};
use merganser_pages::{frame, text};
use merganser_shell::report::page::chart::{Columns, Curves};
use merganser_sort::activity::{ActivityReport, TransferReport};

use super::measured::MeasuredRun;
use super::table;
use super::table::{PERCENTILES, component_name};
use super::{stream_report, time_series};
use merganser_pages::{Chart, ChartSeries};
use text::Escaped;

/// Drawings of the plot module have a size of their own.
const PLOTS: &str = ".plot svg { height: auto; background: #ffffff; }\n";

/// The page's text.
pub(super) fn page(run: &MeasuredRun) -> String {
    let MeasuredRun { model, results, .. } = run;
    let mut body = head(run);
    body.push_str("<main>\n");
    body.push_str(&stream_report::section(run));
    body.push_str(&throughput(results));
    body.push_str(&time_series::sections(results));
    body.push_str(&latencies(results));
    body.push_str(&parts(results));
    body.push_str(&details(run));
    body.push_str("</main>\n");
    document(&format!("merganser simulate: {}", model.name()), PLOTS, &body, REPORT_AS_DATA)
}

fn head(run: &MeasuredRun) -> String {
    let MeasuredRun { model, results, .. } = run;
    let all = results.reads.with(&results.writes);
    let mut figures = vec![
        ("Virtual time", text::seconds(results.seconds())),
        ("Throughput", text::rate(results.rate(&all))),
        ("Requests per second", text::significant(results.requests_per_second(&all))),
        ("Mean latency", text::seconds(all.latency.mean() / 1e9)),
        ("99 of 100 within", text::seconds(all.latency.percentile(0.99) as f64 / 1e9)),
    ];
    if let Some(flash) = &results.flash {
        figures.push(("Write amplification", format!("{:.2}", flash.write_amplification())));
    }
    figures.push(("Energy", format!("{} J", text::significant(results.joules()))));
    let before = run.preconditioned.map_or(String::new(), |done| {
        format!(
            "<p>Before, {} were filled and {} overwritten; write amplification had come to {:.3}{}.</p>\n",
            text::bytes(done.filled_bytes),
            text::bytes(done.overwritten_bytes),
            done.write_amplification,
            if done.steady { "" } else { ", and was not steady yet" }
        )
    });
    format!(
        "<header>\n<h1>merganser simulate</h1>\n<p class=\"lead\"><bdi>{}</bdi> on {}</p>\n<p>{}</p>\n{before}\
         {}</header>\n",
        Escaped(&run.load),
        model.name(),
        Escaped(model.about()),
        frame::figures(&figures)
    )
}

fn throughput(results: &DeviceResults) -> String {
    let bins = results.timeline.read().len().max(1);
    let zeros = || vec![0; bins];
    let transfers = |bytes: &[u64], count| TransferReport {
        count,
        in_flight_max: 0,
        bytes: if bytes.is_empty() { zeros() } else { bytes.to_vec() },
        in_flight_ns: zeros(),
    };
    let activity = ActivityReport {
        end_ns: results.elapsed_ns.max(1),
        bin_ns: results.timeline.bin_ns(),
        phases: Vec::new(),
        workers: Vec::new(),
        reads: transfers(results.timeline.read(), results.reads.requests),
        writes: transfers(results.timeline.written(), results.writes.requests),
    };
    let columns = Columns::of_activity(&activity);
    let curves = Curves::rates(&columns, &activity);
    let words = format!(
        "read {}, written {} on average",
        text::rate(results.rate(&results.reads)),
        text::rate(results.rate(&results.writes))
    );
    let drawn = curves.draw(&columns, &format!("Throughput over time: {words}"));
    let ticks = time_series::ticks(results);
    format!(
        "<section>\n<h2>Throughput over virtual time</h2>\n<ul class=\"legend\"><li><i class=\"reading\"></i>reads</li>\
         <li><i class=\"writing\"></i>writes</li></ul>\n\
         <div class=\"row curves\"><div class=\"who\"><small>{words}</small></div>\
         <div class=\"scale\" data-top=\"{} MB/s\">{drawn}</div></div>\n\
         {ticks}</section>\n",
        text::short(curves.top / 1e6)
    )
}

/// Share of requests that take longer, over latency.
fn latencies(results: &DeviceResults) -> String {
    let curve = |name: &str, class: &Class| {
        let mut seen = 0;
        let points = class
            .latency
            .buckets()
            .map(|bucket| {
                seen += bucket.count;
                let share = seen as f64 * 100.0 / class.requests as f64;
                ((bucket.high as f64 / 1e3).max(1e-3), share)
            })
            .collect();
        ChartSeries { name: name.to_owned(), paper: false, points }
    };
    let kinds =
        [("reads", &results.reads), ("writes", &results.writes), ("others", &results.others)];
    let present: Vec<_> = kinds.into_iter().filter(|(_, class)| class.requests > 0).collect();
    let series: Vec<ChartSeries> = present.iter().map(|(name, class)| curve(name, class)).collect();
    let axes = ["latency, us (logarithmic)".to_owned(), "% of requests within it".to_owned()];
    let plot = Chart::Lines { title: "Latency".to_owned(), axes, series };
    let heads: String = present.iter().map(|(name, _)| format!("<th>{name}</th>")).collect();
    let row = |name: &str, figure: &dyn Fn(&Class) -> String| {
        let cells = present.iter().map(|(_, class)| format!("<td>{}</td>", figure(class)));
        format!("<tr><th>{name}</th>{}</tr>\n", cells.collect::<String>())
    };
    let seconds = |ns: f64| text::seconds(ns / 1e9);
    let mut rows = row("requests", &|class| text::count(class.requests));
    rows += &row("mean", &|class| seconds(class.latency.mean()));
    rows += &row("min", &|class| seconds(class.latency.min() as f64));
    for (share, name) in PERCENTILES {
        rows += &row(name, &|class| seconds(class.latency.percentile(share) as f64));
    }
    format!(
        "<section>\n<h2>Latency</h2>\n<div class=\"plot\">{}</div>\n<table>\n<thead><tr><th></th>{heads}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</section>\n",
        plot.svg()
    )
}

fn parts(results: &DeviceResults) -> String {
    let mut section =
        "<section>\n<h2>How busy each part was</h2>\n<ul class=\"bars\">\n".to_owned();
    for part in &results.uses {
        let share = (results.utilisation(part) * 100.0).min(100.0);
        let _ = writeln!(
            section,
            "<li>{} {} <span>{share:.1} % ({} jobs)</span><div class=\"bar busy\" style=\"width:{share:.1}%\"></div></li>",
            component_name(part.part),
            part.index,
            text::count(part.services)
        );
    }
    section.push_str("</ul>\n</section>\n<section>\n<h2>Energy</h2>\n<table>\n");
    section.push_str("<thead><tr><th>Component</th><th>Watts while busy</th><th>Busy</th><th>Joules</th></tr></thead>\n<tbody>\n");
    for part in &results.energy {
        let _ = writeln!(
            section,
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
            part.part.map_or("device at rest", component_name),
            part.watts,
            text::seconds(part.busy_seconds),
            text::significant(part.joules)
        );
    }
    section.push_str("</tbody>\n</table>\n<p class=\"quiet\">From stated powers of components, not from a measurement.</p>\n</section>\n");
    section
}

fn details(run: &MeasuredRun) -> String {
    let mut section = format!(
        "<section>\n<details><summary>All figures, as the command prints them</summary>\n<pre>{}</pre></details>\n\
         <details><summary>What the device is made of</summary>\n<table>\n<thead><tr><th>Parameter</th><th>Value</th>\
         <th>Unit</th><th>Source</th></tr></thead>\n<tbody>\n",
        table::of_run(run).lines().map(|line| format!("{}\n", Escaped(line))).collect::<String>()
    );
    for line in run.model.parameters() {
        let _ = writeln!(
            section,
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
            line.name,
            line.value,
            Escaped(&line.unit),
            Escaped(line.source)
        );
    }
    section.push_str("</tbody>\n</table>\n</details>\n</section>\n");
    section
}
