//! The first bytes of a key as a number: what keys, tags and merges compare first.

/// The first bytes of a key as an integer, which ascends in key order.
pub(crate) trait Word: Copy + Ord {
    /// All ones.
    const MAX: Self;
    const ZERO: Self;
}

impl Word for u64 {
    const MAX: Self = u64::MAX;
    const ZERO: Self = 0;
}

impl Word for u128 {
    const MAX: Self = u128::MAX;
    const ZERO: Self = 0;
}

/// The first eight bytes of `key` from `depth` on, as a big-endian number, zeros beyond its end.
#[inline]
#[must_use]
pub fn prefix_at(key: &[u8], depth: usize) -> u64 {
    if let Some(bytes) = key.get(depth..depth + 8) {
        return u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
    }
    let rest = key.get(depth..).unwrap_or_default();
    let mut word = [0; 8];
    word[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(word)
}
