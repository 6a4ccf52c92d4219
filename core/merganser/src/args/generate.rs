//! `merganser generate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use merganser_shell::args::{TypedCount, TypedSize};

/// Make test data, the same bytes for the same options on any machine
///
/// Formats:
///   gensort  the Sort Benchmark's binary records: 100 bytes with a 10-byte key,
///            byte for byte as its gensort makes them
///   ascii    its printable records (gensort -a)
///   lines    20 to 119 characters of words with Zipf's frequencies
///   csv      a header and rows of id, name, city, amount, note; some fields
///            are quoted and hold commas, quotes and newlines
///   fasta    sequences of DNA or protein, half of them in families of mutated
///            copies; a table of the truth about them goes to FILE.truth.tsv
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  # 10 GB of 100-byte records
  merganser generate --records 100M -o data.bin
  # printable ones, to standard output
  merganser generate --format ascii --records 1000 | head -2
  # 4 KiB records with 10-byte keys
  merganser generate --records 2M --record-size 4K -o wide.bin
  # other rows than those of the default seed
  merganser generate --format csv --records 1M --seed 7 -o rows.csv
  # proteins, and proteins.fa.truth.tsv
  merganser generate --format fasta --alphabet protein --records 100K -o proteins.fa")]
pub(crate) struct GenerateArgs {
    /// The format: gensort, ascii, lines, csv or fasta
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "gensort",
        hide_possible_values = true
    )]
    pub format: GenerateFormat,

    /// How many records; takes K, M, G (powers of 1000)
    #[arg(long, value_name = "N")]
    pub records: TypedCount,

    /// Number of the first record: parts of one data set can be made on several machines
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    pub first: TypedCount,

    /// Bytes of a record (gensort and ascii) [default: 100]
    #[arg(long, value_name = "B")]
    pub record_size: Option<TypedSize>,

    /// Many keys begin alike (gensort -s; gensort and ascii)
    #[arg(long)]
    pub skew: bool,

    /// The letters of sequences: dna or protein (fasta) [default: dna]
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    pub alphabet: Option<AlphabetName>,

    /// Write the table of the truth to TABLE (fasta) [default: FILE.truth.tsv; none with standard
    /// output]
    #[arg(long, value_name = "TABLE")]
    pub truth: Option<PathBuf>,

    /// Other data of the same kind; 0 is the Sort Benchmark's
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,

    /// Write to FILE; without it, or with -, to standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Use this many threads [default: one per processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

    /// Show no progress bar
    #[arg(long)]
    pub quiet: bool,
}

/// What follows `generate --format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GenerateFormat {
    /// Binary.
    Gensort,
    /// Printable.
    Ascii,
    /// Text.
    Lines,
    /// Rows.
    Csv,
    /// Sequences.
    Fasta,
}

/// What follows `--alphabet`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AlphabetName {
    /// Bases.
    Dna,
    /// Amino acids.
    Protein,
}
