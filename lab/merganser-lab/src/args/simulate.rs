//! `merganser simulate`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use merganser_shell::args::{OrderArgs, StrategyName, TypedCount, TypedSize};

use super::{SimulateArrayArgs, TraceArgs};

/// Run workloads, traces and sorts on a modelled SSD or hard disk
///
/// The device is a model in virtual time: its work takes as long as the work of its components
/// would, however busy this machine is. The same `simulate run` gives the same nanoseconds on any
/// machine.
///
/// `simulate run` plays generated requests or a recorded trace to a device. It prints latencies,
/// throughput, the use of each component, write amplification, wear and energy. `simulate sort` runs
/// the sort of this program on a device. `simulate record` makes a trace from the output of blkparse,
/// from a trace in another format, or from a real sort on this machine. `simulate array` plays traces to
/// the hybrid volume of `merganser array`.
///
/// `simulate --list=DEVICE` prints every parameter of a device with its unit, range and source;
/// `--set name=value` changes one.
#[derive(Debug, Args)]
#[command(
    override_usage = "merganser simulate run [OPTIONS]\n       merganser simulate sort [OPTIONS] [INPUT]...\n       merganser simulate record [OPTIONS] --output <FILE> [TRACE]\n       merganser simulate array [OPTIONS] --config <CONFIG> --trace <FILE>...\n       merganser simulate --list[=<DEVICE>]"
)]
#[command(after_help = "\
Examples:
  # which devices there are, and what nvme is made of
  merganser simulate --list
  merganser simulate --list=nvme
  # 4 KiB at random, 7 of 10 reads, 32 at a time, over 4 GiB
  merganser simulate run --device nvme --filled --span 4G --read 0.7 --depth 32
  # the same with half the channels
  merganser simulate run --device nvme --set channels=4 --filled --span 4G --read 0.7 --depth 32
  # writes to a device in long use
  merganser simulate run --device msr --read 0 --depth 32 --precondition
  # a trace, addresses shrunk to the device, with a page of plots
  merganser simulate run --device msr --trace hm_1.csv --address-scale 0.5 --report hm.html
  # a sort on ActiveSort's prototype
  merganser simulate sort big.txt --device jasmine --memory 64M -o sorted.txt
  # what a real sort asks its disks, played to a hard disk
  merganser simulate record --sort big.txt --memory 64M -o sort.trace
  merganser simulate run --device barracuda --trace sort.trace")]
pub(crate) struct SimulateArgs {
    /// List the devices, or the parameters of one
    #[arg(long, value_name = "DEVICE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub list: Option<String>,

    /// What to do
    #[command(subcommand)]
    pub what: Option<SimulateCommand>,
}

/// What follows `simulate`.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "parsed once a process")]
pub(crate) enum SimulateCommand {
    Run(SimulateRunArgs),
    Sort(SimulateSortArgs),
    Rates(SimulateRatesArgs),
    Record(SimulateRecordArgs),
    Array(SimulateArrayArgs),
}

/// Print what a few streams get of a modelled device
///
/// Each stream reads or writes in order, 1 MiB at a time. Then four places take turns, 128 KiB at a time: what
/// that takes beyond reading in order is the time to another stream. The times are those of the model, and do
/// not depend on this machine.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser simulate rates --device wd5000aakx --streams 2 --span 40G
  merganser simulate rates --device 830 --json")]
pub(crate) struct SimulateRatesArgs {
    #[command(flatten)]
    pub device: DeviceArgs,

    /// Requests that are in flight while streams read or write in order
    #[arg(long, value_name = "N", default_value = "1")]
    pub streams: TypedCount,

    /// The streams are spread over this much of a disk, and at least over 4G. Of an SSD only what was written takes time
    /// to read, so there it is 4G
    #[arg(long, value_name = "SIZE", default_value = "4G")]
    pub span: TypedSize,

    /// Print the times as JSON, in nanoseconds
    #[arg(long)]
    pub json: bool,
}

/// Which device.
#[derive(Debug, Clone, Args)]
pub(crate) struct DeviceArgs {
    /// The device: jasmine, msr, nvme, isc, 830, tlc, cheetah, barracuda or wd5000aakx
    #[arg(long, value_name = "DEVICE", default_value = "nvme", help_heading = "Device")]
    pub device: String,

    /// Change one of its parameters; repeat for more (simulate --list=DEVICE lists them)
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Device")]
    pub set: Vec<String>,

    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Device")]
    pub seed: u64,
}

