//! `merganser blast`, as typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use merganser_shell::args::TypedSize;

use super::PartitionsName;

/// Search FASTA files of any size with BLAST+, with the result of a search in one piece
///
/// COMMAND is an ordinary command of BLAST+: blastn, blastp, blastx or tblastn with its options.
/// -query and -out must name files. -db names FASTA files, which may be compressed (gzip, zstd, xz, ...) and
/// larger than memory: several, or a pattern in quotes. They are formatted and searched in
/// partitions, each of which counts as the whole database, and the results are merged: the output is
/// that of makeblastdb and one search. -outfmt is 0, 5, 6, 7, 10, 15 or 17. Options with which the
/// output would differ are refused.
///
/// If more subjects are found than -max_target_seqs, the output has the best of them, and a notice
/// says so. A search that was killed or failed continues where it was, if the same command is
/// repeated. BLAST+ has to be installed: on Debian, the package ncbi-blast+.
#[derive(Debug, Args)]
#[command(override_usage = "merganser blast [OPTIONS] <COMMAND>...")]
#[command(after_help = "\
Examples:
  merganser blast blastn -query q.fa -db genomes.fa.gz -outfmt 6 -out hits.tsv
  merganser blast blastp -query q.fa -db 'db/*.fa.gz' -evalue 1e-5 -outfmt 7 -out hits.txt
  merganser blast --jobs 4 --partitions 200M blastn -task megablast -query q.fa -db a.fa b.fa \\
    -outfmt '6 std stitle' -max_target_seqs 50 -out hits.tsv")]
pub(crate) struct BlastArgs {
    /// The command of BLAST+: its program and options
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,

    /// How many partitions, or about how large each is (200M), or auto: as many as are fastest, by
    /// the times of two small ones, within the memory [default: auto]
    #[arg(long, value_name = "N|SIZE|auto")]
    pub partitions: Option<PartitionsName>,

    /// Partitions that are formatted or searched at a time [default: one per processor]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,

    /// The database's name in the output [default: the name of its first file, without suffixes]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Bytes of formatted partitions and their hits, next to the output, at most [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub temp_limit: Option<TypedSize>,

    /// How often a partition that fails is tried again [default: 1]
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,

    /// The longest that formatting or searching a partition may take, in seconds [default: no limit]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub time_limit: Option<f64>,

    /// Memory for decompressing the database. Unless --partitions is given, the partitions in work
    /// have half of it together. BLAST's own memory for queries and hits comes in addition [default:
    /// a share of what is free]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<TypedSize>,

    /// Write what was done and when: a page for people (FILE.html) or data for programs (FILE.json)
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
}
