//! Fields of csv rows, and columns by name or number.

use std::ops::Range;

use merganser_sort::record::{CsvField, CsvFraming, CsvHeader, CsvQuotes, Quoting};
use serde::Deserialize;

use super::COPY_BYTES_MOST;
use super::arguments::Arguments;
use super::block::{each_block, places};
use crate::ssdlet::SsdletError;

/// A column as the arguments name it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a column is a number from 1 on, or a name")]
pub(super) enum CsvColumn {
    Number(usize),
    Name(String),
}

/// The most columns: one more would be a mistake rather than a table.
pub(super) const COLUMNS_MOST: usize = 65_536;

/// Memory for the borders of a row's fields, at most, in bytes.
pub(super) const FIELDS_BYTES: u64 = 2 * (COLUMNS_MOST * size_of::<usize>()) as u64;

impl CsvColumn {
    /// Refuses a number that no column has, and a name where the records have no header.
    pub(super) fn check(
        &self,
        args: &Arguments,
        argument: &str,
        header: bool,
    ) -> Result<(), SsdletError> {
        match self {
            CsvColumn::Number(number) if !(1..=COLUMNS_MOST).contains(number) => {
                let detail = format!("{number} is not from 1 to {COLUMNS_MOST}");
                Err(args.fault(argument, detail))
            }
            CsvColumn::Name(name) if !header => {
                let detail = format!(
                    "column {name:?} has a name, but the records have no header; set header to true, or give its number"
                );
                Err(args.fault(argument, detail))
            }
            _ => Ok(()),
        }
    }

    /// Where it is in a row, from 0; `header` is the header, if there is one. In a header, a number may be a name.
    /// An error names `ssdlet` and its `argument`.
    pub(super) fn resolve(
        &self,
        header: Option<&CsvHeader>,
        ssdlet: &str,
        argument: &str,
    ) -> Result<usize, SsdletError> {
        let fault = |detail| {
            let (ssdlet, argument) = (ssdlet.to_owned(), argument.to_owned());
            SsdletError::Argument { ssdlet, argument, detail }
        };
        let place = match (self, header) {
            (CsvColumn::Number(number), None) => return Ok(number - 1),
            (CsvColumn::Name(name), None) => {
                let detail = format!("column {name:?} has a name, but no header row was given");
                return Err(fault(detail));
            }
            (CsvColumn::Number(number), Some(header)) => header.column(&number.to_string()),
            (CsvColumn::Name(name), Some(header)) => header.column(name),
        };
        let place = place.map_err(|error| fault(error.to_string()))?;
        if place >= COLUMNS_MOST {
            let number = place + 1;
            return Err(fault(format!(
                "column {number} is too far to the right; {COLUMNS_MOST} columns are the most"
            )));
        }
        Ok(place)
    }
}

/// The framing of rows with this separator. A strict reader has refused what a lazy one reads in another way.
pub(super) fn framing(separator: u8) -> CsvFraming {
    CsvFraming { separator, quotes: CsvQuotes::Lazy }
}

/// The names in a header row.
pub(super) fn names(separator: u8, row: &[u8]) -> CsvHeader {
    CsvHeader::of_row(row, framing(separator))
}

/// A row of a chunk.
pub(super) struct CsvRow<'a> {
    bytes: &'a [u8],
    /// The row with its terminator.
    pub range: Range<usize>,
    /// Ends of the fields that were asked for; those of a shorter row are fewer.
    ends: &'a [usize],
}

impl<'a> CsvRow<'a> {
    /// Fields that are known.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A field with its quotes, or nothing if the row is shorter.
    pub(super) fn get(&self, at: usize) -> Option<&'a [u8]> {
        let end = *self.ends.get(at)?;
        let start = if at == 0 { self.range.start } else { self.ends[at - 1] + 1 };
        Some(&self.bytes[start..end])
    }

    /// The row's newline, with the carriage return before it.
    pub(super) fn terminator(&self) -> &'a [u8] {
        let row = &self.bytes[self.range.clone()];
        &row[text_len(row)..]
    }
}

/// An error about a row of a chunk at `offset` that has no column `at`, which `argument` names.
pub(super) fn too_short(
    row: &CsvRow<'_>,
    offset: u64,
    at: usize,
    argument: &'static str,
) -> SsdletError {
    let offset = offset + row.range.start as u64;
    SsdletError::ShortRow { file: None, offset, argument, wanted: at + 1, found: row.len() }
}

fn text_len(row: &[u8]) -> usize {
    let text = row.strip_suffix(b"\n").unwrap_or(row);
    text.strip_suffix(b"\r").unwrap_or(text).len()
}

/// Finds rows and their first fields.
pub(super) struct CsvRows {
    separator: u8,
    /// How many fields are looked at.
    columns: usize,
    ends: Vec<usize>,
}

impl CsvRows {
    pub(super) fn new(separator: u8, columns: usize) -> Self {
        CsvRows { separator, columns, ends: Vec::new() }
    }

