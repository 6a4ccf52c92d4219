//! The settings of `merganser verify`.

use std::path::PathBuf;

use merganser_shell::config::{memory_bytes, order, threads};
use merganser_shell::failure::Failure;
use merganser_shell::input::Input;
use merganser_sort::key::OrderSpec;

use crate::args::VerifyArgs;

/// The subject of a check, and the form of its result.
#[derive(Debug)]
pub(crate) struct VerifyConfig {
    /// The subject of the check.
    pub subject: VerifySubject,
    /// The memory budget.
    pub memory_bytes: u64,
    /// How many threads merge a view.
    pub threads: usize,
    /// Whether to print JSON.
    pub json: bool,
    /// Whether a compressed input is read as what it holds.
    pub decompress: bool,
    /// No bar.
    pub quiet: bool,
}

/// The subject of a check.
#[derive(Debug)]
pub(crate) enum VerifySubject {
    /// Records in this order.
    Records(Input, OrderSpec),
    /// A view, in its own.
    View(PathBuf),
}

impl TryFrom<VerifyArgs> for VerifyConfig {
    type Error = Failure;

    fn try_from(typed: VerifyArgs) -> Result<Self, Failure> {
        let order = order(&typed.order)?;
        let subject = if typed.input.is_dir() {
            if order != self::order(&Default::default())? {
                let view = typed.input.display();
                return Err(format!(
                    "{view}: a view has a format and key of its own; leave out yours"
                )
                .into());
            }
            VerifySubject::View(typed.input)
        } else {
            VerifySubject::Records(Input::named(&typed.input), order)
        };
        let memory_bytes = memory_bytes(typed.memory)?;
        Ok(VerifyConfig {
            subject,
            memory_bytes,
            threads: threads(None)?,
            json: typed.json,
            decompress: !typed.no_decompress,
            quiet: typed.quiet,
        })
    }
}

#[cfg(test)]
mod tests {
    use merganser_shell::config::{order_flags, order_words};
    use merganser_sort::record::Format;

    use super::super::tests::{config, refusal};
    use super::*;
    use crate::args::CliCommand;

    fn ordered(words: &[&str]) -> OrderSpec {
        let CliCommand::Verify(typed) = config(&[&["verify", "file"], words].concat()) else {
            unreachable!()
        };
        order(&typed.order).unwrap_or_else(|failure| panic!("{:?}", failure.sentence()))
    }

    #[test]
    fn options_mean_what_gnu_sort_means() {
        let lines = OrderSpec::new(Format::Lines { delimiter: b'\n' });
        assert_eq!(ordered(&[]), lines);
        let nul = OrderSpec::new(Format::Lines { delimiter: 0 });
        assert_eq!(ordered(&["-zz"]), nul);
        let keys = vec!["2,2n".to_owned(), "1".to_owned()];
        let by_fields = OrderSpec { keys, separator: Some(b':'), ..lines.clone() };
        assert_eq!(ordered(&["-t:", "-k2,2n", "-k", "1"]), by_fields);
        assert_eq!(ordered(&["--field-separator=:", "--key=2,2n", "--key=1"]), by_fields);
        let numbers =
            OrderSpec { options: "nr".to_owned(), stable: true, unique: true, ..lines.clone() };
        assert_eq!(ordered(&["-nrsu"]), numbers);
        assert_eq!(ordered(&["--sort=numeric", "--reverse", "--stable", "--unique"]), numbers);
        let tab = OrderSpec { separator: Some(0), ..lines };
        assert_eq!(ordered(&["-t", "\\0"]), tab);
        assert_eq!(ordered(&["-t", "\\0", "-t\\0"]), tab);
    }

    #[test]
    fn every_letter_has_its_word() {
        for (short, long) in [
            ("-b", "--ignore-leading-blanks"),
            ("-d", "--dictionary-order"),
            ("-f", "--ignore-case"),
            ("-g", "--sort=general-numeric"),
            ("-g", "--general-numeric-sort"),
            ("-h", "--sort=human-numeric"),
            ("-i", "--ignore-nonprinting"),
            ("-M", "--sort=month"),
            ("-V", "--sort=version"),
        ] {
            assert_eq!(ordered(&[short]), ordered(&[long]));
            assert_eq!(ordered(&[short]).options, short[1..]);
        }
        assert_eq!(ordered(&["-R"]).options, "R");
    }

