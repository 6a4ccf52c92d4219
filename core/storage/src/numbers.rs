//! Numbers of two types: `u64` for places and sizes in storages, `usize` for those in memory.
//!
//! Both have 64 bits on every system that this is for, which is checked here, once. So these conversions lose and cost
//! nothing. `as` would also cut off what another type can't hold, without a word; crates that turn on
//! `clippy::cast_possible_truncation` convert with these, or with `try_from` where a number comes from outside.

const _: () = assert!(usize::BITS == u64::BITS, "a size in memory is a size in a storage");

/// A size in memory, as one in a storage.
#[must_use]
#[inline]
pub const fn u64_of(size: usize) -> u64 {
    size as u64
}

/// A size in a storage, as one in memory.
#[must_use]
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "both have 64 bits, as checked above")]
pub const fn usize_of(size: u64) -> usize {
    size as usize
}

/// An index or a count that is kept in 32 bits, as a size in memory.
#[must_use]
#[inline]
pub const fn usize_of_u32(index: u32) -> usize {
    index as usize
}

/// The upper 32 bits of a number.
#[must_use]
#[inline]
pub const fn upper_u32(number: u64) -> u32 {
    (number >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_ranges_are_kept() {
        for size in [0, 1, u64::from(u32::MAX) + 1, u64::MAX] {
            assert_eq!(u64_of(usize_of(size)), size);
            assert_eq!(u64::from(upper_u32(size)), size >> 32);
        }
        assert_eq!(usize_of_u32(u32::MAX), usize_of(u64::from(u32::MAX)));
    }
}
