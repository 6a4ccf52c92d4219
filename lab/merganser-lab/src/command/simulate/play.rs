//! Plays the requests of a run: makes its device, wears it, and draws or reads the requests.

use std::io;

use merganser_device::device::Device;
use merganser_device::request::{DeviceRequest, SimTime};
use merganser_device::results::{EndedRequest, PlayedSpan};
use merganser_device::trace::{
    self, AddressConversion, NoRequest, Repeat, Tally, TraceError, TraceOptions,
};
use merganser_device::workload::{
    PlayError, PreconditionError, Preconditioned, Preconditioning, RequestStream, SubmissionPace,
    Workload, WorkloadError, play_streams, precondition,
};
use merganser_results::stopped::Stopped;
use merganser_shell::failure::Failure;
use merganser_shell::input::Input;
use merganser_shell::progress;
use merganser_shell::signals::Cancel;

use super::model::ModelledDevice;
use super::opened;
use crate::args::Filled;
use crate::config::{PlayedLoad, SimulateRun, SyntheticRequests, TraceReading};

/// Gets each request that has ended.
pub(super) type EndedCallback<'a> = dyn FnMut(&dyn Device, &EndedRequest) + 'a;

/// Plays requests that are the only stream.
pub(super) fn alone(
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
        PlayError::Trace(TraceError::Io(error)) if Stopped::of_error(&error).is_some() => {
            Failure::named(&error)
        }
        PlayError::Trace(error) => trace_sentence(&error).into(),
        error => error.to_string().into(),
    }
}

/// Plays a trace, and says what it was.
pub(super) fn traced(
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
