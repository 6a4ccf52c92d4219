//! The order of serialized keys: its fields, how a description is parsed, and how a field is found
//! and encoded.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use thiserror::Error;

use crate::key::{numeric, text};
use crate::record::ifile::vlong;

/// The most fields of a key.
const FIELDS_MAX: usize = 64;

/// How serialized keys compare. docs/formats.md says what its descriptions may contain, under
/// Hadoop's map outputs.
///
/// ```
/// use merganser_sort::key::WritableOrder;
///
/// let order: WritableOrder = "text,int:desc".parse()?;
/// let (a, b) = (b"\x02ab\x00\x00\x00\x01", b"\x02ab\x00\x00\x00\x02");
/// assert!(order.compare(a, b)?.is_gt());
/// assert!(order.compare(a, b"\x09ab").is_err(), "it has nine bytes of text before the number");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WritableOrder {
    pub(super) fields: Vec<WritableField>,
}

/// One field of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WritableField {
    pub(super) kind: FieldKind,
    pub(super) descending: bool,
}

/// How a field is serialized and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind {
    Text,
    Bytes,
    Int,
    Long,
    VInt,
    VLong,
    Null,
    Boolean,
    Float,
    Double,
    Fixed(u32),
    Raw,
}

/// The kinds whose name says all.
pub(super) const NAMES: [(&str, FieldKind); 11] = [
    ("text", FieldKind::Text),
    ("bytes", FieldKind::Bytes),
    ("int", FieldKind::Int),
    ("long", FieldKind::Long),
    ("vint", FieldKind::VInt),
    ("vlong", FieldKind::VLong),
    ("null", FieldKind::Null),
    ("boolean", FieldKind::Boolean),
    ("float", FieldKind::Float),
    ("double", FieldKind::Double),
    ("raw", FieldKind::Raw),
];

/// Why a description means no order. One sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("order '{description}': {reason}")]
pub struct WritableOrderError {
    description: String,
    reason: String,
}

/// Why bytes are no key of an order. Fields are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyFault {
    /// The key ends inside a field.
    #[error("a key of {bytes} bytes, which ends inside its field {field} ({kind})")]
    Short {
        /// The field.
        field: usize,
        /// The kind as it was given.
        kind: String,
        /// Bytes of the whole key.
        bytes: usize,
    },
    /// A length or an integer of variable length that its type can't have.
    #[error("a key whose field {field} ({kind}) has {value} where that can't be")]
    Value {
        /// The field.
        field: usize,
        /// The kind of the field.
        kind: String,
        /// The value that was found.
        value: i64,
    },
}

impl FromStr for WritableOrder {
    type Err = WritableOrderError;

    fn from_str(description: &str) -> Result<Self, WritableOrderError> {
        let fail = |reason: String| {
            let mut shown: String = description.chars().take(80).collect();
            if shown.len() < description.len() {
                shown.push_str("...");
            }
            WritableOrderError { description: shown, reason }
        };
        let mut fields: Vec<WritableField> = Vec::new();
        for word in description.split(',') {
            if fields.last().is_some_and(|field| field.kind == FieldKind::Raw) {
                return Err(fail(
                    "raw is all that is left of a key, so it is the last field".into(),
                ));
            }
            if fields.len() == FIELDS_MAX {
                return Err(fail(format!("a key has at most {FIELDS_MAX} fields")));
            }
            fields.push(WritableField::parse(word).map_err(&fail)?);
        }
        Ok(WritableOrder { fields })
    }
}

impl WritableField {
    fn parse(word: &str) -> Result<Self, String> {
        let (name, descending) = match word.strip_suffix(":desc") {
            Some(name) => (name, true),
            None => (word, false),
        };
        if let Some((_, kind)) = NAMES.iter().find(|(known, _)| *known == name) {
            return Ok(WritableField { kind: *kind, descending });
        }
        if let Some(bytes) = name.strip_prefix("fixed:") {
            let digits = bytes.bytes().all(|byte| byte.is_ascii_digit());
            let bytes = bytes.parse().ok().filter(|n| digits && (1..=i32::MAX as u32).contains(n));
            let bytes = bytes.ok_or("fixed:N takes the bytes of the field, 1 to 2147483647")?;
            return Ok(WritableField { kind: FieldKind::Fixed(bytes), descending });
        }
        let known: Vec<&str> = NAMES.iter().map(|(known, _)| *known).collect();
        let shown: String = word.chars().take(40).collect();
        Err(format!("'{shown}' is no field; fields are {} and fixed:N", known.join(", ")))
    }

