//! A table with comments (`-outfmt 7`).
//!
//! ```text
//!   # BLASTN 2.12.0+
//!   # Query: q1 title
//!   # Database: db
//!   # Fields: ...          if there are hits
//!   # 2 hits found         not for queries that were not searched
//!   two rows
//!   ...
//!   # BLAST processed 4 queries      the formatter: once per batch
//! ```

use std::io::Write;

use super::{MORE, OTHER, OTHER_QUERY, OutputFrameError, PeekedLines};

const PROGRAM: &[u8] = b"# ";
const QUERY: &[u8] = b"# Query: ";
const DATABASE: &[u8] = b"# Database: ";
const FIELDS: &[u8] = b"# Fields: ";
const PROCESSED: &[u8] = b"# BLAST processed ";

/// The lines before the rows.
struct TableHead {
    /// Program, query and database.
    intro: Vec<u8>,
    rest: Vec<u8>,
    hits: u64,
}

pub(super) fn fill(
    frame: &mut PeekedLines<'_>,
    formatted: &mut PeekedLines<'_>,
    out: &mut dyn Write,
) -> Result<(), OutputFrameError> {
    while !frame.begins(PROCESSED)? {
        let bare = section(frame)?;
        if bare.hits > 0 {
            return Err(frame.unknown(OTHER));
        }
        while formatted.begins(PROCESSED)? {
            formatted.pass();
        }
        let found = section(formatted)?;
        if found.intro != bare.intro {
            return Err(formatted.unknown(OTHER_QUERY));
        }
        out.write_all(&bare.intro)?;
        out.write_all(if found.hits > 0 { &found.rest } else { &bare.rest })?;
        for _ in 0..found.hits {
            // A row may look like anything.
            formatted.begins(b"")?;
            formatted.write(out)?;
        }
    }
    frame.write(out)?;
    while formatted.peek()?.is_some() {
        if !formatted.begins(PROCESSED)? {
            return Err(formatted.unknown(MORE));
        }
        formatted.pass();
    }
    match frame.peek()? {
        None => Ok(()),
        Some(_) => Err(frame.unknown(OTHER)),
    }
}

/// Reads a section up to its rows.
fn section(lines: &mut PeekedLines<'_>) -> Result<TableHead, OutputFrameError> {
    let mut section = TableHead { intro: Vec::new(), rest: Vec::new(), hits: 0 };
    for begin in [PROGRAM, QUERY, DATABASE] {
        if !lines.begins(begin)? {
            return Err(lines.unknown(OTHER));
        }
        lines.write(&mut section.intro)?;
    }
    if lines.begins(FIELDS)? {
        lines.write(&mut section.rest)?;
    }
    let hits = lines.peek()?.and_then(hits_of);
    match hits {
        Some(hits) => {
            section.hits = hits;
            lines.write(&mut section.rest)?;
        }
        None if !section.rest.is_empty() => return Err(lines.unknown(OTHER)),
        None => {}
    }
    Ok(section)
}

/// `# 12 hits found`.
fn hits_of(line: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(line).ok()?;
    line.strip_prefix("# ")?.strip_suffix(" hits found\n")?.parse().ok()
}
