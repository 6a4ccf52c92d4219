//! Wear: the next erased block to use, the moves of cold data, and the end of a block's life.

use std::collections::VecDeque;

use super::full_blocks::FullBlocks;
use crate::ssd::nand::FlashBlock;
use crate::ssd::nand::array::Array;

/// The way in which a device spreads erases over its blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WearLevelling {
    /// The tolerated difference in erases between a plane's most and least worn blocks; 0 tolerates
    /// all.
    pub spread: u32,
    /// Erases that a block endures.
    pub endurance: u32,
}

impl WearLevelling {
    /// Takes the next erased block to write: the block erased longest ago, or the least worn one.
    pub(super) fn next_free(self, free: &mut VecDeque<u32>, array: &Array) -> Option<FlashBlock> {
        if self.spread == 0 {
            return free.pop_front().map(FlashBlock);
        }
        let worn = |&(_, &block): &(usize, &u32)| (array.erases(FlashBlock(block)), block);
        let (at, _) = free.iter().enumerate().min_by_key(worn)?;
        free.remove(at).map(FlashBlock)
    }

    /// The full block that should be collected because its data are cold: the least worn block, if
    /// it is too many erases behind the most worn free block.
    pub(super) fn cold(
        self,
        full: &FullBlocks,
        free: &VecDeque<u32>,
        array: &Array,
    ) -> Option<FlashBlock> {
        if self.spread == 0 {
            return None;
        }
        let most = free.iter().map(|&block| array.erases(FlashBlock(block))).max()?;
        full.least_worn(array).filter(|&block| array.erases(block) + self.spread < most)
    }

    /// Whether `block` can be written again.
    pub(super) fn endures(self, block: FlashBlock, array: &Array) -> bool {
        array.erases(block) < self.endurance
    }
}
