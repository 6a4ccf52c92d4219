//! DiskSim's ASCII traces (DiskSim 4.0 reference manual, "Input workload specifications"):
//! arrival in milliseconds, device number, first block, blocks, flags in hexadecimal. Blocks are of
//! 512 bytes.

use super::error::LineFault;
use super::line::TraceLine;
use super::parsed::{Parsed, TraceDisk, request};
use crate::request::RequestKind;

/// Bytes in a block.
pub(super) const BLOCK: u64 = 512;
/// The flag of a read; without it, it is a write.
const READ: u32 = 1;

pub(super) fn parse(line: &TraceLine<'_>) -> Result<Parsed, LineFault> {
    let fields = line.words();
    let [arrival, device, block, blocks, flags] = fields[..] else {
        return Err(line.wrong_count(&fields, 5, "five fields: ms, device, block, blocks, flags"));
    };
    let arrival_ns = arrival.time_ns(1_000_000, "an arrival time in milliseconds")?;
    let unit = TraceDisk::plain(device.small("a device number")?);
    let offset = block.bytes(BLOCK, "a block number")?;
    let len = blocks.bytes(BLOCK, "a number of blocks")?;
    let digits = flags.text.trim_start_matches("0x");
    let known = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bits = u32::from_str_radix(digits, 16).ok().filter(|_| known);
    let bits = bits.ok_or_else(|| flags.fault("flags in hexadecimal, 1 for a read"))?;
    if len == 0 {
        return Err(blocks.fault("at least one block"));
    }
    let kind = if bits & READ != 0 { RequestKind::Read } else { RequestKind::Write };
    Ok(Parsed::Request(unit, request(arrival_ns, kind, offset, len, None)))
}
