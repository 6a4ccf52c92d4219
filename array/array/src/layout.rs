//! Where everything is on the data members, in the address space of their array.
//!
//! ```text
//!   0        superblock, twice
//!   8192     states, twice              which slot of each table block counts, used pages of segments, and the
//!                                       checksum of each table block
//!            journal                    a ring of transactions
//!            tables, two slots a block  map blocks (volume page → page), segment blocks (of 128 pages)
//!            index                      runs of fingerprints
//!            pages                      in segments of 128; begins at a whole stripe
//! ```

use merganser_storage::numbers::u64_of;

use crate::bytes::BLOCK;
use crate::error::{Error, Result};
use crate::settings::{BATCH_PAGES, VolumeSettings};

/// Entries of a map block.
pub(crate) const MAP_ENTRIES: u64 = 508;
/// Pages of a segment: those that one segment block describes.
pub(crate) const SEGMENT_PAGES: u64 = 128;
/// Bytes of a block of tables or states before its entries.
pub(crate) const HEAD: usize = 32;
/// Payload of a block of states, in bytes.
pub(crate) const STATE_BYTES: u64 = 4064;
/// Pages of the data members that stay free when a volume isn't thin: old and new versions of what is
/// being moved exist at the same time.
const SPARE_PAGES: u64 = 2 * u64_of(BATCH_PAGES);
const INDEX_BYTES_PER_PAGE: u64 = 56;
const INDEX_BLOCKS_MIN: u64 = 64;
const JOURNAL_BYTES_MIN: u64 = 256 << 10;
const JOURNAL_BYTES_MAX: u64 = 64 << 20;

/// Offsets in bytes, and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VolumeLayout {
    pub(crate) volume_pages: u64,
    pub(crate) map_blocks: u64,
    pub(crate) segments: u64,
    pub(crate) states_at: u64,
    /// Blocks of one copy of the states.
    pub(crate) state_blocks: u64,
    /// Whether the states have the checksum of each table block.
    pub(crate) sums: bool,
    pub(crate) journal_at: u64,
    pub(crate) journal_blocks: u64,
    pub(crate) tables_at: u64,
    pub(crate) index_at: u64,
    pub(crate) index_blocks: u64,
    pub(crate) pages_at: u64,
}

/// What a layout depends on, besides numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kinds {
    /// Whether there is an index.
    pub(crate) dedup: bool,
    /// Whether the states have the checksum of each table block.
    pub(crate) sums: bool,
}

impl VolumeLayout {
    /// The layout of a volume with `settings` on an array of `bytes` whose stripes have `stripe` bytes.
    pub(crate) fn plan(settings: &VolumeSettings, bytes: u64, stripe: u64) -> Result<VolumeLayout> {
        let volume_pages = settings.size / BLOCK;
        let journal = settings
            .journal_bytes
            .unwrap_or_else(|| (bytes / 64).clamp(JOURNAL_BYTES_MIN, JOURNAL_BYTES_MAX));
        if !(16 * BLOCK..=1 << 32).contains(&journal) {
            let text = format!("a journal has from 64 KiB to 4 GiB, not {journal} bytes");
            return Err(Error::Settings(text));
        }
        let make = |segments| {
            let kinds = Kinds { dedup: settings.dedup.is_some(), sums: true };
            Self::of_sizes(volume_pages, segments, journal / BLOCK, kinds, stripe)
        };
        // The number of segments that fit: each needs its pages and what describes them.
        let (mut low, mut high) = (0, bytes / (SEGMENT_PAGES * BLOCK) + 1);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if make(middle).end() <= bytes { low = middle } else { high = middle }
        }
        let layout = make(low);
        let most = layout.pages().saturating_sub(SPARE_PAGES);
        if low < 4 || layout.end() > bytes {
            return Err(Error::Settings(format!(
                "the data members have {bytes} bytes together, too little for a volume with this journal"
            )));
        }
        if !settings.thin && volume_pages > most {
            return Err(Error::Settings(format!(
                "a volume of {} bytes is too large: the data members have room for {}; make it smaller, or thin",
                settings.size,
                most * BLOCK
            )));
        }
        Ok(layout)
    }

    /// The layout of these numbers.
    pub(crate) fn of_sizes(
        volume_pages: u64,
        segments: u64,
        journal_blocks: u64,
        kinds: Kinds,
        stripe: u64,
    ) -> VolumeLayout {
        let map_blocks = volume_pages.div_ceil(MAP_ENTRIES);
        let sums = if kinds.sums { 4 * (map_blocks + segments) } else { 0 };
        let state_blocks = (map_blocks + 2 * segments + sums).div_ceil(STATE_BYTES);
        let index_blocks = match kinds.dedup {
            true => {
                (segments * SEGMENT_PAGES * INDEX_BYTES_PER_PAGE).div_ceil(BLOCK) + INDEX_BLOCKS_MIN
            }
            false => 0,
        };
        let states_at = 2 * BLOCK;
        let journal_at = states_at + 2 * state_blocks * BLOCK;
        let tables_at = journal_at + journal_blocks * BLOCK;
        let index_at = tables_at + 2 * (map_blocks + segments) * BLOCK;
        let pages_at = (index_at + index_blocks * BLOCK).next_multiple_of(stripe);
        VolumeLayout {
            volume_pages,
            map_blocks,
            segments,
            states_at,
            state_blocks,
            sums: kinds.sums,
            journal_at,
            journal_blocks,
            tables_at,
            index_at,
            index_blocks,
            pages_at,
        }
    }

    /// Pages for data.
    pub(crate) fn pages(&self) -> u64 {
        self.segments * SEGMENT_PAGES
    }

    /// Where the last page ends.
    pub(crate) fn end(&self) -> u64 {
        self.pages_at + self.pages() * BLOCK
    }

    /// Where page `page` is.
    pub(crate) fn page_at(&self, page: u64) -> u64 {
        self.pages_at + page * BLOCK
    }

    /// Where slot `slot` (0 or 1) of table block `block` is.
    pub(crate) fn slot_at(&self, block: u64, slot: u8) -> u64 {
        self.tables_at + (2 * block + u64::from(slot)) * BLOCK
    }

    /// Table blocks of both kinds: map blocks first.
    pub(crate) fn table_blocks(&self) -> u64 {
        self.map_blocks + self.segments
    }
}
