//! Reads the requests of a trace, one at a time.

use std::io::BufRead;

use super::adjust::{Adjuster, Options};
use super::blkparse::Event;
use super::detect;
use super::error::{Fault, TraceError};
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
            let fail = |fault: Fault| fault.on(number);
            match self.format.parse(&line, self.event).map_err(fail)? {
                Parsed::Request(disk, request) => {
                    let absolute = self.format.is_absolute();
                    match self.adjuster.adjust(disk, request, absolute).map_err(fail)? {
                        Some(request) => return Ok(Some(request)),
                        None => continue,
                    }
                }
                Parsed::Other => self.adjuster.tally.other_lines += 1,
                Parsed::End => return Ok(None),
            }
        }
    }
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
