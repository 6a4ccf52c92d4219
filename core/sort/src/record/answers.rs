//! What every format says for itself, so that its users ask it and do not match on it.
//!
//! A format is a file with a [`RecordFormat`]; its variant of [`Format`](super::Format) and a line in `with_framing!` and
//! in the table of `formats`; and its name in files (`stored`).

use super::framing::Framing;
use super::sequences::{SequenceEnd, SequenceKind};
use crate::run::magic::ContentKind;

/// What a format says for itself.
pub(crate) trait RecordFormat: Framing {
    /// Its name: what is typed after `--format`, without a parameter.
    const NAME: &'static str;
    /// The name as it is typed, with a letter for the parameter.
    const TYPED: &'static str = Self::NAME;
    /// Its records in words, where the name does not say it.
    const ABOUT: Option<&'static str> = None;
    /// What an input should hold.
    const CONTENT: ContentKind = ContentKind::Text;
    /// Whether every record shows its own end. The others end where the next one begins.
    const IS_SELF_FRAMING: bool = true;

    /// The format of its name and what was typed after a colon; `None` if it takes no parameter. `bytes` reads a number of
    /// bytes.
    ///
    /// # Errors
    /// When the parameter is missing or wrong.
    fn parse(parameter: Option<&str>, bytes: ParseBytes<'_>) -> Result<Option<Self>, FormatError>;

    /// The parameter that [`RecordFormat::parse`] took.
    fn parameter(self) -> Option<usize> {
        None
    }

    /// How keys of such records are written.
    fn key_syntax(self) -> KeySyntax;

    /// How an input may be split between readers.
    fn split_rule(self) -> SplitRule {
        SplitRule::FromTheFront
    }

    /// The byte that ends every record.
    fn terminator(self) -> Option<u8> {
        None
    }

    /// Whether `records` are whole records, each with its terminator.
    fn are_whole(self, records: &[u8]) -> bool {
        let mut rest = records;
        while let Some(len) = self.first(rest).filter(|len| *len > 0) {
            rest = rest.get(len..).unwrap_or_default();
        }
        rest.is_empty()
    }

    /// Whether [`RecordFormat::probable_start`] finds any.
    const HAS_PROBABLE_STARTS: bool = true;

    /// Where in `bytes`, which begins anywhere unless records have a fixed length, a record probably begins; their
    /// length without one.
    fn probable_start(self, bytes: &[u8]) -> usize;

    /// The part of a record that is shown to a user.
    fn shown(self, record: &[u8]) -> &[u8] {
        record
    }

    /// How to treat the bytes after the last complete record of an input, for records whose ends don't depend on those
    /// before.
    fn tail(self, bytes: &[u8]) -> Tail;
}

/// Reads a number of bytes that was typed; the error is a sentence.
pub type ParseBytes<'a> = &'a dyn Fn(&str) -> Result<u64, String>;

/// How the keys of a format are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySyntax {
    /// GNU sort's, `POS1[,POS2]` and letters.
    Lines,
    /// `COLUMN[:TYPE][:r]`.
    Columns,
    /// `OFFSET:LENGTH[:TYPE][:r]`.
    Fields {
        /// Bytes of a record.
        bytes: usize,
    },
    /// `:r` alone: records have one key, in front.
    Prefixed,
    /// `id`, `header`, `length` or `sequence`.
    Sequences(SequenceKind),
}

/// How an input may be split between readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitRule {
    /// Every record begins at a multiple of this many bytes.
    Multiples {
        /// Bytes of a record.
        bytes: usize,
    },
    /// A record begins behind this byte, wherever that is.
    Behind {
        /// The byte.
        delimiter: u8,
    },
    /// Only a reader that comes from the front knows where a record begins.
    FromTheFront,
}

impl SplitRule {
    /// Whether a reader that begins anywhere finds the borders near it.
    #[must_use]
    pub fn is_local(self) -> bool {
        self != SplitRule::FromTheFront
    }
}

/// Why a typed word is not a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// There is no format of this name.
    #[error("'{typed}' is not {known}")]
    Unknown {
        /// What was typed.
        typed: String,
        /// What can be typed, as a list in a sentence.
        known: String,
    },
    /// The parameter is missing.
    #[error("fixed needs the length of a record in bytes, such as fixed:100")]
    NoLength,
    /// The parameter is wrong.
    #[error("{0}")]
    Parameter(String),
}

/// How to treat the bytes after the last complete record of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// They are a record as they are.
    Whole,
    /// They are a record once this terminator is added.
    Complete(&'static [u8]),
    /// They are a damaged record; the text says in which way.
    Damaged(&'static str),
}

impl From<SequenceEnd> for Tail {
    fn from(end: SequenceEnd) -> Self {
        match end {
            SequenceEnd::Whole => Tail::Whole,
            SequenceEnd::NoNewline => Tail::Complete(b"\n"),
            SequenceEnd::Cut(how) => Tail::Damaged(how),
        }
    }
}

/// Where the bytes behind the first `byte` begin.
pub(super) fn after(bytes: &[u8], byte: u8) -> usize {
    memchr::memchr(byte, bytes).map_or(bytes.len(), |at| at + 1)
}
