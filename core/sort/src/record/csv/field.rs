//! The fields of a row, and what they mean.

use std::borrow::Cow;

use memchr::memchr;

use super::outside::Outside;
use super::{CsvFraming, CsvQuotes};

/// The fields of a row, one after the other.
#[derive(Clone, Copy)]
pub struct CsvFields<'a> {
    row: &'a [u8],
    quotes: CsvQuotes,
    separators: Outside<'a>,
    /// Where the next field begins; `None` behind the last one.
    start: Option<usize>,
}

impl<'a> CsvFields<'a> {
    /// The fields of `row`, with or without its line end.
    #[must_use]
    #[inline]
    pub fn of_row(row: &'a [u8], framing: CsvFraming) -> Self {
        let row = row.strip_suffix(b"\n").unwrap_or(row);
        let row = row.strip_suffix(b"\r").unwrap_or(row);
        let CsvFraming { separator, quotes } = framing;
        let separators = Outside::new(separator, row, 0, framing.quoting());
        CsvFields { row, quotes, separators, start: Some(0) }
    }
}

impl<'a> Iterator for CsvFields<'a> {
    type Item = CsvField<'a>;

    #[inline]
    fn next(&mut self) -> Option<CsvField<'a>> {
        let start = self.start?;
        let end = self.separators.next();
        self.start = end.map(|end| end + 1);
        let raw = &self.row[start..end.unwrap_or(self.row.len())];
        Some(CsvField { raw, quotes: self.quotes })
    }

    /// One call for all fields on the way.
    fn nth(&mut self, n: usize) -> Option<CsvField<'a>> {
        // In registers while it looks.
        let mut separators = self.separators;
        let mut start = self.start?;
        for _ in 0..n {
            let Some(end) = separators.next() else {
                self.start = None;
                return None;
            };
            start = end + 1;
        }
        let end = separators.next();
        (self.separators, self.start) = (separators, end.map(|end| end + 1));
        let raw = &self.row[start..end.unwrap_or(self.row.len())];
        Some(CsvField { raw, quotes: self.quotes })
    }
}

/// A field as it is in the row, with its quotes.
#[derive(Debug, Clone, Copy)]
pub struct CsvField<'a> {
    /// Its bytes.
    pub raw: &'a [u8],
    /// What its quotes mean.
    pub quotes: CsvQuotes,
}

impl<'a> CsvField<'a> {
    /// The value, when the field contains it unchanged.
    #[must_use]
    #[inline]
    pub fn plain(self) -> Option<&'a [u8]> {
        match self.raw {
            [b'"', value @ .., b'"'] => memchr(b'"', value).is_none().then_some(value),
            [b'"', ..] => None,
            value if self.quotes != CsvQuotes::Toggled => Some(value),
            value => memchr(b'"', value).is_none().then_some(value),
        }
    }

    /// The value in pieces.
    pub fn pieces(self) -> impl Iterator<Item = &'a [u8]> {
        let toggled = self.quotes == CsvQuotes::Toggled;
        match self.raw.strip_prefix(b"\"") {
            Some(rest) => ValuePieces { rest, quoted: true, toggled },
            None => ValuePieces { rest: self.raw, quoted: false, toggled },
        }
    }

    /// The value: without the quotes around it, and with one quote for two.
    #[must_use]
    pub fn value(self) -> Cow<'a, [u8]> {
        match self.plain() {
            Some(value) => Cow::Borrowed(value),
            None => Cow::Owned(self.pieces().collect::<Vec<_>>().concat()),
        }
    }
}

/// Stretches of a field's value.
struct ValuePieces<'a> {
    rest: &'a [u8],
    quoted: bool,
    toggled: bool,
}

impl<'a> Iterator for ValuePieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let all_letters = !self.quoted && !self.toggled;
        let quote = if all_letters { None } else { memchr(b'"', self.rest) };
        let Some(quote) = quote else { return Some(std::mem::take(&mut self.rest)) };
        let doubled = self.quoted && self.rest.get(quote + 1) == Some(&b'"');
        let piece = &self.rest[..quote + usize::from(doubled)];
        self.rest = &self.rest[quote + 1 + usize::from(doubled)..];
        self.quoted ^= !doubled;
        Some(piece)
    }
}
