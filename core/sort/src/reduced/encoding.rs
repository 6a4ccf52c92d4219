//! Rows as the records of a spill, and back.
//!
//! | combine | key of the record | value of the record |
//! |---|---|---|
//! | sum, min, max, count | the key | the value |
//! | first | the key | the place where it was handed out (20 bytes), the value |
//! | none | the key, escaped, two zero bytes, the value | nothing |
//!
//! With `none`, values of one key are in byte order whatever threads and spills do, so they are part of
//! the key that is sorted. A zero byte of the key becomes `00 ff`, and `00 00` ends it: so no escaped key is
//! the beginning of another one, and their order is that of the keys.

use crate::rows::{Combine, Type};

/// Bytes of the place before a value.
pub const PLACE_BYTES: usize = 20;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Key and value as they are.
    Plain,
    /// Before the value is the place that it comes from, which its reader drops.
    Placed,
    /// Both are in the key of the record.
    Joined,
}

/// Bytes before the key of a record: its length, and that of the value.
const LENGTHS: usize = 8;

impl Encoding {
    /// That of rows whose keys are not unique yet.
    pub fn of_unreduced(combine: Combine) -> Self {
        match combine {
            Combine::First => Encoding::Placed,
            Combine::None => Encoding::Joined,
            _ => Encoding::Plain,
        }
    }

    /// How the values of these records are combined, and their type. The least place is the first one.
    pub fn combined_as(self, combine: Combine, of: Type) -> (Combine, Type) {
        match self {
            Encoding::Placed => (Combine::Min, Type::Bytes),
            Encoding::Plain | Encoding::Joined => (combine, combine.result_type(of)),
        }
    }

    /// Bytes of the place before a value.
    pub fn place_bytes(self) -> usize {
        if self == Encoding::Placed { PLACE_BYTES } else { 0 }
    }

    /// Bytes of the record of a row; `None` when it has a length that no record has.
    pub fn record_bytes(self, key: &[u8], value: &[u8]) -> Option<usize> {
        let (key, value) = self.lengths(key, value);
        u32::try_from(key).ok()?;
        u32::try_from(value).ok()?;
        Some(LENGTHS + key + value)
    }

    fn lengths(self, key: &[u8], value: &[u8]) -> (usize, usize) {
        match self {
            Encoding::Plain | Encoding::Placed => (key.len(), value.len()),
            Encoding::Joined => {
                (key.len() + memchr::memchr_iter(0, key).count() + 2 + value.len(), 0)
            }
        }
    }

    /// Appends the record of a row. A value that is placed has its place in front already.
    pub fn push(self, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let (key_len, value_len) = self.lengths(key, value);
        out.extend_from_slice(&(key_len as u32).to_le_bytes());
        out.extend_from_slice(&(value_len as u32).to_le_bytes());
        if self == Encoding::Joined {
            push_escaped(key, out);
        } else {
            out.extend_from_slice(key);
        }
        out.extend_from_slice(value);
    }

    /// The key of the first record that a row of `key` or a greater one may have.
    pub fn first_key(self, key: &[u8]) -> Vec<u8> {
        let mut first = Vec::new();
        if self == Encoding::Joined {
            push_escaped(key, &mut first);
        } else {
            first.extend_from_slice(key);
        }
        first
    }

    /// Key and value of a record; `None` when it is not one of this encoding. `unescaped` is for a key that
    /// is not there as it is.
    pub fn split<'a>(
        self,
        record: &'a [u8],
        unescaped: &'a mut Vec<u8>,
    ) -> Option<(&'a [u8], &'a [u8])> {
        let (lengths, rest) = record.split_at_checked(LENGTHS)?;
        let key_len = u32::from_le_bytes(*lengths.first_chunk()?) as usize;
        let (key, value) = rest.split_at_checked(key_len)?;
        match self {
            Encoding::Plain => Some((key, value)),
            Encoding::Placed => (value.len() >= PLACE_BYTES).then_some((key, value)),
            Encoding::Joined => {
                let zero = memchr::memchr(0, key)?;
                if key.get(zero + 1) == Some(&0) {
                    return Some((&key[..zero], &key[zero + 2..]));
                }
                unescaped.clear();
                let mut rest = key;
                loop {
                    let zero = memchr::memchr(0, rest)?;
                    unescaped.extend_from_slice(&rest[..zero]);
                    let mark = *rest.get(zero + 1)?;
                    rest = &rest[zero + 2..];
                    match mark {
                        0 => return Some((unescaped, rest)),
                        0xff => unescaped.push(0),
                        _ => return None,
                    }
                }
            }
        }
    }
}

/// Appends `key` without the zero bytes that end it, and these.
fn push_escaped(key: &[u8], out: &mut Vec<u8>) {
    let mut rest = key;
    while let Some(zero) = memchr::memchr(0, rest) {
        out.extend_from_slice(&rest[..=zero]);
        out.push(0xff);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_records_are_in_the_order_of_keys_and_then_values() {
        let parts: Vec<Vec<u8>> = {
            let bytes = [0, 1, 0xfe, 0xff];
            let mut all = vec![vec![]];
            for a in bytes {
                all.push(vec![a]);
                for b in bytes {
                    all.push(vec![a, b]);
                    all.extend(bytes.map(|c| vec![a, b, c]));
                }
            }
            all
        };
        let joined = |key: &[u8], value: &[u8]| {
            let mut record = Vec::new();
            Encoding::Joined.push(key, value, &mut record);
            assert_eq!(Encoding::Joined.record_bytes(key, value), Some(record.len()));
            let mut unescaped = Vec::new();
            let split = Encoding::Joined.split(&record, &mut unescaped).expect("a record");
            assert_eq!(split, (key, value));
            record[LENGTHS..].to_vec()
        };
        let few = &parts[..30];
        for key in &parts {
            for other in &parts {
                for (value, next) in [(&few[3], &few[9]), (&few[0], &few[20])] {
                    let expected = (key, value).cmp(&(other, next));
                    assert_eq!(joined(key, value).cmp(&joined(other, next)), expected);
                }
                let first = Encoding::Joined.first_key(other);
                assert_eq!(joined(key, b"") < first, key < other);
            }
        }
    }

    #[test]
    fn other_bytes_are_no_joined_record() {
        for key in [&b"a"[..], b"a\0", b"a\0\x01", b"\0\xff"] {
            let mut record = Vec::new();
            Encoding::Plain.push(key, b"", &mut record);
            assert_eq!(Encoding::Joined.split(&record, &mut Vec::new()), None);
        }
        assert_eq!(Encoding::Plain.split(&[1, 0, 0, 0, 0, 0, 0, 0], &mut Vec::new()), None);
        assert_eq!(Encoding::Plain.split(&[1, 0], &mut Vec::new()), None);
    }
}
