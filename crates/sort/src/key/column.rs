//! Keys of CSV rows: `COLUMN[:TYPE][:r]`, where COLUMN is a name of the header or a number from 1,
//! and TYPE is a letter or word of GNU sort.
//!
//! A field is compared by its value: without its quotes, doubled quotes once, and without the
//! carriage return of a row's end. A column that a row does not have is empty.

use std::borrow::Cow;

use memchr::memchr;

use super::element::Element;
use super::options::{Blanks, Options};
use crate::record::Outside;

/// A parsed key of CSV rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColumnKey {
    pub(super) column: String,
    pub(super) options: Options,
}

impl ColumnKey {
    /// Parses a key. Options are taken from its end as long as there are any, so a column's name may
    /// have colons.
    pub(super) fn parse(text: &str) -> Self {
        let mut options = Options::default();
        let mut column = text;
        while let Some((rest, word)) = column.rsplit_once(':') {
            let Some(letters) = letters(word) else { break };
            letters.bytes().for_each(|letter| _ = options.set(letter, Blanks::Both));
            column = rest;
        }
        ColumnKey { column: column.to_owned(), options }
    }

    /// Number of the column, from 0, in a row with this header; the error is the reason alone.
    pub(super) fn find(&self, header: Option<&[u8]>, separator: u8) -> Result<usize, String> {
        if let Some(header) = header {
            let names =
                || Columns::new(header.strip_prefix(b"\xef\xbb\xbf").unwrap_or(header), separator);
            let found = names().position(|field| *field.value() == *self.column.as_bytes());
            if let Some(column) = found {
                return Ok(column);
            }
        }
        match (self.column.parse::<usize>(), header) {
            (Ok(0), _) => Err("columns are counted from 1".to_owned()),
            (Ok(column), _) => Ok(column - 1),
            (Err(_), Some(_)) => Err(format!("the header has no column '{}'", self.column)),
            (Err(_), None) => {
                Err("a column is a number from 1 where there is no header".to_owned())
            }
        }
    }
}

/// Number, from 0, of the column that `key` names in CSV rows with this header.
///
/// # Errors
/// The reason why no column has this name.
pub fn column_of(key: &str, header: Option<&[u8]>, separator: u8) -> Result<usize, String> {
    ColumnKey::parse(key).find(header, separator)
}

/// The option letters of `word`: the word itself, or GNU sort's letter for a word such as
/// `numeric`.
fn letters(word: &str) -> Option<&str> {
    let is_letter = |letter: char| "dfghiMnRrV".contains(letter);
    Some(match word {
        "text" => "",
        "general-numeric" => "g",
        "human-numeric" => "h",
        "month" => "M",
        "numeric" => "n",
        "random" => "R",
        "version" => "V",
        _ if !word.is_empty() && word.chars().all(is_letter) => word,
        _ => return None,
    })
}

/// All keys of a row.
#[derive(Debug, Clone)]
pub(super) struct ColumnKeys {
    pub(super) separator: u8,
    /// Columns from 0.
    pub(super) keys: Vec<(usize, Element)>,
}

impl ColumnKeys {
    /// Appends the keys of `row`, with or without its newline.
    #[inline]
    pub(super) fn encode(&self, row: &[u8], out: &mut Vec<u8>) {
        let all = Columns::new(row, self.separator);
        let mut rest = all;
        let mut next = 0;
        for (column, element) in &self.keys {
            if *column < next {
                (rest, next) = (all, 0);
            }
            let field = rest.nth(*column - next).unwrap_or(ColumnField(&[]));
            next = *column + 1;
            match field.plain() {
                Some(value) => element.encode(value, out),
                None if element.is_all_text() => element.encode_pieces(field.pieces(), out),
                None => element.encode(&field.value(), out),
            }
        }
    }
}

/// The fields of a row, one after the other.
#[derive(Clone, Copy)]
struct Columns<'a> {
    row: &'a [u8],
    separators: Outside<'a>,
    /// Where the next field begins; `None` behind the last one.
    start: Option<usize>,
}

impl<'a> Columns<'a> {
    #[inline]
    fn new(row: &'a [u8], separator: u8) -> Self {
        let row = row.strip_suffix(b"\n").unwrap_or(row);
        let row = row.strip_suffix(b"\r").unwrap_or(row);
        Columns { row, separators: Outside::new(separator, row, false), start: Some(0) }
    }
}

impl<'a> Iterator for Columns<'a> {
    type Item = ColumnField<'a>;

    #[inline]
    fn next(&mut self) -> Option<ColumnField<'a>> {
        let start = self.start?;
        let end = self.separators.next();
        self.start = end.map(|end| end + 1);
        Some(ColumnField(&self.row[start..end.unwrap_or(self.row.len())]))
    }
}

/// A field as it is in the row, with its quotes.
#[derive(Debug, Clone, Copy)]
struct ColumnField<'a>(&'a [u8]);

impl<'a> ColumnField<'a> {
    /// The value, when the field contains it unchanged.
    #[inline]
    fn plain(self) -> Option<&'a [u8]> {
        match self.0 {
            [b'"', value @ .., b'"'] => memchr(b'"', value).is_none().then_some(value),
            value => memchr(b'"', value).is_none().then_some(value),
        }
    }

    /// The value in pieces.
    fn pieces(self) -> ValuePieces<'a> {
        ValuePieces { rest: self.0, quoted: false }
    }

    fn value(self) -> Cow<'a, [u8]> {
        match self.plain() {
            Some(value) => Cow::Borrowed(value),
            None => Cow::Owned(self.pieces().collect::<Vec<_>>().concat()),
        }
    }
}

/// Stretches of a field's value. Inside quotes, a quote that is followed by another is a quote of
/// the value. Any other quote begins or ends quoting and is not part of the value.
struct ValuePieces<'a> {
    rest: &'a [u8],
    quoted: bool,
}

impl<'a> Iterator for ValuePieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let Some(quote) = memchr(b'"', self.rest) else {
            return Some(std::mem::take(&mut self.rest));
        };
        let doubled = self.quoted && self.rest.get(quote + 1) == Some(&b'"');
        let piece = &self.rest[..quote + usize::from(doubled)];
        self.rest = &self.rest[quote + 1 + usize::from(doubled)..];
        self.quoted ^= !doubled;
        Some(piece)
    }
}
