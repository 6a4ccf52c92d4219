//! `merganser simulate array`.

use std::fmt::Write as _;
use std::io;
use std::time::Instant;

use merganser_device::request::DeviceRequest;
use merganser_device::trace::{self, AddressConversion, TraceError, TraceOptions};
use merganser_pages::text;
use merganser_papers::hcdd::{
    Contents, Duplicates, HybridNode, NodeError, ResponseTimes, SubmissionPace,
};
use merganser_results::stopped::Stopped;
use merganser_shell::failure::Failure;
use merganser_shell::input::Input;
use merganser_shell::signals::Cancel;
use merganser_shell::standard::print;
use serde_json::{Value, json};

use super::opened;
use super::play::trace_sentence;
use crate::config::SimulateArray;

/// A trace that was played.
struct PlayedTrace {
    trace: String,
    format: &'static str,
    measured: ResponseTimes,
    /// Time that the simulation took.
    wall_seconds: f64,
}

/// Plays each trace on a node of its own and prints the results.
pub(super) fn run(config: &SimulateArray, cancel: &Cancel) -> Result<(), Failure> {
    let runs: Result<Vec<PlayedTrace>, Failure> =
        config.traces.iter().map(|input| play(config, input, cancel)).collect();
    let runs = runs?;
    let setup = &config.setup;
    let name = setup.arrangement.name();
    let (ssds, hdds) = setup.members;
    if config.json {
        let all: Vec<Value> = runs.iter().map(data).collect();
        let played = json!({
            "config": name,
            "devices": { "ssd": setup.ssd.name, "hdd": setup.hdd.name },
            "members": { "ssds": ssds, "hdds": hdds },
            "buffer_bytes": setup.buffer_bytes,
            "duplicates": config.duplicates,
            "seed": setup.seed,
            "runs": all,
        });
        return print(format!("{played:#}\n"));
    }
    let mut out =
        format!("config        {name}: {ssds} x {}, {hdds} x {}\n", setup.ssd.name, setup.hdd.name);
    runs.iter().for_each(|run| table(&mut out, run));
    print(out)
}

fn play(config: &SimulateArray, input: &Input, cancel: &Cancel) -> Result<PlayedTrace, Failure> {
    let node = HybridNode::new(&config.setup).map_err(Failure::from)?;
    let bytes = node.volume_bytes();
    let mut options = TraceOptions { limit_bytes: Some(bytes), ..config.reading.options.clone() };
    if config.reading.wrap {
        options.address = AddressConversion::Wrapped(bytes);
    }
    let on_input = |why: &dyn std::fmt::Display| Failure::from(format!("{input}: {why}"));
    let mut trace =
        trace::read(opened::open(input, cancel)?, &options).map_err(|error| on_input(&error))?;
    let format = trace.format().name();
    let mut contents = match config.duplicates {
        None => Contents::Trace,
        Some(share) => Contents::Drawn(Duplicates::new(share, config.setup.seed)),
    };
    let started = Instant::now();
    let requests = trace.by_ref().map(|request| -> Result<DeviceRequest, TraceError> {
        if cancel.is_set() {
            return Err(io::Error::from(Stopped::Cancelled).into());
        }
        Ok(contents.give(request?))
    });
    let pace = config.depth.map_or(SubmissionPace::Open, SubmissionPace::Closed);
    let measured = node.play(requests, pace).map_err(|error| match error {
        NodeError::Requests(_) if cancel.is_set() => Failure::Cancelled,
        NodeError::Requests(error) => on_input(&trace_sentence(&error)),
        error => on_input(&error),
    })?;
    let wall_seconds = started.elapsed().as_secs_f64();
    Ok(PlayedTrace { trace: input.to_string(), format, measured, wall_seconds })
}

fn table(out: &mut String, run: &PlayedTrace) {
    let PlayedTrace { trace, format, measured, wall_seconds } = run;
    let all = measured.all();
    let _ = writeln!(out, "\ntrace         {trace} ({format})");
    for (name, class) in [("reads", &measured.reads), ("writes", &measured.writes)] {
        let _ = writeln!(
            out,
            "{name:<14}{}, mean response {}, 99 of 100 within {}",
            text::count(class.count()),
            text::seconds(class.mean() / 1e9),
            text::seconds(class.percentile(0.99) as f64 / 1e9)
        );
    }
    let _ = writeln!(out, "response      {} on average", text::seconds(all.mean() / 1e9));
    let _ = writeln!(
        out,
        "processing    {} (the sum of all responses)",
        text::seconds(measured.sum_seconds())
    );
    let _ = writeln!(
        out,
        "virtual time  {} to the last response, {} to an empty buffer",
        text::seconds(measured.elapsed.0 as f64 / 1e9),
        text::seconds(measured.drained.0 as f64 / 1e9)
    );
    if measured.held > 0 {
        let _ = writeln!(
            out,
            "full buffer   {} times writes waited for room",
            text::count(measured.held)
        );
    }
    if let Some(counters) = &measured.counters {
        let _ = writeln!(
            out,
            "pages         {} written, {} overwritten in the buffer, {} duplicates ({}), {} stored",
            text::count(counters.pages_written),
            text::count(counters.pages_absorbed),
            text::count(counters.pages_duplicate),
            text::percent(counters.dedup_rate()),
            text::count(counters.pages_stored)
        );
    }
    let flash = &measured.flash;
    let _ = writeln!(
        out,
        "members       {} written to the SSDs, {} to the disks",
        text::bytes(flash.host_bytes),
        text::bytes(measured.hdd_bytes)
    );
    let _ = writeln!(
        out,
        "flash         {} pages programmed, {} blocks erased",
        text::count(flash.page_programs),
        text::count(flash.erases)
    );
    let rate = all.count() as f64 / wall_seconds.max(1e-9);
    let _ = writeln!(
        out,
        "simulation    {} ({} requests per second)",
        text::seconds(*wall_seconds),
        text::count(rate as u64)
    );
}

fn data(run: &PlayedTrace) -> Value {
    let PlayedTrace { trace, format, measured, wall_seconds } = run;
    let class = |of: &merganser_device::results::Histogram| {
        json!({
            "requests": of.count(),
            "mean_ns": of.mean(),
            "p99_ns": of.percentile(0.99),
            "max_ns": of.max(),
        })
    };
    let counters = measured.counters.map(|counters| {
        counters
            .each()
            .map(|(name, count)| (name.to_owned(), json!(count)))
            .collect::<serde_json::Map<_, _>>()
    });
    json!({
        "trace": trace,
        "format": format,
        "reads": class(&measured.reads),
        "writes": class(&measured.writes),
        "others": class(&measured.others),
        "mean_response_ms": measured.mean_ms(),
        "processing_seconds": measured.sum_seconds(),
        "elapsed_ns": measured.elapsed.0,
        "drained_ns": measured.drained.0,
        "held": measured.held,
        "hashed_ns": measured.hashed_ns,
        "volume": counters,
        "dedup_rate": measured.counters.map(|counters| counters.dedup_rate()),
        "ssd_bytes_written": measured.flash.host_bytes,
        "ssd_pages_programmed": measured.flash.page_programs,
        "ssd_blocks_erased": measured.flash.erases,
        "hdd_bytes_written": measured.hdd_bytes,
        "wall_seconds": wall_seconds,
    })
}
