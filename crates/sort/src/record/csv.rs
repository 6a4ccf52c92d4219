//! CSV rows: a newline ends a row unless it is between quotes.
//!
//! Every quote toggles quoting; a doubled quote toggles twice and so changes nothing. That is all
//! RFC 4180 needs (it allows quotes only around a whole field). So whether a byte is quoted depends
//! only on the parity of the quotes before it. Cutting a large buffer therefore *counts* quotes, at
//! the speed of memory, and looks for row ends only around the wanted places.

use memchr::{memchr_iter, memrchr2_iter};

use super::framing::Framing;
use super::outside::Outside;

/// [`Framing`] of [`Format::Csv`](super::Format::Csv).
#[derive(Debug, Clone, Copy)]
pub struct CsvFraming;

impl Framing for CsvFraming {
    #[inline]
    fn next(self, bytes: &[u8]) -> Option<usize> {
        row_end(bytes, false)
    }

    fn cut(self, bytes: &[u8], piece: usize, cuts: &mut Vec<usize>) {
        let mut at = 0;
        while bytes.len() - at > piece {
            let wanted = at + piece;
            let Some(len) = row_end(&bytes[wanted..], ends_quoted(&bytes[at..wanted])) else {
                break;
            };
            at = wanted + len;
            cuts.push(at);
        }
        if let Some(len) = last_row_end(&bytes[at..]) {
            cuts.push(at + len);
        }
    }
}

/// Whether a row that begins at `bytes[0]` is inside quotes at the end of `bytes`.
pub(super) fn ends_quoted(bytes: &[u8]) -> bool {
    memchr_iter(b'"', bytes).count() % 2 == 1
}

/// Length of `bytes` up to and including the first newline outside quotes; `quoted` says whether
/// `bytes` begins inside quotes.
#[inline]
fn row_end(bytes: &[u8], quoted: bool) -> Option<usize> {
    Outside::new(b'\n', bytes, quoted).next().map(|at| at + 1)
}

/// End of the last complete row of `bytes`, which begins at a row: walks backwards, undoing the
/// quotes.
fn last_row_end(bytes: &[u8]) -> Option<usize> {
    let mut quoted = ends_quoted(bytes);
    for at in memrchr2_iter(b'\n', b'"', bytes) {
        if bytes[at] == b'"' {
            quoted = !quoted;
        } else if !quoted {
            return Some(at + 1);
        }
    }
    None
}
