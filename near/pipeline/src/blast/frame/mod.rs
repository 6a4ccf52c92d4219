//! The output of a search in one piece, made of two others.
//!
//! Archives do not hold all that BLAST prints: BLAST's formatter prints the statistics of a batch's first query for all of
//! them, and leaves out columns and warnings. The missing parts do not depend on hits. So they are taken from a *frame*: the
//! output of the same search over a database of one sequence of unknown letters that counts as the whole database.
//!
//! ```text
//!   frame      header, query 1: no hits, statistics;  query 2: no hits, statistics;  footer
//!   formatted  header, query 1: hits, –;              query 2: no hits, –;           footer, perhaps once per batch
//!   output     header, query 1: hits, statistics;     query 2: no hits, statistics;  footer
//! ```
//!
//! Both are read line by line, side by side. A shape that is not known is an error, and there is no output.

mod document;
mod pairwise;
mod sam;
mod table;

use std::io::{self, BufRead, Seek, Write};

use super::format::Form;

/// The errors of making an output.
#[derive(Debug, thiserror::Error)]
pub enum OutputFrameError {
    /// A file failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// BLAST printed something else than what is known.
    #[error("{which}, line {line}: {detail}")]
    Unknown {
        /// Which of the two.
        which: Which,
        /// The line, from 1.
        line: u64,
        /// The fault.
        detail: &'static str,
    },
}

/// One of the outputs that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The frame.
    Frame,
    /// The hits.
    Formatted,
}

impl std::fmt::Display for Which {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Which::Frame => "the frame of the output",
            Which::Formatted => "the formatted hits",
        })
    }
}

const CUT: &str = "ends here, where more was expected";
const OTHER: &str = "is not what BLAST prints there";
const OTHER_QUERY: &str = "is of another query than the line of the frame";
const MORE: &str = "more queries than in the frame";
const WARNED: &str =
    "BLAST warns about a query that has hits, and no test has shown what it prints then";

/// Puts the hits of `formatted` into `frame`, both in this form. `command` is the command that SAM names.
///
/// # Errors
/// Files that fail; outputs that are not of the same queries.
pub fn fill(
    form: Form,
    frame: &mut dyn BufRead,
    formatted: &mut (impl BufRead + Seek),
    command: &str,
    out: &mut dyn Write,
) -> Result<(), OutputFrameError> {
    match form {
        Form::Table | Form::Commas => {
            io::copy(formatted, out)?;
            Ok(())
        }
        Form::Sam => sam::fill(formatted, command, out),
        Form::Commented => table::fill(
            &mut PeekedLines::of_reader(Which::Frame, frame),
            &mut PeekedLines::of_reader(Which::Formatted, formatted),
            out,
        ),
        Form::Pairwise => pairwise::fill(
            &mut PeekedLines::of_reader(Which::Frame, frame),
            &mut PeekedLines::of_reader(Which::Formatted, formatted),
            out,
        ),
        Form::Xml | Form::Json => {
            let marks = if form == Form::Xml { &document::XML } else { &document::JSON };
            let frame = &mut PeekedLines::of_reader(Which::Frame, frame);
            document::fill(
                marks,
                frame,
                &mut PeekedLines::of_reader(Which::Formatted, formatted),
                out,
            )
        }
    }
}

/// Lines; the next one can be seen before it is taken.
struct PeekedLines<'a> {
    which: Which,
    reader: &'a mut dyn BufRead,
    line: Vec<u8>,
    number: u64,
    /// Empty lines before this one.
    blanks: u64,
    is_read: bool,
}

impl<'a> PeekedLines<'a> {
    fn of_reader(which: Which, reader: &'a mut dyn BufRead) -> Self {
        PeekedLines { which, reader, line: Vec::new(), number: 0, blanks: 0, is_read: false }
    }

    fn unknown(&self, detail: &'static str) -> OutputFrameError {
        OutputFrameError::Unknown { which: self.which, line: self.number, detail }
    }

    /// The next line, with its end; `None` after the last one.
    fn peek(&mut self) -> Result<Option<&[u8]>, OutputFrameError> {
        if !self.is_read {
            self.blanks = if self.line == b"\n" { self.blanks + 1 } else { 0 };
            self.line.clear();
            self.reader.read_until(b'\n', &mut self.line)?;
            self.number += 1;
            self.is_read = true;
        }
        if self.line.last().is_some_and(|byte| *byte != b'\n') {
            return Err(self.unknown(CUT));
        }
        Ok((!self.line.is_empty()).then_some(&*self.line))
    }

    /// Goes to the line after the one that was seen.
    fn pass(&mut self) {
        // The end stays where it is.
        self.is_read = self.line.is_empty();
    }

    /// Writes the line that was seen, and goes to the one after it.
    fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.line)?;
        self.pass();
        Ok(())
    }

    /// Whether the next line begins with this; an error at the end.
    fn begins(&mut self, with: &[u8]) -> Result<bool, OutputFrameError> {
        match self.peek()? {
            Some(line) => Ok(line.starts_with(with)),
            None => Err(self.unknown(CUT)),
        }
    }
}

#[cfg(test)]
mod tests;
