//! What a guest hands over, checked: nothing here trusts a length, an offset or a size.
//!
//! ```text
//!   emit          keyed:    u32 key bytes │ u32 value bytes │ key │ value │ ...
//!                 ordered:  whole records, end to end
//!   emit_spans    u32 offset │ u32 bytes │ ...                    in the current chunk
//!                 keyed: a key with the number 1; ordered: records
//!   emit_values   u32 offset │ u32 bytes │ i64 value │ ...        keyed: a key with a number
//! ```
//!
//! All numbers are little-endian. A fault ends the guest, so records before it may already have been
//! handed on: its session has no result.

use std::ops::Range;

use merganser_map::ssdlet::{Combine, Emitter, SsdletOutput, Type};
use merganser_sort::record::Format;

/// The bytes of a span, and of a span with a value.
pub(crate) const SPAN_BYTES: usize = 8;
pub(crate) const VALUE_BYTES: usize = 16;

/// How answers are read: the output that the guest declared.
#[derive(Debug, Clone)]
pub enum AnswerForm {
    /// Keys with values.
    Keyed {
        /// The length of each key, if its type has one.
        key_bytes: Option<usize>,
        /// The length of each value, if its type has one.
        value_bytes: Option<usize>,
        /// Whether values are numbers that can be added.
        counts: bool,
    },
    /// Whole records of this format.
    Ordered(Format),
}

/// The length of each value of a type.
fn bytes_of(of: Type) -> Option<usize> {
    match of {
        Type::I64 | Type::F64 => Some(8),
        Type::Text | Type::Bytes | Type::Decimal => None,
    }
}

impl AnswerForm {
    /// For a guest that declares `output`.
    #[must_use]
    pub fn of_output(output: &SsdletOutput) -> Self {
        match *output {
            SsdletOutput::Keyed { key, value, combine } => AnswerForm::Keyed {
                key_bytes: bytes_of(key),
                value_bytes: bytes_of(value),
                counts: value == Type::I64 || combine == Combine::Count,
            },
            SsdletOutput::Ordered { format } => AnswerForm::Ordered(format),
        }
    }

    /// Hands on what the guest gave to `emit`.
    ///
    /// # Errors
    /// The fault and its place, for a sentence.
    pub fn records(&self, given: &[u8], out: &mut Emitter<'_>) -> Result<(), String> {
        let (key_bytes, value_bytes) = match self {
            AnswerForm::Keyed { key_bytes, value_bytes, .. } => (*key_bytes, *value_bytes),
            AnswerForm::Ordered(format) => {
                whole(format, given)?;
                out.records(given);
                return Ok(());
            }
        };
        let mut rest = given;
        while !rest.is_empty() {
            let at = given.len() - rest.len();
            let (key, value, after) = frame(rest).ok_or_else(|| {
                format!(
                    "the record at byte {at} of {} that it handed over is longer than these",
                    given.len()
                )
            })?;
            check_bytes("key", key_bytes, key.len())?;
            check_bytes("value", value_bytes, value.len())?;
            out.emit(key, value);
            rest = after;
        }
        Ok(())
    }

    /// Hands on what the guest gave to `emit_spans`: pairs of offset and length in `chunk`.
    ///
    /// # Errors
    /// As [`AnswerForm::records`].
    pub fn spans(&self, given: &[u8], chunk: &[u8], out: &mut Emitter<'_>) -> Result<(), String> {
        let spans = given.chunks_exact(SPAN_BYTES);
        match self {
            AnswerForm::Keyed { key_bytes, counts, .. } => {
                counting(*counts, "emit_spans")?;
                for pair in spans {
                    let key = place(chunk, pair)?;
                    check_bytes("key", *key_bytes, key.len())?;
                    out.add_span(chunk, key, 1);
                }
            }
            AnswerForm::Ordered(format) => {
                for pair in spans {
                    let records = &chunk[place(chunk, pair)?];
                    whole(format, records)?;
                    out.records(records);
                }
            }
        }
        Ok(())
    }

