//! `merganser pipeline`, as typed.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use merganser_shell::args::TypedSize;

/// Run programs over partitions of a stream, stage by stage
///
/// The inputs are cut into partitions of whole records, balanced by bytes. Each partition passes the
/// stages in order, each a shell's command. A partition moves on as soon as its stage has ended, so
/// that one pool of threads prepares partitions while another one works on those before. The results
/// become one output, in the order of the input.
///
/// A command reads its input from standard input and prints its result, or names files: {in} the
/// input, {out} the file to write, {dir} a new folder for any files, {part} the partition, {k} its
/// number, {NAME.out} and {NAME.dir} the files of an earlier stage. The same are in the variables
/// MERGANSER_IN, _OUT, _DIR, _PART and _K.
///
/// A pipeline that was killed or failed continues where it was, if the same command is repeated. The
/// output appears complete or not at all. INPUTs that are compressed (gzip, zstd, bzip2, xz, lz4) are read as what
/// they hold. INPUT - is standard input.
#[derive(Debug, Args)]
#[command(
    override_usage = "merganser pipeline [OPTIONS] --stage NAME:COMMAND... -o <FILE> [INPUT]..."
)]
#[command(after_help = "\
Examples:
  # the checksum of each compressed partition
  merganser pipeline big.txt --partitions 8 --stage 'pack:gzip -n' --stage 'sum:md5sum' -o sums
  # sort partitions, then merge them
  merganser pipeline big.txt --stage sort:'sort {in}' --merge 'sort -m {outs}' -o sorted
  # two pools: one prepares partitions while the other searches in those before
  merganser pipeline db.fa.zst --format fasta --partitions 64M -o hits.tsv \\
    --stage db:'makeblastdb -in {in} -dbtype nucl -out {dir}/db' --pool storage:1 \\
    --stage find:'blastn -query q.fa -db {db.dir}/db -outfmt 6' --pool compute:2")]
pub(crate) struct PipelineArgs {
    /// Files to divide, together; - is standard input
    #[arg(value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,

    /// Write the result to FILE, complete or not at all
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Result")]
    pub output: Option<PathBuf>,

    /// How the results of all partitions become one: cat, in order, or a shell's command that reads
    /// them in order from standard input, or names them: {outs} all of them, {list} a file with their
    /// names, {out} the file to write instead of printing [default: cat]
    #[arg(long, value_name = "cat|COMMAND", help_heading = "Result")]
    pub merge: Option<String>,

    #[command(flatten)]
    pub stages: StageArgs,

    /// The records that are kept whole: lines, fasta, fastq or fixed:N [default: lines]
    #[arg(long, value_name = "FORMAT", help_heading = "Partitions")]
    pub format: Option<PieceName>,

    /// Lines end with NUL, not newline
    #[arg(short = 'z', long, help_heading = "Partitions")]
    pub zero_terminated: bool,

    /// Take INPUTs as the bytes that they are: compressed files are not decompressed, and other kinds of
    /// files are not refused
    #[arg(long, help_heading = "Partitions")]
    pub no_decompress: bool,

    /// How many partitions, or about how large each is (64M), or auto: as many as are fastest, by the
    /// times of two small ones [default: auto; 64M for pipes]
    #[arg(long, value_name = "N|SIZE|auto", help_heading = "Partitions")]
    pub partitions: Option<PartitionsName>,

    /// Partitions between their cut and the end of their last stage, at most [default: one per thread
    /// of the pools and one more per pool]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub in_flight: Option<usize>,

    /// Bytes of temporary files, next to the output, at most [default: no limit]
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub temp_limit: Option<TypedSize>,

    /// How often a stage that fails is tried again for the same partition [default: 1]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub retries: Option<u32>,

    /// The longest that one try may take, in seconds; then all its processes are ended [default: no
    /// limit]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, help_heading = "Limits")]
    pub time_limit: Option<f64>,

    /// Memory for decompressing inputs [default: a share of what is free]
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub memory: Option<TypedSize>,

    /// Write what each pool did and when, and how long a model says it takes: a page for people
    /// (FILE.html) or data for programs (FILE.json)
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub report: Option<PathBuf>,

    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
}

/// The stages and the pools that follow them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StageArgs {
    /// `NAME:COMMAND`, with its place in the command line.
    pub stages: Vec<(usize, String)>,
    /// `NAME:THREADS`, with its place in the command line.
    pub pools: Vec<(usize, String)>,
}

/// Stages and pools belong together by their order, which derived options do not keep.
impl Args for StageArgs {
    fn augment_args(command: Command) -> Command {
        let repeated = |name: &'static str, value: &'static str, help: &'static str| {
            Arg::new(name)
                .long(name)
                .value_name(value)
                .help(help)
                .action(ArgAction::Append)
                .help_heading("Stages")
        };
        command
            .arg(repeated(
                "stage",
                "NAME:COMMAND",
                "The next stage: its name, and the shell's command that is run for each partition",
            ))
            .arg(repeated(
                "pool",
                "NAME:THREADS",
                "The threads that run the stages before this option, from the last --pool on; a pool \
                 that is named again is the same one [default: one pool for all stages, one thread per \
                 processor]",
            ))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for StageArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let of = |name: &str| -> Vec<(usize, String)> {
            let places = matches.indices_of(name).into_iter().flatten();
            let values = matches.get_many::<String>(name).into_iter().flatten().cloned();
            places.zip(values).collect()
        };
        Ok(StageArgs { stages: of("stage"), pools: of("pool") })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The records of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceName {
    /// Lines.
    Lines,
    /// FASTA.
    Fasta,
    /// FASTQ.
    Fastq,
    /// Records of this length.
    Fixed(u64),
}

impl FromStr for PieceName {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        match typed {
            "lines" => Ok(PieceName::Lines),
            "fasta" => Ok(PieceName::Fasta),
            "fastq" => Ok(PieceName::Fastq),
            other => {
                let length = other.strip_prefix("fixed:").map(str::parse);
                match length {
                    Some(Ok(bytes)) if bytes > 0 => Ok(PieceName::Fixed(bytes)),
                    _ => Err("use lines, fasta, fastq or fixed:N, N at least 1".to_owned()),
                }
            }
        }
    }
}

/// How inputs are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartitionsName {
    /// Into this number of partitions.
    Count(u32),
    /// Into partitions of this size.
    Bytes(u64),
    /// Into as many as are fastest.
    Auto,
}

impl FromStr for PartitionsName {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        if typed == "auto" {
            return Ok(PartitionsName::Auto);
        }
        if typed.bytes().all(|byte| byte.is_ascii_digit()) && !typed.is_empty() {
            let count = typed.parse();
            return count.map(PartitionsName::Count).map_err(|_| "too many".to_owned());
        }
        typed.parse().map(|TypedSize(bytes)| PartitionsName::Bytes(bytes))
    }
}
