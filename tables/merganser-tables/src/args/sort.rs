//! `merganser table sort`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use merganser_shell::args::{ReportArgs, TempArgs, TypedCount, TypedSize};
use merganser_tables::TableKey;

use super::{HiveArgs, PackingName, TableForm};

/// Sort tables of any size, into a file, a folder of files or a sorted view
///
/// Each INPUT is a file of Parquet or Arrow, a folder of such files, a pattern such as 'in/*.parquet', or an
/// address such as s3://bucket/in/. All have the same columns. Folders that are named as country=FR add a
/// column. Rows whose keys are equal keep the order of the input.
///
/// Text is compared by its bytes. Nulls are first unless a key says last. A NaN is greater than all
/// numbers, and -0.0 equals 0.0. Columns come back with their own types, encodings and notes.
#[derive(Debug, Args)]
#[command(override_usage = "merganser table sort [OPTIONS] <INPUT>...")]
#[command(after_help = "\
Examples:
  merganser table sort 'in/*.parquet' -o out.parquet --key name --key qty:r:last --memory 512M
  merganser table sort in/ --view by-name.view --key name
  merganser table sort -m sorted-*.parquet -o all.parquet --key name
  merganser table sort -m sorted-*.parquet --view all.view --key name
  merganser table sort in/ --distinct --key id -o unique.parquet
  merganser table sort in/ --count --key country -o countries.csv
  merganser table sort in/ --top 100 --key price:r -o dearest.parquet
  merganser table sort in/ --shuffle --seed 7 -o shuffled.parquet
  merganser table sort in/ -o out/ --key name --partition-by country --file-size 256M")]
pub(crate) struct TableSortArgs {
    /// Files, folders, patterns, and addresses (s3://, gs://, az://, http://, https://)
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<PathBuf>,

    #[command(flatten)]
    pub hive: HiveArgs,

    /// Sort by this column: NAME, NAME:r (the greatest first), NAME:last (nulls last); repeat for
    /// more columns
    #[arg(short = 'k', long = "key", value_name = "NAME[:r][:last]", help_heading = "Order")]
    pub keys: Vec<TableKey>,

    /// Merge inputs that are sorted already; nothing is written on the way, unless there are very many
    #[arg(short = 'm', long, help_heading = "Order")]
    pub merge: bool,

    /// A random order, which is the same for the same seed and files
    #[arg(long, help_heading = "Order", conflicts_with_all = ["keys", "merge", "distinct", "count"])]
    pub shuffle: bool,

    /// With --shuffle: the seed [default: 0]
    #[arg(long, value_name = "N", requires = "shuffle", help_heading = "Order")]
    pub seed: Option<u64>,

    /// Keep only the first of rows with equal keys; without --key, of equal rows
    #[arg(long, help_heading = "Result")]
    pub distinct: bool,

    /// As --distinct, and add a column with how many there were
    #[arg(long, help_heading = "Result")]
    pub count: bool,

    /// Keep only the first N rows of the result
    #[arg(long, visible_alias = "head", value_name = "N", help_heading = "Result")]
    pub top: Option<TypedCount>,

    /// Write the sorted rows to FILE, or to an object such as s3://bucket/out.parquet
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Result")]
    pub output: Option<PathBuf>,

    /// Make FILE a folder with a folder for each value of these columns, as in country=FR/part-00000.parquet;
    /// rows are in order in each of them
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = "Result")]
    pub partition_by: Vec<String>,

    /// Make FILE a folder with files of at most SIZE, whose names are in the order of their rows
    #[arg(long, value_name = "SIZE", help_heading = "Result")]
    pub file_size: Option<TypedSize>,

    /// Make a sorted view in the new folder DIR instead of a sorted file; with -m, of files of Parquet,
    /// it only names them, and reads them when it is read
    #[arg(long, value_name = "DIR", conflicts_with = "output", help_heading = "Result")]
    pub view: Option<PathBuf>,

    /// The form of the result: parquet, arrow, arrows (a stream), csv or jsonl [default: as FILE's
    /// name ends, or else the form of the first input]
    #[arg(
        long,
        value_name = "FORM",
        value_enum,
        hide_possible_values = true,
        help_heading = "Result"
    )]
    pub output_format: Option<TableForm>,

    /// How Parquet is packed: none, snappy, lz4, zstd or gzip [default: as each column of the first
    /// input, or else snappy]
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        hide_possible_values = true,
        help_heading = "Result"
    )]
    pub compression: Option<PackingName>,

    /// Rows of a row group of Parquet, at most
    #[arg(long, value_name = "N", default_value = "131072", help_heading = "Result")]
    pub row_group_rows: TypedCount,

    /// Use at most this much memory [default: a quarter of what is available]
    #[arg(short = 'S', long, value_name = "SIZE", help_heading = "Resources")]
    pub memory: Option<TypedSize>,

    /// Use this many threads [default: one per processor]
    #[arg(long, value_name = "N", help_heading = "Resources")]
    pub threads: Option<usize>,

    #[command(flatten)]
    pub temp: TempArgs,

    /// How the runs of a view are packed: off, lz4 or zstd
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        default_value = "off",
        hide_possible_values = true,
        help_heading = "Resources"
    )]
    pub compress: RunPacking,

    /// Show no progress bar
    #[arg(long)]
    pub quiet: bool,

    #[command(flatten)]
    pub report: ReportArgs,
}

/// How runs of a view are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunPacking {
    /// Not at all.
    Off,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
}