    /// Calls `take` for each row of `bytes`, which are whole rows.
    #[inline(always)]
    pub(super) fn each<E>(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(&CsvRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let CsvRows { separator, columns, ends } = self;
        let mut start = 0;
        let mut quoting = Quoting::at_row(*separator, false);
        ends.clear();
        each_block(bytes, |at, block, inside| {
            let newlines = places(b'\n', block) & inside;
            let separators = places(*separator, block) & inside;
            let before = at.checked_sub(1).map(|last| bytes[last]);
            let quoted = quoting.block(places(b'"', block), newlines | separators, before);
            let (newlines, separators) = (newlines & !quoted.inside, separators & !quoted.inside);
            let mut borders = newlines | separators;
            while borders != 0 {
                let bit = borders & borders.wrapping_neg();
                borders ^= bit;
                let place = at + bit.trailing_zeros() as usize;
                if newlines & bit == 0 {
                    if ends.len() < *columns {
                        ends.push(place);
                    }
                    continue;
                }
                if ends.len() < *columns {
                    ends.push(start + text_len(&bytes[start..=place]));
                }
                take(&CsvRow { bytes, range: start..place + 1, ends })?;
                start = place + 1;
                ends.clear();
            }
            Ok(())
        })?;
        if start < bytes.len() {
            if ends.len() < *columns {
                let rest = &bytes[start..];
                ends.push(start + rest.strip_suffix(b"\r").unwrap_or(rest).len());
            }
            take(&CsvRow { bytes, range: start..bytes.len(), ends })?;
        }
        Ok(())
    }
}

/// The text of a field, copied to `copy` only if it has quotes in quotes; `None` if that is too long.
pub(super) fn text_of<'a>(field: &'a [u8], copy: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let field = CsvField { raw: field, quotes: CsvQuotes::Lazy };
    match field.plain() {
        Some(text) => Some(text),
        None if field.raw.len() > COPY_BYTES_MOST => None,
        None => {
            copy.clear();
            field.pieces().for_each(|piece| copy.extend_from_slice(piece));
            Some(copy)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(bytes: &[u8], columns: usize) -> Vec<Vec<Vec<u8>>> {
        let mut rows = Vec::new();
        let take = |row: &CsvRow<'_>| {
            rows.push(
                (0..row.len())
                    .map(|at| row.get(at).expect("the row is as long").to_vec())
                    .collect(),
            );
            Ok::<(), ()>(())
        };
        CsvRows::new(b',', columns).each(bytes, take).expect("takes any row");
        rows
    }

    /// One byte after the other.
    fn naive(bytes: &[u8], columns: usize) -> Vec<Vec<Vec<u8>>> {
        #[derive(PartialEq)]
        enum At {
            Start,
            Unquoted,
            Quoted,
            QuoteInQuoted,
        }
        let (mut rows, mut row, mut field, mut state) = (vec![], vec![], vec![], At::Start);
        let mut finish = |mut row: Vec<Vec<u8>>, mut field: Vec<u8>| {
            if field.last() == Some(&b'\r') {
                field.pop();
            }
            row.push(field);
            row.truncate(columns);
            rows.push(row);
        };
        for byte in bytes {
            state = match (state, byte) {
                (At::Quoted, b'"') => At::QuoteInQuoted,
                (At::Start | At::QuoteInQuoted, b'"') | (At::Quoted, _) => At::Quoted,
                (_, b',') => {
                    row.push(std::mem::take(&mut field));
                    state = At::Start;
                    continue;
                }
                (_, b'\n') => {
                    finish(std::mem::take(&mut row), std::mem::take(&mut field));
                    state = At::Start;
                    continue;
                }
                _ => At::Unquoted,
            };
            field.push(*byte);
        }
        if !row.is_empty() || !field.is_empty() {
            finish(row, field);
        }
        rows
    }

    #[test]
    fn fields_of_a_row() {
        let row = b"1,\"a,\"\"b\"\"\nc\",\r\n";
        assert_eq!(fields(row, 9), [[b"1".to_vec(), b"\"a,\"\"b\"\"\nc\"".to_vec(), vec![]]]);
        let mut copy = Vec::new();
        let second = b"\"a,\"\"b\"\"\nc\"";
        assert_eq!(text_of(second, &mut copy).expect("short"), b"a,\"b\"\nc");
        assert_eq!(text_of(b"\"x\"", &mut copy).expect("short"), b"x");
        assert_eq!(text_of(b"x\"", &mut copy).expect("short"), b"x\"");
        assert_eq!(text_of(b"3.5\" disk", &mut copy).expect("short"), b"3.5\" disk");
        assert_eq!(text_of(b"\"a\"b\"", &mut copy).expect("short"), b"ab\"");
    }

    #[test]
    fn all_short_texts_across_the_border_of_blocks() {
        let alphabet = b"a,\"\n\r";
        for code in 0..5_usize.pow(6) {
            let tail: Vec<u8> = (0..6).map(|n| alphabet[code / 5_usize.pow(n) % 5]).collect();
            for before in [0, 61] {
                let text = [&b"b".repeat(before)[..], &tail].concat();
                for columns in [1, 9] {
                    assert_eq!(fields(&text, columns), naive(&text, columns), "{text:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_text(text in "[ab,\"\r\n]{0,300}", columns in 0_usize..5) {
            prop_assert_eq!(fields(text.as_bytes(), columns), naive(text.as_bytes(), columns));
        }
    }

    #[test]
    fn columns_are_found_by_name_once() {
        let header = names(b';', b"\xef\xbb\xbfid;\"first \"\"name\"\"\";id2;x;x\r\n");
        let of = |name: &str| {
            CsvColumn::Name(name.to_owned()).resolve(Some(&header), "project", "columns")
        };
        assert_eq!(of("id").expect("there"), 0);
        assert_eq!(of("first \"name\"").expect("there"), 1);
        assert!(of("x").expect_err("twice").to_string().contains("2 columns are called 'x'"));
        assert!(of("y").expect_err("missing").to_string().contains("there are 5: id, first"));
        assert_eq!(CsvColumn::Number(7).resolve(None, "project", "columns").expect("a number"), 6);
    }
}
