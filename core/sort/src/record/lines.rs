//! Lines: a record ends with its delimiter, and the delimiter belongs to it.

use memchr::{memchr, memrchr};

use super::framing::Framing;

/// [`Framing`] of [`Format::Lines`](super::Format::Lines).
#[derive(Debug, Clone, Copy)]
pub struct LineFraming {
    /// The byte that ends a record.
    pub delimiter: u8,
}

impl Framing for LineFraming {
    #[inline]
    fn next(self, bytes: &[u8]) -> Option<usize> {
        memchr(self.delimiter, bytes).map(|at| at + 1)
    }

    /// Looks for delimiters round the wanted places only, so the cost does not grow with the
    /// number of lines.
    fn cut(self, bytes: &[u8], piece: usize, cuts: &mut Vec<usize>) {
        let Some(last) = memrchr(self.delimiter, bytes) else { return };
        let end = last + 1;
        let mut at = 0;
        while end - at > piece {
            let wanted = at + piece;
            // There is a delimiter at `last`, which is at or behind `wanted`, so one is found.
            let found = memrchr(self.delimiter, &bytes[at..wanted])
                .map(|n| at + n)
                .or_else(|| memchr(self.delimiter, &bytes[wanted..]).map(|n| wanted + n));
            let Some(delimiter) = found else { break };
            at = delimiter + 1;
            cuts.push(at);
        }
        if at < end {
            cuts.push(end);
        }
    }
}
