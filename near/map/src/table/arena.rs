//! Bytes that stay where they are put, in blocks that are reserved one by one.
//!
//! ```text
//!   place = number of the block · 2^32 + offset        value = length u32, room u32, bytes
//! ```

use merganser_sort::Budget;
use merganser_sort::budget::Reservation;

/// The first block, in bytes. Later ones are twice as long, up to [`BLOCK_BYTES_MAX`].
const BLOCK_BYTES_MIN: usize = 16 << 10;
const BLOCK_BYTES_MAX: usize = 4 << 20;
/// Bytes before a value.
const VALUE_HEADER: usize = 8;

pub(super) struct KeyArena {
    budget: Budget,
    blocks: Vec<ArenaBlock>,
    /// Blocks before this one have no room.
    current: usize,
    reserved_bytes: u64,
}

struct ArenaBlock {
    bytes: Vec<u8>,
    _memory: Reservation,
}

impl KeyArena {
    pub(super) fn new(budget: &Budget) -> Self {
        KeyArena { budget: budget.clone(), blocks: Vec::new(), current: 0, reserved_bytes: 0 }
    }

    pub(super) fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes
    }

    /// A block with room for `len` bytes; `None` where that would take more than `bytes_max` in all.
    fn room(&mut self, len: usize, bytes_max: u64) -> Option<usize> {
        let has_room = |block: &ArenaBlock| block.bytes.capacity() - block.bytes.len() >= len;
        while let Some(block) = self.blocks.get(self.current) {
            if has_room(block) {
                return Some(self.current);
            }
            self.current += 1;
        }
        let grown = BLOCK_BYTES_MIN << self.blocks.len().min(16);
        let left = bytes_max.saturating_sub(self.reserved_bytes);
        let liked = grown.min(BLOCK_BYTES_MAX).max(len) as u64;
        // The last block takes what is left.
        let bytes = if liked <= left { liked } else { len as u64 };
        if bytes > left {
            return None;
        }
        let memory = self.budget.reserve(bytes, "combining").ok()?;
        let mut block = Vec::new();
        block.try_reserve_exact(bytes as usize).ok()?;
        self.reserved_bytes += bytes;
        self.blocks.push(ArenaBlock { bytes: block, _memory: memory });
        self.current = self.blocks.len() - 1;
        Some(self.current)
    }

    /// Appends the parts, end to end; their place. With `header`, the length is in front.
    fn append(&mut self, parts: &[&[u8]], header: bool, bytes_max: u64) -> Option<u64> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let short = u32::try_from(len).ok()?.to_le_bytes();
        let at = self.room(len + if header { VALUE_HEADER } else { 0 }, bytes_max)?;
        let bytes = &mut self.blocks[at].bytes;
        let place = (at as u64) << 32 | bytes.len() as u64;
        if header {
            bytes.extend_from_slice(&short);
            bytes.extend_from_slice(&short);
        }
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        Some(place)
    }

    /// Stores a key; its place.
    pub(super) fn push(&mut self, parts: &[&[u8]], bytes_max: u64) -> Option<u64> {
        self.append(parts, false, bytes_max)
    }

    /// Stores a value; its place.
    pub(super) fn push_value(&mut self, parts: &[&[u8]], bytes_max: u64) -> Option<u64> {
        self.append(parts, true, bytes_max)
    }

    /// Stores a value instead of the one at `place`; its place.
    pub(super) fn replace_value(
        &mut self,
        place: u64,
        parts: &[&[u8]],
        bytes_max: u64,
    ) -> Option<u64> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let (block, at) = split(place);
        let bytes = &mut self.blocks[block].bytes;
        if len > u32_at(bytes, at + 4) {
            return self.push_value(parts, bytes_max);
        }
        let short = u32::try_from(len).expect("no longer than its room");
        bytes[at..at + 4].copy_from_slice(&short.to_le_bytes());
        let mut at = at + VALUE_HEADER;
        for part in parts {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        Some(place)
    }

    /// The key of `len` bytes at `place`.
    #[inline]
    pub(super) fn get(&self, place: u64, len: usize) -> &[u8] {
        let (block, at) = split(place);
        &self.blocks[block].bytes[at..at + len]
    }

    /// The value at `place`.
    #[inline]
    pub(super) fn value(&self, place: u64) -> &[u8] {
        let (block, at) = split(place);
        let bytes = &self.blocks[block].bytes;
        let from = at + VALUE_HEADER;
        &bytes[from..from + u32_at(bytes, at)]
    }

    /// Forgets everything; the memory stays.
    pub(super) fn clear(&mut self) {
        self.blocks.iter_mut().for_each(|block| block.bytes.clear());
        self.current = 0;
    }
}

#[inline]
fn split(place: u64) -> (usize, usize) {
    ((place >> 32) as usize, (place & u64::from(u32::MAX)) as usize)
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize
}
