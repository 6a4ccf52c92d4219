//! How a merge reads serialized keys: in place, as a number, or encoded next to the record.

use std::cmp::Ordering;
use std::ops::Range;

use super::order::{FieldKind, KeyFault, WritableField, WritableOrder};
use crate::prefix::Word;
use crate::prefix::prefix_at;
use crate::record::ifile::vlong;

/// Reads and compares keys without knowing which kind they are.
pub(crate) trait KeyReader: Copy {
    /// The part of a key that is kept next to its record.
    type Kept: Default;
    /// The first bytes of a key, or all of it.
    type Word: Word;

    /// Reads the key at `key` in `bytes`, which may continue behind it. The word ascends in key
    /// order.
    fn load(
        self,
        bytes: &[u8],
        key: Range<usize>,
        kept: &mut Self::Kept,
    ) -> Result<Self::Word, KeyFault>;

    /// Compares two loaded keys whose words are equal. The bytes are those that they were loaded
    /// from.
    fn compare(self, a: (&[u8], &Self::Kept), b: (&[u8], &Self::Kept)) -> Ordering;
}

/// Compares two keys from scratch.
pub(super) fn compare<R: KeyReader>(reader: R, a: &[u8], b: &[u8]) -> Result<Ordering, KeyFault> {
    let (mut kept_a, mut kept_b) = (R::Kept::default(), R::Kept::default());
    let word_a = reader.load(a, 0..a.len(), &mut kept_a)?;
    let word_b = reader.load(b, 0..b.len(), &mut kept_b)?;
    Ok(word_a.cmp(&word_b).then_with(|| reader.compare((a, &kept_a), (b, &kept_b))))
}

/// A key of one field that is compared as bytes. Keeps the range of the bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SliceReader {
    field: WritableField,
}

impl SliceReader {
    pub(super) fn new(field: WritableField) -> Self {
        SliceReader { field }
    }

    #[inline]
    fn find(self, key: &[u8]) -> Result<Range<usize>, KeyFault> {
        // Hadoop's comparators of one field skip its length, whatever it says, and compare the rest.
        let found = match self.field.kind {
            FieldKind::Text => vlong(key).map(|(_, size)| size..key.len()),
            FieldKind::Bytes => (key.len() >= 4).then_some(4..key.len()),
            FieldKind::Boolean => (!key.is_empty()).then_some(0..key.len()),
            FieldKind::Fixed(bytes) => (key.len() >= bytes as usize).then_some(0..bytes as usize),
            _ => Some(0..key.len()),
        };
        found.ok_or_else(|| self.field.fault(0, key, None))
    }
}

impl KeyReader for SliceReader {
    type Kept = Range<u32>;
    type Word = u128;

    #[inline]
    fn load(
        self,
        bytes: &[u8],
        key: Range<usize>,
        kept: &mut Range<u32>,
    ) -> Result<u128, KeyFault> {
        let found = self.find(&bytes[key.clone()])?;
        let (start, end) = (key.start + found.start, key.start + found.end);
        *kept = start as u32..end as u32;
        let word = match bytes[start..].first_chunk() {
            Some(chunk) if end > start => {
                let unused = 8 * (16 - (end - start).min(16));
                u128::from_be_bytes(*chunk) & u128::MAX << unused
            }
            _ => wide(&bytes[start..end]),
        };
        Ok(if self.field.descending { !word } else { word })
    }

    #[inline]
    fn compare(self, a: (&[u8], &Range<u32>), b: (&[u8], &Range<u32>)) -> Ordering {
        let x = &a.0[a.1.start as usize..a.1.end as usize];
        let y = &b.0[b.1.start as usize..b.1.end as usize];
        if self.field.descending { y.cmp(x) } else { x.cmp(y) }
    }
}

/// A key of one number, which its word holds whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WordReader {
    field: WritableField,
}

impl WordReader {
    pub(super) fn new(field: WritableField) -> Self {
        WordReader { field }
    }
}

impl KeyReader for WordReader {
    type Kept = ();
    type Word = u64;

    #[inline]
    fn load(self, bytes: &[u8], key: Range<usize>, _kept: &mut ()) -> Result<u64, KeyFault> {
        let key = &bytes[key];
        match self.field.word(key, 0) {
            Some(Ok((word, _))) => Ok(if self.field.descending { !word } else { word }),
            Some(Err(value)) => Err(self.field.fault(0, key, Some(value))),
            None => Err(self.field.fault(0, key, None)),
        }
    }

    #[inline]
    fn compare(self, _a: (&[u8], &()), _b: (&[u8], &())) -> Ordering {
        Ordering::Equal
    }
}

/// A key of several fields, encoded into one string of bytes. Keeps that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EncodedReader<'a>(pub(crate) &'a WritableOrder);

impl KeyReader for EncodedReader<'_> {
    type Kept = Vec<u8>;
    type Word = u128;

    #[inline]
    fn load(self, bytes: &[u8], key: Range<usize>, kept: &mut Vec<u8>) -> Result<u128, KeyFault> {
        kept.clear();
        self.0.encode(&bytes[key], kept)?;
        Ok(wide(kept))
    }

    #[inline]
    fn compare(self, a: (&[u8], &Vec<u8>), b: (&[u8], &Vec<u8>)) -> Ordering {
        a.1.cmp(b.1)
    }
}

/// The first sixteen bytes of `key`, followed by zeros where it is shorter.
#[inline]
fn wide(key: &[u8]) -> u128 {
    u128::from(prefix_at(key, 0)) << 64 | u128::from(prefix_at(key, 8))
}
