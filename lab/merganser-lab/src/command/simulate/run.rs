//! `merganser simulate run`.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use merganser_device::device::Device;
use merganser_device::request::{DeviceRequest, SimTime};
use merganser_device::results::{Collector, EndedRequest, PlayedSpan};
use merganser_device::trace::{
    self, AddressConversion, NoRequest, Repeat, Tally, TraceError, TraceOptions,
};
use merganser_device::workload::{
    PlayError, PreconditionError, Preconditioned, Preconditioning, RequestStream, SubmissionPace,
    Workload, WorkloadError, play_streams, precondition,
};
use merganser_shell::config::ReportForm;
use merganser_shell::failure::{Failure, Stopped};
use merganser_shell::input::Input;
use merganser_shell::kept::ReportFile;
use merganser_shell::progress;
use merganser_shell::signals::Cancel;
use merganser_shell::standard::print;

use super::latencies::Latencies;
use super::measured::MeasuredRun;
use super::model::ModelledDevice;
use super::{data, opened, page, streams, table};
use crate::args::Filled;
use crate::config::{PlayedLoad, SimulateRun, SyntheticRequests, TraceReading};

/// Plays the requests and prints the results.
pub fn run(config: &SimulateRun, cancel: &Cancel) -> Result<(), Failure> {
    let model = ModelledDevice::chosen(&config.device)?;
    let mut device = device(&model, config)?;
    check(&*device, config, cancel)?;
    // A file that can't be written is an error now, not after the run. Until there are results, it stays as it is.
    let report =
        |(path, form): &(PathBuf, ReportForm)| Ok::<_, Failure>((ReportFile::open(path)?, *form));
    let report = config.report.as_ref().map(report).transpose()?;
    let latencies = config.latencies.as_deref().map(ReportFile::open).transpose()?;
    let started = Instant::now();
    let preconditioned = worn(&mut *device, config, cancel)?;
    let mut collector = Collector::new(&*device);
    let title = format!("played to {}, with the time that each request took", device.name());
    let mut latencies = latencies.map(|kept| Latencies::new(kept, title, device.now()));
    let mut count = |device: &dyn Device, ended: &EndedRequest| {
        collector.served(device, ended.kind, ended.len, ended.submitted, ended.at);
        if let Some(latencies) = &mut latencies {
            latencies.add(ended);
        }
    };
    let (mut tally, mut shares) = (None, Vec::new());
    let (played, load) = match &config.load {
        PlayedLoad::Made(of) => {
            let workload = workload(&*device, of, config.device.seed)?;
            let asked = requests(&workload, cancel)?;
            let played = alone(&mut *device, asked, workload.pace(), &mut count);
            (played.map_err(failure)?, table::words(&workload))
        }
        PlayedLoad::Streams(choices) => {
            let (played, found) =
                streams::together(&mut *device, choices, config, &mut count, cancel)?;
            shares = found;
            (played, format!("{} streams", choices.len()))
        }
        PlayedLoad::Trace { input, reading, times, depth } => {
            let (played, found, words) =
                traced(&mut *device, (input, reading, *times, *depth), &mut count, cancel)?;
            tally = Some(found);
            (played, words)
        }
    };
    // An error here is reported last: what was measured is not lost.
    let written = latencies.map_or(Ok(()), Latencies::finish);
    let results = collector.finish(&*device, played, &model.power());
    let wall_seconds = started.elapsed().as_secs_f64();
    // Its memory is for the devices on which the streams are alone.
    drop(device);
    let streams = match &config.load {
        PlayedLoad::Streams(choices) => streams::alone(&model, choices, shares, config, cancel)?,
        PlayedLoad::Made(_) | PlayedLoad::Trace { .. } => Vec::new(),
    };
    let seed = config.device.seed;
    let run =
        MeasuredRun { model, seed, load, preconditioned, tally, results, streams, wall_seconds };
    let as_data = || format!("{:#}\n", data::of_run(&run));
    print(&if config.json { as_data() } else { table::of_run(&run) })?;
    match report {
        Some((kept, ReportForm::Html)) => kept.write(&page::page(&run))?,
        Some((kept, ReportForm::Json)) => kept.write(&as_data())?,
        None => {}
    }
    written
}

