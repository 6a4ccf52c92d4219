//! A look at the queries before BLAST gets them.
//!
//! BLAST takes a line without `>` for letters of a sequence or, if it looks like the name of one, for an accession that it asks
//! for over the network. Names are refused here; [`super::tools`] takes the network away, too.

use std::fs::File;
use std::io::{self, Read};

use merganser_shell::failure::Failure;
use merganser_shell::shown;
use merganser_sort::run::magic::{self, ContentKind, HEAD_BYTES};

use crate::config::BlastConfig;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// The contents of the file of queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Queries {
    /// Nothing but blanks.
    None,
    /// Something that BLAST decides about.
    Some,
}

/// Looks at the first line that is not blank.
///
/// # Errors
/// A file that BLAST can't read, or that names sequences instead of holding them.
pub(super) fn look(config: &BlastConfig) -> Result<Queries, Failure> {
    let on_query = |error: io::Error| Failure::on(&config.query, &error);
    let file = File::open(&config.query).map_err(on_query)?;
    let mut front = Vec::new();
    (&file).take(HEAD_BYTES as u64).read_to_end(&mut front).map_err(on_query)?;
    let shown = shown::name(&config.query);
    if let Some(magic) = magic::of_head(&front, ContentKind::Text) {
        return Err(format!(
            "-query: {shown} is {}, which BLAST does not read; give it as plain FASTA",
            magic.what
        )
        .into());
    }
    // Blank lines may be many; one piece behind the first of the others has enough of it.
    while front.trim_ascii().is_empty() {
        front.clear();
        if (&file).take(READ_BYTES as u64).read_to_end(&mut front).map_err(on_query)? == 0 {
            return Ok(Queries::None);
        }
    }
    let line = front.trim_ascii_start().split(|byte| *byte == b'\n').next().unwrap_or_default();
    if looks_like_a_name(line.trim_ascii_end()) {
        return Err(format!(
            "-query: {shown} begins with '{}', which is no sequence in FASTA; names are not looked up over the network, so give the sequences",
            String::from_utf8_lossy(&line[..line.len().min(32)]).trim_end()
        )
        .into());
    }
    Ok(Queries::Some)
}

/// Whether a line is one word that no sequence has: an accession, a number, `gi|1`.
fn looks_like_a_name(line: &[u8]) -> bool {
    let is_word = !line.iter().any(u8::is_ascii_whitespace);
    let begins_other = matches!(line.first(), None | Some(b'>' | b';' | b'#' | b'!'));
    is_word
        && !begins_other
        && line.iter().any(|byte| matches!(byte, b'0'..=b'9' | b'_' | b'|' | b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_letters() {
        for name in ["12345", "NM_000546", "NM_000546.6", "gi|1234", "P53_HUMAN", "U00001", "1"] {
            assert!(looks_like_a_name(name.as_bytes()), "{name}");
        }
        for other in ["", ">q1", "ACGT", "acgt-N*", "; q1", "# 1", "!1", "1 acgt acgt", "MKV LLA1"]
        {
            assert!(!looks_like_a_name(other.as_bytes()), "{other}");
        }
    }
}
