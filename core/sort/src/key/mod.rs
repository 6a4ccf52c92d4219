//! The order of records, as bytes.
//!
//! Whatever was asked for (text, numbers, months, several fields, descending, ...) compiles to one
//! *normalised key*: a byte string whose `memcmp` order is the asked order. The rest of the engine
//! compares bytes and knows no key types.
//!
//! An [`OrderSpec`] is an order as the user describes it; [`OrderSpec::compile`] makes it an
//! [`Order`]. To encode a record, an order finds the texts of its keys (`line`, `column`, `field`, `sequence`:
//! one file for each way to describe where a key is) and appends one element for each, by a file
//! for each kind of element:
//!
//! | file | orders | letters |
//! |---|---|---|
//! | `text` | bytes, perhaps without some (`-d`, `-i`) or folded (`-f`) | `d` `f` `i` |
//! | `numeric` | decimal numbers of any length | `n` |
//! | `general`, `extended` | floating-point numbers, rounded as an 80-bit float | `g` |
//! | `human` | numbers with a suffix | `h` |
//! | `month` | month names | `M` |
//! | `version` | versions | `V` |
//! | `random` | in a random order | `R` |
//! | `binary` | integers and floats of fixed-length records | |
//! | `sequence` | the length of a sequence; its id, header and letters are texts | |
//! | `writable` | keys as Hadoop serializes them: an order of its own, [`WritableOrder`] | |
//!
//! `typed` encodes values of Rust's types, for rows that a program pushes ([`crate::rows`]).
//!
//! `decimal` is for callers that compare numbers in texts without a sort: their digits, and keys that give
//! the number again.
//!
//! Every element is self-delimiting: no element is a proper prefix of a different one of the same
//! key. So elements can follow one another, and a descending element is the complement of the
//! ascending one.

mod binary;
mod column;
pub mod decimal;
mod doubts;
mod element;
mod error;
mod extended;
mod field;
mod general;
mod human;
mod line;
mod marks;
mod month;
mod numeric;
mod options;
mod orderings;
mod random;
mod sequence;
mod spec;
#[cfg(test)]
mod tests;
mod text;
mod typed;
mod version;
pub(crate) mod writable;

use std::cmp::Ordering;

pub use column::column_of;
pub use doubts::KeyDoubt;
pub use error::{KeyError, Records, Setting};
pub use marks::KeyMarks;
pub use orderings::{KeyOrdering, LETTERS, ORDERINGS};
pub use random::{SALT_SOURCE_BYTES, salt_from};
pub use spec::{OrderSpec, parse_separator};
pub use typed::{FromRowKey, KeyBytesReader, RowKey, key_of, value_of};
pub use writable::{KeyFault, WritableOrder, WritableOrderError};

use crate::record::letters::{header_of, id_of};
use crate::record::{Format, key_of as key_of_record};

/// A key that needs no encoding, because its bytes in the record sort as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectKey {
    /// Where in the record.
    pub place: Place,
    /// Whether the order is reversed.
    pub descending: bool,
}

/// The place of a [`DirectKey`] in its record.
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
    /// The header of a sequence, without its mark.
    Header,
    /// The header of a sequence up to the first blank.
    Id,
}

impl Place {
    /// The key's bytes in `record`.
    #[inline]
    #[must_use]
    pub fn of_record(self, record: &[u8]) -> &[u8] {
        match self {
            Place::Range { offset, len } => &record[offset..offset + len],
            Place::Line => &record[..record.len() - 1],
            Place::Prefixed => key_of_record(record),
            Place::Header => header_of(record),
            Place::Id => id_of(record),
        }
    }
}

/// The compiled order of a sort: how records are compared, and when two are duplicates.
#[derive(Debug, Clone)]
pub struct Order {
    spec: OrderSpec,
    keys: Keys,
    last_resort: Option<bool>,
}

/// Where the keys are and how they are encoded.
#[derive(Debug, Clone)]
enum Keys {
    Direct(DirectKey),
    Lines(line::LineKeys),
    Columns(column::ColumnKeys),
    Fields(Vec<field::FieldKey>),
    Sequences(sequence::SequenceKeys),
}

impl Order {
    /// Orders records by a key that needs no encoding: a range of [`Format::Fixed`], the whole of a
    /// line, row or sequence, the key of [`Format::Keyed`], or the header or id of a sequence.
    ///
    /// # Panics
    /// When records of that format do not contain the key unencoded.
    #[must_use]
    pub fn by_bytes(format: Format, key: DirectKey) -> Self {
        let mut spec = OrderSpec::new(format);
        match key.place {
            Place::Range { offset, len } => spec.keys.push(format!("{offset}:{len}")),
            Place::Header => spec.keys.push("header".to_owned()),
            Place::Id => spec.keys.push("id".to_owned()),
            Place::Line | Place::Prefixed => {}
        }
        if key.descending {
            spec.options.push('r');
        }
        let order = spec.compile(None).expect("a key of this format");
        assert_eq!(order.direct(), Some(key), "a key of this format");
        order
    }

