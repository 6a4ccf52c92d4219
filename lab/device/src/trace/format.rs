//! The trace formats, and the reader of each.

use super::error::LineFault;
use super::event::BlkparseEvent;
use super::line::TraceLine;
use super::parsed::Parsed;
use super::{blkparse, disksim, fiu, mqsim, msr, own, spc};

/// A format of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TraceFormat {
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

impl TraceFormat {
    /// All, in the order of the documentation.
    pub const ALL: [TraceFormat; 7] = [
        TraceFormat::Merganser,
        TraceFormat::DiskSim,
        TraceFormat::Spc,
        TraceFormat::Msr,
        TraceFormat::Mqsim,
        TraceFormat::Blkparse,
        TraceFormat::Fiu,
    ];

    /// Its name, as a user types it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TraceFormat::Merganser => "merganser",
            TraceFormat::DiskSim => "disksim",
            TraceFormat::Spc => "spc",
            TraceFormat::Msr => "msr",
            TraceFormat::Mqsim => "mqsim",
            TraceFormat::Blkparse => "blkparse",
            TraceFormat::Fiu => "fiu",
        }
    }

    /// Whether times count from a date or from the start of a machine, so that the first request is
    /// the start of the trace.
    pub(super) fn is_absolute(self) -> bool {
        matches!(self, TraceFormat::Msr | TraceFormat::Fiu)
    }

    pub(super) fn parse(
        self,
        line: &TraceLine<'_>,
        event: BlkparseEvent,
    ) -> Result<Parsed, LineFault> {
        match self {
            TraceFormat::Merganser => own::parse(line),
            TraceFormat::DiskSim => disksim::parse(line),
            TraceFormat::Spc => spc::parse(line),
            TraceFormat::Msr => msr::parse(line),
            TraceFormat::Mqsim => mqsim::parse(line),
            TraceFormat::Blkparse => blkparse::parse(line, event),
            TraceFormat::Fiu => fiu::parse(line),
        }
    }
}
