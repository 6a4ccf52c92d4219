//! Several workloads on one device: together, and each alone on a device in the same state.

use std::fmt::Write;

use merganser_device::device::Device;
use merganser_device::request::{DeviceRequest, SimTime};
use merganser_device::results::{Class, Fairness, PlayedSpan, Share};
use merganser_device::trace::TraceError;
use merganser_device::workload::{RequestStream, Workload, play_streams};
use merganser_pages::text;
use merganser_shell::failure::Failure;
use merganser_shell::signals::Cancel;
use serde_json::{Value, json};

use super::measured::MeasuredRun;
use super::model::ModelledDevice;
use super::{run, table};
use crate::config::{SimulateRun, StreamChoice};
use text::Escaped;

/// A stream of a run.
pub struct MeasuredStream {
    /// Its name.
    pub name: String,
    /// Its workload, in words.
    pub load: String,
    /// When it begins.
    pub begin: SimTime,
    /// Next to the others.
    pub shared: Share,
    /// Without the others.
    pub alone: Share,
}

impl MeasuredStream {
    /// Its slowdown; `None` if the streams were never active together.
    pub fn slowdown(&self) -> Option<f64> {
        self.shared.slowdown(&self.alone)
    }
}

/// The workload of the stream with this index. Each has a seed of its own; the first has that of a run
/// without streams.
fn workload(
    device: &dyn Device,
    choice: &StreamChoice,
    index: usize,
    config: &SimulateRun,
) -> Result<Workload, Failure> {
    run::workload(device, &choice.made, config.device.seed.wrapping_add(index as u64))
        .map_err(|failure| named(&choice.name, failure))
}

/// A failure about an option, as one about the key of a stream.
fn named(name: &str, failure: Failure) -> Failure {
    match failure.sentence() {
        Some(why) => format!("--stream {name}: {}", why.trim_start_matches("--")).into(),
        None => failure,
    }
}

/// The requests of all streams.
fn drawn<'a>(
    device: &dyn Device,
    choices: &[StreamChoice],
    config: &SimulateRun,
    cancel: &'a Cancel,
) -> Result<
    Vec<RequestStream<impl Iterator<Item = Result<DeviceRequest, TraceError>> + use<'a>>>,
    Failure,
> {
    let mut streams = Vec::with_capacity(choices.len());
    for (index, choice) in choices.iter().enumerate() {
        let workload = workload(device, choice, index, config)?;
        let requests = run::requests(&workload, cancel).map_err(|f| named(&choice.name, f))?;
        streams.push(RequestStream { requests, pace: workload.pace(), begin: choice.begin });
    }
    Ok(streams)
}

/// Whether the device can be asked for the requests.
pub fn check(
    device: &dyn Device,
    choices: &[StreamChoice],
    config: &SimulateRun,
    cancel: &Cancel,
) -> Result<(), Failure> {
    drawn(device, choices, config, cancel).map(drop)
}

/// Plays all streams to `device`.
pub fn together(
    device: &mut dyn Device,
    choices: &[StreamChoice],
    config: &SimulateRun,
    count: &mut run::EndedCallback<'_>,
    cancel: &Cancel,
) -> Result<(PlayedSpan, Vec<Share>), Failure> {
    let streams = drawn(device, choices, config, cancel)?;
    let mut shares = vec![Share::default(); choices.len()];
    let played = play_streams(device, streams, &mut |device, ended| {
        count(device, ended);
        shares[ended.stream].next_to_others(ended);
    });
    Ok((played.map_err(run::failure)?, shares))
}

/// Plays each stream to a device of its own, and compares the requests that its share compares.
pub fn alone(
    model: &ModelledDevice,
    choices: &[StreamChoice],
    shares: Vec<Share>,
    config: &SimulateRun,
    cancel: &Cancel,
) -> Result<Vec<MeasuredStream>, Failure> {
    let mut measured = Vec::with_capacity(choices.len());
    for (index, (choice, shared)) in choices.iter().zip(shares).enumerate() {
        let mut device = run::device(model, config)?;
        run::worn(&mut *device, config, cancel)?;
        let workload = workload(&*device, choice, index, config)?;
        let requests = run::requests(&workload, cancel)?;
        let stream = RequestStream { requests, pace: workload.pace(), begin: choice.begin };
        let mut alone = Share::comparing(shared.compared.clone());
        let played = play_streams(&mut *device, vec![stream], &mut |_, ended| alone.alone(ended));
        played.map_err(run::failure)?;
        let (name, load) = (choice.name.clone(), table::words(&workload));
        measured.push(MeasuredStream { name, load, begin: choice.begin, shared, alone });
    }
    Ok(measured)
}

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
pub fn table(run: &MeasuredRun) -> String {
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
pub fn section(run: &MeasuredRun) -> String {
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
pub fn data(run: &MeasuredRun) -> (Value, Value) {
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
