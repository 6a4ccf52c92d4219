//! How large the blocks of a product are.

use merganser_sort::{Budget, Error};

use super::kernel::{MatrixValue, SLICE};
use super::panel::WINDOW_BYTES;

/// Rows and columns of a block are multiples of this, or all that there are.
const STEP: u64 = 64;

/// The longest k panel: rows of `a` are then read in stretches of 8 or 16 KiB.
const K_MOST: u64 = 2048;

const OWNER: &str = "a product of matrices";

/// Sides of blocks and panels, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockPlan {
    /// Rows of a block.
    pub rows: u64,
    /// Columns of a block.
    pub columns: u64,
    /// Length of a panel along k; a multiple of [`SLICE`], or all of k.
    pub k: u64,
    /// Threads that multiply.
    pub threads: usize,
    /// Memory for all of it.
    pub bytes: u64,
}

/// The product of a `rows` × `k` and a `k` × `columns` matrix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sides {
    pub rows: u64,
    pub columns: u64,
    pub k: u64,
}

impl BlockPlan {
    /// The largest blocks that fit into what is free of `budget`.
    pub(super) fn new<T: MatrixValue>(
        sides: Sides,
        threads: usize,
        budget: &Budget,
    ) -> Result<BlockPlan, Error> {
        let free_bytes = budget.free_bytes();
        let least = BlockPlan::of_sides::<T>(sides, STEP, STEP, SLICE as u64, 1);
        if least.bytes > free_bytes {
            // Says how much is needed.
            budget.reserve(least.bytes, OWNER)?;
        }
        let fits = |plan: &BlockPlan| plan.bytes <= free_bytes;
        let with_threads =
            |threads| BlockPlan::of_sides::<T>(sides, STEP, STEP, SLICE as u64, threads);
        let threads = (1..=threads).rev().find(|threads| fits(&with_threads(*threads)));
        let threads = threads.unwrap_or(1);
        let mut best = with_threads(threads);
        let mut k = K_MOST;
        while k >= SLICE as u64 {
            let grown = largest(sides.rows.max(sides.columns), |side| {
                Some(BlockPlan::of_sides::<T>(sides, side, side, k, threads)).filter(fits)
            });
            // Memory that one side leaves over is for the other.
            let grown = grown.and_then(|square| {
                let wide = |side| BlockPlan::of_sides::<T>(sides, square.rows, side, k, threads);
                let wide = largest(sides.columns, |side| Some(wide(side)).filter(fits))?;
                let tall = |side| BlockPlan::of_sides::<T>(sides, side, wide.columns, k, threads);
                largest(sides.rows, |side| Some(tall(side)).filter(fits))
            });
            if let Some(grown) =
                grown.filter(|grown| grown.read_elements(sides) < best.read_elements(sides))
            {
                best = grown;
            }
            k /= 2;
        }
        Ok(best)
    }

    fn of_sides<T: MatrixValue>(
        sides: Sides,
        rows: u64,
        columns: u64,
        k: u64,
        threads: usize,
    ) -> BlockPlan {
        let (rows, columns) = (rows.min(sides.rows), columns.min(sides.columns));
        let k = k.min(sides.k);
        let panels = k.saturating_mul(rows.saturating_add(columns)).saturating_mul(2);
        let elements = rows.saturating_mul(columns).saturating_add(panels);
        let scratch_bytes = T::SCRATCH_BYTES * threads as u64;
        let bytes = elements
            .saturating_mul(T::ELEMENT.bytes())
            .saturating_add(scratch_bytes)
            .saturating_add(WINDOW_BYTES);
        BlockPlan { rows, columns, k, threads, bytes }
    }

    /// Elements that are read of both factors, and a little for short stretches.
    fn read_elements(&self, sides: Sides) -> u128 {
        let Sides { rows, columns, k } = sides;
        let passes = |side: u64, block: u64| u128::from(side.div_ceil(block.max(1)));
        let of_a = u128::from(rows) * u128::from(k) * passes(columns, self.columns);
        let of_b = u128::from(columns) * u128::from(k) * passes(rows, self.rows);
        of_a + of_b + of_a * SLICE as u128 / 4 / u128::from(self.k.max(1))
    }
}

/// The plan with the largest side, in steps up to `most`, that there is; larger sides never fit where
/// smaller ones don't.
fn largest(most: u64, plan: impl Fn(u64) -> Option<BlockPlan>) -> Option<BlockPlan> {
    let (mut low, mut high) = (0, most.div_ceil(STEP).max(1));
    let mut found = None;
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match plan(middle * STEP) {
            Some(fits) => (low, found) = (middle, Some(fits)),
            None => high = middle - 1,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_memory_means_larger_blocks_and_all_of_a_small_product_is_one() {
        let sides = Sides { rows: 5000, columns: 3000, k: 4000 };
        let mut before = u128::MAX;
        for mib in [8, 16, 32, 64, 256, 1024] {
            let budget = Budget::new(mib << 20);
            let plan = BlockPlan::new::<f64>(sides, 2, &budget).expect("fits");
            assert!(plan.bytes <= mib << 20);
            assert!(plan.k == sides.k || plan.k.is_multiple_of(SLICE as u64));
            assert!(plan.read_elements(sides) <= before, "{plan:?}");
            before = plan.read_elements(sides);
        }
        let plan = BlockPlan::new::<f64>(sides, 2, &Budget::new(1 << 30)).expect("fits");
        assert_eq!((plan.rows, plan.columns, plan.threads), (5000, 3000, 2));
    }

    #[test]
    fn too_little_memory_names_the_least_that_works() {
        let sides = Sides { rows: 5000, columns: 3000, k: 4000 };
        let refused = BlockPlan::new::<f32>(sides, 8, &Budget::new(1000));
        let Err(Error::Memory { least_bytes, .. }) = refused else { panic!("{refused:?}") };
        assert!(BlockPlan::new::<f32>(sides, 8, &Budget::new(least_bytes - 1)).is_err());
        let plan =
            BlockPlan::new::<f32>(sides, 8, &Budget::new(least_bytes)).expect("the least works");
        assert_eq!(plan.threads, 1);
    }

    #[test]
    fn empty_sides_have_a_plan() {
        for (rows, columns, k) in [(0, 3, 3), (3, 0, 3), (3, 3, 0), (0, 0, 0)] {
            let sides = Sides { rows, columns, k };
            BlockPlan::new::<i32>(sides, 1, &Budget::new(8 << 20)).expect("fits");
        }
    }
}
