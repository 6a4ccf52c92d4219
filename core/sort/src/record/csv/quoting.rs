//! Which bytes of csv rows are in quotes, 64 bytes at a time.
//!
//! The dialect ([`CsvQuotes`](super::CsvQuotes)): a quote opens a quoted field only as the first byte of a field.
//! In quotes, two quotes are one of the text, and a single one closes. Behind the closing quote, and in a field
//! that began with another byte, quotes are letters.
//!
//! ```text
//! bytes     a , " b , c " , 3 . 5 " ,
//! quotes    0 0 1 0 0 0 1 0 0 0 0 1 0
//! stray     0 0 0 0 0 0 0 0 0 0 0 1 0     it would open, but no field begins here
//! parity    0 0 1 1 1 1 0 0 0 0 0 0 0     of the quotes that are not stray
//! commas    0 1 0 0 1 0 0 1 0 0 0 0 1
//! outside   0 1 0 0 0 0 0 1 0 0 0 0 1     commas and not parity
//! ```
//! Without stray quotes, a quote toggles, and a doubled one toggles twice. A quote that would open is stray unless
//! the byte before it ends a field, or is a quote that has just closed: then the two are one of the text. Only an
//! opening quote can be stray, and everything before the first stray one is known to be right. So that one is taken
//! out, and the rest of the block is looked at again. A row full of quotes costs no more than one without, and a
//! stray quote costs a few instructions.

/// Bytes of a block.
pub(crate) const BLOCK: usize = 64;

/// The state between two blocks of csv bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quoting {
    /// All bits if the next block begins in quotes, else none.
    inside: u64,
    /// Whether the last byte before the block is a quote that is a letter.
    letter_before: bool,
    separator: u8,
    /// All bits if any quote opens and closes, as programs before this dialect had it.
    toggled: u64,
}

/// The quotes of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotedBlock {
    /// The bytes in quotes: from an opening quote on, to the byte before the closing one.
    pub inside: u64,
    /// The quotes that are letters.
    pub stray: u64,
}

impl Quoting {
    /// At the beginning of a row with this separator. With `toggled`, a quote opens and closes wherever it is.
    #[must_use]
    #[inline]
    pub fn at_row(separator: u8, toggled: bool) -> Self {
        let toggled = if toggled { u64::MAX } else { 0 };
        Quoting { inside: 0, letter_before: false, separator, toggled }
    }

    /// The byte between fields.
    #[inline]
    pub(super) fn separator(&self) -> u8 {
        self.separator
    }

    /// Whether the next byte is in quotes.
    #[must_use]
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.inside != 0
    }

    /// Looks at the next block. Bit *i* of `quotes` stands for a quote at byte *i*, of `borders` for a separator or
    /// a newline there. `before` is the byte before the block, `None` at the beginning of the row.
    ///
    /// Returns what is in quotes.
    #[inline(always)]
    pub fn block(&mut self, quotes: u64, borders: u64, before: Option<u8>) -> QuotedBlock {
        if quotes == 0 {
            return QuotedBlock { inside: self.block_without_quotes(), stray: 0 };
        }
        // Without branches: what is before a block is not to be predicted.
        let before = before.unwrap_or(b'\n');
        let closed = (before == b'"') & !self.letter_before;
        let opens = u64::from((before == b'\n') | (before == self.separator) | closed);
        let inside = running_parity(quotes) ^ self.inside;
        let wrong = quotes & inside & !((borders | quotes) << 1 | opens | self.toggled);
        if wrong == 0 {
            self.inside = ((inside as i64) >> (BLOCK - 1)) as u64;
            self.letter_before = false;
            return QuotedBlock { inside, stray: 0 };
        }
        let block = without_stray(quotes, borders, opens, self.inside);
        self.inside = ((block.inside as i64) >> (BLOCK - 1)) as u64;
        self.letter_before = block.stray >> (BLOCK - 1) == 1;
        block
    }

    /// As [`Quoting::block`] for a block without quotes, whose borders make no difference. Returns the bytes in quotes:
    /// all or none.
    #[inline(always)]
    pub fn block_without_quotes(&mut self) -> u64 {
        self.letter_before = false;
        self.inside
    }
}

/// A block with stray quotes, which begins in quotes if `inside` has all bits.
#[cold]
fn without_stray(quotes: u64, borders: u64, opens: u64, inside: u64) -> QuotedBlock {
    let begins_inside = inside;
    let mut regular = quotes;
    loop {
        let inside = running_parity(regular) ^ begins_inside;
        let wrong = regular & inside & !((borders | regular) << 1 | opens);
        if wrong == 0 {
            return QuotedBlock { inside, stray: quotes ^ regular };
        }
        regular ^= wrong & wrong.wrapping_neg();
    }
}

/// Bit *i* of the result is the parity of bits 0 to *i*.
#[inline]
fn running_parity(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parity_runs_over_a_block() {
        assert_eq!(running_parity(0b0001_0100), 0b0000_1100);
        assert_eq!(running_parity(1), u64::MAX);
    }
}
