//! Alignments as text (`-outfmt 0`).
//!
//! ```text
//!   header
//!                           two empty lines or more
//!   Query= q1 title
//!   ... list, alignments, or "***** No hits found *****"
//!                           two empty lines or more
//!   Lambda      K        H       ... Effective search space used: 8568
//!                           two empty lines or more
//!   Query= q2, or the footer
//! ```
//!
//! A title of the database can hold any text, but no empty line. So no title looks like one of these lines after two empty ones.

use std::io::Write;

use super::{CUT, MORE, OTHER, OTHER_QUERY, OutputFrameError, PeekedLines};

const QUERY: &[u8] = b"Query= ";
const LENGTH: &[u8] = b"Length=";
const NONE: &[u8] = b"***** No hits found *****";
const STATISTICS: [&[u8]; 2] = [b"Lambda      K        H", b"Effective search space used:"];
const BLANKS: u64 = 2;

pub(super) fn fill(
    frame: &mut PeekedLines<'_>,
    formatted: &mut PeekedLines<'_>,
    out: &mut dyn Write,
) -> Result<(), OutputFrameError> {
    // The header, then after each query its statistics and, at last, the footer.
    while to_query(frame, Some(out))? {
        if !to_query(formatted, None)? {
            return Err(formatted.unknown(CUT));
        }
        let query = intro(frame)?;
        if intro(formatted)? != query {
            return Err(formatted.unknown(OTHER_QUERY));
        }
        out.write_all(&query)?;
        let gap = blanks(formatted)?;
        if formatted.begins(NONE)? {
            let gap = blanks(frame)?;
            out.write_all(&gap)?;
            if !frame.begins(NONE)? {
                return Err(frame.unknown(OTHER));
            }
            while !is_statistics(frame)? {
                frame.write(out)?;
            }
            continue;
        }
        out.write_all(&gap)?;
        while !is_statistics(formatted)? {
            formatted.write(out)?;
        }
        while !is_statistics(frame)? {
            frame.pass();
        }
    }
    match to_query(formatted, None)? {
        true => Err(formatted.unknown(MORE)),
        false => Ok(()),
    }
}

/// Passes lines up to the next query; whether there is one.
fn to_query(
    lines: &mut PeekedLines<'_>,
    mut out: Option<&mut dyn Write>,
) -> Result<bool, OutputFrameError> {
    while lines.peek()?.is_some() {
        if lines.blanks >= BLANKS && lines.begins(QUERY)? {
            return Ok(true);
        }
        match &mut out {
            Some(out) => lines.write(*out)?,
            None => lines.pass(),
        }
    }
    Ok(false)
}

/// The lines with the title and the length of a query.
fn intro(lines: &mut PeekedLines<'_>) -> Result<Vec<u8>, OutputFrameError> {
    let mut intro = Vec::new();
    loop {
        let is_last = lines.begins(LENGTH)? && lines.blanks > 0;
        lines.write(&mut intro)?;
        if is_last {
            return Ok(intro);
        }
    }
}

/// The empty lines that come next.
fn blanks(lines: &mut PeekedLines<'_>) -> Result<Vec<u8>, OutputFrameError> {
    let mut blanks = Vec::new();
    while lines.begins(b"\n")? {
        lines.write(&mut blanks)?;
    }
    Ok(blanks)
}

/// Whether the next line is the first of the statistics.
fn is_statistics(lines: &mut PeekedLines<'_>) -> Result<bool, OutputFrameError> {
    for begin in STATISTICS {
        if lines.begins(begin)? && lines.blanks >= BLANKS {
            return Ok(true);
        }
    }
    Ok(false)
}
