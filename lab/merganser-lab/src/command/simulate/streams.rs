//! Several workloads on one device: together, and each alone on a device in the same state.

use merganser_device::device::Device;
use merganser_device::request::DeviceRequest;
use merganser_device::results::{PlayedSpan, Share};
use merganser_device::trace::TraceError;
use merganser_device::workload::{RequestStream, Workload, play_streams};
use merganser_shell::failure::Failure;
use merganser_shell::signals::Cancel;

use super::measured::MeasuredStream;
use super::model::ModelledDevice;
use super::{play, table};
use crate::config::{SimulateRun, StreamChoice};

/// The workload of the stream with this index. Each has a seed of its own; the first has that of a run
/// without streams.
fn workload(
    device: &dyn Device,
    choice: &StreamChoice,
    index: usize,
    config: &SimulateRun,
) -> Result<Workload, Failure> {
    play::workload(device, &choice.made, config.device.seed.wrapping_add(index as u64))
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
        let requests = play::requests(&workload, cancel).map_err(|f| named(&choice.name, f))?;
        streams.push(RequestStream { requests, pace: workload.pace(), begin: choice.begin });
    }
    Ok(streams)
}

/// Whether the device can be asked for the requests.
pub(super) fn check(
    device: &dyn Device,
    choices: &[StreamChoice],
    config: &SimulateRun,
    cancel: &Cancel,
) -> Result<(), Failure> {
    drawn(device, choices, config, cancel).map(drop)
}

/// Plays all streams to `device`.
pub(super) fn together(
    device: &mut dyn Device,
    choices: &[StreamChoice],
    config: &SimulateRun,
    count: &mut play::EndedCallback<'_>,
    cancel: &Cancel,
) -> Result<(PlayedSpan, Vec<Share>), Failure> {
    let streams = drawn(device, choices, config, cancel)?;
    let mut shares = vec![Share::default(); choices.len()];
    let played = play_streams(device, streams, &mut |device, ended| {
        count(device, ended);
        shares[ended.stream].next_to_others(ended);
    });
    Ok((played.map_err(play::failure)?, shares))
}

/// Plays each stream to a device of its own, and compares the requests that its share compares.
pub(super) fn alone(
    model: &ModelledDevice,
    choices: &[StreamChoice],
    shares: Vec<Share>,
    config: &SimulateRun,
    cancel: &Cancel,
) -> Result<Vec<MeasuredStream>, Failure> {
    let mut measured = Vec::with_capacity(choices.len());
    for (index, (choice, shared)) in choices.iter().zip(shares).enumerate() {
        let mut device = play::device(model, config)?;
        play::worn(&mut *device, config, cancel)?;
        let workload = workload(&*device, choice, index, config)?;
        let requests = play::requests(&workload, cancel)?;
        let stream = RequestStream { requests, pace: workload.pace(), begin: choice.begin };
        let mut alone = Share::comparing(shared.compared.clone());
        let played = play_streams(&mut *device, vec![stream], &mut |_, ended| alone.alone(ended));
        played.map_err(play::failure)?;
        let (name, load) = (choice.name.clone(), table::words(&workload));
        measured.push(MeasuredStream { name, load, begin: choice.begin, shared, alone });
    }
    Ok(measured)
}
