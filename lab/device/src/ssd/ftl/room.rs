//! The space of each plane, side by side in few bytes: for each page that is written, all planes of a die
//! are compared. Counting from their blocks took a quarter of the time of a simulation.

/// The space of a plane.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlaneRoom {
    /// Blocks that are erased and not open.
    pub free_blocks: u32,
    /// Pages of the open blocks that can be programmed, by writer.
    pub open_pages: [u32; 3],
    /// Units whose latest copy is in this plane.
    pub valid: u64,
    /// As many as leave room for collection.
    pub valid_max: u64,
}

impl PlaneRoom {
    /// Whether the valid units leave room for `units` more and for collection. Collection wins a page
    /// only from a block that has at least a page of invalid units.
    pub(super) fn has_room(&self, units: u64) -> bool {
        self.valid + units <= self.valid_max
    }

    /// The pages of the free blocks and of the open block at `frontier`, for blocks of this number of pages.
    pub(super) fn pages(&self, frontier: usize, pages_per_block: u32) -> u32 {
        self.free_blocks * pages_per_block + self.open_pages[frontier]
    }
}
