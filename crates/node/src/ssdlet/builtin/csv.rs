//! Fields of csv rows, and columns by name or number.

use std::ops::Range;

use serde::Deserialize;

use super::COPY_BYTES_MOST;
use super::arguments::Arguments;
use super::block::{each_block, places, running_parity};
use crate::ssdlet::SsdletError;

/// A column as the arguments name it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a column is a number from 1 on, or a name")]
pub(super) enum Column {
    Number(usize),
    Name(String),
}

/// The most columns: one more would be a mistake rather than a table.
pub(super) const COLUMNS_MOST: usize = 65_536;

/// Memory for the borders of a row's fields, at most, in bytes.
pub(super) const FIELDS_BYTES: u64 = 2 * (COLUMNS_MOST * size_of::<usize>()) as u64;

impl Column {
    /// Refuses a number that no column has, and a name where the records have no header.
    pub(super) fn check(
        &self,
        args: &Arguments,
        argument: &str,
        header: bool,
    ) -> Result<(), SsdletError> {
        match self {
            Column::Number(number) if !(1..=COLUMNS_MOST).contains(number) => {
                let detail = format!("{number} is not from 1 to {COLUMNS_MOST}");
                Err(args.fault(argument, detail))
            }
            Column::Name(name) if !header => {
                let detail = format!(
                    "column {name:?} has a name, but the records have no header; set header to true, or give its number"
                );
                Err(args.fault(argument, detail))
            }
            _ => Ok(()),
        }
    }

    /// Where it is in a row, from 0; `header` is the header row, if there is one. An error names `ssdlet` and its
    /// `argument`.
    pub(super) fn resolve(
        &self,
        header: Option<&[Vec<u8>]>,
        ssdlet: &str,
        argument: &str,
    ) -> Result<usize, SsdletError> {
        let fault = |detail| {
            let (ssdlet, argument) = (ssdlet.to_owned(), argument.to_owned());
            Err(SsdletError::Argument { ssdlet, argument, detail })
        };
        let name = match (self, header) {
            (Column::Number(number), Some(header)) if *number > header.len() => {
                let there = header.len();
                return fault(format!("there is no column {number}; the header has {there}"));
            }
            (Column::Number(number), _) => return Ok(number - 1),
            (Column::Name(name), _) => name,
        };
        let Some(header) = header else {
            return fault(format!("column {name:?} has a name, but no header row was given"));
        };
        let mut found = header.iter().enumerate().filter(|(_, text)| *text == name.as_bytes());
        match (found.next(), found.next()) {
            (Some((at, _)), None) => Ok(at),
            (Some(_), Some(_)) => fault(format!("two columns are called {name:?}; give a number")),
            (None, _) => {
                let names: Vec<_> =
                    header.iter().map(|name| String::from_utf8_lossy(name)).collect();
                let names = names.join(", ");
                fault(format!("there is no column {name:?}; there are {names}"))
            }
        }
    }
}

/// The names in a header row, without quotes and without a byte order mark.
pub(super) fn names(separator: u8, row: &[u8]) -> Vec<Vec<u8>> {
    let row = row.strip_prefix(b"\xef\xbb\xbf").unwrap_or(row);
    let mut names = Vec::new();
    let take = |row: &Row<'_>| {
        for at in 0..row.len() {
            let mut name = Vec::new();
            unquote(row.field(at), &mut name);
            names.push(name);
        }
        Ok::<(), SsdletError>(())
    };
    Rows::new(separator, COLUMNS_MOST).each(row, take).expect("takes any row");
    names
}

/// A row of a chunk.
pub(super) struct Row<'a> {
    bytes: &'a [u8],
    /// The row with its terminator.
    pub range: Range<usize>,
    /// Ends of the fields that were asked for; those of a shorter row are fewer.
    ends: &'a [usize],
}

impl<'a> Row<'a> {
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

