//! The places of records in a ring of blocks: the head, the records that have not moved, and the room
//! that is left. It holds no bytes.

use std::collections::VecDeque;

use merganser_storage::numbers::u64_of;

/// One block of this many is kept for trims.
const TRIM_RESERVE_SHARE: u64 = 16;

/// A place in a ring of blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RingPlace {
    /// Number of the record or transaction that begins there.
    pub(crate) seq: u64,
    /// Block, from the begin of the ring.
    pub(crate) at: u64,
    /// Checksum of the record or transaction before it.
    pub(crate) chain: u32,
}

/// A record that has not moved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resident {
    pub(crate) place: RingPlace,
    /// Blocks, without those that were skipped before it.
    pub(crate) blocks: u64,
    /// Blocks that were skipped at the end of the ring before it.
    pub(crate) skipped: u64,
}

/// The ring.
#[derive(Debug)]
pub(crate) struct LogRing {
    pub(crate) blocks: u64,
    pub(crate) head: RingPlace,
    pub(crate) residents: VecDeque<Resident>,
    pub(crate) used: u64,
}

impl LogRing {
    /// An empty ring whose next record is at `head`.
    pub(crate) fn new(blocks: u64, head: RingPlace) -> LogRing {
        LogRing { blocks, head, residents: VecDeque::new(), used: 0 }
    }

    /// Where the first record is that has not moved.
    pub(crate) fn tail(&self) -> RingPlace {
        self.residents.front().map_or(self.head, |resident| resident.place)
    }

    /// Where the record after the `n`-th from the tail is.
    pub(crate) fn place_after(&self, n: usize) -> RingPlace {
        self.residents.get(n + 1).map_or(self.head, |resident| resident.place)
    }

    /// Whether a record of `pages` pages has room. Trims, which have no pages, may use the reserve:
    /// when all else is full, they make room.
    pub(crate) fn has_room(&self, pages: usize) -> bool {
        let reserve = if pages == 0 { 0 } else { self.blocks / TRIM_RESERVE_SHARE };
        self.blocks_with(pages) + reserve <= self.blocks
    }

    /// Whether a record of `pages` pages fits at all.
    pub(crate) fn fits(&self, pages: usize) -> bool {
        self.blocks_with(pages) <= self.blocks
    }

    /// Blocks in use after a record of `pages` pages.
    fn blocks_with(&self, pages: usize) -> u64 {
        let (need, skipped) = self.need(pages);
        self.used + need + skipped
    }

    /// Blocks of a record of `pages` pages, and blocks that it skips at the end of the ring.
    fn need(&self, pages: usize) -> (u64, u64) {
        let need = 1 + u64_of(pages);
        let left = self.blocks - self.head.at;
        (need, if need > left { left } else { 0 })
    }

    /// The record of `pages` pages that [`LogRing::push`] would add.
    ///
    /// # Panics
    /// When there is no room for it.
    pub(crate) fn next(&self, pages: usize) -> Resident {
        let (blocks, skipped) = self.need(pages);
        assert!(self.fits(pages), "callers ask for room first");
        let at = if skipped > 0 { 0 } else { self.head.at };
        Resident { place: RingPlace { at, ..self.head }, blocks, skipped }
    }

    /// Adds a record at the head; `chain` is its checksum.
    pub(crate) fn push(&mut self, resident: Resident, chain: u32) {
        self.advance(&resident, chain);
        self.residents.push_back(resident);
    }

    /// Moves the head behind a record, which is not kept.
    pub(crate) fn advance(&mut self, resident: &Resident, chain: u32) {
        let Resident { place, blocks, skipped } = *resident;
        self.used += blocks + skipped;
        self.head = RingPlace { seq: place.seq + 1, at: (place.at + blocks) % self.blocks, chain };
    }

    /// Moves the head back to the begin of its last record.
    pub(crate) fn retreat(&mut self, resident: &Resident) {
        let Resident { place, blocks, skipped } = *resident;
        self.used -= blocks + skipped;
        let at = if skipped > 0 { self.blocks - skipped } else { place.at };
        self.head = RingPlace { at, ..place };
    }

    /// Drops the `count` records at the tail.
    pub(crate) fn release(&mut self, count: usize) {
        for resident in self.residents.drain(..count) {
            self.used -= resident.blocks + resident.skipped;
        }
        if self.residents.is_empty() {
            self.used = 0;
        }
    }
}
