//! The part of a record that is counted, and how it is printed.
//!
//! A value of one part is its bytes. One of several has them one after the other, so that the order of values is that of
//! their parts: a zero byte is followed by `ff`, and two zero bytes end a part.

use std::borrow::Cow;
use std::io::{self, Write};

use merganser_shell::failure::Failure;
use merganser_sort::key::{KeyMarks, OrderSpec};
use merganser_sort::record::{ColumnError, CsvFields, CsvFraming, CsvHeader, Format};

/// The part that is counted.
pub(super) enum CountedPart {
    /// The record without its end.
    Whole,
    /// Fields of a line.
    Fields(KeyMarks),
    /// Columns of a row, from 0.
    Columns(Vec<usize>),
}

/// Records as values, and values as text.
pub(super) struct Values {
    part: CountedPart,
    format: Format,
    /// Between the parts of a value of lines.
    separator: u8,
    /// The columns that a row had.
    columns_seen: usize,
    value: Vec<u8>,
}

impl Values {
    /// For records of `order`. `columns` are those of csv; `preamble` has their names.
    ///
    /// # Errors
    /// A column that does not exist.
    pub(super) fn new(
        order: &OrderSpec,
        columns: &[String],
        preamble: Option<&[u8]>,
    ) -> Result<Self, Failure> {
        let part = match order.format.csv() {
            Some(_) if columns.is_empty() => CountedPart::Whole,
            Some(framing) => {
                let header = preamble.filter(|_| order.format.has_header());
                let header = header.map(|row| CsvHeader::of_row(row, framing));
                let has_header = order.format.has_header();
                let column = |key: &String| {
                    column(key, header.as_ref(), has_header)
                        .map_err(|why| Failure::from(format!("--key '{key}': {why}")))
                };
                CountedPart::Columns(columns.iter().map(column).collect::<Result<_, _>>()?)
            }
            None if order.keys.is_empty() => CountedPart::Whole,
            None => CountedPart::Fields(order.marks()?),
        };
        Ok(Values {
            part,
            format: order.format,
            separator: order.separator.unwrap_or(b'\t'),
            columns_seen: 0,
            value: Vec::new(),
        })
    }

    /// The value of a record.
    pub(super) fn of_record<'a>(&'a mut self, record: &'a [u8]) -> &'a [u8] {
        let record = without_end(record, self.format);
        let value = &mut self.value;
        value.clear();
        match (&self.part, self.format.csv()) {
            (CountedPart::Whole, _) => return record,
            (CountedPart::Fields(marks), _) => match &marks.of_line(record)[..] {
                [part] => return &record[part.clone()],
                parts => parts.iter().for_each(|part| push_part(&record[part.clone()], value)),
            },
            (CountedPart::Columns(columns), Some(framing)) => {
                let field = |column: usize| CsvFields::of_row(record, framing).nth(column);
                for column in columns {
                    let found = field(*column);
                    if found.is_some() {
                        self.columns_seen = self.columns_seen.max(column + 1);
                    }
                    let text = found.map_or(Cow::Borrowed(&b""[..]), |field| field.value());
                    match columns.len() {
                        1 => value.extend_from_slice(&text),
                        _ => push_part(&text, value),
                    }
                }
            }
            (CountedPart::Columns(_), None) => unreachable!("only csv has columns"),
        }
        &self.value
    }

    /// The column of a key that no row had, from 1.
    pub(super) fn unseen_column(&self) -> Option<usize> {
        // A header says which columns there are; a row may be shorter.
        let CountedPart::Columns(columns) = &self.part else { return None };
        if self.format.has_header() {
            return None;
        }
        let most = columns.iter().max()? + 1;
        (most > self.columns_seen).then_some(most)
    }

    /// Writes the names of the columns, if the csv input has some.
    ///
    /// # Errors
    /// The output's own.
    pub(super) fn write_header(&self, preamble: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let Some(framing) = self.format.csv().filter(|_| self.format.has_header()) else {
            return Ok(());
        };
        let row = without_end(preamble, self.format);
        let row = row.strip_prefix(b"\xef\xbb\xbf").unwrap_or(row);
        match &self.part {
            CountedPart::Columns(columns) => {
                for column in columns {
                    let name = CsvFields::of_row(row, framing).nth(*column);
                    write_field(
                        &name.map_or_else(Cow::default, |name| name.value()),
                        framing,
                        out,
                    )?;
                    out.write_all(&[framing.separator])?;
                }
            }
            _ => {
                out.write_all(row)?;
                out.write_all(&[framing.separator])?;
            }
        }
        out.write_all(b"count\n")
    }

