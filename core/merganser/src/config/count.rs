//! The settings of `merganser count`.

use std::path::{Path, PathBuf};

use merganser_shell::args::OrderArgs;
use merganser_shell::config::destination::temp_dirs;
use merganser_shell::config::{Destination, memory_bytes, order, progress_form, threads};
use merganser_shell::failure::Failure;
use merganser_shell::input::Input;
use merganser_shell::progress::ProgressForm;
use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::run::magic::ContentKind;

use crate::args::CountArgs;

/// The values to count, and those to print.
#[derive(Debug)]
pub(crate) struct CountConfig {
    /// The inputs, in this order; at least one.
    pub inputs: Vec<Input>,
    /// The records. The keys of lines are among it, and those of csv are not.
    pub order: OrderSpec,
    /// The columns of csv that are counted; empty for whole rows.
    pub columns: Vec<String>,
    /// The destination of the counts.
    pub destination: Destination,
    /// How many values are printed, at most.
    pub top: Option<u64>,
    /// How often a printed value occurs, at least.
    pub min: u64,
    /// The memory budget.
    pub memory_bytes: u64,
    /// The folders for temporary files.
    pub temp_dirs: Vec<PathBuf>,
    /// How many threads.
    pub threads: usize,
    /// What the inputs should hold.
    pub content: ContentKind,
    /// How progress is shown.
    pub progress: ProgressForm,
}

impl TryFrom<CountArgs> for CountConfig {
    type Error = Failure;

    fn try_from(typed: CountArgs) -> Result<Self, Failure> {
        if !typed.has_text() {
            return Err("--format: count takes lines, csv or tsv".to_owned().into());
        }
        let is_csv = matches!(typed.format.0, Format::Csv { .. });
        let mut order_args = OrderArgs::default();
        order_args.format = typed.format;
        order_args.text = typed.text;
        order_args.header = typed.header;
        order_args.header_prefix = typed.header_prefix;
        order_args.field_separator = typed.field_separator;
        let mut columns = Vec::new();
        if is_csv {
            for key in &typed.key {
                let text = key.to_str().map(str::to_owned);
                columns.push(text.ok_or(format!("--key '{}': not UTF-8", key.display()))?);
            }
        } else {
            order_args.key = typed.key;
        }
        // The part of a line, and not its order, is what counts.
        order_args.stable = true;
        let order = order(&order_args)?;
        for key in &order.keys {
            if let Some(letter) = key.chars().find(|c| c.is_ascii_alphabetic() && *c != 'b') {
                return Err(format!(
                    "-k '{key}': values are equal if their bytes are; leave out the letter {letter}"
                )
                .into());
            }
        }
        let inputs = match &typed.inputs[..] {
            [] => vec![Input::Stdin],
            inputs => inputs.iter().map(|path| Input::named(path)).collect(),
        };
        let destination = match typed.output {
            Some(file) if file != Path::new("-") => Destination::File(file),
            _ => Destination::Stdout,
        };
        let content =
            if typed.no_decompress { ContentKind::AsStored } else { order.format.content() };
        Ok(CountConfig {
            inputs,
            order,
            columns,
            temp_dirs: temp_dirs(typed.temp, &destination),
            destination,
            top: typed.top.map(|count| count.0),
            min: typed.min.map_or(1, |count| count.0),
            memory_bytes: memory_bytes(typed.memory)?,
            threads: threads(typed.threads)?,
            content,
            progress: progress_form(typed.progress),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::refusal;

    #[test]
    fn contradictions_are_named() {
        for (words, sentence) in [
            (&["--format=fixed:8"][..], "--format: count takes lines, csv or tsv"),
            (&["-k2,2n"], "-k '2,2n': values are equal if their bytes are; leave out the letter n"),
            (&["--header"], "--header: only with --format csv"),
            (&["--format=csv", "-z"], "-z: only with --format lines"),
            (&["--threads=0"], "--threads: at least 1"),
        ] {
            assert_eq!(refusal(&[&["count"], words].concat()), sentence, "{words:?}");
        }
        let sentence = refusal(&["count", "-k0"]);
        assert!(sentence.starts_with("-k '0': "), "{sentence}");
    }
}
