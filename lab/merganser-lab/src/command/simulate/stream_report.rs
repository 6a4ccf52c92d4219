//! The streams of a run, as lines of the table, as a section of the page, and as data.

use std::fmt::Write;

use merganser_device::results::{Class, Fairness, Share};
use merganser_pages::text;
use serde_json::{Value, json};
use text::Escaped;

use super::measured::{MeasuredRun, MeasuredStream};

/// The figures of a stream, next to others or alone: all requests, their rate and their latency.
fn all(share: &Share) -> (Class, f64) {
    let all = share.reads.with(&share.writes);
    let seconds = share.seconds();
    let rate = if seconds > 0.0 { all.requests as f64 / seconds } else { 0.0 };
    (all, rate)
}

fn slowdown_words(stream: &MeasuredStream) -> String {
    stream.slowdown().map_or("-".to_owned(), |slowdown| format!("{slowdown:.2}"))
}

fn fairness_words(run: &MeasuredRun) -> String {
    let compared: u64 = run.streams.iter().map(|stream| stream.shared.responses.count()).sum();
    match run.fairness() {
        Some(Fairness { least_over_greatest, jain }) => format!(
            "least over greatest slowdown {least_over_greatest:.3}, Jain's index {jain:.3}; by {} requests \
             that were submitted while all streams were active",
            text::count(compared)
        ),
        None => "not known: the streams were never active together".to_owned(),
    }
}

/// The lines of the table.
pub(super) fn table(run: &MeasuredRun) -> String {
    let mut out = "\n".to_owned();
    let _ = writeln!(
        out,
        "{:<12}{:>11}{:>11}{:>11}{:>11}  alone:{:>11}{:>11}{:>11}{:>10}",
        "stream",
        "requests",
        "a second",
        "mean, us",
        "p99, us",
        "a second",
        "mean, us",
        "p99, us",
        "slowdown"
    );
    for stream in &run.streams {
        let figures = |share: &Share| {
            let (class, rate) = all(share);
            let us = |ns: f64| text::significant(ns / 1e3);
            let p99 = class.latency.percentile(0.99) as f64;
            (class.requests, text::significant(rate), us(class.latency.mean()), us(p99))
        };
        let (requests, rate, mean, p99) = figures(&stream.shared);
        let (_, rate_alone, mean_alone, p99_alone) = figures(&stream.alone);
        let _ = writeln!(
            out,
            "{:<12}{:>11}{rate:>11}{mean:>11}{p99:>11}        {rate_alone:>11}{mean_alone:>11}{p99_alone:>11}{:>10}",
            stream.name,
            text::count(requests),
            slowdown_words(stream)
        );
    }
    for stream in &run.streams {
        let begin = match stream.begin.0 {
            0 => String::new(),
            ns => format!(", from {} on", text::seconds(ns as f64 / 1e9)),
        };
        let _ = writeln!(out, "  {}: {}{begin}", stream.name, stream.load);
    }
    let _ = writeln!(out, "fairness      {}", fairness_words(run));
    out
}

/// The section of the page.
pub(super) fn section(run: &MeasuredRun) -> String {
    if run.streams.is_empty() {
        return String::new();
    }
    let mut rows = String::new();
    for stream in &run.streams {
        let cells = |share: &Share| {
            let (class, rate) = all(share);
            let seconds = |ns: f64| text::seconds(ns / 1e9);
            let p99 = class.latency.percentile(0.99) as f64;
            format!(
                "<td>{}</td><td>{}</td><td>{}</td>",
                text::significant(rate),
                seconds(class.latency.mean()),
                seconds(p99)
            )
        };
        let _ = writeln!(
            rows,
            "<tr><th>{}<br /><small>{}</small></th>{}{}<td>{}</td></tr>",
            Escaped(&stream.name),
            Escaped(&stream.load),
            cells(&stream.shared),
            cells(&stream.alone),
            slowdown_words(stream)
        );
    }
    format!(
        "<section>\n<h2>Streams</h2>\n<table>\n<thead><tr><th>Stream</th><th>Requests per second</th><th>Mean</th>\
         <th>p99</th><th>Alone: requests per second</th><th>Mean</th><th>p99</th><th>Slowdown</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n<p class=\"quiet\">Slowdown: the mean response of requests next to the \
         other streams over that of the same requests alone. Fairness: {}.</p>\n</section>\n",
        fairness_words(run)
    )
}

/// As data: the streams, and the fairness.
pub(super) fn data(run: &MeasuredRun) -> (Value, Value) {
    let class = |of: &Class| {
        json!({
            "requests": of.requests,
            "bytes": of.bytes,
            "mean_ns": of.latency.mean(),
            "p99_ns": of.latency.percentile(0.99),
        })
    };
    let share = |of: &Share| {
        json!({
            "reads": class(&of.reads),
            "writes": class(&of.writes),
            "seconds": of.seconds(),
            "requests_per_second": all(of).1,
            "compared_mean_ns": of.responses.mean(),
            "compared_p99_ns": of.responses.percentile(0.99),
        })
    };
    let stream = |of: &MeasuredStream| {
        json!({
            "name": of.name,
            "workload": of.load,
            "begin_ns": of.begin.0,
            "compared_first": of.shared.compared.start,
            "compared_requests": of.shared.responses.count(),
            "together": share(&of.shared),
            "alone": share(&of.alone),
            "slowdown": of.slowdown(),
        })
    };
    let fairness = run.fairness().map(
        |found| json!({ "least_over_greatest": found.least_over_greatest, "jain": found.jain }),
    );
    (run.streams.iter().map(stream).collect(), json!(fairness))
}
