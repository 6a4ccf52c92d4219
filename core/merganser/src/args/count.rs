//! `merganser count`, as typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use merganser_shell::args::{FormatName, ProgressArgs, TempArgs, TextArgs, TypedCount, TypedSize};
use merganser_sort::record::Format;

/// Count equal records, the most frequent first
///
/// Does the work of sort | uniq -c | sort -rn within a limit of memory, whatever the number of different
/// values is. A value is a whole record, or with --key some fields of it. Values are equal if their bytes are.
/// Those with equal counts come in the order of their bytes.
///
/// Lines give lines of count, tab, value; several keys are separated as -t says, or by tabs. Csv gives rows
/// of the key columns and the count, with a header if the input has one.
#[derive(Debug, Args)]
#[command(override_usage = "merganser count [OPTIONS] [INPUT]...")]
#[command(after_help = "\
Examples:
  # equal lines
  merganser count big.txt
  # the ten most frequent values of field 7
  merganser count -t, -k7,7 --top 10 log.txt
  # csv by two columns, those that occur at least twice
  merganser count --format csv --header --key city --key item --min 2 sales.csv -o counts.csv")]
pub(crate) struct CountArgs {
    /// Files to count, together; - is standard input
    #[arg(value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,

    /// Write the counts to FILE, which may be one of the inputs
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Result")]
    pub output: Option<PathBuf>,

    /// Print only the N most frequent values
    #[arg(long, visible_alias = "head", value_name = "N", help_heading = "Result")]
    pub top: Option<TypedCount>,

    /// Print only values that occur at least N times
    #[arg(long, value_name = "N", help_heading = "Result")]
    pub min: Option<TypedCount>,

    /// The records: lines, csv or tsv
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "lines",
        hide_default_value = true,
        help_heading = "Records"
    )]
    pub format: FormatName,

    #[command(flatten)]
    pub text: TextArgs,

    /// The first row of each csv input names the columns; it isn't counted
    #[arg(long, help_heading = "Records")]
    pub header: bool,

    /// The lines at the beginning of each input that begin with P are a header; they aren't counted. Repeat for
    /// more prefixes
    #[arg(long, value_name = "P", help_heading = "Records", allow_hyphen_values = true)]
    pub header_prefix: Vec<OsString>,

    /// Take inputs as the bytes that they are. Otherwise the content of compressed ones is counted
    #[arg(long, help_heading = "Records")]
    pub no_decompress: bool,

    /// The byte between the fields of a line or of a csv row (`\t` for a tab) [default for lines: the empty string
    /// between a non-blank and a blank]
    #[arg(short = 't', long, value_name = "SEP", help_heading = "Keys")]
    pub field_separator: Vec<OsString>,

    /// Count this part of the records, not all of them; repeat for more parts
    ///
    /// Lines: `POS1[b][,POS2]` as in sort; b leaves out leading blanks. Csv: a column's name or its number
    /// from 1.
    #[arg(
        short = 'k',
        long,
        value_name = "KEY",
        help_heading = "Keys",
        allow_hyphen_values = true
    )]
    pub key: Vec<OsString>,

    /// Use at most this much memory [default: a quarter of what is available]
    #[arg(short = 'S', long, value_name = "SIZE", help_heading = "Resources")]
    pub memory: Option<TypedSize>,

    #[command(flatten)]
    pub temp: TempArgs,

    /// Use this many threads [default: one per processor]
    #[arg(long, alias = "parallel", value_name = "N", help_heading = "Resources")]
    pub threads: Option<usize>,

    #[command(flatten)]
    pub progress: ProgressArgs,
}

impl CountArgs {
    /// Whether values of these records can be printed.
    pub(crate) fn has_text(&self) -> bool {
        matches!(self.format.0, Format::Lines { .. } | Format::Csv { .. })
    }
}
