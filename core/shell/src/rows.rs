//! The rows of a keyed result as text, or as length-prefixed records.
//!
//! ```text
//!   tsv     key TAB value        \t, \n, \r and \\ stand for these bytes in keys and values
//!   csv     key,value            RFC 4180: quoted where a field has a comma, a quote or a line end
//!   jsonl   {"key":...,"value":...}    text that is not UTF-8: {"hex":"..."}
//!   keyed   key length, value length (u32, little-endian), key, value as the SSDlet made them
//! ```
//!
//! Numbers are decimal, and read back as the same number. Bytes that are no text are hexadecimal.

use std::io::{self, Write};

use merganser_sort::key::decimal::OwnedDecimal;
use merganser_sort::reduced::{f64_of_key, i64_of_key};
use merganser_sort::rows::Type;

use crate::args::RowForm;

/// Rows are handed on in pieces of this size: standard output takes each in a system call.
const PIECE_BYTES: usize = 64 << 10;

/// The types of a row's key and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowTypes {
    /// Of the key.
    pub key: Type,
    /// Of the value.
    pub value: Type,
}

/// Writes rows in one form.
pub struct RowWriter<W> {
    form: RowForm,
    types: RowTypes,
    piece: Vec<u8>,
    out: W,
}

impl<W: Write> RowWriter<W> {
    /// Writes to `out`.
    pub fn new(form: RowForm, types: RowTypes, out: W) -> Self {
        RowWriter { form, types, piece: Vec::with_capacity(PIECE_BYTES), out }
    }

    /// Writes a row.
    ///
    /// # Errors
    /// The output's own; a key or value that is too long for the form.
    pub fn row(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let cells =
            [ShownCell::of_key(self.types.key, key), ShownCell::of_value(self.types.value, value)];
        let out = &mut self.piece;
        match (self.form, cells) {
            (RowForm::Tsv, [key, value]) => {
                key.tsv(out);
                out.push(b'\t');
                value.tsv(out);
                out.push(b'\n');
            }
            (RowForm::Csv, [key, value]) => {
                key.csv(out);
                out.push(b',');
                value.csv(out);
                out.push(b'\n');
            }
            (RowForm::Jsonl, [key, value]) => {
                out.extend_from_slice(b"{\"key\":");
                key.json(out);
                out.extend_from_slice(b",\"value\":");
                value.json(out);
                out.extend_from_slice(b"}\n");
            }
            (RowForm::Keyed, _) => keyed(key, value, out)?,
        }
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Hands on what is written. Rows that are not flushed are lost.
    ///
    /// # Errors
    /// The output's own.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.piece)?;
        self.piece.clear();
        Ok(())
    }
}

/// Appends a length-prefixed record.
///
/// # Errors
/// When a part is longer than 32 bits can say.
pub fn keyed(key: &[u8], value: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let len = |part: &[u8]| {
        u32::try_from(part.len()).map_err(|_| {
            io::Error::other("a key or value of 4 GiB or more has no length-prefixed form")
        })
    };
    out.extend_from_slice(&len(key)?.to_le_bytes());
    out.extend_from_slice(&len(value)?.to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value);
    Ok(())
}

