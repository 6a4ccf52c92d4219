//! The parts of a budget that are kept back, and what they are for: all of them in one place.
//!
//! Each pair says how much a stage may take of some memory, and the other way round the memory in
//! which that much may be taken. The second is what an error names as the least that works, so it is
//! never too small.

/// Merges and sorted buckets take nine parts of ten of what is free. The tenth is for what is known only
/// while they work: windows grow by blocks when a record goes past its fence, and encoded keys turn out
/// longer than the sample said.
const STREAM_PARTS: (u64, u64) = (9, 10);

/// A distribution takes fifteen parts of sixteen of its memory. The sixteenth is for lists of extents and
/// for the samples that buckets keep of themselves, which grow with the data.
const DISTRIBUTE_PARTS: (u64, u64) = (15, 16);

/// Bytes that rounding takes at most where a part of a part is taken.
const ROUNDING_BYTES: u64 = 100;

/// What a merge, or sorted buckets, may take of `free_bytes`.
pub(crate) fn of_stream(free_bytes: u64) -> u64 {
    part(free_bytes, STREAM_PARTS)
}

/// The memory in which they may take `bytes`.
pub(crate) fn for_stream(bytes: u64) -> u64 {
    whole(bytes, STREAM_PARTS) + ROUNDING_BYTES
}

/// What a distribution may take of `memory_bytes`.
pub(crate) fn of_distribution(memory_bytes: u64) -> u64 {
    part(memory_bytes, DISTRIBUTE_PARTS)
}

/// The memory in which it may take `bytes`.
pub(crate) fn for_distribution(bytes: u64) -> u64 {
    whole(bytes, DISTRIBUTE_PARTS) + DISTRIBUTE_PARTS.1
}

/// Divides first: no budget is too large for it.
fn part(bytes: u64, (parts, of): (u64, u64)) -> u64 {
    bytes / of * parts
}

fn whole(bytes: u64, (parts, of): (u64, u64)) -> u64 {
    bytes / parts * of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_as_the_least_is_enough() {
        for bytes in (0..5000).chain([1 << 20, (1 << 30) + 7, (1 << 40) + 13]) {
            assert!(of_stream(for_stream(bytes)) >= bytes, "{bytes}");
            assert!(of_distribution(for_distribution(bytes)) + 15 >= bytes, "{bytes}");
        }
    }
}
