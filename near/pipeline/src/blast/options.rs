//! BLAST's own options: which give equal results over partitions.
//!
//! An option is passed on if tests showed that the merged result is that of a search in one piece. Others are refused:
//! some compare hits of different subjects (`-culling_limit`), some choose a part of the database, which would need other counts
//! (`-taxids`), and some were not tested.

use std::ffi::OsString;
use std::path::PathBuf;

use super::error::OptionError;
use super::format::OutputFormat;
use super::limit::{Limit, ShownLimits};
use super::program::BlastProgram;

/// A BLAST command that gives equal results over partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlastSearch {
    /// The program.
    pub program: BlastProgram,
    /// The queries.
    pub query: PathBuf,
    /// The files of the database, or patterns of their names.
    pub database: Vec<OsString>,
    /// The output.
    pub out: Option<PathBuf>,
    /// The form of the output.
    pub format: OutputFormat,
    /// How many subjects are reported.
    pub limit: Limit,
    /// Letters in a line of text, as an option.
    pub line_length: Vec<String>,
    /// All other options, in order.
    pub options: Vec<String>,
    /// All words as they were typed, the program's name first.
    pub typed: Vec<String>,
}

/// Options with a value, for all programs.
const VALUES: [&str; 8] = [
    "-evalue",
    "-max_hsps",
    "-num_threads",
    "-word_size",
    "-gapopen",
    "-gapextend",
    "-soft_masking",
    "-window_size",
];
/// Options without one.
const FLAGS: [&str; 3] = ["-subject_besthit", "-ungapped", "-lcase_masking"];

/// Options with a value, for some.
fn values_of(program: BlastProgram) -> &'static [&'static str] {
    match program {
        BlastProgram::Blastn => &["-perc_identity", "-reward", "-penalty", "-strand", "-dust"],
        BlastProgram::Blastp => &["-matrix", "-comp_based_stats", "-seg", "-threshold"],
        BlastProgram::Blastx => {
            &["-matrix", "-comp_based_stats", "-seg", "-threshold", "-strand", "-query_gencode"]
        }
        BlastProgram::Tblastn => {
            &["-matrix", "-comp_based_stats", "-seg", "-threshold", "-db_gencode"]
        }
    }
}

/// The values of `-task`.
fn tasks_of(program: BlastProgram) -> &'static [&'static str] {
    match program {
        BlastProgram::Blastn => &["megablast", "blastn", "blastn-short", "dc-megablast"],
        BlastProgram::Blastp => &["blastp", "blastp-fast", "blastp-short"],
        BlastProgram::Blastx => &["blastx", "blastx-fast"],
        BlastProgram::Tblastn => &["tblastn", "tblastn-fast"],
    }
}

/// Options that can't be exact, and the reason.
const COMPARES: [(&str, &str); 13] = [
    ("-qcov_hsp_perc", "it orders subjects by alignments that it leaves out"),
    ("-culling_limit", "it compares hits of different subjects"),
    ("-best_hit_overhang", "it compares hits of different subjects"),
    ("-best_hit_score_edge", "it compares hits of different subjects"),
    ("-dbsize", "it counts the database as another one"),
    ("-searchsp", "it counts the database as another one"),
    ("-gilist", "it chooses a part of the database"),
    ("-negative_gilist", "it chooses a part of the database"),
    ("-seqidlist", "it chooses a part of the database"),
    ("-negative_seqidlist", "it chooses a part of the database"),
    ("-taxids", "it chooses a part of the database"),
    ("-taxidlist", "it chooses a part of the database"),
    ("-subject", "it has no database"),
];

