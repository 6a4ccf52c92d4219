//! `merganser simulate run`.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use merganser_device::device::Device;
use merganser_device::results::{Collector, EndedRequest};
use merganser_results::kept::ReportFile;
use merganser_shell::config::ReportForm;
use merganser_shell::failure::Failure;
use merganser_shell::input::Input;
use merganser_shell::signals::Cancel;
use merganser_shell::standard::print;

use super::latencies::Latencies;
use super::measured::MeasuredRun;
use super::model::ModelledDevice;
use super::{data, page, play, streams, table};
use crate::config::{PlayedLoad, SimulateRun};

/// Plays the requests and prints the results.
pub(super) fn run(config: &SimulateRun, cancel: &Cancel) -> Result<(), Failure> {
    let model = ModelledDevice::chosen(&config.device)?;
    let mut device = play::device(&model, config)?;
    check(&*device, config, cancel)?;
    // A file that can't be written is an error now, not after the run. Until there are results, it stays as it is.
    let report =
        |(path, form): &(PathBuf, ReportForm)| Ok::<_, Failure>((ReportFile::open(path)?, *form));
    let report = config.report.as_ref().map(report).transpose()?;
    let latencies = config.latencies.as_deref().map(ReportFile::open).transpose()?;
    let started = Instant::now();
    let preconditioned = play::worn(&mut *device, config, cancel)?;
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
            let workload = play::workload(&*device, of, config.device.seed)?;
            let asked = play::requests(&workload, cancel)?;
            let played = play::alone(&mut *device, asked, workload.pace(), &mut count);
            (played.map_err(play::failure)?, table::words(&workload))
        }
        PlayedLoad::Streams(choices) => {
            let (played, found) =
                streams::together(&mut *device, choices, config, &mut count, cancel)?;
            shares = found;
            (played, format!("{} streams", choices.len()))
        }
        PlayedLoad::Trace { input, reading, times, depth } => {
            let (played, found, words) =
                play::traced(&mut *device, (input, reading, *times, *depth), &mut count, cancel)?;
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

/// Whether the device can be asked for the requests: before the time that preconditioning takes.
fn check(device: &dyn Device, config: &SimulateRun, cancel: &Cancel) -> Result<(), Failure> {
    match &config.load {
        PlayedLoad::Made(made) => {
            play::requests(&play::workload(device, made, config.device.seed)?, cancel).map(drop)
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
