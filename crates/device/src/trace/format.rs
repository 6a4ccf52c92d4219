//! The trace formats, and the reader of each.

use super::blkparse::{self, Event};
use super::error::Fault;
use super::line::Line;
use super::parsed::Parsed;
use super::{disksim, fiu, mqsim, msr, own, spc};

/// A format of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Ours: `ns kind offset len [hash,…]`, in bytes, below the line [`HEADER`](super::HEADER).
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
    /// The output of blkparse for a blktrace.
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

    /// Its name, as a user types it.
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

    /// Whether times count from a date or from the start of a machine, so that the first request is
    /// the start of the trace.
    pub(super) fn is_absolute(self) -> bool {
        matches!(self, Format::Msr | Format::Fiu)
    }

    pub(super) fn parse(self, line: &Line<'_>, event: Event) -> Result<Parsed, Fault> {
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
