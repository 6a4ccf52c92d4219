//! The meaning of the options of `merganser simulate`.

use std::path::{Path, PathBuf};

use merganser_device::workload::Bounds;
use merganser_shell::args::{StrategyName, TypedSize};
use merganser_shell::config::report::report_file;
use merganser_shell::config::{ReportForm, order};
use merganser_shell::failure::Failure;
use merganser_shell::input::{Input, is_same_file};
use merganser_sort::Strategy;
use merganser_sort::key::OrderSpec;

use super::simulate_array::{SimulateArray, simulate_array};
use super::trace_reading::{TraceReading, reading};
use super::workload::{StreamChoice, SyntheticRequests, WorkloadWords, streams};
use crate::args::{
    DeviceArgs, Filled, PreconditionName, SimulateArgs, SimulateCommand, SimulateRatesArgs,
    SimulateRecordArgs, SimulateRunArgs, SimulateSortArgs,
};

/// The task of `simulate`.
#[derive(Debug)]
pub(crate) enum SimulateConfig {
    /// Name the devices.
    ListDevices,
    /// Tell the parameters of one.
    ListParameters(String),
    /// Play requests.
    Run(SimulateRun),
    /// Sort.
    Sort(SimulateSort),
    /// Tell the rates of streams.
    Rates(SimulateRates),
    /// Make a trace.
    Record(SimulateRecord),
    /// Play traces to a hybrid volume.
    Array(Box<SimulateArray>),
}

/// A device, not yet made.
#[derive(Debug, Clone)]
pub(crate) struct DeviceChoice {
    /// Its preset.
    pub name: String,
    /// `name=value` each.
    pub settings: Vec<String>,
    /// The seed of all random numbers.
    pub seed: u64,
}

/// Streams, and the device that serves them.
#[derive(Debug)]
pub(crate) struct SimulateRates {
    /// The device.
    pub device: DeviceChoice,
    /// Requests in flight.
    pub streams: u32,
    /// The bytes of a disk that they are spread over.
    pub span_bytes: u64,
    /// Whether they are printed as JSON.
    pub json: bool,
}

/// Requests, and the device that serves them.
#[derive(Debug)]
pub(crate) struct SimulateRun {
    /// The device.
    pub device: DeviceChoice,
    /// Which bytes were written before.
    pub filled: Option<Filled>,
    /// How it is worn before, if at all, and whether by the writes of the workload.
    pub precondition: Option<(Bounds, bool)>,
    /// The requests to play.
    pub load: PlayedLoad,
    /// The file of the report, and its kind.
    pub report: Option<(PathBuf, ReportForm)>,
    /// The file of all requests with their times.
    pub latencies: Option<PathBuf>,
    /// Data, not a table.
    pub json: bool,
}

/// The requests to play.
#[derive(Debug)]
pub(crate) enum PlayedLoad {
    /// Made-up requests.
    Made(SyntheticRequests),
    /// Made-up requests of several streams together.
    Streams(Vec<StreamChoice>),
    /// A recorded trace.
    Trace {
        /// Where it is.
        input: Input,
        /// How it is read; the device's size is still to be filled in.
        reading: TraceReading,
        /// How often.
        times: u64,
        /// Requests in flight, instead of the trace's own times.
        depth: Option<u32>,
    },
}

/// A sort on a device.
#[derive(Debug)]
pub(crate) struct SimulateSort {
    /// The files to sort.
    pub inputs: Vec<Input>,
    /// The file for the result, if it is kept.
    pub output: Option<PathBuf>,
    /// How records are ordered.
    pub order: OrderSpec,
    /// The device.
    pub device: DeviceChoice,
    /// The sort's memory.
    pub memory_bytes: u64,
    /// Runs or buckets.
    pub strategy: Strategy,
    /// Data, not a table.
    pub json: bool,
}

/// A trace to be made.
#[derive(Debug)]
pub(crate) struct SimulateRecord {
    /// The source of the trace.
    pub of: RecordOf,
    /// The output file; `None` is standard output.
    pub output: Option<PathBuf>,
}

/// The source of a recorded trace.
#[derive(Debug)]
pub(crate) enum RecordOf {
    /// Another trace.
    Trace(Input, TraceReading),
    /// A sort of these, with so much memory and temporary runs there.
    Sort {
        /// The inputs of the sort.
        inputs: Vec<Input>,
        /// With how much memory.
        memory_bytes: u64,
        /// Where temporary runs go.
        temp_dir: PathBuf,
    },
}

