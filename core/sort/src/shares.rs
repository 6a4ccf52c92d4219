//! The parts of a budget that are kept back, all in one place, and the reasons for them.
//!
//! Each pair says how much a stage may take of some memory, and in reverse in how much memory it
//! may take that much. The second number is the least memory that works in errors, so it is never
//! too small.

/// Merges and sorted buckets take nine parts of ten of the free memory. The tenth is for needs that
/// are known only while they work: windows grow by blocks when a record goes past its fence, and
/// encoded keys can be longer than the sample said.
const STREAM_PARTS: (u64, u64) = (9, 10);

/// A distribution takes fifteen parts of sixteen of its memory. The sixteenth is for lists of extents and
/// for the samples that buckets keep of themselves, which grow with the data.
const DISTRIBUTE_PARTS: (u64, u64) = (15, 16);

/// The memory that is planned for the fences of all runs, for each byte that is expected: an eighth
/// more. The last blocks of runs are short, and keys can be longer than the sample's.
const FENCES_PARTS: (u64, u64) = (9, 8);

/// The runs of a view take three of four files that a process may still open. The others are for
/// the reader's output and for files that the caller opens.
const OPEN_FILES_PARTS: (u64, u64) = (3, 4);

/// Blocks of its pool that a distribution needs for each bucket to work well: one and a half. Every bucket
/// fills one block, and the others wait or are being written.
const BLOCKS_PER_BUCKET: (usize, usize) = (3, 2);

/// Bytes that rounding takes at most where a part of a part is taken.
const ROUNDING_BYTES: u64 = 100;

/// The memory that a merge, or sorted buckets, may take of `free_bytes`.
pub(crate) fn of_stream(free_bytes: u64) -> u64 {
    part(free_bytes, STREAM_PARTS)
}

/// The memory in which they may take `bytes`.
pub(crate) fn for_stream(bytes: u64) -> u64 {
    whole(bytes, STREAM_PARTS) + ROUNDING_BYTES
}

/// The memory that a distribution may take of `memory_bytes`.
pub(crate) fn of_distribution(memory_bytes: u64) -> u64 {
    part(memory_bytes, DISTRIBUTE_PARTS)
}

/// The memory in which it may take `bytes`.
pub(crate) fn for_distribution(bytes: u64) -> u64 {
    whole(bytes, DISTRIBUTE_PARTS) + DISTRIBUTE_PARTS.1
}

/// The memory to plan for fences that are expected to take `bytes`.
pub(crate) fn for_fences(bytes: u64) -> u64 {
    part(bytes, FENCES_PARTS)
}

/// How many runs of a view may be open, of `files` that a process may still open.
pub(crate) fn of_open_files(files: u64) -> u64 {
    part(files, OPEN_FILES_PARTS)
}

/// The number of blocks that a distribution into `buckets` buckets needs to work well.
pub(crate) fn blocks_for(buckets: usize) -> usize {
    buckets / BLOCKS_PER_BUCKET.1 * BLOCKS_PER_BUCKET.0
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
    fn the_least_memory_in_errors_is_enough() {
        for bytes in (0..5000).chain([1 << 20, (1 << 30) + 7, (1 << 40) + 13]) {
            assert!(of_stream(for_stream(bytes)) >= bytes, "{bytes}");
            assert!(of_distribution(for_distribution(bytes)) + 15 >= bytes, "{bytes}");
        }
    }
}
