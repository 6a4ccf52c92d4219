//! Florida International University's traces (I/O deduplication, FAST 2010; SNIA IOTTA 391 and 411):
//! nanoseconds, process id, process name, first sector, sectors of 512 bytes, R or W, major and
//! minor device number, and the MD5 of the content.

use super::disksim::BLOCK;
use super::error::LineFault;
use super::line::TraceLine;
use super::parsed::{Parsed, TraceDisk, request};
use crate::request::{RequestHashes, RequestKind};

/// Fields before the process name, and after it.
const BEFORE: usize = 2;
const AFTER: usize = 6;
/// Hexadecimal digits of an MD5.
const MD5_DIGITS: usize = 32;

pub(super) fn parse(line: &TraceLine<'_>) -> Result<Parsed, LineFault> {
    let fields = line.words();
    // A process name may contain blanks, so the fields behind it are counted from the end of the
    // line.
    let Some(after) = fields.len().checked_sub(AFTER).filter(|at| *at > BEFORE) else {
        let expected = "nine fields: ns, pid, process, sector, sectors, R|W, major, minor, md5";
        return Err(line.wrong_count(&fields, usize::MAX, expected));
    };
    let [sector, sectors, kind, major, minor, md5] = fields[after..] else {
        unreachable!("six are left");
    };
    let arrival_ns = fields[0].number("a time in nanoseconds")?;
    fields[1].number("a process id")?;
    let offset = sector.bytes(BLOCK, "a sector number")?;
    let len = sectors.bytes(BLOCK, "a number of sectors")?;
    let kind = match kind.text {
        "R" => RequestKind::Read,
        "W" => RequestKind::Write,
        _ => return Err(kind.fault("R or W")),
    };
    let unit = TraceDisk {
        major: major.small("a major device number")?,
        minor: minor.small("a minor device number")?,
    };
    let hexadecimal =
        md5.text.len() == MD5_DIGITS && md5.text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hash = u128::from_str_radix(md5.text, 16).ok().filter(|_| hexadecimal);
    let hash = hash.ok_or_else(|| md5.fault("an MD5 in 32 hexadecimal digits"))?;
    if len == 0 {
        return Err(sectors.fault("at least one sector"));
    }
    let content = Some(RequestHashes::Whole(hash));
    Ok(Parsed::Request(unit, request(arrival_ns, kind, offset, len, content)))
}
