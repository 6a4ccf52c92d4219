//! Which page is taken next: in order, from empty segments first, so that writes are whole stripes at
//! rising addresses, which is what an SSD collects cheapest.

use super::Store;
use crate::error::{Error, Result};
use crate::layout::SEGMENT_PAGES;
use crate::store::Stored;

/// What is known of free pages.
#[derive(Debug, Default)]
pub(super) struct Free {
    /// Free pages.
    pub(super) pages: u64,
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
}

const FULL: u8 = SEGMENT_PAGES as u8;

impl Store {
    /// Counts free pages anew.
    pub(super) fn count_free(&mut self) {
        let used: u64 = self.tables.used.iter().map(|&used| u64::from(used)).sum();
        self.free.pages = self.layout.pages() - used;
        self.free.empty_segments =
            self.tables.used.iter().filter(|&&used| used == 0).count() as u64;
    }

    /// The next free page. It stays free until [`Store::take`].
    pub(super) fn allocate(&mut self) -> Result<u64> {
        loop {
            if let Some((segment, within)) = self.free.open {
                if let Some(page) = self.free_page_of(segment, within)? {
                    self.free.open = Some((segment, page % SEGMENT_PAGES + 1));
                    return Ok(page);
                }
                self.free.open = None;
            }
            let Some(segment) = self.next_segment() else {
                return Err(Error::Full { volume: self.name.clone() });
            };
            self.free.open = Some((segment, 0));
        }
    }

    fn free_page_of(&mut self, segment: u64, within: u64) -> Result<Option<u64>> {
        if self.tables.used[segment as usize] == FULL {
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
            Err(error) if error.is_damage() => {}
            Err(error) => return Err(error),
        }
        // Damaged, or it has no free page although it should: none of it is taken any more.
        let used = &mut self.tables.used[segment as usize];
        self.free.pages -= SEGMENT_PAGES - u64::from(*used);
        self.free.empty_segments -= u64::from(*used == 0);
        *used = FULL;
        Ok(None)
    }

    /// The next segment worth taking pages from: an empty one, or else one that has at least half of
    /// what a segment has free on average.
    fn next_segment(&mut self) -> Option<u64> {
        let segments = self.layout.segments;
        if self.free.pages == 0 {
            return None;
        }
        let average = self.free.pages / segments;
        let least = if self.free.empty_segments > 0 { SEGMENT_PAGES } else { (average / 2).max(1) };
        let used = &self.tables.used;
        let free = |segment: u64| SEGMENT_PAGES - u64::from(used[segment as usize]);
        let mut after = (0..segments).map(|i| (self.free.cursor + i) % segments);
        let found = after.find(|&segment| free(segment) >= least)?;
        self.free.cursor = (found + 1) % segments;
        Some(found)
    }

    /// Counts a free page as used.
    pub(super) fn take(&mut self, place: u64) {
        let used = &mut self.tables.used[(place / SEGMENT_PAGES) as usize];
        self.free.empty_segments -= u64::from(*used == 0);
        *used += 1;
        self.free.pages -= 1;
    }

    /// Counts the pending pages as free: what freed them is durable, or is made so before any page is
    /// taken.
    pub(super) fn free_pending(&mut self) {
        for place in std::mem::take(&mut self.pending) {
            let used = &mut self.tables.used[(place / SEGMENT_PAGES) as usize];
            *used -= 1;
            self.free.empty_segments += u64::from(*used == 0);
            self.free.pages += 1;
        }
    }
}
