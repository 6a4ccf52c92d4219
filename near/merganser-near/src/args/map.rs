//! `merganser map`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use merganser_shell::args::{
    FormatName, ReportArgs, RowForm, TempArgs, TextArgs, TypedCount, TypedSize,
};

use merganser_guests::GuestArgs;

/// Run a program over records, close to the data
///
/// An SSDlet is a program that sees records and hands out keys with values, or records. Values of
/// one key are combined (sum, smallest, ...). The data may take more space than the memory: combined
/// rows are spilled, sorted, and combined again when the result is read.
///
/// The result is the same for any number of threads, partition size and memory. INPUTs that are
/// compressed (gzip, zstd, bzip2, xz, lz4) are read as what they hold. Without INPUT, or where INPUT is -, it reads
/// standard input.
///
/// SSDlets: wordcount, occurrences, match, histogram, terms, sequence-count, inverted-index,
/// ranked-inverted-index, term-vector, histogram-movies, histogram-ratings (keyed rows); sample, project, filter
/// (records in the order of the input); matrix (two files in, one out). A FILE.wasm is one, too.
#[derive(Debug, Args)]
#[command(override_usage = "merganser map [OPTIONS] <SSDLET> [INPUT]...")]
#[command(after_help = "\
Examples:
  # the 20 most frequent words
  merganser map wordcount big.txt --top 20
  # lines that hold one of many texts, in compressed files
  merganser map match --keys keys.txt logs/*.gz
  # all words, most frequent first, as csv
  merganser map wordcount big.txt --order value --output-format csv -o words.csv
  # a result that is reduced when it is read, and part of it
  merganser map wordcount big.txt --view words.view
  merganser cat words.view --from-key apple --head 10
  # one line in a hundred; two columns of a table
  merganser map sample --fraction 0.01 big.txt > sample.txt
  merganser map project --format csv --header --columns city,amount sales.csv
  # a product of matrices
  merganser map matrix a.mat b.mat -o c.mat
  # what would be done
  merganser map wordcount big.txt --memory 256M --explain
  # near the data of two nodes
  merganser map wordcount logs/a.txt --on host1:7443,host2:7443 --token-file T --ca ca.pem")]
pub(crate) struct MapArgs {
    /// The SSDlet: the name of a built-in one, or a WebAssembly file
    #[arg(value_name = "SSDLET")]
    pub ssdlet: OsString,

    /// Files to map, together; - is standard input
    #[arg(value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,

    /// Write the result to FILE
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Result")]
    pub output: Option<PathBuf>,

    /// Make a view in the new folder DIR, which is reduced when it is read; keyed rows only
    #[arg(long, value_name = "DIR", help_heading = "Result")]
    pub view: Option<PathBuf>,

    /// The form of keyed rows: tsv, csv, jsonl, or keyed (length-prefixed key and value) [default:
    /// tsv]
    #[arg(
        long,
        value_name = "FORM",
        value_enum,
        hide_possible_values = true,
        help_heading = "Result"
    )]
    pub output_format: Option<RowForm>,

    /// Keep only the N rows with the largest values; of equal ones, the smallest keys
    #[arg(long, value_name = "N", help_heading = "Result")]
    pub top: Option<TypedCount>,

    /// The order of keyed rows: key, or value, the largest first [default: key; with --top: value]
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        hide_possible_values = true,
        help_heading = "Result"
    )]
    pub order: Option<RowOrder>,

    /// The records: lines, csv, fixed:N or keyed [default: the SSDlet's own, mostly lines]
    #[arg(long, value_name = "FORMAT", help_heading = "Records")]
    pub format: Option<FormatName>,

    #[command(flatten)]
    pub text: TextArgs,

    /// The first row of each csv input names the columns
    #[arg(long, help_heading = "Records")]
    pub header: bool,

    /// Take INPUTs as the bytes that they are: compressed files are not decompressed, and other kinds of
    /// files are not refused
    #[arg(long, help_heading = "Records")]
    pub no_decompress: bool,

    /// Show no progress bar
    #[arg(long)]
    pub quiet: bool,

    #[command(flatten)]
    pub program: ProgramArgs,

    #[command(flatten)]
    pub guest: GuestArgs,

    /// Use at most this much memory, on each node, too [default: a quarter of what is available; on a
    /// node, its own]
    #[arg(short = 'S', long, value_name = "SIZE", help_heading = "Resources")]
    pub memory: Option<TypedSize>,

    /// How much input is mapped before its rows are spilled: auto (as much as the memory allows),
    /// none (all of it, or an error), or a size such as 600M
    #[arg(
        long,
        value_name = "HOW",
        default_value = "auto",
        hide_default_value = true,
        help_heading = "Resources"
    )]
    pub partition_size: PartitionName,

    /// Use this many threads, on each node, too [default: one per processor; on a node, its own]
    #[arg(long, value_name = "N", help_heading = "Resources")]
    pub threads: Option<usize>,

    #[command(flatten)]
    pub temp: TempArgs,

    /// Only print what would be done
    #[arg(long, help_heading = "Resources")]
    pub explain: bool,

    /// Run on these nodes (merganser serve --data), each over its own INPUTs, and merge their rows.
    /// INPUTs are paths below the folder of each node's --data. SSDLET may be a guest that the nodes
    /// have, or a FILE.wasm, which is sent to nodes that take it
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',', help_heading = "Nodes")]
    pub on: Vec<String>,

    /// With --on: the token of the nodes is in FILE
    #[arg(long, value_name = "FILE", help_heading = "Nodes")]
    pub token_file: Option<PathBuf>,

    /// With --on: encrypt, and trust nodes whose certificate this authority signed (PEM)
    #[arg(long, value_name = "FILE", help_heading = "Nodes")]
    pub ca: Option<PathBuf>,

    /// With --on: send the token over the network without encryption
    #[arg(long, help_heading = "Nodes")]
    pub insecure: bool,

    #[command(flatten)]
    pub report: ReportArgs,
}

/// The arguments of SSDlets. Each takes some of these.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "SSDlets")]
pub(crate) struct ProgramArgs {
    /// The SSDlet's arguments as a JSON object; the options below are added to it. For a FILE.wasm, a
    /// text in the form that it takes
    #[arg(long, value_name = "JSON")]
    pub args: Option<String>,

    /// match: search for the texts in FILE, one in each line; - is standard input
    #[arg(long, value_name = "FILE")]
    pub keys: Vec<PathBuf>,

    /// match: search for TEXT
    #[arg(long, value_name = "TEXT")]
    pub key: Vec<OsString>,

    /// match: search for a regular expression
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub regex: Option<String>,

    /// match: ignore case
    #[arg(short = 'i', long)]
    pub ignore_case: bool,

    /// match: give the records that do not match
    #[arg(short = 'v', long)]
    pub invert: bool,

    /// match: count the records of each text instead of giving records
    #[arg(long)]
    pub count: bool,

    /// occurrences: the text that is counted
    #[arg(long, value_name = "TEXT")]
    pub text: Option<String>,

    /// wordcount, terms, sequence-count: words are between whitespace, or letters (A-Z and ', in
    /// upper case)
    #[arg(long, value_name = "RULE")]
    pub rule: Option<String>,

    /// sequence-count: words of a sequence [default: 3]
    #[arg(long, value_name = "N")]
    pub length: Option<u64>,

    /// terms: a document is an input, or is named by the first field of each record; sequence-count: field
    #[arg(long, value_name = "input|field")]
    pub document: Option<String>,

    /// terms: what a row begins with: word (an inverted index) or document (term vectors)
    #[arg(long, value_name = "word|document")]
    pub first: Option<String>,

    /// histogram: count numbers or bytes
    #[arg(long, value_name = "numbers|bytes")]
    pub of: Option<String>,

    /// histogram: the column with the numbers: a name or number of csv, or the number of a word
    #[arg(long, value_name = "COLUMN")]
    pub column: Option<String>,

    /// histogram: the width of a range of numbers [default: each number by itself]
    #[arg(long, value_name = "WIDTH")]
    pub width: Option<String>,

    /// histogram: where a range begins [default: 0]
    #[arg(long, value_name = "START", allow_hyphen_values = true)]
    pub start: Option<String>,

    /// histogram: fail at a text that is no number, or skip it
    #[arg(long, value_name = "fail|skip")]
    pub invalid: Option<String>,

    /// project: the columns, by name or number from 1, with commas between them
    #[arg(long, value_name = "COLUMNS")]
    pub columns: Option<String>,

    /// filter: keep rows for which this holds: COLUMN OP VALUE, OP one of = != < <= > >= contains
    /// starts ends; repeat for conditions that must all hold
    #[arg(long = "where", value_name = "CONDITION")]
    pub conditions: Vec<String>,

    /// sample: the share of the records, 0 to 1
    #[arg(long, value_name = "SHARE")]
    pub fraction: Option<f64>,

    /// sample: how many records
    #[arg(long, value_name = "N")]
    pub records: Option<TypedCount>,

    /// sample: another number gives another sample [default: 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// matrix: a factor without a header, as TYPE:ROWSxCOLUMNS (f32, f64 or i32); once for each factor
    #[arg(long, value_name = "SHAPE")]
    pub raw: Vec<RawMatrix>,
}

/// The order of keyed rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowOrder {
    /// By key, ascending.
    Key,
    /// By value, the largest first; ties by key.
    Value,
}

/// What follows `--partition-size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartitionName {
    /// `auto`.
    Auto,
    /// `none`.
    Whole,
    /// A number of bytes.
    Bytes(u64),
}

impl FromStr for PartitionName {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        match typed {
            "auto" => Ok(PartitionName::Auto),
            "none" => Ok(PartitionName::Whole),
            _ => match typed.parse() {
                Ok(TypedSize(0)) => Err("a partition has at least 1 byte".to_owned()),
                Ok(TypedSize(bytes)) => Ok(PartitionName::Bytes(bytes)),
                Err(error) => Err(format!("{error}; or auto, or none")),
            },
        }
    }
}

/// What follows `--raw`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawMatrix {
    /// The type of its elements, as typed.
    pub element: String,
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub columns: u64,
}

impl FromStr for RawMatrix {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let parts = typed.split_once(':').and_then(|(element, shape)| {
            let (rows, columns) = shape.split_once('x')?;
            Some((element, rows.parse().ok()?, columns.parse().ok()?))
        });
        match parts {
            Some((element @ ("f32" | "f64" | "i32"), rows, columns)) => {
                Ok(RawMatrix { element: element.to_owned(), rows, columns })
            }
            _ => Err(format!(
                "'{typed}' is no shape: write TYPE:ROWSxCOLUMNS, such as f64:1000x200; TYPE is f32, f64 or i32"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PartitionName, RawMatrix};

    #[test]
    fn raw_matrices_have_a_type_and_a_shape() {
        let raw = RawMatrix { element: "f32".to_owned(), rows: 10, columns: 7 };
        assert_eq!("f32:10x7".parse(), Ok(raw));
        for typed in ["", "f32", "f32:10", "f16:1x1", "f32:-1x1", "f32:1x1x1", "10x7"] {
            assert!(typed.parse::<RawMatrix>().is_err(), "{typed}");
        }
    }

    #[test]
    fn partition_sizes_are_words_or_bytes() {
        assert_eq!("auto".parse(), Ok(PartitionName::Auto));
        assert_eq!("none".parse(), Ok(PartitionName::Whole));
        assert_eq!("600M".parse(), Ok(PartitionName::Bytes(600 << 20)));
        for typed in ["", "0", "all", "-1"] {
            assert!(typed.parse::<PartitionName>().is_err(), "{typed}");
        }
    }
}
