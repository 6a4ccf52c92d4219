//! Reads the requests of a trace, one at a time.

use std::io::BufRead;

use super::adjust::{Adjuster, Options};
use super::blkparse::Event;
use super::detect;
use super::error::TraceError;
use super::format::Format;
use super::line::Lines;
use super::parsed::Parsed;
use super::tally::Tally;
use crate::request::Request;

/// The requests of a trace, in its order.
pub struct Trace<R> {
    lines: Lines<R>,
    format: Format,
    event: Event,
    adjuster: Adjuster,
    /// Bad lines that may still be skipped.
    skip_bad: u64,
    ended: bool,
}

/// Opens a trace.
///
/// # Errors
/// When no format was given and the first line fits none, or several.
pub fn read<R: BufRead>(input: R, options: &Options) -> Result<Trace<R>, TraceError> {
    let mut lines = Lines::new(input);
    let format = match options.format {
        Some(format) => format,
        None => detect::format(&mut lines)?,
    };
    Ok(Trace {
        lines,
        format,
        event: options.event,
        adjuster: Adjuster::new(options),
        skip_bad: options.skip_bad,
        ended: false,
    })
}

impl<R> Trace<R> {
    /// The format: the one given, or the one detected.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The counts of the lines read so far.
    pub fn tally(&self) -> Tally {
        self.adjuster.tally
    }
}

impl<R: BufRead> Trace<R> {
    fn advance(&mut self) -> Result<Option<Request>, TraceError> {
        loop {
            let Some(line) = self.lines.next()? else { return Ok(None) };
            if line.is_blank() {
                self.adjuster.tally.other_lines += 1;
                continue;
            }
            let number = line.number();
            let absolute = self.format.is_absolute();
            let parsed = self.format.parse(&line, self.event);
            let used = parsed.and_then(|parsed| match parsed {
                Parsed::Request(disk, request) => {
                    Ok(Line::Request(self.adjuster.adjust(disk, request, absolute)?))
                }
                Parsed::Other => Ok(Line::Other),
                Parsed::End => Ok(Line::End),
            });
            match used {
                Ok(Line::Request(Some(request))) => return Ok(Some(request)),
                Ok(Line::Request(None)) => {}
                Ok(Line::Other) => self.adjuster.tally.other_lines += 1,
                Ok(Line::End) => return Ok(None),
                Err(_) if self.skip_bad > 0 => {
                    self.skip_bad -= 1;
                    self.adjuster.tally.bad_lines += 1;
                }
                Err(fault) => return Err(fault.on(number)),
            }
        }
    }
}

/// What a line has.
enum Line {
    /// A request; `None` if it is of another disk.
    Request(Option<Request>),
    Other,
    End,
}

impl<R: BufRead> Iterator for Trace<R> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.advance().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
