//! The report of a command: a page for people or data for programs, both made from one `ReportContent`.
//!
//! ```text
//!   Watch::start ─► system: counters ─┐
//!                   activity: on      │      the work      ┌─► efficiency: per core, disk, dollar, joule
//!   Watch::finish ◄───────────────────┴─► Report (docs/core/report.md) ─┬─► data: JSON
//!                                                                  └─► page: HTML
//! ```

mod data;
mod efficiency;
pub mod page;
mod plan;
mod system;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use merganser_results::kept::ReportFile;
use merganser_sort::Explanation;
use merganser_sort::activity::{Activity, ActivityReport, TransferReport};
use merganser_sort::budget::OwnerPeak;
use merganser_storage::RealClock;
use merganser_storage::page_size::BufferPages;
use serde::Serialize;

use crate::apart::{Precious, refuse_overwriting};
use crate::config::{ReportConfig, ReportForm};
use crate::failure::Failure;
use efficiency::{Efficiency, ReportedMachine};
use plan::{ReportedPlan, Took};
use system::{DiskUse, ProcessBytes, SystemWatch};

/// Version of the report's content; changed when something that was there means something else.
const REPORT_VERSION: u32 = 1;

/// Watches this process while it works, if a report is wanted.
pub struct ReportWatch<'a>(Option<Watching<'a>>);

struct Watching<'a> {
    config: &'a ReportConfig,
    file: ReportFile,
    started: Instant,
    system: SystemWatch,
    activity: Activity,
}

/// The part of a report that the command itself provides.
#[derive(Default)]
pub struct CommandFigures {
    /// The command.
    pub command: &'static str,
    /// The names of its inputs, as typed.
    pub inputs: Vec<String>,
    /// The name of its output, as typed.
    pub output: String,
    /// Bytes of the inputs, if known.
    pub input_bytes: Option<u64>,
    /// Bytes of the output, if known. For a view, the size that it shows to readers.
    pub output_bytes: Option<u64>,
    /// Records of the output, if known.
    pub records: Option<u64>,
    /// The memory budget.
    pub memory_limit_bytes: u64,
    /// The most of it that each owner had.
    pub memory: Vec<OwnerPeak>,
    /// How each file was read or written: directly or through the page cache, with its engine, and
    /// the reason if a better way was not available.
    pub io: Vec<(&'static str, String)>,
    /// The forecast, if one was made before the work.
    pub plan: Option<Explanation>,
    /// Further figures of this command.
    pub detail: serde_json::Value,
}

/// All that is reported.
#[derive(Serialize)]
struct ReportContent {
    report_version: u32,
    merganser: &'static str,
    command: &'static str,
    inputs: Vec<String>,
    output: String,
    seconds: f64,
    input_bytes: Option<u64>,
    output_bytes: Option<u64>,
    records: Option<u64>,
    /// The source of the next two figures: `disk` or `process`.
    device_bytes_counted_by: &'static str,
    device_read_bytes: u64,
    device_written_bytes: u64,
    /// Bytes written to devices for each byte of input: write amplification.
    written_per_input_byte: Option<f64>,
    disks: Vec<DiskUse>,
    process: ProcessBytes,
    cpu_seconds: f64,
    cores: Cores,
    efficiency: Efficiency,
    ssd_life: Option<SsdLife>,
    memory_limit_bytes: u64,
    peak_rss_bytes: u64,
    memory: Vec<OwnerPeak>,
    buffer_pages: Option<PageReport>,
    io: BTreeMap<&'static str, String>,
    plan: Option<ReportedPlan>,
    /// Under the command's name.
    #[serde(flatten)]
    detail: BTreeMap<&'static str, serde_json::Value>,
    activity: ActivityReport,
}

/// The processor's cores.
#[derive(Serialize)]
struct Cores {
    /// Two threads of one core count once; 0 where the system does not tell.
    physical: usize,
    /// Threads that can run at once.
    usable: usize,
    /// The used share of their capacity, 0 to 1.
    used_share: f64,
}

/// The pages of large buffers.
#[derive(Serialize)]
struct PageReport {
    huge: bool,
    /// Nanoseconds of the first use of 2 MiB, as one huge page.
    huge_ns: Option<u64>,
    /// The same in pages of 4 KiB.
    small_ns: Option<u64>,
    #[serde(skip)]
    in_words: String,
}

impl PageReport {
    fn of_pages(pages: BufferPages) -> Self {
        PageReport {
            huge: pages.are_huge(),
            huge_ns: pages.times().map(|times| times.huge_ns),
            small_ns: pages.times().map(|times| times.small_ns),
            in_words: pages.to_string(),
        }
    }
}

/// How much of an SSD's life a command took.
#[derive(Serialize)]
struct SsdLife {
    endurance_bytes: u64,
    written_bytes: u64,
    /// 0 to 1.
    spent_share: f64,
}

impl<'a> ReportWatch<'a> {
    /// Counts from now on, if `config` asks for it, the devices under `files` too.
    ///
    /// # Errors
    /// When the report can't be written, or is one of `precious`: better now than after the work.
    pub fn start<'b, P: IntoIterator<Item = Precious<'b>>>(
        config: Option<&'a ReportConfig>,
        precious: impl FnOnce() -> P,
        files: impl FnOnce() -> Vec<PathBuf>,
    ) -> Result<Self, Failure> {
        let Some(config) = config else { return Ok(ReportWatch(None)) };
        let folder = config.path.parent().filter(|folder| *folder != Path::new(""));
        if folder.is_some_and(|folder| !folder.is_dir()) || config.path.is_dir() {
            let path = config.path.display();
            return Err(format!(
                "{path}: not in an existing folder, or one itself; --report takes a file"
            )
            .into());
        }
        refuse_overwriting("--report", &config.path, precious())?;
        Ok(ReportWatch(Some(Watching {
            config,
            file: ReportFile::open(&config.path)?,
            system: SystemWatch::look(&files()),
            started: Instant::now(),
            activity: Activity::new(Arc::new(RealClock::new())),
        })))
    }

