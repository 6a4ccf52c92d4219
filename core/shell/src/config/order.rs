//! FORMAT and KEY: what the records are and how they are ordered.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;

use clap::ValueEnum;
use merganser_sort::key::{
    KeyOrdering, ORDERINGS, OrderSpec, SALT_SOURCE_BYTES, parse_separator, salt_from,
};
use merganser_sort::record::{CsvQuotes, Format};

use crate::args::{FormatName, OrderArgs, QuotesName, SortWord, TextArgs};
use crate::failure::Failure;
use crate::shown;

/// The order of these options.
///
/// # Errors
/// When they contradict one another, or name fields that such records can't have.
pub fn order(typed: &OrderArgs) -> Result<OrderSpec, Failure> {
    let format = format(typed)?;
    let separator = match (field_separator(typed)?, format) {
        (Some(separator), Format::Lines { .. }) => {
            Some(parse_separator(separator.as_encoded_bytes())?)
        }
        _ => None,
    };
    let keys = typed.key.iter().map(|key| match key.to_str() {
        Some(key) => Ok(key.to_owned()),
        None => Err(format!("--key '{}': not UTF-8", key.display())),
    });
    let spec = OrderSpec {
        format,
        keys: keys.collect::<Result<_, _>>()?,
        options: letters(typed),
        separator,
        stable: typed.stable,
        unique: typed.unique,
        salt: 0,
        header_prefixes: typed.header_prefix.iter().map(|prefix| (&**prefix).into()).collect(),
    };
    if !matches!(format, Format::Lines { .. }) && !spec.header_prefixes.is_empty() {
        return Err(only("--header-prefix", "lines"));
    }
    let spec = OrderSpec { salt: salt(typed, &spec)?, ..spec };
    if !format.has_header() {
        // Without a header, all errors can be found now.
        spec.compile(None)?;
    }
    Ok(spec)
}

fn format(typed: &OrderArgs) -> Result<Format, Failure> {
    let separator = field_separator(typed)?;
    if separator.is_some() && !matches!(typed.format.0, Format::Lines { .. } | Format::Csv { .. }) {
        return Err(only("-t", "lines or csv"));
    }
    RecordFlags {
        format: typed.format,
        text: &typed.text,
        header: typed.header,
        field_separator: separator,
    }
    .format()
}

/// The options that say how records are divided.
pub struct RecordFlags<'a> {
    /// `--format`.
    pub format: FormatName,
    /// `-z` and `--csv-separator`.
    pub text: &'a TextArgs,
    /// `--header`.
    pub header: bool,
    /// `-t`, which lines and csv take.
    pub field_separator: Option<&'a OsStr>,
}

impl RecordFlags<'_> {
    /// The format that they mean.
    ///
    /// # Errors
    /// When an option has no meaning for these records.
    pub fn format(&self) -> Result<Format, Failure> {
        let lines = self.format == FormatName::LINES;
        let csv = matches!(self.format.0, Format::Csv { .. });
        if self.text.zero_terminated && !lines {
            return Err(only("-z", "lines"));
        }
        if self.header && !csv {
            return Err(only("--header", "csv"));
        }
        if self.text.csv_separator.is_some() && !csv {
            return Err(only("--csv-separator", "csv"));
        }
        if self.text.csv_quotes.is_some() && !csv {
            return Err(only("--csv-quotes", "csv"));
        }
        Ok(match self.format.0 {
            Format::Lines { .. } if self.text.zero_terminated => Format::Lines { delimiter: 0 },
            Format::Csv { separator, .. } => {
                let quotes = match self.text.csv_quotes {
                    None | Some(QuotesName::Lazy) => CsvQuotes::Lazy,
                    Some(QuotesName::Strict) => CsvQuotes::Strict,
                };
                Format::Csv {
                    separator: self.separator_of_csv(separator)?,
                    header: self.header,
                    quotes,
                }
            }
            other => other,
        })
    }

    /// The separator of rows that have this one where none is given.
    fn separator_of_csv(&self, usual: u8) -> Result<u8, Failure> {
        let (flag, separator) = match (self.text.csv_separator.as_deref(), self.field_separator) {
            (None, None) => return Ok(usual),
            (Some(_), Some(_)) => {
                return Err("--csv-separator: the same as -t for csv; give one of them"
                    .to_owned()
                    .into());
            }
            (Some(separator), None) => ("--csv-separator", separator),
            (None, Some(separator)) => ("-t", separator),
        };
        match parse_separator(separator.as_encoded_bytes()) {
            Ok(b'"' | b'\n' | b'\r') => {
                Err(format!("{flag}: a quote or a line end can't separate fields").into())
            }
            Ok(separator) => Ok(separator),
            Err(_) => {
                let typed = separator.display();
                Err(format!("{flag} '{typed}': a separator is one byte, such as ';' or '\\t'")
                    .into())
            }
        }
    }
}

