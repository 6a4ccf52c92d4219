//! `merganser emulate`: a modelled device in real time, as a file or a network block device.
//!
//! ```text
//!   backing   a file or memory ──┐
//!   model     a preset ──────────┴─► Emulated ──► door: DIR/disk, or an NBD server
//!                                       │ each answered request
//!   recording   trace, activity ◄───────┘        report   table, data, page
//! ```

mod activity;
mod backing;
mod door;
mod label;
mod page;
mod processor;
mod recording;
mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use merganser_device::device::Device;
use merganser_device::emulated::{Emulated, EmulatedOptions, Null};
use merganser_device::request::ContentHash;
use merganser_device::results::DevicePower;
use merganser_results::kept::ReportFile;
use merganser_shell::config::ReportForm;
use merganser_shell::failure::Failure;
use merganser_shell::signals::Cancel;
use merganser_shell::standard::print;

use super::simulate::model::ModelledDevice;
use crate::config::{BackingConfig, DeviceChoice, EmulateConfig};
use door::EmulatedDoor;
use processor::AwakeProcessor;
use recording::Prepared;
use report::EmulatedRun;

/// The device that takes no time.
const NULL: &str = "null";

/// Emulates a device until its door is closed, or a signal arrives.
pub(super) fn run(config: &EmulateConfig, cancel: &Cancel) -> Result<(), Failure> {
    // Before a file is made, or grows: it is never cut again.
    let (model, capacity) = check(config)?;
    // Before the first thread that has to do with data.
    let _awake = config.cpu.map(AwakeProcessor::take).transpose()?;
    let backing = backing::open(&config.backing, capacity)?;
    let size = backing.size();
    let device = made(model.as_ref(), config, size)?;
    fits(&config.device.name, capacity, backing.name(), size)?;
    if let Some(path) = &config.trace {
        backing::check_apart(&config.backing, path, "--trace")?;
    }
    if let Some((path, _)) = &config.report {
        backing::check_apart(&config.backing, path, "--report")?;
    }
    // A file that can't be written is an error now, not after the run.
    let report =
        |(path, form): &(PathBuf, ReportForm)| Ok::<_, Failure>((ReportFile::open(path)?, *form));
    let mut report = config.report.as_ref().map(report).transpose()?;
    let about = model.as_ref().map_or("takes no time", ModelledDevice::about);
    let title = format!("{}: {about}, {size} bytes", device.name());
    let recording = Prepared::new(config.trace.as_deref())?;
    let power =
        model.as_ref().map_or(DevicePower::ssd(0.0, "takes no time"), ModelledDevice::power);
    let started_unix_ms = unix_ms();
    let disk = Emulated::start(EmulatedOptions {
        device,
        backing,
        path: config.path,
        spin_ns: config.spin_ns,
        slower: config.slower,
        power,
        observer: Some(recording.observer()),
        hash: config.trace.as_ref().map(|_| merganser_array::content_hash as ContentHash),
    })
    .map_err(|error| Failure::named(&error))?;

    let door = EmulatedDoor::open(&config.door, Arc::clone(&disk) as Arc<_>)?;
    // From here on nothing is refused, and both files are this run's.
    if let Some((kept, _)) = &mut report {
        kept.begin().map_err(|error| Failure::on(kept.path(), &error))?;
    }
    let recording = recording.start(&title)?;
    // A request that failed, or a trace that ended early, is reported last: what was measured is not lost.
    let served = door.serve(cancel);
    let ended = disk.end();
    let (activity, traced) = recording.finish();
    let (seed, slower) = (config.device.seed, config.slower.get());
    let run = EmulatedRun { model, size, seed, slower, started_unix_ms, activity, ended };
    let told = tell(&run, report);
    served.and(traced).and(told)?;
    run.verdict()
}

/// The model and its capacity in bytes, if the disk can have the size that was asked for.
pub(super) fn check(config: &EmulateConfig) -> Result<(Option<ModelledDevice>, u64), Failure> {
    let model = chosen(&config.device)?;
    let capacity = made(model.as_ref(), config, 0)?.capacity_bytes();
    if model.is_none() && config.backing == BackingConfig::Memory(None) {
        let why = "--memory-backed: the device null has no size; say how large the disk is, such as --size 4G";
        return Err(why.to_owned().into());
    }
    if let Some(size) = config.backing.size() {
        fits(&config.device.name, capacity, &config.backing.name(), size)?;
    }
    Ok((model, capacity))
}

/// Milliseconds of the system's clock.
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Prints the results, and writes the report.
fn tell(run: &EmulatedRun, report: Option<(ReportFile, ReportForm)>) -> Result<(), Failure> {
    let printed = print(run.table());
    if let Some((kept, form)) = report {
        kept.write(&match form {
            ReportForm::Html => page::page(run),
            ReportForm::Json => format!("{:#}\n", run.data()),
        })?;
    }
    printed
}

/// Refuses a disk of `size` bytes that the device, with its `capacity`, can't be.
fn fits(device: &str, capacity: u64, name: &str, size: u64) -> Result<(), Failure> {
    if size > capacity {
        return Err(format!(
            "{name}: {size} bytes are more than {device} has, which is {capacity}; give a smaller --size"
        )
        .into());
    }
    Ok(())
}

/// The chosen preset; `None` for the device that takes no time.
fn chosen(choice: &DeviceChoice) -> Result<Option<ModelledDevice>, Failure> {
    if choice.name != NULL {
        return ModelledDevice::chosen(choice).map(Some);
    }
    match choice.settings.first() {
        Some(text) => Err(format!("--set {text}: the device null has no parameters").into()),
        None => Ok(None),
    }
}

fn made(
    model: Option<&ModelledDevice>,
    config: &EmulateConfig,
    size: u64,
) -> Result<Box<dyn Device>, Failure> {
    let filled = if config.filled { size } else { 0 };
    match model {
        Some(model) => model.device(config.device.seed, filled),
        None => Ok(Box::new(Null::new(u64::MAX))),
    }
}
