//! The content of flash, and the rules that flash enforces.
//!
//! ```text
//!   block:  erased ── program page 0, 1, 2, … in order ──► full ── erase ──► erased
//! ```
//!
//! A page is programmed once after an erase, in ascending order, with all its units together; only
//! whole blocks are erased. A violation of these rules is a bug of the translation layer and
//! panics. The owners and the data of a block are allocated by its first program and freed by its
//! erase, so memory grows with the stored data.

use crate::profile::SsdSettings;
use crate::ssd::nand::divisor::Divisor;
use crate::ssd::nand::{FlashBlock, LogicalUnit, PhysicalUnit};

/// No unit: never written, or no longer valid.
const NOBODY: u32 = u32::MAX;

/// The bytes of one unit; `None` if the write had no bytes (they read as zeros).
pub(crate) type UnitBytes = Option<Box<[u8]>>;

#[derive(Debug, Default)]
struct BlockState {
    /// Pages programmed since the last erase.
    programmed: u32,
    /// Units whose latest copy is in this block.
    valid: u32,
    erases: u32,
    /// The time of its last program, in nanoseconds.
    touched_ns: u64,
    /// The logical unit that each physical unit holds.
    owners: Option<Box<[u32]>>,
    /// Allocated by the first content.
    data: Option<Box<[UnitBytes]>>,
}

/// All blocks of a device.
#[derive(Debug)]
pub(crate) struct Array {
    blocks: Vec<BlockState>,
    pub blocks_per_plane: u32,
    pub planes_per_die: u32,
    pub pages_per_block: u32,
    pub units_per_page: u32,
    pub units_per_block: u32,
    by_block: Divisor,
    by_page: Divisor,
    by_plane: Divisor,
    by_die: Divisor,
}

impl Array {
    pub(crate) fn new(settings: &SsdSettings) -> Array {
        let count = settings.dies() * settings.planes * settings.blocks_per_plane;
        let mut blocks = Vec::new();
        blocks.resize_with(count as usize, BlockState::default);
        let (pages_per_block, units_per_page) =
            (settings.pages_per_block as u32, settings.units_per_page() as u32);
        Array {
            blocks,
            blocks_per_plane: settings.blocks_per_plane as u32,
            planes_per_die: settings.planes as u32,
            pages_per_block,
            units_per_page,
            units_per_block: pages_per_block * units_per_page,
            by_block: Divisor::new(u64::from(pages_per_block * units_per_page)),
            by_page: Divisor::new(u64::from(units_per_page)),
            by_plane: Divisor::new(settings.blocks_per_plane),
            by_die: Divisor::new(settings.planes),
        }
    }

    pub(crate) fn block_of(&self, place: PhysicalUnit) -> FlashBlock {
        FlashBlock(self.by_block.quotient(place.0.into()) as u32)
    }

    /// Whether both are on one page.
    pub(crate) fn share_page(&self, a: PhysicalUnit, b: PhysicalUnit) -> bool {
        self.by_page.quotient(a.0.into()) == self.by_page.quotient(b.0.into())
    }

    /// The page within its block.
    pub(crate) fn page_of(&self, place: PhysicalUnit) -> u32 {
        self.by_page.quotient(self.by_block.remainder(place.0.into())) as u32
    }

    /// The plane, numbered through all dies.
    pub(crate) fn plane_of(&self, block: FlashBlock) -> u32 {
        self.by_plane.quotient(block.0.into()) as u32
    }

    /// The die of a plane, and the plane's number in it.
    pub(crate) fn die_and_plane(&self, plane: u32) -> (u32, u32) {
        let plane = u64::from(plane);
        (self.by_die.quotient(plane) as u32, self.by_die.remainder(plane) as u32)
    }

    pub(crate) fn die_of(&self, block: FlashBlock) -> u32 {
        self.die_and_plane(self.plane_of(block)).0
    }

    pub(crate) fn programmed(&self, block: FlashBlock) -> u32 {
        self.blocks[block.0 as usize].programmed
    }

    pub(crate) fn valid(&self, block: FlashBlock) -> u32 {
        self.blocks[block.0 as usize].valid
    }

    pub(crate) fn erases(&self, block: FlashBlock) -> u32 {
        self.blocks[block.0 as usize].erases
    }

    pub(crate) fn touched_ns(&self, block: FlashBlock) -> u64 {
        self.blocks[block.0 as usize].touched_ns
    }

    /// The place of the first unit of a page.
    pub(crate) fn place_of(&self, block: FlashBlock, page: u32) -> PhysicalUnit {
        PhysicalUnit(block.0 * self.units_per_block + page * self.units_per_page)
    }

    /// Programs the next page of `block` with `units`, from the place of the page on; the rest of the
    /// page is lost until the next erase.
    ///
    /// # Panics
    /// When the block is full, or the units are more than a page holds.
    pub(crate) fn program(
        &mut self,
        block: FlashBlock,
        page: u32,
        units: impl ExactSizeIterator<Item = (LogicalUnit, UnitBytes)>,
        now_ns: u64,
    ) {
        let (a_page, a_block) = (self.units_per_page, self.units_per_block);
        let state = &mut self.blocks[block.0 as usize];
        assert!(page < self.pages_per_block, "page {page} of block {} does not exist", block.0);
        assert_eq!(page, state.programmed, "pages of block {} are programmed in order", block.0);
        assert!(units.len() <= a_page as usize, "more units than a page holds");
        let owners =
            state.owners.get_or_insert_with(|| vec![NOBODY; a_block as usize].into_boxed_slice());
        let first = page * a_page;
        for (at, (unit, content)) in (first..).zip(units) {
            owners[at as usize] = unit.0;
            state.valid += 1;
            if content.is_some() {
                let data = state.data.get_or_insert_with(|| {
                    let mut data = Vec::new();
                    data.resize_with(a_block as usize, || None);
                    data.into_boxed_slice()
                });
                data[at as usize] = content;
            }
        }
        state.programmed += 1;
        state.touched_ns = now_ns;
    }

