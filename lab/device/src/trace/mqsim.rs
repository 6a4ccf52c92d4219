//! MQSim's traces (README of the simulator): arrival in nanoseconds, device number, first sector,
//! sectors of 512 bytes, 1 for a read and 0 for a write.

use super::disksim::BLOCK;
use super::error::LineFault;
use super::line::TraceLine;
use super::parsed::{Parsed, TraceDisk, request};
use crate::request::RequestKind;

pub(super) fn parse(line: &TraceLine<'_>) -> Result<Parsed, LineFault> {
    let fields = line.words();
    let [arrival, device, sector, sectors, kind] = fields[..] else {
        return Err(line.wrong_count(&fields, 5, "five fields: ns, device, sector, sectors, type"));
    };
    let arrival_ns = arrival.number("an arrival time in nanoseconds")?;
    let unit = TraceDisk::plain(device.small("a device number")?);
    let offset = sector.bytes(BLOCK, "a sector number")?;
    let len = sectors.bytes(BLOCK, "a number of sectors")?;
    if len == 0 {
        return Err(sectors.fault("at least one sector"));
    }
    let kind = match kind.text {
        "0" => RequestKind::Write,
        "1" => RequestKind::Read,
        _ => return Err(kind.fault("0 for a write or 1 for a read")),
    };
    Ok(Parsed::Request(unit, request(arrival_ns, kind, offset, len, None)))
}
