//! Errors of a trace, with their position.

use std::io;

use super::event::BlkparseEvent;

/// Why a trace can't be read further.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A line that does not have the format, or has a request that is not possible.
    #[error("line {line}, column {column}: found {found}, expected {expected}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// The column of the field's first byte, counted from 1.
        column: usize,
        /// The text found, shortened.
        found: String,
        /// The text expected.
        expected: String,
    },
    /// No format was given, and the first line does not identify one.
    #[error("the format is not clear from line {line}, '{found}': {why}")]
    Format {
        /// Counted from 1.
        line: u64,
        /// The line, shortened.
        found: String,
        /// The formats that are possible.
        why: String,
    },
    /// The trace has lines, but no request that is wanted.
    #[error("none of its {lines} lines is a request: {why}")]
    NoRequest {
        /// Lines that are not blank.
        lines: u64,
        /// The content of its lines.
        why: NoRequest,
    },
    /// The input can't be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Why a trace of some lines has no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoRequest {
    /// It is of blkparse, and its requests have the other event alone.
    #[error("they have the event {}", .event.name())]
    OtherEvent {
        /// The event that would give requests.
        event: BlkparseEvent,
    },
    /// All requests are of disks that were not selected.
    #[error("they are of other disks")]
    OtherDisks,
    /// All lines were bad, and skipped.
    #[error("they are bad lines")]
    BadLines,
    /// They have something else.
    #[error("they have other events or comments")]
    OtherLines,
}

/// The most characters of a line that a message shows.
const SHOWN: usize = 40;

/// The error of a line whose number is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineFault {
    pub column: usize,
    pub found: String,
    pub expected: String,
}

impl LineFault {
    pub(super) fn new(column: usize, found: &str, expected: impl Into<String>) -> Self {
        LineFault { column, found: quoted(found), expected: expected.into() }
    }

    pub(super) fn on(self, line: u64) -> TraceError {
        let LineFault { column, found, expected } = self;
        TraceError::Line { line, column, found, expected }
    }
}

/// `text` in quotes, or words for an empty text.
fn quoted(text: &str) -> String {
    if text.is_empty() { "nothing".to_owned() } else { format!("'{}'", shortened(text)) }
}

/// The first characters of a text that may be long and may hold any bytes.
pub(super) fn shortened(text: &str) -> String {
    let harmless = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut short: String = text.chars().take(SHOWN).map(harmless).collect();
    if text.chars().nth(SHOWN).is_some() {
        short.push('…');
    }
    short
}
