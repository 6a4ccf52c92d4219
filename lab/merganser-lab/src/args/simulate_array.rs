//! `merganser simulate array`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use merganser_shell::args::{MigrationName, TypedSize};

use super::TraceArgs;

/// Play traces to a hybrid volume, or to SSDs or disks alone
///
/// The volume is that of `merganser array`, on modelled disks and SSDs, without its data: directory, log,
/// deduplication and maps decide on every transfer. Prints response times, their sum (the processing time of
/// the HcDD dissertation), pages that were removed, and the work of the flash. Each trace is played on
/// devices of its own, whose volume was written before.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # a trace of emulate, which has hashes, on the dissertation's node
  merganser simulate array --config hcdd --trace run.trace
  # a trace with hashes of others (FIU)
  merganser simulate array --config hcdd --trace homes-110108.blkparse --format fiu --wrap
  # a trace without hashes, of whose writes 30 % shall be duplicates
  merganser simulate array --config hcdd --trace Financial2.spc --unit 0 --duplicates 30
  # the same on SSDs alone
  merganser simulate array --config ssds --trace Financial2.spc --unit 0
  # devices of today
  merganser simulate array --config hybrid --ssd nvme --hdd barracuda --trace msr.csv --wrap")]
pub(crate) struct SimulateArrayArgs {
    /// How the devices are arranged
    #[arg(long, value_name = "CONFIG", value_enum)]
    pub config: ArrangementName,

    /// The device of each data member: jasmine, msr, nvme, isc or 830
    #[arg(long, value_name = "DEVICE", default_value = "msr", help_heading = "Devices")]
    pub ssd: String,

    /// The device of each buffer member: cheetah, barracuda or wd5000aakx
    #[arg(long, value_name = "DEVICE", default_value = "cheetah", help_heading = "Devices")]
    pub hdd: String,

    /// Change a parameter of the SSDs; repeat for more (simulate --list=DEVICE lists them). With --config hcdd
    /// the msr device has the dissertation's write buffer: cache_policy=parallel, cache_bytes=1M,
    /// cache_parallelism=8. In the other arrangements it has none, as in the dissertation
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Devices")]
    pub set_ssd: Vec<String>,

    /// Change a parameter of the disks
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Devices")]
    pub set_hdd: Vec<String>,

    /// Number of SSDs
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Devices")]
    pub ssds: usize,

    /// Number of disks
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Devices")]
    pub hdds: usize,

    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Devices")]
    pub seed: u64,

    /// Bytes of the log on all disks together
    #[arg(long, value_name = "SIZE", default_value = "4G", help_heading = "Volume")]
    pub buffer_size: TypedSize,

    /// When pages move from the disks to the SSDs
    #[arg(long, value_enum, default_value_t = MigrationName::Immediate, help_heading = "Volume")]
    pub migration: MigrationName,

    /// Share of the buffer, in percent, above which writes wait until pages have moved
    #[arg(long, value_name = "PERCENT", default_value_t = 75, help_heading = "Volume")]
    pub high_water: u32,

    /// Let this share of the writes, in percent, repeat the content of earlier ones, whatever hashes the
    /// trace has
    #[arg(long, value_name = "PERCENT", help_heading = "Volume")]
    pub duplicates: Option<f64>,

    /// The traces to play, which may be compressed (gzip, zstd, xz, ...); - is standard input
    #[arg(long = "trace", id = "traces", value_name = "FILE", required = true, num_args = 1.., help_heading = "Trace")]
    pub traces: Vec<PathBuf>,

    #[command(flatten)]
    pub reading: TraceArgs,

    /// Keep N requests in flight instead of the trace's own times
    #[arg(long, value_name = "N", help_heading = "Trace")]
    pub depth: Option<u32>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// How devices are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrangementName {
    /// Disks as a write buffer, deduplication, SSDs
    Hcdd,
    /// The same without deduplication
    Hybrid,
    /// SSDs alone
    Ssds,
    /// Disks alone
    Hdds,
}
