//! Wear: which erased block is used next, when cold data move, when a block is given up.

use std::collections::VecDeque;

use crate::ssd::gc::FullBlocks;
use crate::ssd::nand::Block;
use crate::ssd::nand::array::Array;

/// How a device spreads erases over its blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WearLevelling {
    /// Erases between a plane's most and least worn blocks that are let be; 0: all.
    pub spread: u32,
    /// Erases that a block endures.
    pub endurance: u32,
}

impl WearLevelling {
    /// Takes the erased block to write next: the one erased longest ago, or the least worn.
    pub fn next_free(self, free: &mut VecDeque<u32>, array: &Array) -> Option<Block> {
        if self.spread == 0 {
            return free.pop_front().map(Block);
        }
        let worn = |&(_, &block): &(usize, &u32)| (array.erases(Block(block)), block);
        let (at, _) = free.iter().enumerate().min_by_key(worn)?;
        free.remove(at).map(Block)
    }

    /// The full block whose data are so cold that it should be collected for its erases' sake:
    /// the least worn one, when it lies behind the most worn block that is free.
    pub fn cold(self, full: &FullBlocks, free: &VecDeque<u32>, array: &Array) -> Option<Block> {
        if self.spread == 0 {
            return None;
        }
        let most = free.iter().map(|&block| array.erases(Block(block))).max()?;
        full.least_worn(array).filter(|&block| array.erases(block) + self.spread < most)
    }

    /// Whether `block` can be written again.
    pub fn endures(self, block: Block, array: &Array) -> bool {
        array.erases(block) < self.endurance
    }
}
