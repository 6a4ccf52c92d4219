//! Lines: a record ends with its delimiter, and the delimiter belongs to it.

use memchr::{memchr, memrchr};

use super::answers::{FormatError, KeySyntax, ParseBytes, RecordFormat, SplitRule, Tail, after};
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

impl RecordFormat for LineFraming {
    const NAME: &'static str = "lines";

    fn parse(parameter: Option<&str>, _: ParseBytes<'_>) -> Result<Option<Self>, FormatError> {
        Ok(parameter.is_none().then_some(LineFraming { delimiter: b'\n' }))
    }

    fn key_syntax(self) -> KeySyntax {
        KeySyntax::Lines
    }

    fn split_rule(self) -> SplitRule {
        SplitRule::Behind { delimiter: self.delimiter }
    }

    fn terminator(self) -> Option<u8> {
        Some(self.delimiter)
    }

    fn are_whole(self, records: &[u8]) -> bool {
        records.last().is_none_or(|last| *last == self.delimiter)
    }

    fn probable_start(self, bytes: &[u8]) -> usize {
        after(bytes, self.delimiter)
    }

    fn shown(self, record: &[u8]) -> &[u8] {
        &record[..record.len() - 1]
    }

    fn tail(self, _: &[u8]) -> Tail {
        Tail::Complete(terminator(self.delimiter))
    }
}

/// A terminator of one byte.
fn terminator(delimiter: u8) -> &'static [u8] {
    const BYTES: [u8; 256] = {
        let mut bytes = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            bytes[byte] = byte as u8;
            byte += 1;
        }
        bytes
    };
    static ALL: [u8; 256] = BYTES;
    std::slice::from_ref(&ALL[usize::from(delimiter)])
}
