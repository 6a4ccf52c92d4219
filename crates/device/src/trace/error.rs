//! What is wrong with a trace, and where.

use std::io;

/// What keeps a trace from being read on.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A line that is not of the format, or that asks for what can't be.
    #[error("line {line}, column {column}: found {found}, expected {expected}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// Of the field's first byte, counted from 1.
        column: usize,
        /// What is there, shortened.
        found: String,
        /// What belongs there.
        expected: String,
    },
    /// No format was given, and the first line does not tell one.
    #[error("the format is not clear from line {line}, '{found}': {why}")]
    Format {
        /// Counted from 1.
        line: u64,
        /// The line, shortened.
        found: String,
        /// Which formats it could be.
        why: String,
    },
    /// It can't be read at all.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Most characters of a line that a message shows.
const SHOWN: usize = 40;

/// What is wrong with a line, before its number is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub column: usize,
    pub found: String,
    pub expected: String,
}

impl Fault {
    pub fn new(column: usize, found: &str, expected: impl Into<String>) -> Self {
        Fault { column, found: quoted(found), expected: expected.into() }
    }

    pub fn on(self, line: u64) -> TraceError {
        let Fault { column, found, expected } = self;
        TraceError::Line { line, column, found, expected }
    }
}

/// `text` in quotes, or what is there instead of any.
fn quoted(text: &str) -> String {
    if text.is_empty() { "nothing".to_owned() } else { format!("'{}'", shortened(text)) }
}

/// The first characters of what may be long and may hold anything.
pub(super) fn shortened(text: &str) -> String {
    let harmless = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut short: String = text.chars().take(SHOWN).map(harmless).collect();
    if text.chars().nth(SHOWN).is_some() {
        short.push('…');
    }
    short
}
