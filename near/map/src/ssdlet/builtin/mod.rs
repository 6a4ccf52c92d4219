//! SSDlets that are part of the program, one file each.
//!
//! ```text
//!   wordcount  terms  sequence-count          words      where words begin and end
//!   documents: inverted-index, term-vector,   by_record  one record of lines at a time
//!     ranked-inverted-index
//!   ratings: histogram-movies, -ratings       ranges     ranges of numbers
//!   occurrences  match                        borders    the record around a hit
//!   histogram  project  filter                csv        fields of rows, columns by name or number
//!   sample                                    number     numbers in arguments, by their digits
//!                                             block      64 bytes at a time
//!                                             arguments  values out of a JSON object
//! ```
//! An SSDlet that copies a part of a record (an upper-case word, a row of fewer columns) has
//! [`COPY_BYTES_MOST`] for it. So its memory is bounded, and a longer part is an error.

mod arguments;
mod block;
mod borders;
mod by_record;
mod csv;
mod documents;
mod filter;
mod histogram;
mod matching;
mod number;
mod occurrences;
mod project;
mod ranges;
mod ratings;
mod sample;
mod sequence_count;
mod terms;
mod wordcount;
mod words;

use serde_json::Value;

use super::{Alone, MemoryLender, Ssdlet, SsdletError};
use arguments::Arguments;
pub use number::{number_argument, rounded_number};

/// The longest part of a record that is copied, in bytes.
pub const COPY_BYTES_MOST: usize = 1 << 20;

/// A built-in SSDlet: its name, what it does in one line, its arguments, and how it is opened.
pub struct Builtin {
    /// The name.
    pub name: &'static str,
    /// Its work, in one line.
    pub about: &'static str,
    /// Its arguments, the members of a JSON object.
    pub arguments: &'static [Argument],
    open: fn(Arguments<'_>) -> Result<Box<dyn Ssdlet>, SsdletError>,
}

/// An argument of a built-in SSDlet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    /// The name of the member.
    pub name: &'static str,
    /// What it means, and what it may be.
    pub meaning: &'static str,
    /// The default, as JSON or in words; empty where it has to be given.
    pub default: &'static str,
}

const fn argument(name: &'static str, meaning: &'static str, default: &'static str) -> Argument {
    Argument { name, meaning, default }
}

/// Arguments that several SSDlets have.
const DELIMITER: Argument = argument(
    "delimiter",
    "the byte that ends a record (\"\\u0000\" for NUL), or its number",
    "\"\\n\"",
);
const SEPARATOR: Argument = argument("separator", "the byte between fields of csv", "\",\"");
const HEADER: Argument =
    argument("header", "whether the first row of each csv input names the columns", "false");
const QUOTES: Argument = argument(
    "quotes",
    "\"lazy\" (a quote inside an unquoted field of csv is a letter) or \"strict\" (it is an error)",
    "\"lazy\"",
);
const WORDS: Argument = argument(
    "words",
    "\"whitespace\" (separated by space, tab, newline, form feed, carriage return) or \"letters\" (A-Z and ', in upper case)",
    "\"whitespace\"",
);

/// All of them, in the order of their names.
pub const ALL: &[Builtin] = &[
    Builtin {
        name: "filter",
        about: "rows of csv whose columns meet a condition",
        arguments: filter::ARGUMENTS,
        open: filter::open,
    },
    Builtin {
        name: "histogram",
        about: "how often each number, range of numbers or byte occurs",
        arguments: histogram::ARGUMENTS,
        open: histogram::open,
    },
    Builtin {
        name: "histogram-movies",
        about: "how many movies have which mean rating (PUMA)",
        arguments: ratings::ARGUMENTS,
        open: ratings::open_movies,
    },
    Builtin {
        name: "histogram-ratings",
        about: "how often each rating of a movie occurs (PUMA)",
        arguments: ratings::ARGUMENTS,
        open: ratings::open_ratings,
    },
    Builtin {
        name: "inverted-index",
        about: "the documents of each word (PUMA)",
        arguments: documents::ARGUMENTS,
        open: documents::open_inverted,
    },
    Builtin {
        name: "match",
        about: "records with one of some texts or with a regular expression",
        arguments: matching::ARGUMENTS,
        open: matching::open,
    },
    Builtin {
        name: "occurrences",
        about: "how often a text occurs (Hadoop's grep)",
        arguments: occurrences::ARGUMENTS,
        open: occurrences::open,
    },
    Builtin {
        name: "project",
        about: "some columns of csv",
        arguments: project::ARGUMENTS,
        open: project::open,
    },
    Builtin {
        name: "ranked-inverted-index",
        about: "the documents of each sequence of words, with counts (PUMA)",
        arguments: documents::ARGUMENTS,
        open: documents::open_ranked,
    },
    Builtin {
        name: "sample",
        about: "a random part of the records",
        arguments: sample::ARGUMENTS,
        open: sample::open,
    },
    Builtin {
        name: "sequence-count",
        about: "how often each sequence of words occurs in a record",
        arguments: sequence_count::ARGUMENTS,
        open: sequence_count::open,
    },
    Builtin {
        name: "term-vector",
        about: "the words of each document, with counts (PUMA)",
        arguments: documents::ARGUMENTS,
        open: documents::open_vector,
    },
    Builtin {
        name: "terms",
        about: "how often each word occurs in each document",
        arguments: terms::ARGUMENTS,
        open: terms::open,
    },
    Builtin {
        name: "wordcount",
        about: "how often each word occurs",
        arguments: wordcount::ARGUMENTS,
        open: wordcount::open,
    },
];

/// Opens the built-in SSDlet `name` with `args`, a JSON object; `null` means no arguments.
///
/// # Errors
/// When no SSDlet has this name, or its arguments make no sense.
pub fn open(name: &str, args: &Value) -> Result<Box<dyn Ssdlet>, SsdletError> {
    open_within(name, args, &Alone { memory_bytes: u64::MAX })
}

/// As [`open`], with the memory of `lender` for what the opening takes.
///
/// # Errors
/// As [`open`]; when the memory is not there.
pub fn open_within(
    name: &str,
    args: &Value,
    lender: &dyn MemoryLender,
) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let found = ALL.iter().find(|builtin| builtin.name == name);
    let builtin = found.ok_or_else(|| SsdletError::Unknown { name: name.to_owned() })?;
    (builtin.open)(Arguments::new(builtin, args, lender)?)
}
