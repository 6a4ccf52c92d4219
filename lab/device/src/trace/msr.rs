//! Microsoft Research Cambridge's traces (Narayanan and others, FAST 2008; SNIA IOTTA): Windows file
//! time in steps of 100 ns, host, disk, Read or Write, offset and size in bytes, response time in
//! steps of 100 ns.

use super::error::LineFault;
use super::line::TraceLine;
use super::parsed::{Parsed, TraceDisk, request};
use crate::request::RequestKind;

/// Nanoseconds in a step of Windows file time.
const STEP_NS: u64 = 100;
/// Windows file time of 1970-01-01. Times count from there, so that nanoseconds fit in 64 bits.
const UNIX_EPOCH: u64 = 116_444_736_000_000_000;

pub(super) fn parse(line: &TraceLine<'_>) -> Result<Parsed, LineFault> {
    let fields = line.values();
    let [stamp, host, disk, kind, offset, bytes, response] = fields[..] else {
        let expected = "seven fields: filetime,host,disk,type,offset,bytes,response";
        return Err(line.wrong_count(&fields, 7, expected));
    };
    // The archive's newer files begin with the names of the fields.
    if line.number() == 1 && stamp.text.eq_ignore_ascii_case("timestamp") {
        return Ok(Parsed::Other);
    }
    let expected = "a Windows file time after 1970";
    let steps = stamp.number(expected)?.checked_sub(UNIX_EPOCH);
    let arrival_ns = steps.and_then(|steps| steps.checked_mul(STEP_NS));
    let arrival_ns = arrival_ns.ok_or_else(|| stamp.fault(expected))?;
    if host.text.is_empty() {
        return Err(host.fault("a host's name"));
    }
    let unit = TraceDisk::plain(disk.small("a disk number")?);
    let kind = match kind.text {
        text if text.eq_ignore_ascii_case("read") => RequestKind::Read,
        text if text.eq_ignore_ascii_case("write") => RequestKind::Write,
        _ => return Err(kind.fault("Read or Write")),
    };
    let offset = offset.number("an offset in bytes")?;
    let len = bytes.number("a size in bytes")?;
    response.number("a response time in steps of 100 ns")?;
    if len == 0 {
        return Err(bytes.fault("at least one byte"));
    }
    Ok(Parsed::Request(unit, request(arrival_ns, kind, offset, len, None)))
}