    /// For kinds that are compared as bytes: the range of the bytes that are compared, in a key
    /// whose field begins at `at`. The field ends where the range ends. `None` when the key is too
    /// short.
    #[inline]
    pub(super) fn slice(self, key: &[u8], at: usize) -> Option<Result<Range<usize>, i64>> {
        let (start, len) = match self.kind {
            FieldKind::Text => {
                let (len, size) = vlong(&key[at..])?;
                (at + size, len)
            }
            FieldKind::Bytes => {
                let len = i32::from_be_bytes(*key[at..].first_chunk()?);
                (at + 4, i64::from(len))
            }
            FieldKind::Boolean => (at, 1),
            FieldKind::Fixed(bytes) => (at, i64::from(bytes)),
            FieldKind::Null => (at, 0),
            _ => (at, (key.len() - at) as i64),
        };
        if !(0..=i64::from(i32::MAX)).contains(&len) {
            return Some(Err(len));
        }
        let end = start + len as usize;
        (end <= key.len()).then_some(Ok(start..end))
    }

    /// A number in `key` from `at` on, as an integer that sorts as it does, and where it ends. `None`
    /// when the key is too short.
    #[inline]
    pub(super) fn word(self, key: &[u8], at: usize) -> Option<Result<(u64, usize), i64>> {
        const SIGN_32: u64 = 1 << 31;
        const SIGN_64: u64 = 1 << 63;
        let key = &key[at..];
        let four = || key.first_chunk().map(|four| u32::from_be_bytes(*four));
        let eight = || key.first_chunk().map(|eight| u64::from_be_bytes(*eight));
        let (word, size) = match self.kind {
            FieldKind::Int => (u64::from(four()?) ^ SIGN_32, 4),
            FieldKind::Long => (eight()? ^ SIGN_64, 8),
            FieldKind::Float => {
                let value = f32::from_bits(four()?);
                let bits =
                    if value.is_nan() { f32::NAN.to_bits() & !(1 << 31) } else { value.to_bits() };
                let sorted = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
                (u64::from(sorted), 4)
            }
            FieldKind::Double => {
                let value = f64::from_bits(eight()?);
                let bits =
                    if value.is_nan() { f64::NAN.to_bits() & !SIGN_64 } else { value.to_bits() };
                (if bits & SIGN_64 != 0 { !bits } else { bits | SIGN_64 }, 8)
            }
            FieldKind::VInt | FieldKind::VLong => {
                let (value, size) = vlong(key)?;
                if self.kind == FieldKind::VInt && i32::try_from(value).is_err() {
                    return Some(Err(value));
                }
                (value as u64 ^ SIGN_64, size)
            }
            _ => (0, 0),
        };
        Some(Ok((word, at + size)))
    }

    /// Whether it is a number, which [`WritableField::word`] reads, or bytes, which [`WritableField::slice`] finds.
    pub(super) fn is_word(self) -> bool {
        use FieldKind::{Double, Float, Int, Long, Null, VInt, VLong};
        matches!(self.kind, Int | Long | VInt | VLong | Null | Float | Double)
    }
}

impl WritableOrder {
    /// The only field, if there is one only.
    pub(super) fn only(&self) -> Option<WritableField> {
        match self.fields[..] {
            [field] => Some(field),
            _ => None,
        }
    }

    /// Appends bytes to `out` that sort as `key` does.
    pub(super) fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), KeyFault> {
        let mut at = 0;
        for (number, field) in self.fields.iter().enumerate() {
            let mark = out.len();
            let fault = |value| field.fault(number, key, value);
            if field.is_word() {
                let (word, end) =
                    field.word(key, at).ok_or(None).and_then(|r| r.map_err(Some)).map_err(fault)?;
                at = end;
                match field.kind {
                    FieldKind::Null => {}
                    FieldKind::Int | FieldKind::Float => {
                        out.extend_from_slice(&(word as u32).to_be_bytes());
                    }
                    _ => out.extend_from_slice(&word.to_be_bytes()),
                }
            } else {
                let range = field
                    .slice(key, at)
                    .ok_or(None)
                    .and_then(|r| r.map_err(Some))
                    .map_err(fault)?;
                at = range.end;
                match field.kind {
                    FieldKind::Boolean | FieldKind::Fixed(_) => out.extend_from_slice(&key[range]),
                    _ => text::encode(&key[range], out),
                }
            }
            if field.descending {
                numeric::complement(&mut out[mark..]);
            }
        }
        Ok(())
    }
}

impl WritableField {
    /// Why field `number` (from 0) of `key` can't be read: its `value`, or that it ends too early.
    #[cold]
    pub(super) fn fault(self, number: usize, key: &[u8], value: Option<i64>) -> KeyFault {
        let (field, kind) = (number + 1, self.kind.to_string());
        match value {
            Some(value) => KeyFault::Value { field, kind, value },
            None => KeyFault::Short { field, kind, bytes: key.len() },
        }
    }
}

impl fmt::Display for FieldKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let FieldKind::Fixed(bytes) = self {
            return write!(f, "fixed:{bytes}");
        }
        let (name, _) = NAMES.iter().find(|(_, kind)| kind == self).expect("all others are there");
        f.write_str(name)
    }
}

/// The description.
impl fmt::Display for WritableOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, field) in self.fields.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            let desc = if field.descending { ":desc" } else { "" };
            write!(f, "{comma}{}{desc}", field.kind)?;
        }
        Ok(())
    }
}