    /// The recorder for the activity of the work's threads.
    pub fn activity(&self) -> Activity {
        self.0.as_ref().map(|watching| watching.activity.clone()).unwrap_or_default()
    }

    /// Writes the report, if one is wanted.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn finish(self, done: impl FnOnce() -> CommandFigures) -> Result<(), Failure> {
        let ReportWatch(Some(watching)) = self else { return Ok(()) };
        let report = watching.report(done());
        let text = match watching.config.form {
            ReportForm::Html => page::page(&report),
            ReportForm::Json => data::data(&report),
        };
        Ok(watching.file.write(&text)?)
    }
}

impl Watching<'_> {
    fn report(&self, done: CommandFigures) -> ReportContent {
        let seconds = self.started.elapsed().as_secs_f64();
        let used = self.system.look_again(seconds);
        let (counted_by, read_bytes, written_bytes) = match &used.disks[..] {
            [] => ("process", used.process.read_bytes, used.process.written_bytes),
            disks => (
                "disk",
                disks.iter().map(|disk| disk.read_bytes).sum(),
                disks.iter().map(|disk| disk.written_bytes).sum(),
            ),
        };
        let usable = std::thread::available_parallelism().map_or(1, usize::from);
        let physical = system::physical_cores();
        let machine = ReportedMachine {
            cores: if physical > 0 { physical } else { usable },
            disks: used.disks.len(),
            price_dollars: self.config.price_dollars,
            power_watts: self.config.power_watts,
            processor_joules: used.processor_joules,
        };
        let sorted_bytes = done.input_bytes.or(done.output_bytes);
        let activity = self.activity.report().expect("a watch records");
        let moved = |transfers: &TransferReport| transfers.bytes.iter().sum();
        let took = Took {
            seconds,
            processor_seconds: used.cpu_seconds,
            read_bytes: moved(&activity.reads),
            written_bytes: moved(&activity.writes),
        };
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        ReportContent {
            report_version: REPORT_VERSION,
            merganser: env!("CARGO_PKG_VERSION"),
            command: done.command,
            inputs: done.inputs,
            output: done.output,
            seconds,
            input_bytes: done.input_bytes,
            output_bytes: done.output_bytes,
            records: done.records,
            device_bytes_counted_by: counted_by,
            device_read_bytes: read_bytes,
            device_written_bytes: written_bytes,
            written_per_input_byte: sorted_bytes.and_then(|bytes| share(written_bytes, bytes)),
            disks: used.disks,
            process: used.process,
            cpu_seconds: used.cpu_seconds,
            cores: Cores {
                physical,
                usable,
                used_share: used.cpu_seconds / (seconds * usable as f64),
            },
            efficiency: Efficiency::of_work(
                sorted_bytes.unwrap_or(0),
                done.records,
                seconds,
                &machine,
            ),
            ssd_life: self.config.endurance_bytes.map(|endurance_bytes| SsdLife {
                endurance_bytes,
                written_bytes,
                spent_share: written_bytes as f64 / endurance_bytes as f64,
            }),
            memory_limit_bytes: done.memory_limit_bytes,
            peak_rss_bytes: used.peak_rss_bytes,
            memory: done.memory,
            buffer_pages: BufferPages::chosen().map(PageReport::of_pages),
            io: done.io.into_iter().collect(),
            plan: done.plan.map(|explained| ReportedPlan::new(explained, took)),
            detail: BTreeMap::from([(done.command, done.detail)]),
            activity,
        }
    }
}

#[cfg(test)]
mod tests;
