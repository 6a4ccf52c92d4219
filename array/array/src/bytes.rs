//! Little-endian numbers at places of a block, and the seal of a block: its checksum.

use merganser_storage::ALIGNMENT;
use merganser_storage::numbers::{u64_of, usize_of_u32};

/// Bytes of a page and of every block of the formats.
pub(crate) const PAGE: usize = 4096;
const _: () = assert!(PAGE == ALIGNMENT);
/// The same, for places and sizes on members.
pub(crate) const BLOCK: u64 = u64_of(PAGE);

/// Numbers of checkpoints, sessions, records and transactions, and counts, are below it.
pub(crate) const NUMBER_MAX: u64 = 1 << 62;

/// One page or block.
pub(crate) type PageBytes = [u8; PAGE];

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// A length that the formats keep in 32 bits.
pub(crate) fn len_at(bytes: &[u8], at: usize) -> usize {
    usize_of_u32(u32_at(bytes, at))
}

/// Stores a length of something in one block.
pub(crate) fn put_len(bytes: &mut [u8], at: usize, len: usize) {
    put_u32(bytes, at, u32::try_from(len).expect("what is in a block is short"));
}

pub(crate) fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// The checksum of `bytes` as if the four at `at` were zero.
fn sum(bytes: &[u8], at: usize) -> u32 {
    let crc = crc32c::crc32c(&bytes[..at]);
    let crc = crc32c::crc32c_append(crc, &[0; 4]);
    crc32c::crc32c_append(crc, &bytes[at + 4..])
}

/// Stores the checksum of `bytes` at `at` in them.
pub(crate) fn seal(bytes: &mut [u8], at: usize) {
    let crc = sum(bytes, at);
    put_u32(bytes, at, crc);
}

/// Whether the checksum at `at` is right.
pub(crate) fn is_sealed(bytes: &[u8], at: usize) -> bool {
    u32_at(bytes, at) == sum(bytes, at)
}

/// A page of zeros on the heap.
pub(crate) fn zeroed() -> Box<PageBytes> {
    Box::new([0; PAGE])
}