    /// Writes a value and its count.
    ///
    /// # Errors
    /// The output's own.
    pub(super) fn write(&self, value: &[u8], count: u64, out: &mut dyn Write) -> io::Result<()> {
        let parts = match &self.part {
            CountedPart::Whole => 1,
            CountedPart::Fields(marks) => marks.of_line(b"").len(),
            CountedPart::Columns(columns) => columns.len(),
        };
        let parts = if parts == 1 { vec![Cow::Borrowed(value)] } else { split(value) };
        if let Some(framing) = self.format.csv() {
            for part in &parts {
                match self.part {
                    CountedPart::Whole => out.write_all(part)?,
                    _ => write_field(part, framing, out)?,
                }
                out.write_all(&[framing.separator])?;
            }
            return writeln!(out, "{count}");
        }
        write!(out, "{count}\t")?;
        for (number, part) in parts.iter().enumerate() {
            if number > 0 {
                out.write_all(&[self.separator])?;
            }
            out.write_all(part)?;
        }
        let Format::Lines { delimiter } = self.format else { unreachable!("no csv") };
        out.write_all(&[delimiter])
    }
}

/// The column that a key names.
fn column(key: &str, header: Option<&CsvHeader>, has_header: bool) -> Result<usize, ColumnError> {
    match (header, key.parse::<usize>()) {
        (Some(header), _) => header.column(key),
        (None, _) if has_header => Err(ColumnError::NoRows { name: key.to_owned() }),
        (None, Ok(0)) => Err(ColumnError::Zero),
        (None, Ok(number)) => Ok(number - 1),
        (None, Err(_)) => Err(ColumnError::NoHeader),
    }
}

fn without_end(record: &[u8], format: Format) -> &[u8] {
    match format {
        Format::Lines { .. } => &record[..record.len() - 1],
        _ => {
            let row = record.strip_suffix(b"\n").unwrap_or(record);
            row.strip_suffix(b"\r").unwrap_or(row)
        }
    }
}

/// Writes a field, in quotes where it needs them.
fn write_field(text: &[u8], framing: CsvFraming, out: &mut dyn Write) -> io::Result<()> {
    let special = |byte: &u8| matches!(byte, b'"' | b'\n' | b'\r') || *byte == framing.separator;
    if !text.iter().any(special) {
        return out.write_all(text);
    }
    out.write_all(b"\"")?;
    for (number, piece) in text.split(|byte| *byte == b'"').enumerate() {
        out.write_all(if number > 0 { b"\"\"" } else { b"" })?;
        out.write_all(piece)?;
    }
    out.write_all(b"\"")
}

/// Appends one of several parts.
fn push_part(part: &[u8], value: &mut Vec<u8>) {
    for (number, piece) in part.split(|byte| *byte == 0).enumerate() {
        value.extend_from_slice(if number > 0 { b"\0\xff" } else { b"" });
        value.extend_from_slice(piece);
    }
    value.extend_from_slice(b"\0\0");
}

/// The parts again.
fn split(value: &[u8]) -> Vec<Cow<'_, [u8]>> {
    let mut parts = vec![Vec::new()];
    let mut bytes = value.iter();
    while let Some(&byte) = bytes.next() {
        let part = parts.last_mut().expect("one at least");
        match byte {
            0 if bytes.next() == Some(&0) => parts.push(Vec::new()),
            byte => part.push(byte),
        }
    }
    parts.pop();
    parts.into_iter().map(Cow::Owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_and_keep_their_order() {
        let texts: Vec<Vec<u8>> = (0..4_u32.pow(4))
            .map(|n| {
                (0..n % 4).map(|at| [0, 1, 255, b'a'][(n >> (2 * at + 2)) as usize % 4]).collect()
            })
            .collect();
        let of = |a: &[u8], b: &[u8]| {
            let mut value = Vec::new();
            push_part(a, &mut value);
            push_part(b, &mut value);
            value
        };
        for pair in texts.windows(3) {
            let (one, other) = (of(&pair[0], &pair[1]), of(&pair[1], &pair[2]));
            assert_eq!(split(&one), [&pair[0][..], &pair[1]]);
            let order = (&pair[0], &pair[1]).cmp(&(&pair[1], &pair[2]));
            assert_eq!(one.cmp(&other), order, "{pair:?}");
        }
    }
}
