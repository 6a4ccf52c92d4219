//! The Storage Performance Council's trace format (SPC-TR, revision 1.0.1), in which UMass
//! publishes its Financial and WebSearch traces: application storage unit, first block of 512
//! bytes, bytes, opcode, seconds. Further fields are specific to the producer and are ignored.

use super::disksim::BLOCK;
use super::error::LineFault;
use super::line::TraceLine;
use super::parsed::{Parsed, TraceDisk, request};
use crate::request::RequestKind;

pub(super) fn parse(line: &TraceLine<'_>) -> Result<Parsed, LineFault> {
    let fields = line.values();
    let [asu, block, bytes, opcode, seconds, ..] = fields[..] else {
        return Err(line.wrong_count(&fields, 5, "five fields: unit,block,bytes,opcode,seconds"));
    };
    let unit = TraceDisk::plain(asu.small("the number of a storage unit")?);
    let offset = block.bytes(BLOCK, "a block number")?;
    let len = bytes.number("a size in bytes")?;
    let kind = match opcode.text {
        "R" | "r" => RequestKind::Read,
        "W" | "w" => RequestKind::Write,
        _ => return Err(opcode.fault("R or W")),
    };
    let arrival_ns = seconds.time_ns(1_000_000_000, "a time in seconds")?;
    if len == 0 {
        return Err(bytes.fault("at least one byte"));
    }
    Ok(Parsed::Request(unit, request(arrival_ns, kind, offset, len, None)))
}
