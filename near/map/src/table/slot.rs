//! One slot: a key as two numbers, the upper half of its hash, and the value.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

/// Keys of up to this length are in the slot.
pub(super) const INLINE_BYTES: usize = 16;

/// One row of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(super) struct TableSlot {
    /// The upper half of the hash, with its highest bit set, and the length of the key. 0 in an empty slot.
    pub(super) tag: u64,
    pub(super) words: KeyWords,
    /// A number, or the place of the value in the arena.
    pub(super) value: u64,
}

const _: () = assert!(size_of::<TableSlot>() == 32, "two slots in a cache line");

pub(super) const EMPTY: TableSlot =
    TableSlot { tag: 0, words: KeyWords { first: 0, second: 0 }, value: 0 };

impl TableSlot {
    #[inline]
    pub(super) fn tag(hash: u64, len: usize) -> u64 {
        (hash | 1 << 63) & !u64::from(u32::MAX) | len as u64
    }

    /// Length of the key.
    #[inline]
    pub(super) fn len(&self) -> usize {
        (self.tag & u64::from(u32::MAX)) as usize
    }

    /// Replaces the hash, which a closed table doesn't use, with a partition.
    #[inline]
    pub(super) fn set_partition(&mut self, partition: u32) {
        self.tag = u64::from(partition) << 32 | self.len() as u64;
    }

    /// The partition.
    #[inline]
    pub(super) fn partition(&self) -> u32 {
        (self.tag >> 32) as u32
    }
}

/// A key of up to 16 bytes, filled up with zeros, as two little-endian numbers; of a longer one, the
/// first 8 bytes and its place in the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyWords {
    pub(super) first: u64,
    pub(super) second: u64,
}

/// The bits of the first `n` bytes of 16.
const MASKS: [(u64, u64); INLINE_BYTES + 1] = {
    let mut masks = [(0, 0); INLINE_BYTES + 1];
    let mut n = 1;
    while n <= INLINE_BYTES {
        masks[n] = if n <= 8 {
            (u64::MAX >> (64 - 8 * n), 0)
        } else {
            (u64::MAX, u64::MAX >> (128 - 8 * n))
        };
        n += 1;
    }
    masks
};

impl KeyWords {
    /// A key of up to 16 bytes. Reads overlap, so that no length takes a loop.
    #[inline]
    pub(super) fn of_short(key: &[u8]) -> Self {
        let len = key.len();
        if let (Some(head), Some(tail)) = (key.first_chunk(), key.last_chunk()) {
            let (head, tail) = (u64::from_le_bytes(*head), u64::from_le_bytes(*tail));
            // The tail without the bytes that are in the head, too.
            let second = tail.checked_shr(128 - 8 * len as u32).unwrap_or(0);
            return KeyWords { first: head, second };
        }
        if let (Some(head), Some(tail)) = (key.first_chunk(), key.last_chunk()) {
            let (head, tail) = (u32::from_le_bytes(*head), u32::from_le_bytes(*tail));
            let first = u64::from(head) | u64::from(tail) << (8 * (len - 4));
            return KeyWords { first, second: 0 };
        }
        let byte = |at: usize| u64::from(key[at]) << (8 * at);
        let first = if len == 0 { 0 } else { byte(0) | byte(len / 2) | byte(len - 1) };
        KeyWords { first, second: 0 }
    }

    /// The first `len` bytes of `bytes`.
    #[inline]
    pub(super) fn of_first(bytes: &[u8; INLINE_BYTES], len: usize) -> Self {
        let all = u128::from_le_bytes(*bytes);
        let (first, second) = MASKS[len];
        KeyWords { first: all as u64 & first, second: (all >> 64) as u64 & second }
    }

    /// The first 8 bytes of a key that is longer than a slot holds.
    #[inline]
    pub(super) fn first_of_long(key: &[u8]) -> u64 {
        u64::from_le_bytes(*key.first_chunk().expect("more than 8 bytes"))
    }

    /// The key, filled up with zeros.
    #[inline]
    pub(super) fn bytes(self) -> [u8; INLINE_BYTES] {
        let mut bytes = [0; INLINE_BYTES];
        bytes[..8].copy_from_slice(&self.first.to_le_bytes());
        bytes[8..].copy_from_slice(&self.second.to_le_bytes());
        bytes
    }
}

/// Parameters of the hash.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seeds {
    number: u64,
    first: u64,
    second: u64,
}

/// Odd numbers without a pattern: digits of pi.
const FIRST: u64 = 0x243f_6a88_85a3_08d3;
const SECOND: u64 = 0x1319_8a2e_0370_7345;
const LEN: u64 = 0xa409_3822_299f_31d1;

impl Seeds {
    pub(super) fn first() -> Self {
        Self::of_number(0)
    }

    pub(super) fn next(self) -> Self {
        Self::of_number(self.number + 1)
    }

    fn of_number(number: u64) -> Self {
        let mix = |n: u64| fold(n ^ SECOND, FIRST) | 1;
        if number == 0 {
            return Seeds { number, first: FIRST, second: SECOND };
        }
        Seeds { number, first: mix(2 * number), second: mix(2 * number + 1) }
    }

    /// The hash of a key in two numbers. Each is multiplied by a constant of its own, so that no value of one
    /// hides the other; the high half of a product has all bits of a factor, and the low half spreads them.
    #[inline]
    pub(super) fn hash(&self, words: KeyWords, len: usize) -> u64 {
        let both = fold(words.first ^ self.second, self.first)
            ^ fold(words.second.wrapping_add(len as u64 ^ LEN), self.second).rotate_left(32);
        fold(both, LEN)
    }

    /// The hash of a longer key.
    #[inline]
    pub(super) fn hash_long(&self, key: &[u8]) -> u64 {
        let mut hasher = FixedState::with_seed(self.number).build_hasher();
        hasher.write(key);
        hasher.finish()
    }
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