/// A key or a value, as it is shown.
enum ShownCell<'a> {
    Text(&'a [u8]),
    /// In hexadecimal digits. A number without eight bytes is shown so, too; no checked result has one.
    Bytes(&'a [u8]),
    Whole(i64),
    Float(f64),
    Decimal(OwnedDecimal),
}

impl<'a> ShownCell<'a> {
    /// Keys that are numbers have their bytes in the order of the numbers.
    fn of_key(of: Type, bytes: &'a [u8]) -> Self {
        match of {
            Type::Text => ShownCell::Text(bytes),
            Type::Bytes => ShownCell::Bytes(bytes),
            Type::I64 => i64_of_key(bytes).map_or(ShownCell::Bytes(bytes), ShownCell::Whole),
            Type::F64 => f64_of_key(bytes).map_or(ShownCell::Bytes(bytes), ShownCell::Float),
            Type::Decimal => {
                OwnedDecimal::of_key(bytes).map_or(ShownCell::Bytes(bytes), ShownCell::Decimal)
            }
        }
    }

    fn of_value(of: Type, bytes: &'a [u8]) -> Self {
        match (of, bytes.try_into()) {
            (Type::Text, _) => ShownCell::Text(bytes),
            (Type::I64, Ok(eight)) => ShownCell::Whole(i64::from_le_bytes(eight)),
            (Type::F64, Ok(eight)) => ShownCell::Float(f64::from_le_bytes(eight)),
            (Type::Bytes | Type::I64 | Type::F64 | Type::Decimal, _) => ShownCell::Bytes(bytes),
        }
    }

    fn tsv(&self, out: &mut Vec<u8>) {
        let &ShownCell::Text(mut rest) = self else { return self.plain(out) };
        let special = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b'\\');
        while let Some(at) = rest.iter().position(special) {
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(match rest[at] {
                b'\t' => b"\\t",
                b'\n' => b"\\n",
                b'\r' => b"\\r",
                _ => b"\\\\",
            });
            rest = &rest[at + 1..];
        }
        out.extend_from_slice(rest);
    }

    fn csv(&self, out: &mut Vec<u8>) {
        let &ShownCell::Text(text) = self else { return self.plain(out) };
        let needs_quotes = |byte: &u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
        if !text.iter().any(needs_quotes) {
            out.extend_from_slice(text);
            return;
        }
        out.push(b'"');
        for byte in text {
            if *byte == b'"' {
                out.push(b'"');
            }
            out.push(*byte);
        }
        out.push(b'"');
    }

    /// JSON has no text that is not UTF-8, and no number that is infinite or none.
    fn json(&self, out: &mut Vec<u8>) {
        let between = |before: &[u8], after: &[u8], out: &mut Vec<u8>| {
            out.extend_from_slice(before);
            self.plain(out);
            out.extend_from_slice(after);
        };
        match self {
            ShownCell::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => serde_json::to_writer(out, text).expect("a string, into memory"),
                Err(_) => {
                    out.extend_from_slice(b"{\"hex\":\"");
                    hex(text, out);
                    out.extend_from_slice(b"\"}");
                }
            },
            ShownCell::Float(number) if number.is_finite() => self.plain(out),
            ShownCell::Decimal(number) if !number.get().is_infinite() => self.plain(out),
            ShownCell::Whole(_) => self.plain(out),
            ShownCell::Float(_) | ShownCell::Decimal(_) | ShownCell::Bytes(_) => {
                between(b"\"", b"\"", out);
            }
        }
    }

    /// As it is, where it needs no quotes.
    fn plain(&self, out: &mut Vec<u8>) {
        let number = match self {
            ShownCell::Text(bytes) => return out.extend_from_slice(bytes),
            ShownCell::Bytes(bytes) => return hex(bytes, out),
            ShownCell::Whole(number) => number.to_string(),
            ShownCell::Float(number) => shortest(*number),
            ShownCell::Decimal(number) => number.get().to_string(),
        };
        out.extend_from_slice(number.as_bytes());
    }
}

/// The shortest text that reads back as the same number.
fn shortest(number: f64) -> String {
    let magnitude = number.abs();
    if number != 0.0 && magnitude.is_finite() && !(1e-5..1e17).contains(&magnitude) {
        return format!("{number:e}");
    }
    format!("{number}")
}

fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

#[cfg(test)]
mod tests {
    use merganser_sort::reduced::{key_of_f64, key_of_i64};

    use super::*;

    fn rows(form: RowForm, types: (Type, Type), rows: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = RowWriter::new(form, RowTypes { key: types.0, value: types.1 }, &mut out);
        for (key, value) in rows {
            writer.row(key, value).expect("into memory");
        }
        writer.flush().expect("into memory");
        out
    }

    fn text(form: RowForm, types: (Type, Type), row: (&[u8], &[u8])) -> String {
        String::from_utf8(rows(form, types, &[row])).expect("UTF-8")
    }

    const COUNTS: (Type, Type) = (Type::Text, Type::I64);