    /// The specification that it was compiled from.
    #[must_use]
    pub fn spec(&self) -> &OrderSpec {
        &self.spec
    }

    /// The format of the records it orders.
    #[must_use]
    pub fn format(&self) -> Format {
        self.spec.format
    }

    /// Whether of records with equal keys, which are those that [`Order::encode`] to the same
    /// bytes, only the first is kept.
    #[must_use]
    pub fn unique(&self) -> bool {
        self.spec.unique
    }

    /// The place of a key that needs no encoding. Such an order has no last resort.
    #[must_use]
    pub fn direct(&self) -> Option<DirectKey> {
        match self.keys {
            Keys::Direct(key) => Some(key),
            _ => None,
        }
    }

    /// Appends the normalised key of `record` (without its last resort) to `key`. The encoding is
    /// self-delimiting: no key is a proper prefix of a different one, except for a direct key.
    ///
    /// Allocates nothing but room in `key`, save for numbers of more than 19 digits or large
    /// exponents under `g`, and for texts that must be copied because bytes inside them are left
    /// out or changed before they are read as something other than text.
    #[inline]
    pub fn encode(&self, record: &[u8], key: &mut Vec<u8>) {
        match &self.keys {
            Keys::Direct(direct) => direct.encode(record, key),
            Keys::Lines(keys) => keys.encode(Place::Line.of_record(record), key),
            Keys::Columns(keys) => keys.encode(record, key),
            Keys::Fields(keys) => keys.iter().for_each(|field| field.encode(record, key)),
            Keys::Sequences(keys) => keys.encode(record, key),
        }
    }

    /// The error for a key whose column none of the encoded rows had. A row may be shorter, but if all of them are,
    /// the number is wrong. Where a header says how many columns there are, it was compared with that before.
    pub(crate) fn unseen_column(&self) -> Option<KeyError> {
        let Keys::Columns(keys) = &self.keys else { return None };
        let value = self.spec.keys.get(keys.unseen()?)?.clone();
        let reason = "no row has so many columns".to_owned();
        Some(KeyError::Value { of: Setting::Key, value, reason })
    }

    /// Encodes `rows` until each key's column was in a row.
    pub(crate) fn see_columns(&self, mut rows: &[u8]) {
        let mut key = Vec::new();
        while self.unseen_column().is_some()
            && let Some(len) = self.format().first_len(rows)
        {
            key.clear();
            self.encode(&rows[..len], &mut key);
            rows = &rows[len..];
        }
    }

    /// The normalised key of sequences of `letters` letters, where their length is the first key.
    pub(crate) fn encode_first_length(&self, letters: u64) -> Option<Vec<u8>> {
        match &self.keys {
            Keys::Sequences(keys) => keys.encode_first_length(letters),
            _ => None,
        }
    }

    /// How records with equal keys are ordered before input order decides. With `Some`, by all
    /// their bytes without the terminator, with `Some(true)` in descending order (GNU sort's last
    /// resort).
    #[must_use]
    pub fn last_resort(&self) -> Option<bool> {
        self.last_resort
    }

    /// Appends the whole normalised key: what [`Order::encode`] gives, and the last resort after
    /// it. `memcmp` of two of these is [`Order::compare`].
    pub fn encode_full(&self, record: &[u8], key: &mut Vec<u8>) {
        self.encode(record, key);
        if let Some(descending) = self.last_resort {
            DirectKey { place: Place::Line, descending }.encode(record, key);
        }
    }

    /// Compares two records in full; `Equal` means that input order decides.
    #[must_use]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if let Keys::Direct(key) = self.keys {
            return key.compare(a, b);
        }
        let (mut x, mut y) = (Vec::new(), Vec::new());
        self.encode(a, &mut x);
        self.encode(b, &mut y);
        x.cmp(&y).then_with(|| match self.last_resort {
            Some(descending) => DirectKey { place: Place::Line, descending }.compare(a, b),
            None => Ordering::Equal,
        })
    }
}

impl DirectKey {
    /// Appends bytes that sort as the key does. A descending key of varying length gets an end
    /// before it is complemented, for the shorter of two keys must become the larger one.
    #[inline]
    fn encode(self, record: &[u8], out: &mut Vec<u8>) {
        let bytes = self.place.of_record(record);
        if !self.descending {
            out.extend_from_slice(bytes);
            return;
        }
        let mark = out.len();
        match self.place {
            Place::Range { .. } => out.extend_from_slice(bytes),
            Place::Line | Place::Prefixed | Place::Header | Place::Id => text::encode(bytes, out),
        }
        numeric::complement(&mut out[mark..]);
    }

    #[inline]
    fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        let ascending = self.place.of_record(a).cmp(self.place.of_record(b));
        if self.descending { ascending.reverse() } else { ascending }
    }
}
