//! The order of records, as bytes.
//!
//! Whatever was asked for (text, numbers, months, several fields, descending, ...) compiles to one
//! *normalised key*: a byte string whose `memcmp` order is the asked order. The rest of the engine
//! compares bytes and knows no key types.

use std::cmp::Ordering;

use crate::record::Format;

/// A key that needs no encoding: it lies in the record as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectKey {
    /// Where in the record.
    pub place: Place,
    /// Whether the order is reversed.
    pub descending: bool,
}

/// Where a [`DirectKey`] lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// `len` bytes from `offset` on.
    Range {
        /// First byte of the key in the record.
        offset: usize,
        /// Bytes of the key.
        len: usize,
    },
    /// The whole record but its one-byte terminator.
    Line,
    /// The key of a [`Format::Keyed`] record.
    Prefixed,
}

impl Place {
    /// The key's bytes in `record`.
    #[inline]
    #[must_use]
    pub fn of(self, record: &[u8]) -> &[u8] {
        match self {
            Place::Range { offset, len } => &record[offset..offset + len],
            Place::Line => &record[..record.len() - 1],
            Place::Prefixed => {
                let [a, b, c, d] = *record.first_chunk::<4>().expect("framed record");
                &record[8..8 + u32::from_le_bytes([a, b, c, d]) as usize]
            }
        }
    }
}

/// The compiled order of a sort: how records are compared, and when two are duplicates.
#[derive(Debug, Clone)]
pub struct Order {
    format: Format,
    direct: Option<DirectKey>,
}

impl Order {
    /// Orders records by a key that lies in them as it is.
    #[must_use]
    pub fn by_bytes(format: Format, key: DirectKey) -> Self {
        Order { format, direct: Some(key) }
    }

    /// The format of the records it orders.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Where the key lies, when it needs no encoding. Such an order has no last resort.
    #[must_use]
    pub fn direct(&self) -> Option<DirectKey> {
        self.direct
    }

    /// Appends the normalised key of `record` (without its last resort) to `key`. The encoding is
    /// self-delimiting: no key is a proper prefix of a different one, except for a direct key.
    pub fn encode(&self, record: &[u8], key: &mut Vec<u8>) {
        let direct = self.direct.expect("only direct keys yet");
        key.extend_from_slice(direct.place.of(record));
    }

    /// How records with equal keys are ordered before input order decides: `None`, or by all
    /// their bytes but the terminator, `Some(true)` descending (GNU sort's last resort).
    #[must_use]
    pub fn last_resort(&self) -> Option<bool> {
        None
    }

    /// Appends the whole normalised key: what [`Order::encode`] gives, and the last resort after
    /// it. `memcmp` of two of these is [`Order::compare`].
    pub fn encode_full(&self, record: &[u8], key: &mut Vec<u8>) {
        self.encode(record, key);
    }

    /// Compares two records in full; `Equal` means that input order decides.
    #[must_use]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let (mut x, mut y) = (Vec::new(), Vec::new());
        self.encode_full(a, &mut x);
        self.encode_full(b, &mut y);
        x.cmp(&y)
    }
}