    #[test]
    fn tsv_keeps_a_row_on_one_line_and_two_fields() {
        let minus = (-7i64).to_le_bytes();
        assert_eq!(text(RowForm::Tsv, COUNTS, (b"word", &minus)), "word\t-7\n");
        let odd = b"a\tb\nc\\d\re";
        assert_eq!(text(RowForm::Tsv, COUNTS, (odd, &minus)), "a\\tb\\nc\\\\d\\re\t-7\n");
        assert_eq!(rows(RowForm::Tsv, COUNTS, &[(b"\xff", &minus)]), b"\xff\t-7\n");
        let both = (Type::Text, Type::Text);
        assert_eq!(text(RowForm::Tsv, both, (b"", b"\t")), "\t\\t\n");
    }

    #[test]
    fn csv_quotes_what_a_reader_would_split() {
        let one = 1i64.to_le_bytes();
        assert_eq!(text(RowForm::Csv, COUNTS, (b"plain \t\\", &one)), "plain \t\\,1\n");
        assert_eq!(text(RowForm::Csv, COUNTS, (b"a,\"b\"\n", &one)), "\"a,\"\"b\"\"\n\",1\n");
    }

    #[test]
    fn jsonl_is_read_back_whole() {
        let one = 1i64.to_le_bytes();
        for key in ["", "plain", "\"\\\n\t\u{0}\u{7f}", "Größe", "\u{2028}"] {
            let line = text(RowForm::Jsonl, COUNTS, (key.as_bytes(), &one));
            assert_eq!(line.matches('\n').count(), 1);
            let read: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            assert_eq!(read, serde_json::json!({ "key": key, "value": 1 }));
        }
        let line = text(RowForm::Jsonl, COUNTS, (b"a\xff", &i64::MIN.to_le_bytes()));
        assert_eq!(line, "{\"key\":{\"hex\":\"61ff\"},\"value\":-9223372036854775808}\n");
        let floats = (Type::Bytes, Type::F64);
        let nan = f64::NAN.to_le_bytes();
        assert_eq!(
            text(RowForm::Jsonl, floats, (b"\0a", &nan)),
            "{\"key\":\"0061\",\"value\":\"NaN\"}\n"
        );
    }

    #[test]
    fn floats_read_back_as_the_same_number() {
        for number in [0.0, -0.0, 0.1, 1.0, 1e300, 5e-324, -1.5e17, f64::MAX, f64::INFINITY, 1e16] {
            let shown = text(RowForm::Tsv, (Type::Text, Type::F64), (b"k", &number.to_le_bytes()));
            let shown = shown.trim_end().strip_prefix("k\t").expect("a row");
            assert!(shown.len() < 25, "{shown}");
            let read: f64 = shown.parse().expect("a number");
            assert_eq!(read.to_bits(), number.to_bits(), "{shown}");
        }
    }

    #[test]
    fn keys_that_are_numbers_are_shown_as_numbers() {
        let types = (Type::I64, Type::I64);
        let key = key_of_i64(-5);
        assert_eq!(text(RowForm::Tsv, types, (&key, &7i64.to_le_bytes())), "-5\t7\n");
        let types = (Type::F64, Type::Bytes);
        let key = key_of_f64(-0.25);
        assert_eq!(
            text(RowForm::Jsonl, types, (&key, b"\x01")),
            "{\"key\":-0.25,\"value\":\"01\"}\n"
        );
        assert_eq!(text(RowForm::Csv, types, (b"odd", b"")), "6f6464,\n");
    }

    #[test]
    fn keyed_rows_are_the_bytes_themselves() {
        let one = 1i64.to_le_bytes();
        let found = rows(RowForm::Keyed, COUNTS, &[(b"ab", &one), (b"", b"")]);
        assert_eq!(found, b"\x02\0\0\0\x08\0\0\0ab\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    }

    #[test]
    fn many_rows_leave_in_large_pieces() {
        struct Pieces(Vec<usize>);
        impl Write for Pieces {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.push(bytes.len());
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let types = RowTypes { key: Type::Text, value: Type::I64 };
        let mut writer = RowWriter::new(RowForm::Tsv, types, Pieces(Vec::new()));
        for number in 0..20_000i64 {
            writer.row(b"some key", &number.to_le_bytes()).expect("written");
        }
        writer.flush().expect("written");
        assert!(writer.out.0.len() < 10, "{:?}", writer.out.0);
    }
}
