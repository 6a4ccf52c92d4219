//! The output of blkparse for a blktrace (its manual, "DEFAULT FORMAT"), one event per line:
//!
//! ```text
//!   8,0    3       11     0.009507758   697  D   W 223490 + 56 [kjournald]
//!   device cpu     seq    seconds       pid  │   │ sector   sectors
//!                                        event   RWBS
//! ```
//!
//! A request has several events; one of them is used ([`BlkparseEvent`]). The text from `CPU0 (8,0):` on is
//! blkparse's summary.

use super::disksim::BLOCK;
use super::error::LineFault;
use super::event::BlkparseEvent;
use super::line::{Field, TraceLine};
use super::parsed::{Parsed, TraceDisk, request};
use crate::request::RequestKind;

/// All events that blkparse prints.
const EVENTS: [&str; 18] =
    ["A", "B", "C", "D", "F", "G", "I", "M", "P", "Q", "R", "S", "T", "U", "UT", "X", "m", "E"];

pub(super) fn parse(line: &TraceLine<'_>, event: BlkparseEvent) -> Result<Parsed, LineFault> {
    let fields = line.words();
    let expected = "seven fields: device, cpu, sequence, seconds, pid, event, RWBS";
    let Some(device) = fields.first() else {
        return Err(line.wrong_count(&fields, 7, expected));
    };
    if is_summary(line.text()) {
        return Ok(Parsed::End);
    }
    let unit = unit(device)?;
    let (Some(cpu), Some(sequence), Some(seconds), Some(pid), Some(letter)) =
        (fields.get(1), fields.get(2), fields.get(3), fields.get(4), fields.get(5))
    else {
        return Err(line.wrong_count(&fields, 7, expected));
    };
    cpu.number("the number of a processor")?;
    sequence.number("a sequence number")?;
    let arrival_ns = seconds.time_ns(1_000_000_000, "a time in seconds")?;
    pid.number("a process id")?;
    if !EVENTS.contains(&letter.text) {
        return Err(letter.fault("an event's letter"));
    }
    if letter.text != event.letter() {
        return Ok(Parsed::Other);
    }
    let Some(rwbs) = fields.get(6) else { return Err(line.wrong_count(&fields, 7, expected)) };
    // A pass-through command has a payload instead of an address: `36 (12 00 …) [smartd]`.
    let places = fields.get(8).is_some_and(|field| field.text == "+");
    let Some(kind) = kind(rwbs, places)? else { return Ok(Parsed::Other) };
    if kind == RequestKind::Flush && !places {
        return Ok(Parsed::Request(unit, request(arrival_ns, kind, 0, 0, None)));
    }
    let (Some(sector), Some(plus), Some(sectors)) = (fields.get(7), fields.get(8), fields.get(9))
    else {
        return Err(line.wrong_count(&fields, usize::MAX, "sector + sectors"));
    };
    let offset = sector.bytes(BLOCK, "a sector number")?;
    if plus.text != "+" {
        return Err(plus.fault("+"));
    }
    let len = sectors.bytes(BLOCK, "a number of sectors")?;
    if len == 0 {
        // A flush is sent as an empty write.
        if rwbs.text.starts_with('F') {
            let flush = request(arrival_ns, RequestKind::Flush, 0, 0, None);
            return Ok(Parsed::Request(unit, flush));
        }
        return Err(sectors.fault("at least one sector"));
    }
    Ok(Parsed::Request(unit, request(arrival_ns, kind, offset, len, None)))
}

fn unit(device: &Field<'_>) -> Result<TraceDisk, LineFault> {
    let expected = "a device as major,minor";
    let (major, minor) = device.text.split_once(',').ok_or_else(|| device.fault(expected))?;
    let part = |text| Field { column: device.column, text }.small(expected);
    match (part(major), part(minor)) {
        (Ok(major), Ok(minor)) => Ok(TraceDisk { major, minor }),
        _ => Err(device.fault(expected)),
    }
}

/// The kind of request in RWBS; `None` for a command that moves no blocks.
fn kind(rwbs: &Field<'_>, places: bool) -> Result<Option<RequestKind>, LineFault> {
    let letters = rwbs.text.strip_prefix('F').unwrap_or(rwbs.text);
    let flushes = letters.len() < rwbs.text.len();
    match letters.bytes().next() {
        Some(b'R') if places => Ok(Some(RequestKind::Read)),
        Some(b'W') if places => Ok(Some(RequestKind::Write)),
        Some(b'D' | b'E') if places => Ok(Some(RequestKind::Trim)),
        _ if flushes => Ok(Some(RequestKind::Flush)),
        Some(b'R' | b'W' | b'D' | b'E' | b'N') => Ok(None),
        _ => Err(rwbs.fault("RWBS: R, W, D, E, F or N first")),
    }
}

/// Whether this begins the summary behind the events: `CPU0 (8,0):` or `Total (8,0):`.
fn is_summary(text: &str) -> bool {
    (text.starts_with("CPU") || text.starts_with("Total (")) && text.trim_end().ends_with(':')
}