    /// Hands on what the guest gave to `emit_values`: offset and length in `chunk`, and a number.
    ///
    /// # Errors
    /// As [`AnswerForm::records`].
    pub fn values(&self, given: &[u8], chunk: &[u8], out: &mut Emitter<'_>) -> Result<(), String> {
        let AnswerForm::Keyed { key_bytes, counts, .. } = self else {
            return Err("it called emit_values, but its output is records in order".to_owned());
        };
        counting(*counts, "emit_values")?;
        for entry in given.chunks_exact(VALUE_BYTES) {
            let (pair, value) = entry.split_at(SPAN_BYTES);
            let key = place(chunk, pair)?;
            check_bytes("key", *key_bytes, key.len())?;
            out.add_span(chunk, key, i64::from_le_bytes(value.try_into().expect("8 bytes")));
        }
        Ok(())
    }
}

fn number(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes.try_into().expect("4 bytes")) as usize
}

/// The first record: key, value, and the bytes after it.
#[inline]
fn frame(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(8)?;
    let (key, rest) = rest.split_at_checked(number(&head[..4]))?;
    let (value, rest) = rest.split_at_checked(number(&head[4..]))?;
    Some((key, value, rest))
}

/// The place of a span, inside of `chunk`.
#[inline]
fn place(chunk: &[u8], pair: &[u8]) -> Result<Range<usize>, String> {
    let (offset, bytes) = (number(&pair[..4]), number(&pair[4..]));
    match offset.checked_add(bytes) {
        Some(end) if end <= chunk.len() => Ok(offset..end),
        _ => {
            let len = chunk.len();
            Err(format!("it handed over {bytes} bytes at {offset} of a chunk of {len} bytes"))
        }
    }
}

#[inline]
fn check_bytes(what: &str, want: Option<usize>, found: usize) -> Result<(), String> {
    match want {
        Some(want) if want != found => {
            Err(format!("it handed over a {what} of {found} bytes; its type has {want}"))
        }
        _ => Ok(()),
    }
}

fn counting(counts: bool, call: &str) -> Result<(), String> {
    if counts {
        return Ok(());
    }
    Err(format!("it called {call}, which gives numbers, but its values have another type"))
}

/// Whether `records` are whole records, each with its terminator.
fn whole(format: &Format, records: &[u8]) -> Result<(), String> {
    if format.are_whole(records) {
        return Ok(());
    }
    Err(format!("the {} bytes that it handed over do not end where a record ends", records.len()))
}

#[cfg(test)]
mod tests {
    use merganser_map::ssdlet::CollectedOutput;

    use super::*;

    fn keyed(key: Type, value: Type, combine: Combine) -> AnswerForm {
        AnswerForm::of_output(&SsdletOutput::Keyed { key, value, combine })
    }

    fn words() -> AnswerForm {
        keyed(Type::Text, Type::I64, Combine::Sum)
    }

    fn framed(records: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (key, value) in records {
            bytes.extend((key.len() as u32).to_le_bytes());
            bytes.extend((value.len() as u32).to_le_bytes());
            bytes.extend([*key, *value].concat());
        }
        bytes
    }

    fn pairs(spans: &[(u32, u32)]) -> Vec<u8> {
        spans.iter().flat_map(|(at, len)| [at.to_le_bytes(), len.to_le_bytes()].concat()).collect()
    }