impl TryFrom<SimulateArgs> for SimulateConfig {
    type Error = Failure;

    fn try_from(typed: SimulateArgs) -> Result<Self, Failure> {
        Ok(match (typed.list, typed.what) {
            (Some(_), Some(_)) => {
                return Err("--list: only lists; leave out the subcommand".to_owned().into());
            }
            (Some(name), None) if name.is_empty() => SimulateConfig::ListDevices,
            (Some(name), None) => SimulateConfig::ListParameters(name),
            (None, None) => {
                return Err("simulate: say run, sort, rates, record or array, or --list"
                    .to_owned()
                    .into());
            }
            (None, Some(SimulateCommand::Run(typed))) => SimulateConfig::Run(run(typed)?),
            (None, Some(SimulateCommand::Sort(typed))) => SimulateConfig::Sort(sort(typed)?),
            (None, Some(SimulateCommand::Rates(typed))) => SimulateConfig::Rates(rates(typed)?),
            (None, Some(SimulateCommand::Record(typed))) => SimulateConfig::Record(record(typed)?),
            (None, Some(SimulateCommand::Array(typed))) => {
                SimulateConfig::Array(Box::new(simulate_array(&typed)?))
            }
        })
    }
}

fn rates(typed: SimulateRatesArgs) -> Result<SimulateRates, Failure> {
    let streams = u32::try_from(typed.streams.0).ok().filter(|streams| *streams > 0);
    Ok(SimulateRates {
        streams: streams.ok_or_else(|| format!("--streams: 1 to {}", u32::MAX))?,
        span_bytes: typed.span.0,
        device: device(typed.device),
        json: typed.json,
    })
}

pub(super) fn device(typed: DeviceArgs) -> DeviceChoice {
    DeviceChoice { name: typed.device, settings: typed.set, seed: typed.seed }
}

fn run(typed: SimulateRunArgs) -> Result<SimulateRun, Failure> {
    let share = typed.precondition_share.unwrap_or(1.0);
    if !(share > 0.0 && share <= 1.0) {
        return Err(format!("--precondition-share: {share}, expected above 0, up to 1").into());
    }
    let by_workload = typed.precondition == Some(PreconditionName::Workload);
    if by_workload && !typed.stream.is_empty() {
        return Err(
            "--precondition=workload: --stream gives several workloads; leave out =workload"
                .to_owned()
                .into(),
        );
    }
    if by_workload && typed.trace_file.is_some() {
        return Err("--precondition=workload: a trace is no workload; leave out =workload"
            .to_owned()
            .into());
    }
    check_apart(&typed)?;
    let words = words(&typed);
    let bounds = Bounds { share, ..Bounds::default() };
    let precondition = typed.precondition.map(|_| (bounds, by_workload));
    let report = report_file(typed.report)?;
    if typed.depth == Some(0) {
        return Err("--depth: at least 1".to_owned().into());
    }
    let load = match typed.trace_file {
        Some(path) => {
            let input = Input::named(&path);
            if typed.repeat == 0 {
                return Err("--repeat: at least 1".to_owned().into());
            }
            if typed.repeat > 1 && input == Input::Stdin {
                return Err("--repeat: standard input can be read once; name a file"
                    .to_owned()
                    .into());
            }
            let reading = reading(&typed.reading)?;
            PlayedLoad::Trace { input, reading, times: typed.repeat, depth: typed.depth }
        }
        None if typed.stream.is_empty() => PlayedLoad::Made(words.meaning()?),
        None => PlayedLoad::Streams(streams(&typed.stream, &words)?),
    };
    let (device, filled) = (device(typed.device), typed.filled);
    let (latencies, json) = (typed.latencies, typed.json);
    Ok(SimulateRun { device, filled, precondition, load, report, latencies, json })
}

/// Refuses two options with the same file, by whatever names or links: one would overwrite the other.
fn check_apart(typed: &SimulateRunArgs) -> Result<(), Failure> {
    let stdin = |path| if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    let named = [
        ("--trace", typed.trace_file.as_deref().map(stdin)),
        ("--report", typed.report.as_deref()),
        ("--latencies", typed.latencies.as_deref()),
    ];
    let files: Vec<(&str, &Path)> =
        named.into_iter().filter_map(|(option, path)| Some((option, path?))).collect();
    for (index, (first, one)) in files.iter().enumerate() {
        for (second, other) in &files[index + 1..] {
            if one == other || is_same_file(one, other) {
                return Err(format!("{first}, {second}: both are the same file").into());
            }
        }
    }
    Ok(())
}

