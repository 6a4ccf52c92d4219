//! The settings of `merganser generate`.

use std::ops::Range;
use std::path::{Path, PathBuf};

use merganser_shell::apart::{Precious, refuse_overwriting};
use merganser_shell::config::threads;
use merganser_shell::failure::Failure;

use crate::args::{AlphabetName, GenerateArgs, GenerateFormat};
use crate::generate::{Csv, Fasta, Generator, Gensort, GensortKind, RandomLines, SequenceAlphabet};

/// Longest record, in bytes.
const RECORD_BYTES_MAX: u64 = 1 << 30;

/// The generator of the table of the truth, and its file.
type TruthTable = (Box<dyn Generator>, PathBuf);

/// A data set and its destination.
pub(crate) struct GenerateConfig {
    /// Makes the records.
    pub generator: Box<dyn Generator>,
    /// Which of them.
    pub numbers: Range<u64>,
    /// The output file; `None` is standard output.
    pub output: Option<PathBuf>,
    /// A second data set of the same record numbers, and the file that it goes to.
    pub truth: Option<TruthTable>,
    /// How many threads make them.
    pub threads: usize,
    /// No bar.
    pub quiet: bool,
}

impl TryFrom<GenerateArgs> for GenerateConfig {
    type Error = Failure;

    fn try_from(typed: GenerateArgs) -> Result<Self, Failure> {
        let truth = truth(&typed)?;
        let generator: Box<dyn Generator> = match typed.format {
            GenerateFormat::Gensort => Box::new(gensort(&typed, GensortKind::Binary)?),
            GenerateFormat::Ascii => Box::new(gensort(&typed, GensortKind::Ascii)?),
            GenerateFormat::Lines | GenerateFormat::Csv | GenerateFormat::Fasta => {
                let flag = if typed.skew { "--skew" } else { "--record-size" };
                if typed.skew || typed.record_size.is_some() {
                    return Err(format!("{flag}: only with --format gensort or ascii").into());
                }
                match typed.format {
                    GenerateFormat::Lines => Box::new(RandomLines::new(typed.seed)),
                    GenerateFormat::Fasta => Box::new(fasta(&typed)),
                    _ => Box::new(Csv::new(typed.seed)),
                }
            }
        };
        let first = typed.first.0;
        let end = first
            .checked_add(typed.records.0)
            .ok_or_else(|| "--records: record numbers end at 2^64".to_owned())?;
        Ok(GenerateConfig {
            generator,
            numbers: first..end,
            output: typed.output,
            truth,
            threads: threads(typed.threads)?,
            quiet: typed.quiet,
        })
    }
}

fn fasta(typed: &GenerateArgs) -> Fasta {
    let alphabet = match typed.alphabet {
        Some(AlphabetName::Protein) => SequenceAlphabet::Protein,
        Some(AlphabetName::Dna) | None => SequenceAlphabet::Dna,
    };
    Fasta::new(alphabet, typed.seed)
}

/// The table of the truth, and where it goes.
fn truth(typed: &GenerateArgs) -> Result<Option<TruthTable>, Failure> {
    if typed.format != GenerateFormat::Fasta {
        let given = [(typed.alphabet.is_some(), "--alphabet"), (typed.truth.is_some(), "--truth")];
        return match given.into_iter().find(|(given, _)| *given) {
            Some((_, flag)) => Err(format!("{flag}: only with --format fasta").into()),
            None => Ok(None),
        };
    }
    let output = typed.output.as_ref().filter(|output| *output != Path::new("-"));
    let path = match (&typed.truth, output) {
        (Some(path), _) if path == Path::new("-") => {
            return Err("--truth: the table goes to a file; name one".to_owned().into());
        }
        (Some(path), output) => {
            refuse_overwriting("--truth", path, output.map(|output| Precious::Result(output)))?;
            path.clone()
        }
        (None, Some(output)) => {
            let mut path = output.clone().into_os_string();
            path.push(".truth.tsv");
            path.into()
        }
        (None, None) => return Ok(None),
    };
    Ok(Some((Box::new(fasta(typed).truth()), path)))
}

fn gensort(typed: &GenerateArgs, kind: GensortKind) -> Result<Gensort, Failure> {
    let bytes = typed.record_size.map_or(Gensort::RECORD_BYTES as u64, |size| size.0);
    let least = kind.record_bytes_min() as u64;
    if !(least..=RECORD_BYTES_MAX).contains(&bytes) {
        return Err(format!("--record-size: {bytes} is not between {least} bytes and 1 GiB").into());
    }
    Ok(Gensort::new(kind, bytes as usize, typed.skew, typed.seed))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, refusal};
    use crate::args::CliCommand;

    #[test]
    fn options_that_do_not_fit_together_are_named() {
        let table: &[(&[&str], &str)] = &[
            (&["--format", "lines", "--skew"], "--skew: only with --format gensort or ascii"),
            (
                &["--format", "csv", "--record-size", "9"],
                "--record-size: only with --format gensort or ascii",
            ),
            (&["--record-size", "9"], "--record-size: 9 is not between 10 bytes and 1 GiB"),
            (
                &["--format", "ascii", "--record-size", "47"],
                "--record-size: 47 is not between 48 bytes and 1 GiB",
            ),
            (&["--alphabet", "dna"], "--alphabet: only with --format fasta"),
            (&["--format", "csv", "--truth", "t"], "--truth: only with --format fasta"),
            (
                &["--format", "fasta", "-o", "a", "--truth", "a"],
                "--truth: a is the result, and would be overwritten; name another file",
            ),
            (&["--format", "fasta", "--truth", "-"], "--truth: the table goes to a file; name one"),
            (&["--format", "fasta", "--skew"], "--skew: only with --format gensort or ascii"),
            (&["--first", "18446744T"], "--records: record numbers end at 2^64"),
            (&["--threads", "0"], "--threads: at least 1"),
        ];
        for (options, sentence) in table {
            let typed = [&["generate", "--records", "2T"], *options].concat();
            assert_eq!(refusal(&typed), *sentence, "{options:?}");
        }
    }

    #[test]
    fn the_benchmark_is_the_default() {
        let CliCommand::Generate(typed) = config(&["generate", "--records", "1K"]) else {
            unreachable!()
        };
        let meant = super::GenerateConfig::try_from(typed).expect("no conflict");
        assert_eq!((meant.generator.record_bytes_mean(), meant.numbers), (100, 0..1000));
    }
}
