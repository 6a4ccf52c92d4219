//! Tags: a word of a record's key, and where the record is.
//!
//! Sorting tags instead of records moves a sixth of the bytes at 100-byte records (TritonSort 5.2;
//! Nyberg et al., AlphaSort), and most comparisons never touch a record.
//!
//! ```text
//!   127                     64 63              24 23          0
//!   ┌─────────────────────────┬──────────────────┬────────────┐
//!   │ key's first word (u64)  │ place (40 bits)  │ length     │   one u128; order = u128 order
//!   └─────────────────────────┴──────────────────┴────────────┘
//! ```
//!
//! The word is the key's first eight bytes, big-endian, or about twelve in the codes of an alphabet
//! (`run/word.rs`). It compares as the key does. So the `u128` order is the key order wherever the
//! prefixes differ, and input order (place) where they are equal. `run/radix.rs` sorts by it, and
//! `run/ties.rs` then orders the longer keys whose prefixes are equal.

pub use crate::prefix::prefix_at;

/// Prefix, place and length of a record; see the module's drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Tag(u128);

const LENGTH_BITS: u32 = 24;
const PLACE_BITS: u32 = 40;

impl Tag {
    /// Length field of a record that is too long for it; ask the framing instead.
    pub const LONG: usize = (1 << LENGTH_BITS) - 1;
    /// Greatest place.
    pub const PLACE_MAX: u64 = (1 << PLACE_BITS) - 1;

    /// A tag; lengths from [`Tag::LONG`] on are stored as `LONG`.
    #[inline]
    #[must_use]
    pub fn new(prefix: u64, place: u64, len: usize) -> Self {
        debug_assert!(place <= Self::PLACE_MAX);
        let len = len.min(Self::LONG) as u64;
        Tag(u128::from(prefix) << 64 | u128::from(place << LENGTH_BITS | len))
    }

    /// The key prefix.
    #[inline]
    #[must_use]
    pub fn prefix(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Where the record is.
    #[inline]
    #[must_use]
    pub fn place(self) -> u64 {
        self.0 as u64 >> LENGTH_BITS
    }

    /// The record's length, or [`Tag::LONG`].
    #[inline]
    #[must_use]
    pub fn length(self) -> usize {
        (self.0 as u64 & Self::LONG as u64) as usize
    }

    /// The same tag with another prefix.
    #[inline]
    pub(super) fn with_prefix(self, prefix: u64) -> Self {
        Tag(u128::from(prefix) << 64 | u128::from(self.0 as u64))
    }
}
