//! `merganser table cat`.

use std::path::PathBuf;

use clap::Args;
use merganser_shell::args::{TypedCount, TypedRange, TypedSize};

use super::TableForm;

/// Write a view of a table, or a part of it, to standard output or a file
///
/// Rows are counted from 0, and ranges leave out their end. Keys are values of the first column of the
/// view's order.
#[derive(Debug, Args)]
#[command(override_usage = "merganser table cat [OPTIONS] <VIEW>")]
#[command(after_help = "\
Examples:
  merganser table cat by-name.view --head 5 --output-format jsonl
  merganser table cat by-name.view --records 1000..1010 --columns id,name --output-format csv
  merganser table cat by-name.view --from-key adam --to-key berta -o part.parquet")]
pub(crate) struct TableCatArgs {
    /// The view
    pub view: PathBuf,

    /// Only these rows
    #[arg(long, value_name = "A..B", value_parser = TypedRange::of_records)]
    #[arg(conflicts_with_all = ["from_key", "to_key"])]
    pub records: Option<TypedRange>,

    /// Begin with the first row that is not before the key VALUE
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub from_key: Option<String>,

    /// End before the first row that is not before the key VALUE
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub to_key: Option<String>,

    /// At most the first N rows of that part
    #[arg(long, value_name = "N")]
    pub head: Option<TypedCount>,

    /// Only these columns, in this order
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub columns: Option<Vec<String>>,

    /// Write to FILE instead
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// The form: parquet, arrow, arrows (a stream), csv or jsonl [default: as FILE's name ends, or else
    /// csv, or jsonl where a column is nested]
    #[arg(long, alias = "format", value_name = "FORM", value_enum, hide_possible_values = true)]
    pub output_format: Option<TableForm>,

    /// Use at most this much memory [default: a quarter of what is available]
    #[arg(short = 'S', long, value_name = "SIZE")]
    pub memory: Option<TypedSize>,

    /// Use this many threads [default: one per processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}