    #[test]
    fn only_random_orders_have_a_seed() {
        for words in [
            &["-nr"][..],
            &["-k2nr"],
            &["--format=csv", "--key", "1:nr"],
            &["--format=csv", "--key", "1:numeric:r"],
            &["--format=csv", "--header", "--key", "Region:r"],
            &["--format=csv", "--header", "--key", "random:n"],
            &["--format=csv", "--header", "--key", "R"],
            &["--format=keyed", "--key", ":r"],
            &["--format=fasta", "--key", "id:V:r"],
        ] {
            assert_eq!(ordered(words), ordered(words), "{words:?}");
        }
        for words in [
            &["-R"][..],
            &["-k2R"],
            &["--format=csv", "--key", "1:rR"],
            &["--format=csv", "--key", "1:random:r"],
            &["--format=csv", "--header", "--key", "name:R"],
        ] {
            assert_ne!(ordered(words).salt, ordered(words).salt, "{words:?}");
        }
    }

    #[test]
    fn csv_takes_its_separator_from_either_flag() {
        let csv = |separator, header| OrderSpec::new(Format::csv_rows(separator, header));
        assert_eq!(ordered(&["--format", "csv"]), csv(b',', false));
        assert_eq!(ordered(&["--format=csv", "--header", "-t;"]), csv(b';', true));
        assert_eq!(ordered(&["--format=csv", "--csv-separator=|"]), csv(b'|', false));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let table: &[(&[&str], &str)] = &[
            (&["--format", "csv", "-z"], "-z: only with --format lines"),
            (&["--header"], "--header: only with --format csv"),
            (&["--csv-separator", ","], "--csv-separator: only with --format csv"),
            (&["--format", "fixed:8", "-t,"], "-t: only with --format lines or csv"),
            (
                &["--format", "csv", "-t;", "--csv-separator", ";"],
                "--csv-separator: the same as -t for csv; give one of them",
            ),
            (&["--format", "csv", "-t\""], "-t: a quote or a line end can't separate fields"),
            (
                &["--format", "csv", "-tab"],
                "-t 'ab': a separator is one byte, such as ';' or '\\t'",
            ),
            (&["-t,", "-t;"], "-t: given twice, with different separators"),
            (
                &["--random-source=a", "--random-source=b"],
                "--random-source: given twice, with different files",
            ),
            (&["--sort=numeric", "--sort=month"], "options '-Mn' are incompatible"),
            (&["-ng"], "options '-gn' are incompatible"),
            (&["-R", "--random-source", "/missing"], "/missing: No such file or directory"),
        ];
        for (options, sentence) in table {
            assert_eq!(
                refusal(&[&["verify", "file"], *options].concat()),
                *sentence,
                "{options:?}"
            );
        }
        for options in [&["-k0"][..], &["-t", "ab"], &["--format=fixed:8", "--key=4:8"]] {
            let sentence = refusal(&[&["verify", "file"], options].concat());
            assert!(sentence.starts_with('-'), "{sentence}");
        }
    }

    #[test]
    fn the_words_of_an_order_mean_it() {
        for typed in [
            &["-nrsu"][..],
            &["-z", "-t", "\\0", "-k2,2n", "-k", "1.2bf,3"],
            &["-t;", "-k1,1V", "-s"],
            &["--format=csv"],
            &["--format=csv", "--header", "-t|", "--key", "a b:n:r", "--key=-x"],
            &["--format=fixed:100", "--key", "0:10", "--key", "10:4:u32le:r"],
            &["--format=keyed", "--key", ":r"],
            &["--format=fasta", "--key", "id:V:r", "-f"],
            &["--format=fastq", "--key", "length:r"],
        ] {
            let order = ordered(typed);
            let words = order_words(&order);
            let words: Vec<_> = words.iter().map(|word| word.to_str().expect("text")).collect();
            assert_eq!(ordered(&words), order, "{typed:?} {words:?}");
        }
    }

    #[test]
    fn an_order_is_shown_as_its_flags() {
        let spec = OrderSpec {
            keys: vec!["2,2n".to_owned(), "1".to_owned()],
            options: "r".to_owned(),
            separator: Some(0),
            stable: true,
            ..OrderSpec::new(Format::Lines { delimiter: b'\n' })
        };
        assert_eq!(order_flags(&spec), "-t '\\x00' -k 2,2n -k 1 -rs");
        assert_eq!(order_flags(&OrderSpec::new(Format::Keyed)), "");
    }
}
