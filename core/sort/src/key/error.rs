//! Why keys and options make no order.

use std::fmt;

use thiserror::Error;

/// Why there is no such order. The texts do not name flags: a program that has flags matches on the
/// variant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A value has no meaning, or no meaning for these records.
    #[error("{of} '{value}': {reason}")]
    Value {
        /// The setting that has the value.
        of: Setting,
        /// The value.
        value: String,
        /// The reason why the value is wrong, or the values that would be right.
        reason: String,
    },
    /// Letters that contradict one another, in GNU sort's order and words.
    #[error("options '-{0}' are incompatible")]
    Incompatible(String),
    /// An ordering letter that these records have no use for.
    #[error("option {letter} has no meaning for {records}")]
    UnfitLetter {
        /// The letter.
        letter: char,
        /// The records.
        records: Records,
    },
    /// Keys of lines were asked for.
    #[error("keys of lines have no meaning for {records}")]
    UnfitLineKeys {
        /// The records.
        records: Records,
    },
    /// A field separator that these records have no use for.
    #[error("a separator has no meaning for {records}")]
    UnfitSeparator {
        /// The records.
        records: Records,
    },
}

/// The settings of an order that have a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// A key of lines, as GNU sort writes it.
    LineKey,
    /// A key of other records.
    Key,
    /// The field separator.
    Separator,
    /// The format of the records.
    Format,
    /// The beginning of header lines.
    HeaderPrefix,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Setting::LineKey | Setting::Key => "key",
            Setting::Separator => "separator",
            Setting::Format => "format",
            Setting::HeaderPrefix => "header prefix",
        })
    }
}

/// Records, by the ordering letters that they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// Lines.
    Lines,
    /// CSV rows that are ordered by columns.
    Rows,
    /// CSV rows that are ordered as a whole.
    WholeRows,
    /// Records of a fixed length.
    Fixed,
    /// Length-prefixed records.
    Keyed,
    /// Sequences that are ordered by parts of them.
    Sequences,
    /// Sequences that are ordered as a whole.
    WholeSequences,
}

impl fmt::Display for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Records::Lines => "lines",
            Records::Rows => "csv rows",
            Records::WholeRows => "csv rows without keys",
            Records::Fixed => "fixed-length records",
            Records::Keyed => "length-prefixed records",
            Records::Sequences => "sequences",
            Records::WholeSequences => "sequences without keys",
        })
    }
}
