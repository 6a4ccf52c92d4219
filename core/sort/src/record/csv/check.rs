//! What a strict reader of csv refuses.

use super::places::places_in;
use super::quoting::{BLOCK, Quoting};

/// A quote that a strict reader refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrayQuote {
    /// Number of the row, from 1, a header included; `None` where reading began inside the input.
    pub row: Option<u64>,
    /// Where the quote is, in the bytes that were checked.
    pub at: usize,
    /// Whether it closed its field, and text follows; else it is in an unquoted field.
    pub closed: bool,
}

/// Checks rows, and counts them.
#[derive(Debug, Clone)]
pub(crate) struct CsvCheck {
    pub(super) separator: u8,
    /// Rows so far; `None` if their number isn't known.
    pub(super) rows: Option<u64>,
}

impl CsvCheck {
    /// For rows with this separator. `from_start` says whether the first one is the first of its input.
    pub(crate) fn new(separator: u8, from_start: bool) -> Self {
        CsvCheck { separator, rows: from_start.then_some(0) }
    }

    /// Checks `rows`, which are whole.
    pub(crate) fn rows(&mut self, rows: &[u8]) -> Result<(), StrayQuote> {
        let separator = self.separator;
        let mut quoting = Quoting::at_row(separator, false);
        let mut ended = 0;
        let fault = rows.chunks(BLOCK).enumerate().find_map(|(n, block)| {
            let start = n * BLOCK;
            let [quotes, newlines] = places_in([b'"', b'\n'], block);
            let [_, separators] = places_in([b'"', separator], block);
            let before = start.checked_sub(1).map(|last| rows[last]);
            let quoted = quoting.block(quotes, newlines | separators, before);
            let closing = quotes & !quoted.stray & !quoted.inside;
            let mut doubtful = quoted.stray | closing;
            while doubtful != 0 {
                let bit = doubtful & doubtful.wrapping_neg();
                doubtful ^= bit;
                let at = start + bit.trailing_zeros() as usize;
                let closed = closing & bit != 0;
                if !closed || !is_end_of_field(&rows[at + 1..], separator) {
                    ended += (newlines & !quoted.inside & (bit - 1)).count_ones() as usize;
                    return Some((at, closed));
                }
            }
            ended += (newlines & !quoted.inside).count_ones() as usize;
            None
        });
        match fault {
            None => {
                self.rows = self.rows.map(|rows| rows + ended as u64);
                Ok(())
            }
            Some((at, closed)) => {
                let row = self.rows.map(|rows| rows + ended as u64 + 1);
                Err(StrayQuote { row, at, closed })
            }
        }
    }
}

/// Whether a field may end before `rest`; another quote makes it one of the text.
fn is_end_of_field(rest: &[u8], separator: u8) -> bool {
    match rest {
        [] | [b'"' | b'\n', ..] | [b'\r'] | [b'\r', b'\n', ..] => true,
        [byte, ..] => *byte == separator,
    }
}
