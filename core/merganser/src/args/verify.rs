//! `merganser verify`.

use std::path::PathBuf;

use clap::Args;
use merganser_shell::args::{OrderArgs, TypedSize};

/// Check that a file or a view is sorted, and count and sum its records
///
/// Prints the number of records, of bytes and of duplicate keys, and a checksum that does not
/// depend on the order: the sum of the CRC32 of all records, as the Sort Benchmark's valsort prints
/// it. Equal checksums before and after a sort mean that no record was lost, changed or doubled.
///
/// Exits 1, and names the first record out of order, when it is not sorted. A view is checked by
/// its own format and key.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, override_usage = "merganser verify [OPTIONS] <FILE|VIEW>")]
#[command(after_help = "\
Examples:
  # lines
  merganser verify sorted.txt
  # records of the Sort Benchmark
  merganser verify --format fixed:100 --key 0:10 sorted.bin
  # a view, for a program to read
  merganser verify data.view --json
  # whatever comes in
  merganser cat data.view | merganser verify -")]
pub(crate) struct VerifyArgs {
    /// The file or view to check; - is standard input
    #[arg(value_name = "FILE|VIEW")]
    pub input: PathBuf,

    #[command(flatten)]
    pub order: OrderArgs,

    /// Take the input as the bytes that it is. Otherwise the content of a compressed one (gzip, zstd, bzip2,
    /// xz, lz4) is checked, and files of other kinds, such as zip archives, are refused
    #[arg(long, help_heading = "Records")]
    pub no_decompress: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Use at most this much memory to read a view [default: a quarter of what is available]
    #[arg(short = 'S', long, value_name = "SIZE", help_heading = "Resources")]
    pub memory: Option<TypedSize>,

    /// Show no progress bar
    #[arg(long)]
    pub quiet: bool,
}