    /// Programs the last page of `block` with the summary of its other pages.
    pub(crate) fn program_summary(&mut self, block: FlashBlock, now_ns: u64) {
        let page = self.pages_per_block - 1;
        self.program(block, page, std::iter::empty(), now_ns);
    }

    /// The copy at `place` is no longer the latest.
    pub(crate) fn give_up(&mut self, place: PhysicalUnit, unit: LogicalUnit) {
        let block = self.block_of(place);
        let state = &mut self.blocks[block.0 as usize];
        let at = self.by_block.remainder(place.0.into()) as usize;
        let owners = state.owners.as_mut().expect("a mapped place was programmed");
        assert_eq!(owners[at], unit.0, "the map and block {} disagree", block.0);
        owners[at] = NOBODY;
        state.valid -= 1;
        if let Some(data) = &mut state.data {
            data[at] = None;
        }
    }

    /// Takes the latest copy out of `place`, to move it.
    pub(crate) fn take(&mut self, place: PhysicalUnit, unit: LogicalUnit) -> UnitBytes {
        let at = self.by_block.remainder(place.0.into()) as usize;
        let block = self.block_of(place);
        let data = self.blocks[block.0 as usize].data.as_mut();
        let content = data.and_then(|data| data[at].take());
        self.give_up(place, unit);
        content
    }

    /// The bytes at `place`.
    pub(crate) fn content(&self, place: PhysicalUnit) -> Option<&[u8]> {
        let block = self.block_of(place);
        let data = self.blocks[block.0 as usize].data.as_ref()?;
        data[self.by_block.remainder(place.0.into()) as usize].as_deref()
    }

    /// The units whose latest copies are in `block`, in the order of their physical units.
    pub(crate) fn owners(
        &self,
        block: FlashBlock,
    ) -> impl Iterator<Item = (PhysicalUnit, LogicalUnit)> + '_ {
        let first = block.0 * self.units_per_block;
        let owners = self.blocks[block.0 as usize].owners.as_deref().unwrap_or(&[]);
        (first..)
            .zip(owners)
            .filter(|&(_, &owner)| owner != NOBODY)
            .map(|(place, &owner)| (PhysicalUnit(place), LogicalUnit(owner)))
    }

    /// Erases `block`.
    ///
    /// # Panics
    /// When it holds the latest copy of anything.
    pub(crate) fn erase(&mut self, block: FlashBlock) {
        let state = &mut self.blocks[block.0 as usize];
        assert_eq!(state.valid, 0, "block {} still holds the only copy of units", block.0);
        state.programmed = 0;
        state.erases += 1;
        state.owners = None;
        state.data = None;
    }

    /// The fewest and the most erases of a block.
    pub(crate) fn wear(&self) -> (u32, u32) {
        let erases = self.blocks.iter().map(|block| block.erases);
        erases.fold((u32::MAX, 0), |(least, most), e| (least.min(e), most.max(e)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array() -> Array {
        let settings = SsdSettings {
            channels: 1,
            blocks_per_plane: 4,
            pages_per_block: 2,
            page_bytes: 8192,
            ..SsdSettings::default()
        };
        Array::new(&settings)
    }

    fn units(of: &[u32]) -> impl ExactSizeIterator<Item = (LogicalUnit, UnitBytes)> + '_ {
        of.iter().map(|&unit| (LogicalUnit(unit), Some(vec![unit as u8].into_boxed_slice())))
    }

    #[test]
    fn what_was_programmed_is_there_until_given_up_and_erased() {
        let mut array = array();
        array.program(FlashBlock(1), 0, units(&[7, 8]), 5);
        assert_eq!(array.place_of(FlashBlock(1), 0), PhysicalUnit(4));
        assert_eq!(array.content(PhysicalUnit(5)), Some(&[8_u8][..]));
        array.give_up(PhysicalUnit(4), LogicalUnit(7));
        assert_eq!(
            array.owners(FlashBlock(1)).collect::<Vec<_>>(),
            [(PhysicalUnit(5), LogicalUnit(8))]
        );
        assert_eq!(array.take(PhysicalUnit(5), LogicalUnit(8)).as_deref(), Some(&[8_u8][..]));
        array.erase(FlashBlock(1));
        assert_eq!(
            (array.erases(FlashBlock(1)), array.wear(), array.content(PhysicalUnit(5))),
            (1, (0, 1), None)
        );
    }

    #[test]
    #[should_panic(expected = "in order")]
    fn a_page_is_not_programmed_twice() {
        let mut array = array();
        array.program(FlashBlock(0), 0, units(&[1]), 0);
        array.program(FlashBlock(0), 0, units(&[1]), 0);
    }

    #[test]
    #[should_panic(expected = "in order")]
    fn no_page_is_skipped() {
        array().program(FlashBlock(0), 1, units(&[1]), 0);
    }

    #[test]
    #[should_panic(expected = "only copy")]
    fn what_is_needed_is_not_erased() {
        let mut array = array();
        array.program(FlashBlock(0), 0, units(&[1]), 0);
        array.erase(FlashBlock(0));
    }
}
