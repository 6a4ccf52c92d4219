//! XML and JSON (`-outfmt 5` and `15`): a part per query, with a list of hits. All but the hits comes from the frame.

use std::io::Write;

use super::{CUT, MORE, OTHER, OTHER_QUERY, OutputFrameError, PeekedLines, WARNED};

/// The lines that matter. Titles are escaped and never begin a line, so no title looks like one.
pub(super) struct Marks {
    /// Before the number of the query.
    query: &'static [u8],
    /// Before the hits.
    begin: &'static [u8],
    /// After the hits.
    end: &'static [u8],
    /// The message in the frame for a query without hits; and the beginning of any message.
    none: &'static [u8],
    message: &'static [u8],
}

pub(super) const XML: Marks = Marks {
    query: b"  <Iteration_query-ID>",
    begin: b"<Iteration_hits>\n",
    end: b"</Iteration_hits>\n",
    none: b"  <Iteration_message>No hits found</Iteration_message>\n",
    message: b"  <Iteration_message>",
};

pub(super) const JSON: Marks = Marks {
    query: b"          \"query_id\": ",
    begin: b"          \"hits\": [\n",
    end: b"          ],\n",
    none: b"          \"message\": \"No hits found\"\n",
    message: b"          \"message\": ",
};

pub(super) fn fill(
    marks: &Marks,
    frame: &mut PeekedLines<'_>,
    formatted: &mut PeekedLines<'_>,
    out: &mut dyn Write,
) -> Result<(), OutputFrameError> {
    let mut had_hits = false;
    loop {
        let query = to_hits(marks, frame, Some((out, had_hits)))?;
        let found = to_hits(marks, formatted, None)?;
        match (&query, &found) {
            (None, None) => return Ok(()),
            (None, Some(_)) => return Err(formatted.unknown(MORE)),
            (Some(_), None) => return Err(formatted.unknown(CUT)),
            (Some(query), Some(found)) if query != found => {
                return Err(formatted.unknown(OTHER_QUERY));
            }
            _ => {}
        }
        frame.write(out)?;
        formatted.pass();
        had_hits = false;
        while !formatted.begins(marks.end)? {
            had_hits = true;
            formatted.write(out)?;
        }
        if !frame.begins(marks.end)? {
            return Err(frame.unknown(OTHER));
        }
        frame.write(out)?;
    }
}

/// Passes lines up to the next list of hits; gives the line that names its query. Lines go to `out`, if given, without
/// the message that there are no hits if there were some.
fn to_hits(
    marks: &Marks,
    lines: &mut PeekedLines<'_>,
    mut out: Option<(&mut dyn Write, bool)>,
) -> Result<Option<Vec<u8>>, OutputFrameError> {
    let mut query = Vec::new();
    let mut held: Vec<u8> = Vec::new();
    while let Some(line) = lines.peek()? {
        if line == marks.begin {
            if let Some((out, _)) = &mut out {
                out.write_all(&held)?;
            }
            return Ok(Some(query));
        }
        if line.starts_with(marks.query) {
            query = line.to_vec();
        }
        let Some((out, had_hits)) = &mut out else {
            lines.pass();
            continue;
        };
        if *had_hits && line.starts_with(marks.message) {
            if line != marks.none {
                return Err(lines.unknown(WARNED));
            }
            // JSON's comma before it.
            if let Some(before) = held.strip_suffix(b",\n") {
                held.truncate(before.len());
                held.push(b'\n');
            }
            lines.pass();
            continue;
        }
        out.write_all(&held)?;
        held.clear();
        lines.write(&mut held)?;
    }
    if let Some((out, _)) = &mut out {
        out.write_all(&held)?;
    }
    Ok(None)
}