    /// What `give` hands on, or its fault.
    fn found(
        give: impl FnOnce(&mut Emitter<'_>) -> Result<(), String>,
    ) -> Result<CollectedOutput, String> {
        let mut found = CollectedOutput::default();
        give(&mut Emitter::collecting(&mut found)).map(|()| found)
    }

    #[test]
    fn records_spans_and_values_are_handed_on() {
        let one = 1i64.to_le_bytes();
        let given = framed(&[(b"a", &one), (b"", &one), (b"a", &7i64.to_le_bytes())]);
        let records = found(|out| words().records(&given, out)).expect("good");
        assert_eq!(records.keyed[&b"a"[..]], [one, 7i64.to_le_bytes()]);
        assert_eq!(records.keyed[&b""[..]], [one]);

        let spans = pairs(&[(0, 2), (3, 2), (0, 0), (5, 0)]);
        let spans = found(|out| words().spans(&spans, b"aa bb", out)).expect("good");
        let keys: Vec<_> = spans.keyed.keys().map(|key| &key[..]).collect();
        assert_eq!(keys, [&b""[..], b"aa", b"bb"]);
        assert_eq!(spans.keyed[&b""[..]].len(), 2);

        let values = [pairs(&[(3, 2)]), (-5i64).to_le_bytes().to_vec()].concat();
        let values = found(|out| words().values(&values, b"aa bb", out)).expect("good");
        assert_eq!(values.keyed[&b"bb"[..]], [(-5i64).to_le_bytes()]);

        let lines = AnswerForm::Ordered(Format::Lines { delimiter: b'\n' });
        let spans = pairs(&[(2, 2), (0, 2)]);
        let spans = found(|out| lines.spans(&spans, b"a\nb\n", out)).expect("good");
        assert_eq!(spans.ordered, b"b\na\n");
    }

    #[test]
    fn lies_about_places_and_sizes_are_faults() {
        let chunk = b"aa bb";
        for (at, len) in
            [(0, 6), (5, 1), (6, 0), (u32::MAX, 1), (1, u32::MAX), (u32::MAX, u32::MAX)]
        {
            let told =
                found(|out| words().spans(&pairs(&[(at, len)]), chunk, out)).expect_err("a lie");
            assert_eq!(told, format!("it handed over {len} bytes at {at} of a chunk of 5 bytes"));
        }
        let good = framed(&[(b"key", &1i64.to_le_bytes())]);
        for cut in 1..good.len() {
            let told = found(|out| words().records(&good[..cut], out)).expect_err("cut");
            assert!(told.contains("longer than these"), "{told}");
        }
        for lengths in [[u32::MAX, 0], [0, u32::MAX], [u32::MAX, u32::MAX], [12, 0]] {
            let given: Vec<u8> =
                lengths.iter().flat_map(|n| n.to_le_bytes()).chain(*b"0123456789a").collect();
            assert!(found(|out| words().records(&given, out)).is_err(), "{lengths:?}");
        }
    }

    #[test]
    fn types_have_their_lengths() {
        let short = framed(&[(b"a", b"1")]);
        let told = found(|out| words().records(&short, out)).expect_err("short");
        assert_eq!(told, "it handed over a value of 1 bytes; its type has 8");
        let numbers = keyed(Type::I64, Type::Text, Combine::First);
        let told = found(|out| numbers.records(&short, out)).expect_err("short");
        assert_eq!(told, "it handed over a key of 1 bytes; its type has 8");
        let told =
            found(|out| numbers.spans(&pairs(&[(0, 8)]), b"12345678", out)).expect_err("text");
        assert!(told.contains("values have another type"), "{told}");
        let counted = keyed(Type::I64, Type::Text, Combine::Count);
        assert!(found(|out| counted.spans(&pairs(&[(0, 8)]), b"12345678", out)).is_ok());
        let told = found(|out| counted.spans(&pairs(&[(0, 7)]), b"12345678", out)).expect_err("7");
        assert_eq!(told, "it handed over a key of 7 bytes; its type has 8");
    }

    #[test]
    fn records_in_order_are_whole() {
        let lines = Format::Lines { delimiter: b'\n' };
        let csv = Format::csv_rows(b',', false);
        let keyed = framed(&[(b"k", b"v"), (b"", b"")]);
        for (format, given, good) in [
            (lines, &b"a\nb\n"[..], true),
            (lines, b"", true),
            (lines, b"a\nb", false),
            (Format::Fixed { bytes: 3 }, b"abcdef", true),
            (Format::Fixed { bytes: 3 }, b"abcd", false),
            (csv, b"1,\"a\nb\"\n", true),
            (csv, b"1,\"a\n", false),
            (csv, b"1", false),
            (Format::Keyed, &keyed, true),
            (Format::Keyed, &keyed[..keyed.len() - 1], false),
            (Format::Keyed, b"\xff\xff\xff\xff\xff\xff\xff\xff", false),
        ] {
            let answers = AnswerForm::Ordered(format);
            let told = found(|out| answers.records(given, out));
            assert_eq!(told.is_ok(), good, "{format:?} {given:?}");
            if good {
                assert_eq!(told.expect("good").ordered, given);
            }
        }
        let told = found(|out| AnswerForm::Ordered(lines).values(&[0; 16], b"", out))
            .expect_err("a value");
        assert!(told.contains("records in order"), "{told}");
    }
}