/// Gets each request that has ended.
pub(super) type EndedCallback<'a> = dyn FnMut(&dyn Device, &EndedRequest) + 'a;

/// Plays requests that are the only stream.
fn alone(
    device: &mut dyn Device,
    requests: impl Iterator<Item = Result<DeviceRequest, TraceError>>,
    pace: SubmissionPace,
    count: &mut EndedCallback<'_>,
) -> Result<PlayedSpan, PlayError> {
    play_streams(device, vec![RequestStream { requests, pace, begin: SimTime(0) }], count)
}

/// The device, filled if that is asked for.
pub(super) fn device(
    model: &ModelledDevice,
    config: &SimulateRun,
) -> Result<Box<dyn Device>, Failure> {
    let end = |made: &SyntheticRequests| {
        made.span_bytes.map_or(u64::MAX, |span| made.start.saturating_add(span))
    };
    let filled_bytes = match (config.filled, &config.load) {
        (None, _) => 0,
        (Some(Filled::Addressed), PlayedLoad::Made(made)) => end(made),
        (Some(Filled::Addressed), PlayedLoad::Streams(choices)) => {
            choices.iter().map(|choice| end(&choice.made)).max().unwrap_or(0)
        }
        (Some(Filled::First(size)), _) => size.0,
        (Some(Filled::All), _) | (Some(Filled::Addressed), PlayedLoad::Trace { .. }) => u64::MAX,
    };
    model.device(config.device.seed, filled_bytes)
}

/// Whether the device can be asked for the requests: before the time that preconditioning takes.
fn check(device: &dyn Device, config: &SimulateRun, cancel: &Cancel) -> Result<(), Failure> {
    match &config.load {
        PlayedLoad::Made(made) => {
            requests(&workload(device, made, config.device.seed)?, cancel).map(drop)
        }
        PlayedLoad::Streams(choices) => streams::check(device, choices, config, cancel),
        PlayedLoad::Trace { input, .. } => readable(input, cancel),
    }
}

/// Refuses a trace that is not there, or may not be read. A pipe is not opened: if it were closed again, its
/// writer would have lost its reader.
fn readable(input: &Input, cancel: &Cancel) -> Result<(), Failure> {
    match input {
        Input::File(path)
            if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) =>
        {
            Ok(())
        }
        Input::File(_) | Input::Stdin => input.open(cancel).map(drop),
    }
}

/// Preconditions the device, if that is asked for, with a bar.
pub(super) fn worn(
    device: &mut dyn Device,
    config: &SimulateRun,
    cancel: &Cancel,
) -> Result<Option<Preconditioned>, Failure> {
    let Some((bounds, by_workload)) = config.precondition else { return Ok(None) };
    let by = match &config.load {
        PlayedLoad::Made(made) if by_workload => Some(workload(device, made, config.device.seed)?),
        _ => None,
    };
    let bar = progress::on_stderr(false, cancel);
    let how = Preconditioning {
        bounds,
        seed: config.device.seed,
        by: by.as_ref(),
        progress: &|bytes| bar.advance(bytes),
        cancelled: &|| bar.cancelled(),
    };
    // It ends sooner when the device is steady.
    bar.phase("precondition", Some(how.bytes_max(device.capacity_bytes())));
    precondition(device, &how).map(Some).map_err(|error| match error {
        PreconditionError::Cancelled => Failure::Cancelled,
        error => format!("--precondition: {error}").into(),
    })
}

/// The workload of generated requests.
pub(super) fn workload(
    device: &dyn Device,
    made: &SyntheticRequests,
    seed: u64,
) -> Result<Workload, Failure> {
    let room = device.capacity_bytes().saturating_sub(made.start);
    let span_bytes = made.span_bytes.unwrap_or(room);
    if span_bytes > room {
        let (start, capacity) = (made.start, device.capacity_bytes());
        return Err(format!(
            "--span: byte {start} and {span_bytes} more, but {} has {capacity}",
            device.name()
        )
        .into());
    }
    Ok(Workload {
        pattern: made.pattern,
        read_share: made.read_share,
        sizes: made.sizes.clone(),
        arrivals: made.arrivals,
        requests: made.requests,
        start: made.start,
        span_bytes,
        align_bytes: made.align_bytes,
        seed,
    })
}