fn only(flag: &str, format: &str) -> Failure {
    format!("{flag}: only with --format {format}").into()
}

/// The value of -t. It may be given more than once, as in GNU sort, but only with the same value.
fn field_separator(typed: &OrderArgs) -> Result<Option<&OsStr>, Failure> {
    match &typed.field_separator[..] {
        [first, others @ ..] if others.iter().any(|other| other != first) => {
            Err("-t: given twice, with different separators".to_owned().into())
        }
        separators => Ok(separators.first().map(|separator| &**separator)),
    }
}

/// The ordering letters, as GNU sort has them.
fn letters(typed: &OrderArgs) -> String {
    let word = |known: &KeyOrdering| {
        let is_it = |word: &SortWord| {
            word.to_possible_value().is_some_and(|word| known.word == Some(word.get_name()))
        };
        typed.sort.iter().any(is_it)
    };
    let given = |known: &&KeyOrdering| typed.is_given(known.letter) || word(known);
    ORDERINGS.iter().filter(given).map(|known| known.letter).collect()
}

/// The seed of the permutation of -R: from a file, or random. Orders without -R have no seed, so that
/// they stay comparable.
fn salt(typed: &OrderArgs, spec: &OrderSpec) -> Result<u64, Failure> {
    let random = spec.is_random();
    let path = match &typed.random_source[..] {
        [] => return Ok(if random { RandomState::new().hash_one("salt") } else { 0 }),
        [first, others @ ..] if others.iter().any(|other| other != first) => {
            return Err("--random-source: given twice, with different files".to_owned().into());
        }
        [path, ..] => path,
    };
    let failed = |error: io::Error| Failure::on(path, &error);
    // Without -R the file is not looked at, as by GNU sort.
    if !random {
        return Ok(0);
    }
    if fs::metadata(path).map_err(failed)?.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    // As many bytes as GNU sort takes: a source may be endless.
    let mut source = [0; SALT_SOURCE_BYTES];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut source));
    read.map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Failure::Error(format!(
            "--random-source {}: ends early; at least {SALT_SOURCE_BYTES} bytes are needed",
            shown::name(path)
        )),
        _ => failed(error),
    })?;
    Ok(salt_from(&source))
}

/// The flags that ask for this order; empty for the default order.
pub fn flags(order: &OrderSpec) -> String {
    let mut words = Vec::new();
    if let Some(separator) = order.separator {
        words.push(format!("-t '{}'", separator.escape_ascii()));
    }
    let flag = if matches!(order.format, Format::Lines { .. }) { "-k" } else { "--key" };
    words.extend(order.keys.iter().map(|key| format!("{flag} {key}")));
    let letters = letters_of(order);
    if !letters.is_empty() {
        words.push(format!("-{letters}"));
    }
    words.join(" ")
}

/// The words of a command line that ask for this order, except for the seed of `-R`.
pub fn words(order: &OrderSpec) -> Vec<OsString> {
    let byte = |byte: u8| match byte {
        0 => OsString::from("\\0"),
        byte => OsString::from_vec(vec![byte]),
    };
    let mut words: Vec<OsString> = Vec::new();
    match order.format {
        Format::Lines { delimiter: 0 } => words.push("-z".into()),
        Format::Lines { .. } => {}
        Format::Csv { separator, header, quotes } => {
            words.extend(["--format".into(), order.format.name().into()]);
            if separator != b',' {
                words.extend(["--csv-separator".into(), byte(separator)]);
            }
            words.extend(header.then(|| "--header".into()));
            if quotes == CsvQuotes::Strict {
                words.extend(["--csv-quotes".into(), "strict".into()]);
            }
        }
        other => words.extend(["--format".into(), other.typed().into()]),
    }
    if let Some(separator) = order.separator {
        words.extend(["-t".into(), byte(separator)]);
    }
    let prefixes = order.header_prefixes.iter().map(|prefix| prefix.as_os_str().to_owned());
    words.extend(prefixes.flat_map(|prefix| ["--header-prefix".into(), prefix]));
    words.extend(order.keys.iter().flat_map(|key| ["--key".into(), key.into()]));
    let letters = letters_of(order);
    words.extend((!letters.is_empty()).then(|| format!("-{letters}").into()));
    words
}

/// The ordering letters of an order, and those of `-s` and `-u`.
fn letters_of(order: &OrderSpec) -> String {
    let others = [(order.stable, 's'), (order.unique, 'u')];
    let others = others.into_iter().filter_map(|(given, letter)| given.then_some(letter));
    order.options.chars().chain(others).collect()
}