impl BlastSearch {
    /// Reads the words after the program's name.
    ///
    /// # Errors
    /// The first thing that is wrong or not exact.
    pub fn parse(program: &str, words: &[OsString]) -> Result<Self, OptionError> {
        let program =
            BlastProgram::named(program).ok_or_else(|| OptionError::Program(program.to_owned()))?;
        let (mut query, mut out, mut format) = (None, None, None);
        let mut numbers = ShownLimits::default();
        let (mut database, mut options) = (Vec::new(), Vec::new());
        let mut typed = vec![program.name().to_owned()];
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            let name = text(word)?;
            if !name.starts_with('-') {
                return Err(OptionError::NoOption(name));
            }
            typed.push(name.clone());
            // `--evalue` is BLAST's `-evalue`.
            let name = format!("-{}", name.trim_start_matches('-'));
            let once = |first: bool| {
                if first { Ok(()) } else { Err(OptionError::Twice(name.clone())) }
            };
            let mut value = || -> Result<String, OptionError> {
                let value = words.next().ok_or_else(|| OptionError::NoValue(name.clone()))?;
                typed.push(text(value)?);
                text(value)
            };
            match &*name {
                "-db" => {
                    once(database.is_empty())?;
                    database.push(value()?.into());
                    // A pattern that the shell has replaced.
                    while let Some(more) =
                        words.next_if(|word| !word.as_encoded_bytes().starts_with(b"-"))
                    {
                        typed.push(more.to_string_lossy().into_owned());
                        database.push(more.clone());
                    }
                }
                "-query" => once(query.replace(PathBuf::from(value()?)).is_none())?,
                "-out" => once(out.replace(PathBuf::from(value()?)).is_none())?,
                "-outfmt" => once(format.replace(value()?).is_none())?,
                _ if ShownLimits::knows(&name) => once(numbers.set(&name, &value()?)?)?,
                _ if FLAGS.contains(&&*name) => {
                    once(!options.contains(&name))?;
                    options.push(name);
                }
                "-task" => {
                    once(!options.contains(&name))?;
                    let task = value()?;
                    if !tasks_of(program).contains(&&*task) {
                        return Err(OptionError::NotShown(format!("-task {task}")));
                    }
                    options.extend([name, task]);
                }
                _ if VALUES.contains(&&*name) || values_of(program).contains(&&*name) => {
                    once(!options.contains(&name))?;
                    let value = value()?;
                    options.extend([name, value]);
                }
                _ => {
                    let reason = COMPARES.iter().find(|(known, _)| *known == name);
                    return Err(match reason {
                        Some((_, reason)) => OptionError::Compares(name, reason),
                        None => OptionError::NotShown(name),
                    });
                }
            }
        }
        if database.is_empty() {
            return Err(OptionError::Missing("-db"));
        }
        // Linked alignments share an e-value, which can be better than that of the alignments that are kept.
        let links = matches!(program, BlastProgram::Blastx | BlastProgram::Tblastn)
            || options.iter().any(|option| option == "-ungapped");
        let leaves_out = ["-max_hsps", "-subject_besthit"];
        let found = leaves_out.into_iter().find(|name| options.iter().any(|option| option == name));
        if let Some(name) = found.filter(|_| links) {
            return Err(OptionError::Linked(name));
        }
        let format = OutputFormat::parse(format.as_deref().unwrap_or("0"), program)?;
        Ok(BlastSearch {
            program,
            query: query.ok_or(OptionError::Missing("-query"))?,
            database,
            out,
            limit: numbers.limit(format.form)?,
            line_length: numbers.line_length(format.form)?,
            format,
            options,
            typed,
        })
    }
}

fn text(word: &OsString) -> Result<String, OptionError> {
    let text = word.to_str().map(str::to_owned);
    text.ok_or_else(|| OptionError::NotText(word.to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<BlastSearch, OptionError> {
        let words: Vec<_> = words.iter().map(OsString::from).collect();
        BlastSearch::parse(words[0].to_str().expect("text"), &words[1..])
    }

    #[test]
    fn an_ordinary_command_is_understood() {
        let words = [
            "blastp",
            "-query",
            "q.fa",
            "-db",
            "a.fa",
            "b.fa.gz",
            "-evalue",
            "1e-5",
            "-outfmt",
            "7 std slen",
            "-out",
            "hits",
            "-max_target_seqs",
            "20",
            "-subject_besthit",
        ];
        let search = parse(&words).expect("exact");
        assert_eq!(search.database, ["a.fa", "b.fa.gz"]);
        assert_eq!((search.limit, &*search.format.text), (Limit::Targets(20), "7 std slen"));
        assert_eq!((search.limit.subjects(), search.limit.kept()), (20, 50));
        assert_eq!(search.typed, words);
        assert_eq!(search.options, ["-evalue", "1e-5", "-subject_besthit"]);
    }

    #[test]
    fn what_is_not_exact_is_refused() {
        let said = |more: &[&str]| {
            let words = [&["blastn", "-query", "q", "-db", "d", "-outfmt", "6"], more].concat();
            parse(&words).expect_err("refused").to_string()
        };
        assert!(said(&["-culling_limit", "2"]).contains("compares hits of different subjects"));
        assert!(said(&["-db_soft_mask", "2"]).contains("no test has shown"));
        assert!(said(&["-matrix", "BLOSUM45"]).contains("no test has shown"));
        assert!(said(&["-evalue"]).contains("needs a value"));
        assert!(said(&["-outfmt", "7"]).contains("given twice"));
        assert!(said(&["-max_target_seqs", "0"]).contains("at least 1"));
        assert!(said(&["-num_alignments", "9"]).contains("for -outfmt 0 only"));
        let of = |words: &[&str]| parse(words).expect_err("refused").to_string();
        assert!(of(&["psiblast"]).contains("only blastn"));
        let blastp = |more: &[&str]| of(&[&["blastp", "-query", "q", "-db", "d"], more].concat());
        assert!(blastp(&["-ungapped", "-max_hsps", "1"]).contains("-max_hsps: with blastx"));
        assert!(blastp(&["-ungapped", "-subject_besthit"]).contains("-subject_besthit: with"));
        assert!(blastp(&["-qcov_hsp_perc", "50"]).contains("alignments that it leaves out"));
        assert!(blastp(&["-outfmt", "17"]).contains("blastn only"));
        for format in ["1", "11", "6 delim=@", "0 std", "17 SQ", "", "5x"] {
            assert!(blastp(&["-outfmt", format]).contains("only 0, 5"), "{format}");
        }
        let both = ["-num_descriptions", "5", "-max_target_seqs", "5"];
        assert!(blastp(&both).contains("only one of them"));
        assert!(blastp(&["-num_descriptions", "0", "-num_alignments", "0"]).contains("at least 1"));
        assert_eq!(of(&["blastn", "-query", "q", "-outfmt", "6"]), "-db is missing");
    }
}
