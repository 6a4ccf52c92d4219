//! Recorded requests: readers of the trace formats that the field uses, behind one door.
//!
//! ```text
//!   text ──► lines ──► one reader a format ──► units ──► times ──► addresses ──► Request
//!            (line.rs)  (disksim.rs, spc.rs…)  └────────── adjust.rs ──────────┘
//! ```
//!
//! [`read`] gives requests one at a time, in the order of the trace, and never holds more than a
//! line. A line that can't be understood ends the trace with an error that says which line, which
//! column, what was found and what belongs there: no request is guessed, none is left out unnoticed.
//! What a format holds besides requests (blkparse's other events, comments) is counted in
//! [`Tally::other_lines`].
//!
//! ```
//! use device::trace::{self, Options};
//! let text = "0.000000 0 2048 8 1\n1.500000 0 4096 16 0\n";
//! let requests: Result<Vec<_>, _> = trace::read(text.as_bytes(), &Options::default())?.collect();
//! let requests = requests?;
//! assert_eq!((requests[1].arrival.0, requests[1].offset, requests[1].len), (1_500_000, 4096 * 512, 8192));
//! # Ok::<(), trace::TraceError>(())
//! ```

mod adjust;
mod blkparse;
mod detect;
mod disksim;
mod error;
mod fiu;
mod line;
mod mqsim;
mod msr;
mod own;
mod record;
mod repeat;
mod spc;
#[cfg(test)]
mod tests;

use std::io::BufRead;

pub use adjust::{Address, Options, Unit, Units};
pub use blkparse::Event;
pub use error::TraceError;
pub use own::{HEADER, Writer};
pub use record::{Recorder, RecordingDirectory};
pub use repeat::Repeat;

use crate::request::{Request, SimTime};
use adjust::Adjuster;
use error::Fault;
use line::{Line, Lines};

/// A way to write a trace down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Ours: `ns kind offset len [hash]`, in bytes, below the line [`HEADER`].
    Merganser,
    /// DiskSim's ASCII format: `ms device block blocks flags`, flags hexadecimal, bit 0 a read.
    DiskSim,
    /// The Storage Performance Council's: `unit,block,bytes,opcode,seconds`; UMass Financial and
    /// WebSearch.
    Spc,
    /// Microsoft Research Cambridge: `filetime,host,disk,type,offset,bytes,response`.
    Msr,
    /// MQSim's: `ns device sector sectors type`, type 1 a read and 0 a write.
    Mqsim,
    /// What blkparse prints of a blktrace.
    Blkparse,
    /// Florida International University's, with a hash of the content of each block:
    /// `ns pid process sector sectors R|W major minor md5`.
    Fiu,
}

impl Format {
    /// All, in the order of the documentation.
    pub const ALL: [Format; 7] = [
        Format::Merganser,
        Format::DiskSim,
        Format::Spc,
        Format::Msr,
        Format::Mqsim,
        Format::Blkparse,
        Format::Fiu,
    ];

    /// As it is typed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Merganser => "merganser",
            Format::DiskSim => "disksim",
            Format::Spc => "spc",
            Format::Msr => "msr",
            Format::Mqsim => "mqsim",
            Format::Blkparse => "blkparse",
            Format::Fiu => "fiu",
        }
    }

    /// Whether times are of a calendar or of a machine's boot, so that the first request is the
    /// start.
    fn is_absolute(self) -> bool {
        matches!(self, Format::Msr | Format::Fiu)
    }

    fn parse(self, line: &Line<'_>, event: Event) -> Result<Parsed, Fault> {
        match self {
            Format::Merganser => own::parse(line),
            Format::DiskSim => disksim::parse(line),
            Format::Spc => spc::parse(line),
            Format::Msr => msr::parse(line),
            Format::Mqsim => mqsim::parse(line),
            Format::Blkparse => blkparse::parse(line, event),
            Format::Fiu => fiu::parse(line),
        }
    }
}

/// What a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Parsed {
    /// A request to a unit of the traced system; its time as the trace has it.
    Request(Unit, Request),
    /// Something else that belongs to the format.
    Other,
    /// The trace ends here; what follows is a summary.
    End,
}

/// What has been read so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests given.
    pub requests: u64,
    /// Requests of units that were not asked for.
    pub other_units: u64,
    /// Lines that hold no request: comments, blank lines, other events.
    pub other_lines: u64,
    /// Requests that the trace has at an earlier time than the one before; they were given the time
    /// of the one before.
    pub late: u64,
    /// Requests whose address was wrapped to fit ([`Address::Wrapped`]).
    pub wrapped: u64,
}

impl Tally {
    fn add(&mut self, more: Tally) {
        self.requests += more.requests;
        self.other_units += more.other_units;
        self.other_lines += more.other_lines;
        self.late += more.late;
        self.wrapped += more.wrapped;
    }
}

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
    /// The format: the one asked for, or the one found.
    pub fn format(&self) -> Format {
        self.format
    }

    /// What has been read so far.
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
                Parsed::Request(unit, request) => {
                    let absolute = self.format.is_absolute();
                    match self.adjuster.adjust(unit, request, absolute).map_err(fail)? {
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

/// A request before units, times and addresses are adjusted.
fn request(
    arrival_ns: u64,
    kind: crate::request::RequestKind,
    offset: u64,
    len: u64,
    content: Option<u128>,
) -> Request {
    Request { arrival: SimTime(arrival_ns), kind, offset, len, content }
}
