//! `merganser table verify` and `merganser table info`.

use std::path::PathBuf;

use clap::Args;
use merganser_tables::TableKey;

use super::HiveArgs;

/// Check the order of tables; print rows, duplicates and a checksum
///
/// The checksum is the sum of a CRC32 of each row. It is the same for the same values in any order, so
/// it tells whether a sorted table has the rows of its input. A view that only names files is checked, too.
#[derive(Debug, Args)]
#[command(override_usage = "merganser table verify [OPTIONS] <INPUT>...")]
#[command(after_help = "\
Examples:
  merganser table verify out.parquet --key name --key qty:r:last
  merganser table verify in/ --json                    rows and the checksum alone

Exit status: 0 in order, 1 disorder found, 2 error.")]
pub(crate) struct TableVerifyArgs {
    /// Files, folders, patterns, addresses such as s3://bucket/in/, or one view of files
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<PathBuf>,

    /// Compare this column, as in sort; without it, no order is checked
    #[arg(short = 'k', long = "key", value_name = "NAME[:r][:last]")]
    pub keys: Vec<TableKey>,

    #[command(flatten)]
    pub hive: HiveArgs,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Show no progress bar
    #[arg(long)]
    pub quiet: bool,
}

/// Describe tables, or a view of one: rows and columns
#[derive(Debug, Args)]
#[command(override_usage = "merganser table info [OPTIONS] <INPUT>...")]
#[command(after_help = "\
Examples:
  merganser table info by-name.view
  merganser table info 'in/*.parquet' --json")]
pub(crate) struct TableInfoArgs {
    /// Files, folders, patterns, and addresses such as s3://bucket/in/, or one view
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<PathBuf>,

    #[command(flatten)]
    pub hive: HiveArgs,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