/// The workload that was typed.
fn words(typed: &SimulateRunArgs) -> WorkloadWords {
    WorkloadWords {
        workload: typed.workload,
        requests: typed.requests,
        read: typed.read,
        size: typed.size.clone(),
        depth: typed.depth,
        rate: typed.rate,
        arrivals: typed.arrivals,
        random: typed.random,
        theta: typed.theta,
        gap: typed.gap,
        start: typed.start,
        span: typed.span,
        align: typed.align,
    }
}

fn sort(typed: SimulateSortArgs) -> Result<SimulateSort, Failure> {
    if typed.memory == TypedSize(0) {
        return Err("--memory: at least 1 byte".to_owned().into());
    }
    Ok(SimulateSort {
        inputs: typed.inputs.iter().map(|path| Input::named(path)).collect(),
        output: typed.output,
        order: order(&typed.order)?,
        device: device(typed.device),
        memory_bytes: typed.memory.0,
        strategy: match typed.strategy {
            StrategyName::Auto => Strategy::Auto,
            StrategyName::Merge => Strategy::Merge,
            StrategyName::Distribute => Strategy::Distribute { uniform: false },
        },
        json: typed.json,
    })
}

fn record(typed: SimulateRecordArgs) -> Result<SimulateRecord, Failure> {
    let of = match typed.input {
        Some(path) => {
            let reading = reading(&typed.reading)?;
            if reading.wrap {
                return Err(
                    "--wrap: only a device has a size to wrap at; leave it to simulate run"
                        .to_owned()
                        .into(),
                );
            }
            RecordOf::Trace(Input::named(&path), reading)
        }
        None => RecordOf::Sort {
            inputs: typed.sort.iter().map(|path| Input::named(path)).collect(),
            memory_bytes: typed.memory.0.max(1),
            temp_dir: typed.temp_dir,
        },
    };
    let output = Some(PathBuf::from(typed.output)).filter(|path| path.as_os_str() != "-");
    Ok(SimulateRecord { of, output })
}

#[cfg(test)]
mod tests {
    use super::super::tests::refusal;

    #[test]
    fn what_cannot_be_simulated_is_named() {
        let table: &[(&[&str], &str)] = &[
            (&[], "simulate: say run, sort, rates, record or array, or --list"),
            (&["--list", "run"], "--list: only lists; leave out the subcommand"),
            (&["run", "--depth", "0"], "--depth: at least 1"),
            (
                &["run", "--rate", "0"],
                "--rate: 0, expected 0.000001 to 1000000000 requests per second",
            ),
            (
                &["run", "--report", "x.txt"],
                "--report: 'x.txt' ends neither in .html, for a page, nor in .json, for data",
            ),
            (
                &["run", "--trace", "-", "--repeat", "2"],
                "--repeat: standard input can be read once; name a file",
            ),
            (
                &["run", "--trace", "x.json", "--report", "x.json"],
                "--trace, --report: both are the same file",
            ),
            (
                &["run", "--report", "x.json", "--latencies", "x.json"],
                "--report, --latencies: both are the same file",
            ),
            (&["run", "--trace", "x", "--time-scale=-1"], "--time-scale: -1, expected 0 or more"),
            (
                &["run", "--trace", "x", "--unit", "a"],
                "--unit: 'a' is neither a number nor major,minor",
            ),
            (
                &["run", "--precondition", "--precondition-share", "2"],
                "--precondition-share: 2, expected above 0, up to 1",
            ),
            (
                &["run", "--precondition=workload", "--stream", "depth=2"],
                "--precondition=workload: --stream gives several workloads; leave out =workload",
            ),
            (
                &["run", "--precondition=workload", "--trace", "x"],
                "--precondition=workload: a trace is no workload; leave out =workload",
            ),
            (
                &["record", "--wrap", "x", "-o", "y"],
                "--wrap: only a device has a size to wrap at; leave it to simulate run",
            ),
            (&["sort", "x", "--memory", "0"], "--memory: at least 1 byte"),
        ];
        for (words, sentence) in table {
            assert_eq!(refusal(&[&["simulate"], *words].concat()), *sentence, "{words:?}");
        }
    }
}
