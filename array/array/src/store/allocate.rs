//! Which page is taken next: in order, from empty segments first, so that writes are whole stripes at
//! rising addresses, which is what an SSD collects cheapest.

use merganser_storage::numbers::{u64_of, usize_of};

use super::PageStore;
use crate::error::{Error, Result};
use crate::layout::SEGMENT_PAGES;
use crate::store::Stored;

/// Free pages, and the next place to take one.
#[derive(Debug, Default)]
pub(crate) struct Free {
    /// Free pages.
    pub(crate) pages: u64,
    /// Segments without a page in use.
    empty_segments: u64,
    /// The segment that pages are taken from, and the place in it.
    open: Option<(u64, u64)>,
    /// Where the search for a segment continues.
    cursor: u64,
    /// The counter at the opening.
    pub(super) checkpoints_at_open: u64,
}

impl Free {
    /// Before anything was counted, of a volume with this many checkpoints.
    pub(super) fn at_open(checkpoints: u64) -> Free {
        Free { checkpoints_at_open: checkpoints, ..Free::default() }
    }

    /// Counts free pages again. `used` has the pages in use of each segment.
    pub(crate) fn count(&mut self, used: &[u8]) {
        let in_use: u64 = used.iter().map(|&used| u64::from(used)).sum();
        self.pages = u64_of(used.len()) * SEGMENT_PAGES - in_use;
        self.empty_segments = u64_of(used.iter().filter(|&&used| used == 0).count());
    }

    /// The segment to look for a free page in, and the page in it to begin at. `None` when all are full.
    pub(crate) fn candidate(&mut self, used: &[u8]) -> Option<(u64, u64)> {
        if self.open.is_none() {
            self.open = Some((self.next_segment(used)?, 0));
        }
        self.open
    }

    /// A page of the candidate is free, and will be taken.
    pub(crate) fn found(&mut self, page: u64) {
        self.open = Some((page / SEGMENT_PAGES, page % SEGMENT_PAGES + 1));
    }

    /// The candidate has no free page any more.
    pub(crate) fn exhausted(&mut self) {
        self.open = None;
    }

    /// The next segment worth taking pages from: an empty one, or else one that has at least half of
    /// the free pages that a segment has on average.
    fn next_segment(&mut self, used: &[u8]) -> Option<u64> {
        let segments = u64_of(used.len());
        if self.pages == 0 {
            return None;
        }
        let average = self.pages / segments;
        let least = if self.empty_segments > 0 { SEGMENT_PAGES } else { (average / 2).max(1) };
        let free = |segment: u64| SEGMENT_PAGES - u64::from(used[usize_of(segment)]);
        let mut after = (0..segments).map(|i| (self.cursor + i) % segments);
        let found = after.find(|&segment| free(segment) >= least)?;
        self.cursor = (found + 1) % segments;
        Some(found)
    }

    /// Counts a free page as used.
    pub(crate) fn take(&mut self, used: &mut [u8], place: u64) {
        let used = &mut used[usize_of(place / SEGMENT_PAGES)];
        self.empty_segments -= u64::from(*used == 0);
        *used += 1;
        self.pages -= 1;
    }

    /// Counts a page as free.
    pub(crate) fn give(&mut self, used: &mut [u8], place: u64) {
        let used = &mut used[usize_of(place / SEGMENT_PAGES)];
        // Only where the states say less than the references: the page stays used.
        let Some(fewer) = used.checked_sub(1) else { return };
        *used = fewer;
        self.empty_segments += u64::from(fewer == 0);
        self.pages += 1;
    }

    /// Counts a whole segment as used: none of it is taken any more.
    fn give_up(&mut self, used: &mut u8) {
        self.pages -= SEGMENT_PAGES - u64::from(*used);
        self.empty_segments -= u64::from(*used == 0);
        *used = FULL;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "checked here")]
pub(crate) const FULL: u8 = {
    assert!(SEGMENT_PAGES <= 0xff);
    SEGMENT_PAGES as u8
};

impl PageStore {
    /// The next free page. It stays free until [`PageStore::take`].
    pub(super) fn allocate(&mut self) -> Result<u64> {
        while let Some((segment, within)) = self.free.candidate(&self.tables.used) {
            if let Some(page) = self.free_page_of(segment, within)? {
                self.free.found(page);
                return Ok(page);
            }
            self.free.exhausted();
        }
        Err(Error::Full { volume: self.name.clone() })
    }

    fn free_page_of(&mut self, segment: u64, within: u64) -> Result<Option<u64>> {
        if self.tables.used[usize_of(segment)] == FULL {
            return Ok(None);
        }
        let base = segment * SEGMENT_PAGES;
        let pending = &self.pending;
        match self.tables.read(self.layout.map_blocks + segment) {
            Ok(entries) => {
                let mut pages = base + within..base + SEGMENT_PAGES;
                let found = pages.find(|page| {
                    Stored::decode(entries, *page).references == 0 && !pending.contains(page)
                });
                if found.is_some() || within > 0 {
                    return Ok(found);
                }
            }
            Err(error) if error.is_damage() => self.answers(error)?,
            Err(error) => return Err(error),
        }
        // Damaged, or it has no free page although it should.
        self.free.give_up(&mut self.tables.used[usize_of(segment)]);
        Ok(None)
    }

    /// Counts a free page as used.
    pub(super) fn take(&mut self, place: u64) {
        self.free.take(&mut self.tables.used, place);
    }

    /// Counts the pending pages as free: the transaction that freed them is durable, or becomes durable
    /// before any page is taken.
    pub(super) fn free_pending(&mut self) {
        for place in std::mem::take(&mut self.pending) {
            self.free.give(&mut self.tables.used, place);
        }
    }
}
