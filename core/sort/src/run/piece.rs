//! A piece of a run while it is filled, and the entries of the index for its blocks.

use std::ops::Range;

use merganser_storage::Buffer;

use super::format::{self, BlockEntry, ENTRY_FIXED_BYTES, FENCE_KEY_BYTES_MAX, NO_START};

/// A block of a piece, as it is stored.
pub(super) struct PieceBlock {
    pub(super) physical: u64,
    pub(super) stored_bytes: u32,
    pub(super) crc: u32,
}

/// The first record that begins in a block.
pub(super) struct Fence {
    record: u64,
    start: u32,
    key: Vec<u8>,
    cut: bool,
}

/// One piece being filled with the bytes of records.
pub(crate) struct Piece {
    pub(super) buffer: Buffer,
    pub(super) filled: usize,
    pub(super) block_bytes: usize,
    fence_from: usize,
    pub(super) fences: Vec<(usize, Fence)>,
}

impl Piece {
    pub(crate) fn new(buffer: Buffer, block_bytes: u32) -> Self {
        Piece {
            buffer,
            filled: 0,
            block_bytes: block_bytes as usize,
            fence_from: 0,
            fences: Vec::new(),
        }
    }

    /// A piece whose bytes before `from` are filled by other threads.
    pub(crate) fn beginning_at(buffer: Buffer, block_bytes: u32, from: usize) -> Self {
        Piece { filled: from, fence_from: from, ..Self::new(buffer, block_bytes) }
    }

    /// Takes `part` of `other`, which is a part of the same piece, and its fences there. Returns the
    /// other's buffer.
    pub(crate) fn join(&mut self, other: Piece, part: Range<usize>) -> Buffer {
        self.buffer[part.clone()].copy_from_slice(&other.buffer[part]);
        self.filled = self.filled.max(other.filled);
        self.fences.extend(other.fences);
        // The first record that begins in a block is its fence.
        self.fences.sort_by_key(|(block, fence)| (*block, fence.start));
        self.fences.dedup_by_key(|(block, _)| *block);
        other.buffer
    }

    pub(crate) fn filled(&self) -> usize {
        self.filled
    }

    pub(crate) fn space(&self) -> usize {
        self.buffer.len() - self.filled
    }

    /// The buffer, and how much of it is filled.
    pub(crate) fn into_bytes(self) -> (Buffer, usize) {
        (self.buffer, self.filled)
    }

    /// Notes that record number `record` begins at the next byte that is filled in.
    #[inline]
    pub(crate) fn begin_record(&mut self, record: u64, key: impl FnOnce(&mut Vec<u8>)) {
        if self.filled >= self.fence_from {
            self.add_fence(record, key);
        }
    }

    #[cold]
    fn add_fence(&mut self, record: u64, encode: impl FnOnce(&mut Vec<u8>)) {
        let block = self.filled / self.block_bytes;
        let start = u32::try_from(self.filled % self.block_bytes).expect("blocks are small");
        let mut key = Vec::new();
        encode(&mut key);
        let cut = key.len() > FENCE_KEY_BYTES_MAX;
        if cut {
            key = key[..FENCE_KEY_BYTES_MAX].to_vec();
        }
        self.fences.push((block, Fence { record, start, key, cut }));
        self.fence_from = (block + 1) * self.block_bytes;
    }

    /// Copies as much of `bytes` as fits; returns how much.
    #[inline]
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> usize {
        let n = bytes.len().min(self.space());
        self.buffer[self.filled..self.filled + n].copy_from_slice(&bytes[..n]);
        self.filled += n;
        n
    }
}

/// The index entries of a piece's blocks.
pub(super) struct PieceIndex {
    /// The entries as they will be written. Only the last ones have no `first_record` yet, if no
    /// record starts in their blocks: it is the number of a later piece's record.
    pub(super) entries: Box<[u8]>,
    /// Where in `entries` those begin.
    pub(super) open_from: usize,
    pub(super) first_record: Option<u64>,
    pub(super) blocks: usize,
    pub(super) fences: usize,
    pub(super) key_bytes: usize,
    pub(super) logical_bytes: u64,
    pub(super) physical_end: u64,
}

impl PieceIndex {
    /// The entries for a piece of `filled` bytes in `blocks`; `fences` come with the numbers of
    /// their blocks.
    pub(super) fn new(blocks: &[PieceBlock], fences: Vec<(usize, Fence)>, filled: usize) -> Self {
        let first_record = fences.first().map(|(_, fence)| fence.record);
        let count = fences.len();
        let key_bytes = fences.iter().map(|(_, fence)| fence.key.len()).sum();
        let physical_end = |b: &PieceBlock| b.physical + u64::from(b.stored_bytes);
        let mut entries = Vec::with_capacity(blocks.len() * ENTRY_FIXED_BYTES + key_bytes);
        let mut fences = fences.into_iter().peekable();
        let mut open_from = 0;
        for (number, block) in blocks.iter().enumerate() {
            let next_record = fences.peek().map(|(_, fence)| fence.record);
            let fence = fences.next_if(|(block, _)| *block == number).map(|(_, fence)| fence);
            let starts = fence.is_some();
            let (first_start, key, key_cut) =
                fence.map_or((NO_START, Vec::new(), false), |f| (f.start, f.key, f.cut));
            let entry = BlockEntry {
                physical: block.physical,
                stored_bytes: block.stored_bytes,
                crc: block.crc,
                first_record: next_record.unwrap_or_default(),
                first_start,
                key,
                key_cut,
            };
            format::encode_entry(&entry, &mut entries);
            if starts {
                open_from = entries.len();
            }
        }
        PieceIndex {
            entries: entries.into_boxed_slice(),
            open_from,
            first_record,
            blocks: blocks.len(),
            fences: count,
            key_bytes,
            logical_bytes: filled as u64,
            physical_end: blocks.iter().map(physical_end).max().unwrap_or_default(),
        }
    }

    /// Fills in the number of the record that follows this piece; returns the first one from this
    /// piece's start on.
    pub(super) fn close(&mut self, following: u64) -> u64 {
        for entry in self.entries[self.open_from..].chunks_exact_mut(ENTRY_FIXED_BYTES) {
            format::set_first_record(entry, following);
        }
        self.first_record.unwrap_or(following)
    }
}
