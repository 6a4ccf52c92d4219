//! The states of the table blocks, as a checkpoint has them. Docs: docs/array/array.md, "States".
//!
//! ```text
//!   superblock ── checksum of the states ──► states ── checksum of each block ──► maps and segments
//! ```
//!
//! A block that keeps its earlier content, because the disk lost a write, passes its own checksum. So each block is
//! named by its checksum one step nearer to the superblock.

use merganser_storage::numbers::usize_of;

use crate::bytes::{
    BLOCK, PAGE, PageBytes, is_sealed, put_u32, put_u64, seal, u32_at, u64_at, zeroed,
};
use crate::layout::{HEAD, STATE_BYTES, VolumeLayout};

const MAGIC: u32 = u32::from_le_bytes(*b"MtbS");
const SEAL: usize = 4;

/// What a checkpoint says of the table blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockStates {
    /// By table block: 0 was never written, 1 slot A counts, 2 slot B.
    pub(crate) slots: Vec<u8>,
    /// Pages in use, by segment.
    pub(crate) used: Vec<u8>,
    /// By table block: the checksum of the slot that counts. Empty in a volume that has none.
    pub(crate) sums: Vec<u32>,
}

impl BlockStates {
    /// Those of a layout, from the payloads of all blocks in turn.
    pub(crate) fn decode(layout: &VolumeLayout, payload: &[u8]) -> BlockStates {
        let (slots, rest) = payload.split_at(usize_of(layout.table_blocks()));
        let (used, rest) = rest.split_at(usize_of(layout.segments));
        let sums = if layout.sums { 4 * slots.len() } else { 0 };
        let sums = rest[..sums].chunks_exact(4).map(|sum| u32_at(sum, 0));
        BlockStates { slots: slots.to_vec(), used: used.to_vec(), sums: sums.collect() }
    }

    /// The blocks of checkpoint `generation`, in turn.
    pub(crate) fn encode(&self, generation: u64) -> Vec<Box<PageBytes>> {
        let mut payload = [&self.slots[..], &self.used[..]].concat();
        payload.extend(self.sums.iter().flat_map(|sum| sum.to_le_bytes()));
        let payloads = payload.chunks(usize_of(STATE_BYTES)).zip(0..);
        payloads.map(|(payload, number)| states_block(payload, number, generation)).collect()
    }
}

/// Where copy `copy` of the states begins.
pub(crate) fn copy_at(layout: &VolumeLayout, copy: u8) -> u64 {
    layout.states_at + u64::from(copy) * layout.state_blocks * BLOCK
}

/// The checksum of all states: of the checksums of their blocks.
pub(crate) fn sum_of<'a>(blocks: impl Iterator<Item = &'a [u8]>) -> u32 {
    blocks.fold(0, |sum, block| crc32c::crc32c_append(sum, &block[SEAL..SEAL + 4]))
}

/// Block `number` of the states.
pub(crate) fn states_block(payload: &[u8], number: u64, generation: u64) -> Box<PageBytes> {
    let mut block = zeroed();
    put_u32(&mut *block, 0, MAGIC);
    put_u64(&mut *block, 8, number);
    put_u64(&mut *block, 16, generation);
    block[HEAD..HEAD + payload.len()].copy_from_slice(payload);
    seal(&mut *block, SEAL);
    block
}

/// The payload of block `number` of the states of checkpoint `generation`.
pub(crate) fn states_of(block: &[u8], number: u64, generation: u64) -> Result<&[u8], String> {
    if block.len() != PAGE || u32_at(block, 0) != MAGIC || !is_sealed(block, SEAL) {
        Err("its magic or checksum is wrong".to_owned())
    } else if (u64_at(block, 8), u64_at(block, 16)) != (number, generation) {
        let found = u64_at(block, 16);
        Err(format!("it is of checkpoint {found}, not of {generation}, or in the wrong place"))
    } else {
        Ok(&block[HEAD..])
    }
}
