//! `merganser sort`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use merganser_shell::args::{
    BufferSize, OrderArgs, ProgressArgs, ReportArgs, StrategyName, TempArgs, TypedCount, TypedSize,
};

/// Sort files of any size, into a file, a sorted view or standard output
///
/// The records may take more space than the memory. Without INPUT, or where INPUT is -, it reads
/// standard input; without -o and --view it writes standard output. The options on lines are GNU
/// sort's, with its meaning in the C locale: its long options may be abbreviated, as in --rev, and
/// its old keys work, as in +1 -2. A link to this program with the name sort is this command.
///
/// Sizes take K, M, G, T or KiB, MiB, ... (powers of 1024) and KB, MB, GB, TB (powers of 1000); a
/// bare number is bytes.
///
/// Where an INPUT is a table of Parquet or Arrow, this is another command: see merganser table sort --help.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true, version)]
#[command(override_usage = "merganser sort [OPTIONS] [INPUT]...")]
#[command(after_help = "\
Examples:
  # lines, by all their bytes
  merganser sort big.txt -o sorted.txt --memory 1G
  # by field 2 as a number, then by field 1
  merganser sort -t, -k2,2n -k1,1 big.txt -o sorted.txt
  # a sorted view of 100-byte records with 10-byte keys
  merganser sort --format fixed:100 --key 0:10 data.bin --view data.view
  # csv by a text column, then by a number, largest first
  merganser sort --format csv --header --key city --key amount:n:r sales.csv -o sorted.csv
  # straight from a program
  merganser generate --records 1G | merganser sort --format fixed:100 --key 0:10 --view g.view
  # exit 1 and name the first line that is out of order
  merganser sort -c big.txt
  # the ten largest, without temporary files
  merganser sort --top 10 -rh sizes.txt
  # underline what each key compares
  merganser sort --debug -k2,2n table.txt
  # in the place of sort
  ln -s merganser sort; ./sort -k2n file")]
pub(crate) struct SortArgs {
    /// Files to sort, together; - is standard input
    #[arg(value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,

    /// Write the sorted records to FILE, which may be one of the inputs
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Result")]
    pub output: Vec<PathBuf>,

    /// Make a sorted view in the new folder DIR instead of a sorted file
    #[arg(long, value_name = "DIR", help_heading = "Result")]
    pub view: Option<PathBuf>,

    /// Keep only the first N records of the result; records that can't be among them are never
    /// written
    #[arg(long, visible_alias = "head", value_name = "N", help_heading = "Result")]
    pub top: Option<TypedCount>,

    /// Only check whether the input is sorted; name the first record that is not
    #[arg(short = 'c', overrides_with = "check_diagnose", help_heading = "Result")]
    pub check_diagnose: bool,

    /// Like -c, but say nothing
    #[arg(short = 'C', overrides_with = "check_quiet", help_heading = "Result")]
    pub check_quiet: bool,

    /// Like -c, or with =quiet or =silent like -C
    #[arg(
        long,
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "diagnose-first",
        hide_possible_values = true,
        help_heading = "Result"
    )]
    pub check: Vec<CheckHow>,

    /// Under each line on standard output, underline what each key compares; doubts about the keys
    /// go to standard error
    #[arg(long, help_heading = "Result")]
    pub debug: bool,

    /// Merge inputs that are sorted already
    #[arg(short = 'm', long, help_heading = "Result")]
    pub merge: bool,

    #[command(flatten)]
    pub order: OrderArgs,

    /// Take inputs as the bytes that they are. Otherwise the content of compressed ones (gzip, zstd, bzip2,
    /// xz, lz4) is sorted, and files of other kinds, such as zip archives, are refused
    #[arg(long, help_heading = "Records")]
    pub no_decompress: bool,

    /// Read input names from F, each ended by NUL; - is standard input
    #[arg(long, value_name = "F")]
    pub files0_from: Option<PathBuf>,

    /// Use at most this much memory [default: a quarter of what is available]
    #[arg(long, value_name = "SIZE", help_heading = "Resources")]
    pub memory: Option<TypedSize>,

    /// The same as GNU sort has it: a bare number is KiB, N% is a share of the machine's memory, and
    /// too little means the least that works
    #[arg(
        short = 'S',
        long,
        value_name = "SIZE",
        allow_hyphen_values = true,
        help_heading = "Resources"
    )]
    pub buffer_size: Vec<BufferSize>,

    #[command(flatten)]
    pub temp: TempArgs,

    /// Stop with an error before temporary runs take more than this
    #[arg(long, value_name = "SIZE", help_heading = "Resources")]
    pub temp_limit: Option<TypedSize>,

    /// Compress runs: off, lz4, zstd, or auto, which tries it on a sample
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        default_value = "off",
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Resources"
    )]
    pub compress: CompressionName,

    /// Accepted for GNU sort's sake and never run: --compress compresses runs, without a program
    #[arg(long, value_name = "PROG", help_heading = "Resources")]
    pub compress_program: Vec<OsString>,

    /// Merge at most N sorted inputs of -m at once, at least 2
    #[arg(long, value_name = "N", help_heading = "Resources")]
    pub batch_size: Vec<usize>,

    /// How to sort: auto, merge (sorted runs), or distribute (key ranges)
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        default_value = "auto",
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Resources"
    )]
    pub strategy: StrategyName,

    /// Trust that the leading bits of the key are uniform, as random data's are: distribute without
    /// looking at the data first
    #[arg(long, help_heading = "Resources")]
    pub uniform: bool,

    /// Only print the plan, its likely cost (passes, bytes, seconds), and the space that is needed and free
    #[arg(long, help_heading = "Resources")]
    pub explain: bool,

    /// Sort even if the disk of the temporary files or of the result has too little room
    #[arg(long, help_heading = "Resources")]
    pub force: bool,

    /// Use this many threads [default: one per processor]
    #[arg(long, alias = "parallel", value_name = "N", help_heading = "Resources")]
    pub threads: Vec<usize>,

    /// Give the space of the inputs back while they are read: they are empty or gone afterwards
    #[arg(long, help_heading = "Resources")]
    pub consume: bool,

    #[command(flatten)]
    pub report: ReportArgs,

    #[command(flatten)]
    pub progress: ProgressArgs,

    /// Print version
    #[arg(long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

/// What follows `--check=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckHow {
    /// Name the first disorder.
    DiagnoseFirst,
    /// Only the exit status.
    #[value(alias = "silent")]
    Quiet,
}

/// What follows `--compress`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompressionName {
    /// Never.
    Off,
    /// Fast.
    Lz4,
    /// Small.
    Zstd,
    /// Where a sample says that it wins.
    Auto,
}