/// The requests of `workload`, until the end is asked for.
pub(super) fn requests<'a>(
    workload: &Workload,
    cancel: &'a Cancel,
) -> Result<impl Iterator<Item = Result<DeviceRequest, TraceError>> + use<'a>, Failure> {
    let drawn = workload.requests().map_err(|error| Failure::from(flag(&error)))?;
    Ok(drawn.map(move |request| wanted(request, cancel)))
}

/// Which flag a workload's error is about.
fn flag(error: &WorkloadError) -> String {
    let flag = match error {
        WorkloadError::Span { .. } => "--span",
        WorkloadError::Setting { what, .. } => match *what {
            "share of reads" => "--read",
            "share of random requests" => "--random",
            "exponent of Zipf's law" => "--theta",
            "alignment" => "--align",
            "queue depth" => "--depth",
            _ => "--size",
        },
    };
    format!("{flag}: {error}")
}

fn wanted(request: DeviceRequest, cancel: &Cancel) -> Result<DeviceRequest, TraceError> {
    if cancel.is_set() { Err(io::Error::from(Stopped::Cancelled).into()) } else { Ok(request) }
}

/// The error of a trace, with the option that helps.
pub(super) fn trace_sentence(error: &TraceError) -> String {
    let remedy = match error {
        TraceError::NoRequest { why: NoRequest::OtherEvent { event }, .. } => {
            format!("; give --event {}", event.name())
        }
        TraceError::NoRequest { why: NoRequest::OtherDisks, .. } => {
            "; give another --unit".to_owned()
        }
        TraceError::NoRequest { why: NoRequest::OtherLines, .. } => {
            "; record or print the trace again with its requests".to_owned()
        }
        _ => String::new(),
    };
    format!("{error}{remedy}")
}

pub(super) fn failure(error: PlayError) -> Failure {
    match error {
        PlayError::Trace(TraceError::Io(error)) if Stopped::of(&error).is_some() => {
            Failure::named(&error)
        }
        PlayError::Trace(error) => trace_sentence(&error).into(),
        error => error.to_string().into(),
    }
}

fn traced(
    device: &mut dyn Device,
    (input, reading, times, depth): (&Input, &TraceReading, u64, Option<u32>),
    count: &mut EndedCallback<'_>,
    cancel: &Cancel,
) -> Result<(PlayedSpan, Tally, String), Failure> {
    let capacity = device.capacity_bytes();
    let mut options = TraceOptions { limit_bytes: Some(capacity), ..reading.options.clone() };
    if reading.wrap {
        options.address = AddressConversion::Wrapped(capacity);
    }
    let open = || {
        let reader = opened::open(input, cancel).map_err(|failure| {
            let why = failure.sentence().unwrap_or("cancelled").to_owned();
            TraceError::Io(io::Error::other(why))
        })?;
        trace::read(reader, &options)
    };
    let pace = depth.map_or(SubmissionPace::Open, SubmissionPace::Closed);
    let mut repeat = Repeat::new(times, open);
    let asked = repeat.by_ref().map(|request| wanted(request?, cancel));
    let played = alone(device, asked, pace, count).map_err(|error| match failure(error) {
        Failure::Cancelled => Failure::Cancelled,
        failure => format!("{input}: {}", failure.sentence().unwrap_or_default()).into(),
    })?;
    let tally = repeat.tally();
    let format = repeat.format().map_or("empty", |format| format.name());
    let how = match (depth, times) {
        (Some(depth), 1) => format!(", {depth} in flight"),
        (Some(depth), times) => format!(", {depth} in flight, {times} times"),
        (None, 1) => ", at its times".to_owned(),
        (None, times) => format!(", at its times, {times} times"),
    };
    Ok((played, tally, format!("trace {input} ({format}){how}")))
}
