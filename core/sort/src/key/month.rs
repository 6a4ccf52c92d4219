//! English month names, as GNU `sort -M` reads them in the C locale: blanks, then the first three
//! letters in any case. One byte: 0 for anything else, then January to December.

use super::numeric::skip_blanks;

const NAMES: [&[u8; 3]; 12] = [
    b"JAN", b"FEB", b"MAR", b"APR", b"MAY", b"JUN", b"JUL", b"AUG", b"SEP", b"OCT", b"NOV", b"DEC",
];

/// Appends the month at the front of `text`.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    out.push(position(skip_blanks(text)).map_or(0, |at| at as u8 + 1));
}

/// Bytes of the month's name at the front of `text`.
pub(super) fn len(text: &[u8]) -> usize {
    position(text).map_or(0, |at| NAMES[at].len())
}

/// Which month `text` begins with, from 0.
fn position(text: &[u8]) -> Option<usize> {
    let name = text.first_chunk::<3>()?;
    NAMES.iter().position(|month| month.eq_ignore_ascii_case(name))
}
