//! Keys of CSV rows: `COLUMN[:TYPE][:r]`, where COLUMN is a name of the header or a number from 1,
//! and TYPE is a letter or word of GNU sort.
//!
//! A field is compared by its value: without its quotes, doubled quotes once, and without the
//! carriage return of a row's end. A column that a row does not have is empty.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::element::Element;
use super::options::{Blanks, Options};
use super::orderings::LETTERS_OF_TEXTS;
use crate::record::{ColumnError, CsvField, CsvFields, CsvFraming, CsvHeader, CsvQuotes, Format};

/// A parsed key of CSV rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColumnKey {
    /// Column, from 0.
    pub(super) column: usize,
    pub(super) options: Options,
}

impl ColumnKey {
    /// Parses a key of rows of this format, with this header; the error is the reason alone.
    pub(super) fn of_text(
        text: &str,
        format: Format,
        header: Option<&CsvHeader>,
    ) -> Result<Self, String> {
        match format {
            Format::Csv { quotes: CsvQuotes::Toggled, .. } => Self::parse_as_before(text, header),
            _ => Self::parse(text, format.has_header(), header),
        }
    }

    /// Parses a key of rows with this header; the error is the reason alone.
    ///
    /// A column's name may have colons, and may look like one with options. So the whole text is tried as a name
    /// first. Then options are taken from its end one by one, and what is left is tried.
    fn parse(text: &str, has_header: bool, header: Option<&CsvHeader>) -> Result<Self, String> {
        let mut options = Options::default();
        let mut column = text;
        loop {
            match find(column, has_header, header) {
                Ok(column) => return Ok(ColumnKey { column, options }),
                Err(
                    error @ (ColumnError::Unknown { .. }
                    | ColumnError::NoRows { .. }
                    | ColumnError::NoHeader),
                ) => {
                    let Some((rest, word)) = column.rsplit_once(':') else {
                        return Err(error.to_string());
                    };
                    let Some(letters) = letters(word) else {
                        return Err(match find(rest, has_header, header) {
                            Ok(_) => format!("{word} is no type; there are {TYPES}"),
                            Err(_) => error.to_string(),
                        });
                    };
                    letters.bytes().for_each(|letter| _ = options.set(letter, Blanks::Both));
                    column = rest;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// As [`ColumnKey::parse`], for views of programs that took every quote for one that opens or closes: options
    /// were taken off first, the first of several columns with one name was meant, and no number was too large.
    fn parse_as_before(text: &str, header: Option<&CsvHeader>) -> Result<Self, String> {
        let mut options = Options::default();
        let mut column = text;
        while let Some((rest, word)) = column.rsplit_once(':') {
            let Some(letters) = letters(word) else { break };
            letters.bytes().for_each(|letter| _ = options.set(letter, Blanks::Both));
            column = rest;
        }
        let named = header.and_then(|header| header.first(column));
        let found = named.map_or_else(|| find(column, false, None), Ok);
        found.map(|column| ColumnKey { column, options }).map_err(|error| error.to_string())
    }
}

/// The options of a column's key.
const TYPES: &str = "n, r, f, d, i, g, h, M, R and V, several of them such as nr, and text, numeric, general-numeric, \
                     human-numeric, month, random, version";

/// Number, from 0, of the column with this name or number. Rows that should have a header but have none are no rows.
fn find(column: &str, has_header: bool, header: Option<&CsvHeader>) -> Result<usize, ColumnError> {
    if let Some(header) = header {
        return header.column(column);
    }
    match column.parse::<usize>() {
        Ok(number) => number.checked_sub(1).ok_or(ColumnError::Zero),
        Err(_) if has_header => Err(ColumnError::NoRows { name: column.to_owned() }),
        Err(_) => Err(ColumnError::NoHeader),
    }
}

/// Number, from 0, of the column that `key` names in CSV rows of this format; `preamble` is what comes before them.
///
/// # Errors
/// The reason why there is no such column.
pub fn column_of(key: &str, format: Format, preamble: Option<&[u8]>) -> Result<usize, String> {
    ColumnKey::of_text(key, format, header_of(format, preamble).as_ref()).map(|key| key.column)
}

/// The names in the header of rows of this format, if they have one.
pub(super) fn header_of(format: Format, preamble: Option<&[u8]>) -> Option<CsvHeader> {
    let row = preamble.filter(|_| format.has_header())?;
    Some(CsvHeader::of_row(row, format.csv()?))
}

/// Whether the end of a key, where options are, has this one.
pub(super) fn has_option(key: &str, option: char) -> bool {
    let words = key.rsplit(':').map_while(letters);
    words.take(key.matches(':').count()).any(|letters| letters.contains(option))
}

/// The option letters of `word`: the word itself, or GNU sort's letter for a word such as
/// `numeric`.
fn letters(word: &str) -> Option<&str> {
    let is_letter = |letter: char| LETTERS_OF_TEXTS.contains(letter);
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
    pub(super) framing: CsvFraming,
    /// Columns from 0.
    pub(super) keys: Vec<(usize, Element)>,
    /// The keys whose column no row had so far, one bit each; none where a header tells which columns there are.
    /// Only the first [`KEYS_WATCHED`] are watched.
    unseen: Arc<AtomicU64>,
}

/// Keys whose columns are watched.
const KEYS_WATCHED: usize = u64::BITS as usize;

impl ColumnKeys {
    pub(super) fn new(framing: CsvFraming, keys: Vec<(usize, Element)>, has_header: bool) -> Self {
        let watched = keys.len().min(KEYS_WATCHED) as u32;
        let all = 1u64.checked_shl(watched).unwrap_or(0).wrapping_sub(1);
        let known = has_header || framing.quotes == CsvQuotes::Toggled;
        ColumnKeys { framing, keys, unseen: Arc::new(AtomicU64::new(if known { 0 } else { all })) }
    }

    /// Number of the first key whose column no row had that was encoded.
    pub(super) fn unseen(&self) -> Option<usize> {
        let unseen = self.unseen.load(Ordering::Relaxed);
        (unseen != 0).then_some(unseen.trailing_zeros() as usize)
    }

    #[cold]
    fn see(&self, key: usize) {
        if key < KEYS_WATCHED {
            self.unseen.fetch_and(!(1 << key), Ordering::Relaxed);
        }
    }

    /// Appends the keys of `row`, with or without its newline.
    #[inline]
    pub(super) fn encode(&self, row: &[u8], out: &mut Vec<u8>) {
        let (mut rest, mut next) = (CsvFields::of_row(row, self.framing), 0);
        let unseen = self.unseen.load(Ordering::Relaxed);
        for (key, (column, element)) in self.keys.iter().enumerate() {
            if *column < next {
                (rest, next) = (CsvFields::of_row(row, self.framing), 0);
            }
            let field = match rest.nth(*column - next) {
                Some(field) => {
                    if unseen != 0 {
                        self.see(key);
                    }
                    field
                }
                None => MISSING,
            };
            next = *column + 1;
            match field.plain() {
                Some(value) => element.encode(value, out),
                None if element.is_all_text() => element.encode_pieces(field.pieces(), out),
                None => element.encode(&field.value(), out),
            }
        }
    }
}

/// The value of a column that a row does not have.
const MISSING: CsvField<'static> = CsvField { raw: &[], quotes: CsvQuotes::Lazy };