/// Play requests to a modelled device
///
/// Without --trace, requests are generated: --workload sets their offsets, --size their sizes, and
/// --depth or --rate their arrival. With --stream, several workloads are played together; then each is
/// played alone, on a device in the same state, and the slowdowns are printed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # the highest read rate of the hard disk's outer tracks
  merganser simulate run --device cheetah --workload sequential --size 256K --requests 2000
  # writes of 4 to 64 KiB to hot places, 5,000 a second in a Poisson process
  merganser simulate run --workload zipf --read 0 --size 4K..64K --rate 5000
  # random reads next to a log: how much do they slow each other down?
  merganser simulate run --device msr --filled --span 1G --stream name=db,depth=8 \\
    --stream name=log,workload=sequential,read=0,size=64K,rate=500,start=1G,requests=5K
  # a trace of UMass, one of its units, twice as fast
  merganser simulate run --device msr --trace Financial1.spc --unit 0 --time-scale 0.5 --wrap")]
pub(crate) struct SimulateRunArgs {
    #[command(flatten)]
    pub device: DeviceArgs,

    /// Write bytes once before the run, without time: the addressed ones (with --trace, all), =all, or the first
    /// ones, as =1G. An empty SSD answers reads without flash, and one that is not full has nothing to collect
    #[arg(
        long,
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "addressed",
        conflicts_with = "precondition",
        help_heading = "Device"
    )]
    pub filled: Option<Filled>,

    /// Fill the device, then overwrite it until its garbage collection is steady: at random, or with the
    /// writes of =workload
    #[arg(
        long,
        value_name = "BY",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "random",
        hide_possible_values = true,
        help_heading = "Device"
    )]
    pub precondition: Option<PreconditionName>,

    /// The share of the device that --precondition fills
    #[arg(long, value_name = "SHARE", help_heading = "Device", requires = "precondition")]
    pub precondition_share: Option<f64>,

    /// Offsets of requests
    #[arg(
        long,
        value_name = "NAME",
        value_enum,
        default_value = "random",
        help_heading = "Workload"
    )]
    pub workload: WorkloadName,

    /// Number of requests
    #[arg(long, value_name = "N", default_value = "100K", help_heading = "Workload")]
    pub requests: TypedCount,

    /// Share of reads; the other requests write
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, help_heading = "Workload")]
    pub read: f64,

    /// Sizes of requests: 4K, 4K..64K (any between), exp:16K (exponential with this mean), or
    /// 4K:3,64K:1 (with weights)
    #[arg(long, value_name = "SIZES", default_value = "4K", help_heading = "Workload")]
    pub size: String,

    /// Keep N requests in flight; with --trace, ignore its times [default: 1; a trace at its times]
    #[arg(long, value_name = "N", help_heading = "Workload")]
    pub depth: Option<u32>,

    /// Requests per second, however busy the device is
    #[arg(long, value_name = "R", conflicts_with_all = ["depth", "trace"], help_heading = "Workload")]
    pub rate: Option<f64>,

    /// Arrivals of requests with --rate: even, uniform (gaps from 0 to twice the mean) or poisson
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        default_value = "poisson",
        hide_possible_values = true,
        help_heading = "Workload"
    )]
    pub arrivals: ArrivalsName,

    /// Share of requests of --workload mixed that have a random offset
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, help_heading = "Workload")]
    pub random: f64,

    /// Exponent of --workload zipf: 0 is random, a larger one is more skewed
    #[arg(long, value_name = "THETA", default_value_t = 0.99, help_heading = "Workload")]
    pub theta: f64,

    /// Bytes skipped after each request of --workload strided
    #[arg(long, value_name = "SIZE", default_value = "256K", help_heading = "Workload")]
    pub gap: TypedSize,

    /// First byte that requests address
    #[arg(long, value_name = "SIZE", default_value = "0", help_heading = "Workload")]
    pub start: TypedSize,

    /// Number of bytes that requests address [default: the rest of the device]
    #[arg(long, value_name = "SIZE", help_heading = "Workload")]
    pub span: Option<TypedSize>,

    /// Offsets and sizes are multiples of this
    #[arg(long, value_name = "SIZE", default_value = "4K", help_heading = "Workload")]
    pub align: TypedSize,

    /// Play several workloads together, one per --stream: KEY=VALUE,... with the keys name, begin (a time,
    /// as 100ms), workload, requests, read, size, depth, rate, arrivals, random, theta, gap, start, span
    /// and align. Keys that are left out have the values of the options above
    #[arg(long, value_name = "KEY=VALUE,...", conflicts_with = "trace", help_heading = "Workload")]
    pub stream: Vec<String>,

    #[command(flatten)]
    pub reading: TraceArgs,

    /// Play this trace, which may be compressed (gzip, zstd, xz, ...); - is standard input
    #[arg(long = "trace", id = "trace", value_name = "FILE", help_heading = "Trace")]
    pub trace_file: Option<PathBuf>,

    /// Play the trace N times
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Trace")]
    pub repeat: u64,

    /// Write a page with plots (FILE.html) or data (FILE.json)
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub report: Option<PathBuf>,

    /// Write each request to FILE, in the order of submission, with the time that it took (a trace, as
    /// emulate --trace writes it)
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub latencies: Option<PathBuf>,

    /// Print data, not a table
    #[arg(long, help_heading = "Results")]
    pub json: bool,
}

