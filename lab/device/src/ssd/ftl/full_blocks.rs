//! The choice of the block to collect.

use merganser_random::Random;

use crate::profile::GcPolicy;
use crate::ssd::nand::FlashBlock;
use crate::ssd::nand::array::Array;

/// The full blocks of a plane, which can be collected.
///
/// Greedy collection needs the block with the fewest valid units each time, so there is one bucket
/// of full blocks per number of valid units. Other policies examine all blocks, or some, and keep
/// them in one bucket.
#[derive(Debug)]
pub(crate) struct FullBlocks {
    buckets: Vec<Vec<u32>>,
    /// All buckets below this one are empty.
    lowest: usize,
}

impl FullBlocks {
    pub(super) fn new(policy: GcPolicy, units_per_block: u32) -> FullBlocks {
        let count = if policy == GcPolicy::Greedy { units_per_block as usize + 1 } else { 1 };
        FullBlocks { buckets: vec![Vec::new(); count], lowest: count }
    }

    fn bucket(&self, valid: u32) -> usize {
        if self.buckets.len() == 1 { 0 } else { valid as usize }
    }

    /// Adds `block`, which holds `valid` units. `positions` has the index of each block in its
    /// bucket.
    pub(super) fn insert(&mut self, block: FlashBlock, valid: u32, positions: &mut [u32]) {
        let bucket = self.bucket(valid);
        positions[block.0 as usize] = self.buckets[bucket].len() as u32;
        self.buckets[bucket].push(block.0);
        self.lowest = self.lowest.min(bucket);
    }

    /// Removes `block`, which was added with `valid` units.
    pub(super) fn remove(&mut self, block: FlashBlock, valid: u32, positions: &mut [u32]) {
        let bucket = self.bucket(valid);
        let at = positions[block.0 as usize] as usize;
        let removed = self.buckets[bucket].swap_remove(at);
        assert_eq!(removed, block.0, "full blocks know their places");
        if let Some(&moved) = self.buckets[bucket].get(at) {
            positions[moved as usize] = at as u32;
        }
    }

    /// Moves `block`, which had `valid` units and lost one, to its new bucket.
    pub(super) fn lost_one(&mut self, block: FlashBlock, valid: u32, positions: &mut [u32]) {
        if self.buckets.len() > 1 {
            self.remove(block, valid, positions);
            self.insert(block, valid - 1, positions);
        }
    }

    fn all(&self) -> impl Iterator<Item = FlashBlock> + '_ {
        self.buckets.iter().flatten().map(|&block| FlashBlock(block))
    }

    /// The block with the fewest erases.
    pub(super) fn least_worn(&self, array: &Array) -> Option<FlashBlock> {
        self.all().min_by_key(|&block| (array.erases(block), block))
    }

    /// The block to collect: one that holds fewer than `most` valid units.
    pub(super) fn victim(
        &mut self,
        policy: GcPolicy,
        choices: u64,
        most: u32,
        array: &Array,
        now_ns: u64,
        random: &mut Random,
    ) -> Option<FlashBlock> {
        let found = match policy {
            GcPolicy::Greedy => {
                while self.buckets.get(self.lowest).is_some_and(Vec::is_empty) {
                    self.lowest += 1;
                }
                self.buckets.get(self.lowest)?.last().map(|&block| FlashBlock(block))
            }
            GcPolicy::CostBenefit => {
                // Benefit over cost (Rosenblum, Ousterhout 1992): the free part times the age,
                // divided by the cost of reading the block and writing its valid part.
                let score = |block: FlashBlock| {
                    let u = f64::from(array.valid(block)) / f64::from(array.units_per_block);
                    let age = (now_ns - array.touched_ns(block) + 1) as f64;
                    (1.0 - u) * age / (1.0 + u)
                };
                let winning = self.all().filter(|&block| array.valid(block) < most);
                winning.max_by(|&a, &b| score(a).total_cmp(&score(b)).then(b.cmp(&a)))
            }
            GcPolicy::Choices => {
                let blocks = &self.buckets[0];
                if blocks.is_empty() {
                    return None;
                }
                let mut draw = || FlashBlock(blocks[random.below(blocks.len() as u64) as usize]);
                let drawn = (0..choices).map(|_| draw()).min_by_key(|&block| array.valid(block));
                // All drawn blocks may be full of valid units; then any other block is taken.
                drawn
                    .filter(|&block| array.valid(block) < most)
                    .or_else(|| self.all().find(|&block| array.valid(block) < most))
            }
        };
        found.filter(|&block| array.valid(block) < most)
    }
}
