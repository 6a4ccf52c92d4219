//! `merganser cat`, `materialize` and `info`: the commands on a view.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use merganser_shell::args::{ProgressArgs, ReportArgs, RowForm, TypedCount, TypedRange, TypedSize};

/// Write a view, or a part of it, to standard output
///
/// Ranges are counted from 0 and leave out their end. Keys are compared with the first key of the
/// view's order; they are typed as they stand in a record, and take \xHH, \t, \n, \0 and \\ for
/// bytes that are hard to type.
///
/// The result of a map (merganser map --view) is printed row by row; its keys are typed as they are
/// shown.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser cat big.view > sorted.txt                          all of it
  merganser cat big.view --records 1000..1010                  ten records
  merganser cat big.view --bytes 5G..5.5G                      half a gibibyte from the middle
  merganser cat big.view --from-key apple --to-key banana      keys from apple on, below banana
  merganser cat big.view --from-key apple --head 3             the first three from apple on
  merganser cat words.view --output-format csv                 rows of a map's result, reduced")]
pub(crate) struct CatArgs {
    /// The view
    pub view: PathBuf,

    /// Only these records
    #[arg(long, value_name = "A..B", value_parser = TypedRange::of_records)]
    #[arg(conflicts_with_all = ["bytes", "from_key", "to_key"])]
    pub records: Option<TypedRange>,

    /// Only these bytes, even if they begin or end within a record
    #[arg(long, value_name = "A..B", value_parser = TypedRange::of_bytes)]
    #[arg(conflicts_with_all = ["from_key", "to_key", "head"])]
    pub bytes: Option<TypedRange>,

    /// Begin with the first record whose key is not below KEY
    #[arg(long, value_name = "KEY")]
    pub from_key: Option<OsString>,

    /// End before the first record whose key is not below KEY
    #[arg(long, value_name = "KEY")]
    pub to_key: Option<OsString>,

    /// At most the first N records of that part
    #[arg(long, value_name = "N")]
    pub head: Option<TypedCount>,

    /// The form of a map's rows: tsv, csv, jsonl or keyed [default: tsv]
    #[arg(long, value_name = "FORM", value_enum, hide_possible_values = true)]
    pub output_format: Option<RowForm>,

    /// Use at most this much memory [default: a quarter of what is available]
    #[arg(short = 'S', long, value_name = "SIZE")]
    pub memory: Option<TypedSize>,

    /// Use this many threads [default: one per processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

/// Copy a view out into a sorted file
///
/// The file appears complete or not at all. An interrupted --consume continues when it is run
/// again. The result of a map is written row by row.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # keep the view
  merganser materialize big.view -o sorted.txt
  # need no more space than one of both; the view is gone afterwards
  merganser materialize big.view -o sorted.txt --consume")]
pub(crate) struct MaterializeArgs {
    /// The view
    pub view: PathBuf,

    /// Write the sorted file here
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: PathBuf,

    /// The form of a map's rows: tsv, csv, jsonl or keyed [default: tsv]
    #[arg(long, value_name = "FORM", value_enum, hide_possible_values = true)]
    pub output_format: Option<RowForm>,

    /// Give the view's space back while it is copied: view and file together never take much more
    /// than one of them
    #[arg(long)]
    pub consume: bool,

    /// Use at most this much memory [default: a quarter of what is available]
    #[arg(short = 'S', long, value_name = "SIZE")]
    pub memory: Option<TypedSize>,

    /// Use this many threads [default: one per processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

    #[command(flatten)]
    pub report: ReportArgs,

    #[command(flatten)]
    pub progress: ProgressArgs,
}

/// Describe a view or a run file
///
/// Prints format, key, records, bytes and runs. With --verify every block is read and its checksum
/// compared.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser info big.view
  merganser info big.view --verify
  merganser info big.view/0.run --json")]
pub(crate) struct InfoArgs {
    /// The view, or one of its run files
    #[arg(value_name = "VIEW|RUN")]
    pub path: PathBuf,

    /// Read everything and compare every checksum
    #[arg(long)]
    pub verify: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
