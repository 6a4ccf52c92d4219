//! Reads the requests of a trace, one at a time.

use std::io::BufRead;

use super::adjust::{Adjuster, TraceOptions};
use super::detect;
use super::error::{NoRequest, TraceError};
use super::event::BlkparseEvent;
use super::format::TraceFormat;
use super::line::TraceLines;
use super::parsed::Parsed;
use super::tally::Tally;
use crate::request::DeviceRequest;

/// The requests of a trace, in its order.
pub struct TraceReader<R> {
    lines: TraceLines<R>,
    format: TraceFormat,
    event: BlkparseEvent,
    adjuster: Adjuster,
    /// Bad lines that may still be skipped.
    skip_bad: u64,
    /// Lines that are not blank.
    filled_lines: u64,
    /// The other event of blkparse would give requests.
    has_other_event: bool,
    ended: bool,
}

/// Opens a trace.
///
/// # Errors
/// When no format was given and the first line fits none, or several.
pub fn read<R: BufRead>(input: R, options: &TraceOptions) -> Result<TraceReader<R>, TraceError> {
    let mut lines = TraceLines::new(input);
    let format = match options.format {
        Some(format) => format,
        None => detect::format(&mut lines)?,
    };
    Ok(TraceReader {
        lines,
        format,
        event: options.event,
        adjuster: Adjuster::new(options),
        skip_bad: options.skip_bad,
        filled_lines: 0,
        has_other_event: false,
        ended: false,
    })
}

impl<R> TraceReader<R> {
    /// The format: the one given, or the one detected.
    pub fn format(&self) -> TraceFormat {
        self.format
    }

    /// The counts of the lines read so far.
    pub fn tally(&self) -> Tally {
        self.adjuster.tally
    }
}

impl<R: BufRead> TraceReader<R> {
    /// The end of the trace, which is an error if it has lines and no request. A trace of our own may be empty.
    fn end(&self) -> Result<Option<DeviceRequest>, TraceError> {
        let (tally, lines) = (self.adjuster.tally, self.filled_lines);
        if tally.requests > 0 || lines == 0 || self.format == TraceFormat::Merganser {
            return Ok(None);
        }
        let why = if self.has_other_event {
            NoRequest::OtherEvent { event: self.event.other() }
        } else if tally.other_disks > 0 {
            NoRequest::OtherDisks
        } else if tally.bad_lines > 0 {
            NoRequest::BadLines
        } else {
            NoRequest::OtherLines
        };
        Err(TraceError::NoRequest { lines, why })
    }

    fn advance(&mut self) -> Result<Option<DeviceRequest>, TraceError> {
        loop {
            let Some(line) = self.lines.next()? else { return self.end() };
            if line.is_blank() {
                self.adjuster.tally.other_lines += 1;
                continue;
            }
            self.filled_lines += 1;
            let number = line.number();
            let absolute = self.format.is_absolute();
            let parsed = self.format.parse(&line, self.event);
            let used = parsed.and_then(|parsed| match parsed {
                Parsed::Request(disk, request) => {
                    Ok(ParsedLine::Request(self.adjuster.adjust(disk, request, absolute)?))
                }
                // It is of interest only in a trace without requests.
                Parsed::Other if self.adjuster.tally.requests == 0 && !self.has_other_event => {
                    Ok(ParsedLine::Other(is_request(self.format, &line, self.event.other())))
                }
                Parsed::Other => Ok(ParsedLine::Other(false)),
                Parsed::End => Ok(ParsedLine::End),
            });
            match used {
                Ok(ParsedLine::Request(Some(request))) => return Ok(Some(request)),
                Ok(ParsedLine::Request(None)) => {}
                Ok(ParsedLine::Other(is_other_event)) => {
                    self.has_other_event |= is_other_event;
                    self.adjuster.tally.other_lines += 1;
                }
                Ok(ParsedLine::End) => return self.end(),
                Err(_) if self.skip_bad > 0 => {
                    self.skip_bad -= 1;
                    self.adjuster.tally.bad_lines += 1;
                }
                Err(fault) => return Err(fault.on(number)),
            }
        }
    }
}

/// The contents of a line.
enum ParsedLine {
    /// A request; `None` if it is of another disk.
    Request(Option<DeviceRequest>),
    /// No request; whether it were one with the other event.
    Other(bool),
    End,
}

fn is_request(
    format: TraceFormat,
    line: &super::line::TraceLine<'_>,
    event: BlkparseEvent,
) -> bool {
    matches!(format.parse(line, event), Ok(Parsed::Request(..)))
}

impl<R: BufRead> Iterator for TraceReader<R> {
    type Item = Result<DeviceRequest, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.advance().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
