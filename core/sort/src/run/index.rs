//! The index of a run in memory: what its writer makes and its reader uses.
//!
//! Both hold the same [`RunIndex`]. [`IndexMemory`] says beforehand how much memory it takes.

use super::format::{BlockEntry, ENTRY_FIXED_BYTES, NO_START, PIECE_BYTES};

/// Memory of the index of a piece, without its entries: the struct, its place in the map, and the
/// allocator's overhead.
pub(super) const PIECE_INDEX_BYTES: u64 = 160;

/// The owner of this memory, in messages of the budget.
pub(crate) const FENCES: &str = "the fences of the runs";

/// Memory for the index of a run: `writing` until it is finished, and `open` from then on; both at
/// once while it is being finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexMemory {
    pub(crate) writing: u64,
    pub(crate) open: u64,
}

impl IndexMemory {
    /// For a run of `data_bytes` whose fences' keys have `key_bytes` in the mean.
    pub(crate) fn expected(data_bytes: u64, block_bytes: u32, key_bytes: f64) -> Self {
        let blocks = data_bytes.div_ceil(u64::from(block_bytes));
        let pieces = data_bytes.div_ceil(PIECE_BYTES as u64);
        let keys = (blocks as f64 * key_bytes) as u64;
        IndexMemory {
            writing: blocks * ENTRY_FIXED_BYTES as u64 + keys + pieces * PIECE_INDEX_BYTES,
            open: index_bytes(blocks, blocks, keys, true),
        }
    }

    pub(crate) fn most(self) -> u64 {
        self.writing + self.open
    }
}

/// The contents of an index, as an open run holds them.
pub(super) struct RunIndex {
    pub(super) crcs: Vec<u32>,
    pub(super) places: Vec<(u64, u32)>,
    packed: bool,
    pub(super) fences: Fences,
}

impl RunIndex {
    pub(super) fn with_room(blocks: usize, fences: usize, key_bytes: usize, packed: bool) -> Self {
        RunIndex {
            crcs: Vec::with_capacity(blocks),
            places: Vec::with_capacity(if packed { blocks } else { 0 }),
            packed,
            fences: Fences {
                positions: Vec::with_capacity(fences),
                records: Vec::with_capacity(fences),
                key_ends: Vec::with_capacity(fences),
                keys: Vec::with_capacity(key_bytes),
                cut: Vec::with_capacity(fences),
                any_cut: false,
            },
        }
    }

    /// Takes the next block's entry.
    pub(super) fn push(&mut self, block_bytes: u32, entry: &BlockEntry) {
        let block = self.crcs.len() as u64;
        self.crcs.push(entry.crc);
        if self.packed {
            self.places.push((entry.physical, entry.stored_bytes));
        }
        if entry.first_start != NO_START {
            let fences = &mut self.fences;
            fences.positions.push(block * u64::from(block_bytes) + u64::from(entry.first_start));
            fences.records.push(entry.first_record);
            fences.keys.extend_from_slice(&entry.key);
            fences.key_ends.push(fences.keys.len() as u64);
            fences.cut.push(entry.key_cut);
            fences.any_cut |= entry.key_cut;
        }
    }
}

/// Key, place and number of the first record in each block that has one.
pub(super) struct Fences {
    pub(super) positions: Vec<u64>,
    pub(super) records: Vec<u64>,
    pub(super) key_ends: Vec<u64>,
    pub(super) keys: Vec<u8>,
    pub(super) cut: Vec<bool>,
    pub(super) any_cut: bool,
}

/// Memory of a [`RunIndex`], in bytes.
pub(super) fn index_bytes(blocks: u64, fences: u64, key_bytes: u64, packed: bool) -> u64 {
    let places = if packed { size_of::<(u64, u32)>() as u64 } else { 0 };
    blocks * (4 + places) + fences * (3 * 8 + 1) + key_bytes
}