/// What --filled writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filled {
    Addressed,
    All,
    First(TypedSize),
}

impl FromStr for Filled {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        match typed {
            "addressed" => Ok(Filled::Addressed),
            "all" => Ok(Filled::All),
            size => match size.parse() {
                Ok(size) => Ok(Filled::First(size)),
                Err(error) => Err(format!("{error}; =all fills the whole device")),
            },
        }
    }
}

/// What --precondition overwrites a device with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PreconditionName {
    Random,
    Workload,
}

/// Sort on a modelled device
///
/// Copies the inputs onto the device, sorts them there with the engine of `merganser sort`, checks the
/// result and copies it out. Prints the virtual seconds of the sort and the work of the device. The
/// copies are not counted, and the host's processor takes no time. One thread sorts, so a merge takes
/// the same virtual time on every run. The distribution has threads of its own, whose order depends on
/// this machine, so its time may differ by some percent.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
#[command(after_help = "\
Examples:
  # 64 MiB of memory on ActiveSort's prototype, and on a hard disk
  merganser simulate sort big.txt --device jasmine --memory 64M
  merganser simulate sort big.txt --device barracuda --memory 64M
  # the result too
  merganser simulate sort records --format fixed:100 --key 0:10 --memory 16M -o sorted")]
pub(crate) struct SimulateSortArgs {
    /// The inputs
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<PathBuf>,

    /// Write the result to FILE
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub order: OrderArgs,

    #[command(flatten)]
    pub device: DeviceArgs,

    /// Use at most this much memory
    #[arg(short = 'S', long, value_name = "SIZE", default_value = "64M")]
    pub memory: TypedSize,

    /// How to sort: auto, merge (sorted runs), or distribute (key ranges)
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        default_value = "auto",
        hide_possible_values = true
    )]
    pub strategy: StrategyName,

    /// Print data, not a table
    #[arg(long)]
    pub json: bool,
}

/// Make a trace
///
/// Writes one line per request, in the format of this program: nanoseconds, kind (R, W, T for trim, F
/// for flush), offset, bytes, and hashes of the content if they are known.
///
/// TRACE is the output of blkparse, or a trace in any other known format. With --sort, the inputs are
/// really sorted on this machine, the result is discarded, and every request to a storage is recorded,
/// with a hash of each page that is written. This needs neither root nor blktrace.
#[derive(Debug, Args)]
#[command(
    override_usage = "merganser simulate record [OPTIONS] --output <FILE> <TRACE>\n       merganser simulate record [OPTIONS] --output <FILE> --sort <INPUT>..."
)]
#[command(after_help = "\
Examples:
  # of a real disk (blktrace needs root)
  blktrace -d /dev/sdb -o - | blkparse -i - | merganser simulate record -o sdb.trace -
  # of a sort
  merganser simulate record --sort big.txt --memory 64M --temp-dir /mnt/ssd -o sort.trace")]
pub(crate) struct SimulateRecordArgs {
    /// A trace in another format, which may be compressed (gzip, zstd, xz, ...); - is standard input
    #[arg(value_name = "TRACE", required_unless_present = "sort", conflicts_with = "sort")]
    pub input: Option<PathBuf>,

    /// Sort these files of lines, and record the requests
    #[arg(long, value_name = "INPUT", num_args = 1.., help_heading = "Sort")]
    pub sort: Vec<PathBuf>,

    /// Let the sort use at most this much memory
    #[arg(short = 'S', long, value_name = "SIZE", default_value = "64M", help_heading = "Sort")]
    pub memory: TypedSize,

    /// Put the sort's temporary runs here
    #[arg(short = 'T', long, value_name = "DIR", default_value = ".", help_heading = "Sort")]
    pub temp_dir: PathBuf,

    #[command(flatten)]
    pub reading: TraceArgs,

    /// Write the trace to FILE; - is standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: OsString,
}

/// What follows `--workload`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorkloadName {
    /// Each request continues the last one.
    Sequential,
    /// Each request begins some bytes behind the last one (--gap).
    Strided,
    /// Random offsets.
    Random,
    /// Some requests have random offsets; the others continue the last one (--random).
    Mixed,
    /// Some offsets are more frequent (--theta).
    Zipf,
}

/// What follows `--arrivals`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrivalsName {
    /// One request per period.
    Even,
    /// Gaps from 0 to twice the mean.
    Uniform,
    /// Exponential gaps.
    Poisson,
}
