//! The table blocks that changed since the last checkpoint: a bit each.

use merganser_storage::numbers::usize_of;

/// A set of blocks.
#[derive(Debug)]
pub(super) struct Dirty {
    words: Vec<u64>,
    count: u64,
}

impl Dirty {
    /// None of `blocks` blocks.
    pub(super) fn none_of(blocks: u64) -> Dirty {
        Dirty { words: vec![0; usize_of(blocks.div_ceil(64))], count: 0 }
    }

    /// Adds a block.
    pub(super) fn insert(&mut self, block: u64) {
        let (word, bit) = (&mut self.words[usize_of(block / 64)], 1 << (block % 64));
        self.count += u64::from(*word & bit == 0);
        *word |= bit;
    }

    /// Takes all blocks out, in their order.
    pub(super) fn take(&mut self) -> Vec<u64> {
        let mut blocks = Vec::with_capacity(usize_of(std::mem::take(&mut self.count)));
        for (word, first) in self.words.iter_mut().zip((0..).step_by(64)) {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                blocks.push(first + u64::from(bits.trailing_zeros()));
                bits &= bits - 1;
            }
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use merganser_testkit::Random;

    use super::*;

    #[test]
    fn it_is_a_set_in_order() {
        let mut random = Random::new(9);
        let mut dirty = Dirty::none_of(1000);
        for _ in 0..20 {
            let blocks: BTreeSet<u64> =
                (0..random.below(200)).map(|_| random.below(1000)).collect();
            blocks.iter().rev().chain(&blocks).for_each(|&block| dirty.insert(block));
            assert_eq!(dirty.take(), blocks.into_iter().collect::<Vec<_>>());
        }
        assert!(dirty.take().is_empty());
    }
}