    pub(super) fn field(&self, at: usize) -> &'a [u8] {
        self.get(at).expect("the row is as long")
    }

    /// The row's newline, with the carriage return before it.
    pub(super) fn terminator(&self) -> &'a [u8] {
        let row = &self.bytes[self.range.clone()];
        &row[text_len(row)..]
    }
}

/// An error about a row of a chunk at `offset` that has no column `at`, which `argument` names.
pub(super) fn too_short(
    row: &Row<'_>,
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
pub(super) struct Rows {
    separator: u8,
    /// How many fields are looked at.
    columns: usize,
    ends: Vec<usize>,
}

impl Rows {
    pub(super) fn new(separator: u8, columns: usize) -> Self {
        Rows { separator, columns, ends: Vec::new() }
    }

    /// Calls `take` for each row of `bytes`, which are whole rows.
    #[inline(always)]
    pub(super) fn each<E>(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(&Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Rows { separator, columns, ends } = self;
        let (mut quoted, mut start) = (0, 0);
        ends.clear();
        each_block(bytes, |at, block, inside| {
            let parity = running_parity(places(b'"', block)) ^ quoted;
            quoted = if parity >> 63 == 1 { u64::MAX } else { 0 };
            let newlines = places(b'\n', block) & !parity & inside;
            let separators = places(*separator, block) & !parity & inside;
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
                take(&Row { bytes, range: start..place + 1, ends })?;
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
            take(&Row { bytes, range: start..bytes.len(), ends })?;
        }
        Ok(())
    }
}

/// Appends what a field means: without the quotes around it, and with one for two.
pub(super) fn unquote(field: &[u8], text: &mut Vec<u8>) {
    let inner = field.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\""));
    let Some(mut inner) = inner else { return text.extend_from_slice(field) };
    while let Some(quote) = memchr::memchr(b'"', inner) {
        text.extend_from_slice(&inner[..=quote]);
        inner = &inner[quote + 1..];
        inner = inner.strip_prefix(b"\"").unwrap_or(inner);
    }
    text.extend_from_slice(inner);
}

/// What a field means, copied to `copy` only if it has quotes in quotes; `None` if that is too long.
pub(super) fn text_of<'a>(field: &'a [u8], copy: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let inner = field.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\""));
    match inner {
        None => Some(field),
        Some(inner) if memchr::memchr(b'"', inner).is_none() => Some(inner),
        Some(_) if field.len() > COPY_BYTES_MOST => None,
        Some(_) => {
            copy.clear();
            unquote(field, copy);
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
        let take = |row: &Row<'_>| {
            rows.push((0..row.len()).map(|at| row.field(at).to_vec()).collect());
            Ok::<(), ()>(())
        };
        Rows::new(b',', columns).each(bytes, take).expect("takes any row");
        rows
    }

    /// One byte after the other.
    fn naive(bytes: &[u8], columns: usize) -> Vec<Vec<Vec<u8>>> {
        let (mut rows, mut row, mut field, mut quoted) = (vec![], vec![], vec![], false);
        let mut finish = |mut row: Vec<Vec<u8>>, mut field: Vec<u8>| {
            if field.last() == Some(&b'\r') {
                field.pop();
            }
            row.push(field);
            row.truncate(columns);
            rows.push(row);
        };
        for byte in bytes {
            quoted ^= *byte == b'"';
            match byte {
                b',' if !quoted => row.push(std::mem::take(&mut field)),
                b'\n' if !quoted => finish(std::mem::take(&mut row), std::mem::take(&mut field)),
                _ => field.push(*byte),
            }
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
        assert_eq!(text_of(b"\"", &mut copy).expect("short"), b"\"");
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
        let of =
            |name: &str| Column::Name(name.to_owned()).resolve(Some(&header), "project", "columns");
        assert_eq!(of("id").expect("there"), 0);
        assert_eq!(of("first \"name\"").expect("there"), 1);
        assert!(of("x").expect_err("twice").to_string().contains("two columns are called \"x\""));
        assert!(of("y").expect_err("missing").to_string().contains("there are id, first"));
        assert_eq!(Column::Number(7).resolve(None, "project", "columns").expect("a number"), 6);
    }
}
