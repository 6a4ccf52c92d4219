//! Keys as a user types them: as they stand in a record, with escapes for bytes that are hard to type.

use std::ops::Range;

use merganser_storage::Storage;
use merganser_storage::numbers::u64_of;

use crate::key::{OrderSpec, column_of};
use crate::record::{KeySyntax, SequenceKind};
use crate::view::View;

/// Why no place of a view belongs to a typed key.
#[derive(Debug, thiserror::Error)]
pub enum TypedKeyError {
    /// This view has no such key, or none that can be typed; the text says why.
    #[error("{0}")]
    Refused(String),
    /// The view can't be read.
    #[error(transparent)]
    Engine(#[from] crate::Error),
}

/// The bytes of a typed key: `\xHH`, `\t`, `\n`, `\r`, `\0` and `\\` stand for one each. `None` for any
/// other use of `\`.
#[must_use]
pub fn unescape_key(typed: &[u8]) -> Option<Vec<u8>> {
    let mut key = Vec::with_capacity(typed.len());
    let mut rest = typed.iter();
    while let Some(byte) = rest.next() {
        if *byte != b'\\' {
            key.push(*byte);
            continue;
        }
        let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
        key.push(match rest.next()? {
            b'\\' => b'\\',
            b't' => b'\t',
            b'n' => b'\n',
            b'r' => b'\r',
            b'0' => 0,
            b'x' => u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?,
            _ => return None,
        });
    }
    Some(key)
}

impl View {
    /// Where the records are whose first keys are at least `from` and below `to`, as these stand in a record; without one,
    /// from the first record or up to the last. [`View::stream`] reads the range.
    ///
    /// # Errors
    /// As [`View::typed_key`] and [`View::offset_of_key`].
    pub fn range_of_keys(
        &self,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
    ) -> Result<Range<u64>, TypedKeyError> {
        let place = |key: &[u8]| -> Result<u64, TypedKeyError> {
            Ok(self.offset_of_key(&self.typed_key(key)?)?)
        };
        let start = from.map_or(Ok(u64_of(self.manifest().preamble.len())), place)?;
        Ok(start..to.map_or(Ok(self.size()), place)?.max(start))
    }

    /// The key for [`View::offset_of_key`] that `key` means, the bytes of a view's first key as they stand in a
    /// record. The order of such keys is that of the view.
    ///
    /// # Errors
    /// When the view's first key can't be typed.
    pub fn typed_key(&self, key: &[u8]) -> Result<Vec<u8>, TypedKeyError> {
        let spec = &self.manifest().order;
        // Only the first key takes part, so that whatever follows it in a record is not below.
        let first = OrderSpec {
            keys: spec.keys.iter().take(1).cloned().collect(),
            stable: true,
            ..spec.clone()
        };
        let header = Some(&*self.manifest().preamble).filter(|header| !header.is_empty());
        let order = first.compile(header).map_err(crate::Error::from)?;
        if first.keys.first().is_some_and(|key| key.starts_with("length")) {
            let letters = std::str::from_utf8(key).ok().and_then(|key| key.parse().ok());
            let key = letters.and_then(|letters| order.encode_first_length(letters));
            let why = || TypedKeyError::Refused("a length is a number".to_owned());
            return key.ok_or_else(why);
        }
        let record = record_with_key(&first, header, key).map_err(TypedKeyError::Refused)?;
        let mut key = Vec::new();
        order.encode(&record, &mut key);
        Ok(key)
    }
}

/// A record whose first key is `typed`; the rest of the record is arbitrary.
fn record_with_key(
    spec: &OrderSpec,
    header: Option<&[u8]>,
    typed: &[u8],
) -> Result<Vec<u8>, String> {
    let first = spec.keys.first().map(String::as_str);
    match spec.format.key_syntax() {
        KeySyntax::Lines => {
            let number = first.map_or(Ok(1), field_of_line)?;
            let separator = spec.separator.unwrap_or(b' ');
            let mut line = Vec::new();
            for _ in 1..number {
                line.extend_from_slice(&[b'x', separator]);
            }
            if spec.separator.is_none()
                && number > 1
                && typed.first().is_some_and(u8::is_ascii_whitespace)
            {
                // The blanks before a field are a part of it, and typed already.
                line.pop();
            }
            line.extend_from_slice(typed);
            line.push(spec.format.terminator().unwrap_or(b'\n'));
            Ok(line)
        }
        KeySyntax::Columns => {
            let Some(first) = first else {
                return Ok([typed, b"\n"].concat());
            };
            let column = column_of(first, spec.format, header)?;
            let separator = spec.format.csv().map_or(b',', |csv| csv.separator);
            let mut row = vec![separator; column];
            row.push(b'"');
            for byte in typed {
                row.extend_from_slice(if *byte == b'"' {
                    b"\"\""
                } else {
                    std::slice::from_ref(byte)
                });
            }
            row.extend_from_slice(b"\"\n");
            Ok(row)
        }
        KeySyntax::Fields { bytes } => {
            let offset: usize = match first {
                None => 0,
                Some(first) => {
                    first.split(':').next().and_then(|offset| offset.parse().ok()).unwrap_or(0)
                }
            };
            let mut record = vec![0; bytes];
            let room = &mut record[offset..];
            if typed.len() > room.len() {
                return Err("the key is longer than the record".to_owned());
            }
            room[..typed.len()].copy_from_slice(typed);
            Ok(record)
        }
        KeySyntax::Prefixed => {
            let len = u32::try_from(typed.len()).map_err(|_| "the key is too long".to_owned())?;
            Ok([&len.to_le_bytes(), &[0; 4][..], typed].concat())
        }
        KeySyntax::Sequences(kind) => Ok(sequence_with_key(kind, first, typed)),
    }
}

/// A sequence whose first key other than its length is `typed`; without keys, it begins with `typed`.
fn sequence_with_key(kind: SequenceKind, first: Option<&str>, typed: &[u8]) -> Vec<u8> {
    let mark = match kind {
        SequenceKind::Fasta => b">",
        SequenceKind::Fastq => b"@",
    };
    match first {
        None => [typed, b"\n"].concat(),
        Some(key) if key.starts_with("sequence") => [mark, &b"\n"[..], typed, b"\n"].concat(),
        Some(_) => [mark, typed, b"\n"].concat(),
    }
}

/// The field at which a key of lines begins.
fn field_of_line(key: &str) -> Result<usize, String> {
    let start = key.split(',').next().unwrap_or_default();
    let digits = start.find(|c: char| !c.is_ascii_digit()).unwrap_or(start.len());
    let (number, rest) = start.split_at(digits);
    let inside = rest.strip_prefix('.').is_some_and(|rest| {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse() != Ok(1)
    });
    if inside {
        return Err(format!("the key {key} of this view begins inside a field"));
    }
    number.parse().map_err(|_| format!("the key {key} of this view has no field"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_stand_for_bytes() {
        let key = unescape_key(br"a\\\x41\t\n\r\0").expect("all are known");
        assert_eq!(key, b"a\\A\t\n\r\0");
        for typed in [r"\", r"\q", r"\x", r"\x1", r"\xg0"] {
            assert_eq!(unescape_key(typed.as_bytes()), None, "{typed}");
        }
    }
}
