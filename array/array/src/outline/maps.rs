//! The maps of an outline: volume page to stored page, references, contents, free pages.

use std::collections::BTreeSet;

use foldhash::{HashMap, HashMapExt};
use merganser_storage::numbers::usize_of;

use super::dirty::Dirty;
use super::{BLOCK, Step};
use crate::counters::VolumeCounters;
use crate::error::{Error, Result};
use crate::fingerprint::FINGERPRINT_BYTES;
use crate::layout::{MAP_ENTRIES, SEGMENT_PAGES, VolumeLayout};
use crate::log::{LogRing, RingPlace};
use crate::settings::{BATCH_PAGES, OpenOptions, VolumeSettings};
use crate::store::{Free, PENDING_PAGES_MAX, changes_bytes_max};

/// Bytes of the journal's changes.
const NEW_BYTES: usize = 21 + FINGERPRINT_BYTES;
const MAP_BYTES: usize = 17;
const UNMAP_BYTES: usize = 13;

/// An entry of the map that was never changed.
const UNTOUCHED: u32 = 0;
/// A volume page without content.
const UNMAPPED: u32 = u32::MAX;
/// References of a stored page whose last volume page left it in a commit that isn't durable.
const PENDING: u32 = u32::MAX;

/// A content in the index.
#[derive(Debug, Clone, Copy)]
struct KnownContent {
    place: u32,
    /// The checkpoint after which it came.
    checkpoint: u32,
}

/// The maps.
#[derive(Debug)]
pub(super) struct OutlineMaps {
    pub(super) layout: VolumeLayout,
    dedup: bool,
    compare: bool,
    /// Volume pages whose own stored page has the same number, until they are changed.
    filled: u64,
    /// By volume page: untouched, unmapped, or stored page plus one.
    map: Vec<u32>,
    /// By stored page: untouched, references plus one, or pending.
    references: Vec<u32>,
    contents: Vec<u128>,
    index: HashMap<u128, KnownContent>,
    pub(super) fresh: usize,
    pub(super) fresh_max: usize,
    pub(super) used: Vec<u8>,
    free: Free,
    pending: Vec<u64>,
    pub(super) staged: BTreeSet<u64>,
    pub(super) changes_bytes: usize,
    changes_bytes_max: usize,
    pub(super) journal: LogRing,
    /// Table blocks that changed since the last checkpoint.
    pub(super) dirty: Dirty,
    pub(super) log_tail: u64,
    pub(super) log_tail_durable: u64,
    pub(super) unsynced: bool,
    pub(super) index_at: u64,
    /// Pages hashed, and bytes where blocks are looked up or compared, since the last step.
    pub(super) hashed: u64,
    pub(super) lookups: Vec<u64>,
    pub(super) steps: Vec<Step>,
    pub(super) counters: VolumeCounters,
}

/// The number of a page, as it is kept.
fn small(page: u64) -> u32 {
    u32::try_from(page).expect("an outline of more pages is refused")
}

impl OutlineMaps {
    pub(super) fn new(
        layout: VolumeLayout,
        settings: &VolumeSettings,
        options: &OpenOptions,
        filled: bool,
    ) -> OutlineMaps {
        let filled = if filled { layout.volume_pages.min(layout.pages()) } else { 0 };
        let in_segment = |segment: u64| {
            let before = segment * SEGMENT_PAGES;
            let used = filled.saturating_sub(before).min(SEGMENT_PAGES);
            u8::try_from(used).expect("a segment has few pages")
        };
        let used: Vec<u8> = (0..layout.segments).map(in_segment).collect();
        let mut free = Free::default();
        free.count(&used);
        let dedup = settings.dedup.is_some();
        OutlineMaps {
            layout,
            dedup,
            compare: settings.compare,
            filled,
            map: vec![UNTOUCHED; usize_of(layout.volume_pages)],
            references: vec![UNTOUCHED; usize_of(layout.pages())],
            contents: vec![0; if dedup { usize_of(layout.pages()) } else { 0 }],
            index: HashMap::new(),
            fresh: 0,
            fresh_max: crate::index::table_entries(options.index_bytes()),
            used,
            free,
            pending: Vec::new(),
            staged: BTreeSet::new(),
            changes_bytes: 0,
            changes_bytes_max: changes_bytes_max(&layout, options),
            journal: LogRing::new(layout.journal_blocks, RingPlace { seq: 1, at: 0, chain: 0 }),
            dirty: Dirty::none_of(layout.table_blocks()),
            log_tail: 1,
            log_tail_durable: 1,
            unsynced: false,
            index_at: 0,
            hashed: 0,
            lookups: Vec::new(),
            steps: Vec::new(),
            counters: VolumeCounters { checkpoints: 1, ..VolumeCounters::default() },
        }
    }

    /// The stored page of a volume page.
    pub(super) fn place(&self, page: u64) -> Option<u64> {
        match self.map[usize_of(page)] {
            UNTOUCHED => (page < self.filled).then_some(page),
            UNMAPPED => None,
            entry => Some(u64::from(entry) - 1),
        }
    }

    fn references(&self, place: u64) -> u32 {
        match self.references[usize_of(place)] {
            UNTOUCHED => u32::from(place < self.filled),
            PENDING => 0,
            more => more - 1,
        }
    }

    fn set_references(&mut self, place: u64, references: u32) {
        self.references[usize_of(place)] = references + 1;
        self.dirty.insert(self.layout.map_blocks + place / SEGMENT_PAGES);
    }

    /// Pages in use.
    pub(super) fn pages_used(&self) -> u64 {
        self.layout.pages() - self.free.pages
    }

    /// Gives a volume page a content.
    pub(super) fn put(&mut self, page: u64, content: u128) -> Result<()> {
        match self.try_put(page, content) {
            Err(Error::Full { .. }) if !self.pending.is_empty() => {
                self.commit();
                self.try_put(page, content)?;
            }
            other => other?,
        }
        self.commit_if_much();
        Ok(())
    }

    fn commit_if_much(&mut self) {
        if self.changes_bytes > self.changes_bytes_max || self.pending.len() > PENDING_PAGES_MAX {
            self.commit();
        } else if self.staged.len() >= BATCH_PAGES {
            self.write_staged();
        }
    }

    fn try_put(&mut self, page: u64, content: u128) -> Result<()> {
        if self.dedup {
            self.hashed += 1;
            if let Some(place) = self.find_equal(content) {
                self.counters.pages_fingerprinted += 1;
                self.counters.pages_duplicate += 1;
                if self.place(page) != Some(place) {
                    self.set_references(place, self.references(place) + 1);
                    self.changes_bytes += MAP_BYTES;
                    self.point(page, Some(place));
                }
                return Ok(());
            }
        }
        let place = self.allocate()?;
        self.counters.pages_stored += 1;
        self.set_references(place, 1);
        self.free.take(&mut self.used, place);
        self.staged.insert(place);
        if self.dedup {
            self.counters.pages_fingerprinted += 1;
            self.contents[usize_of(place)] = content;
            let checkpoint =
                u32::try_from(self.counters.checkpoints).expect("a model makes fewer checkpoints");
            let known = KnownContent { place: small(place), checkpoint };
            let before = self.index.insert(content, known);
            let is_new = before.is_none_or(|before| before.checkpoint != checkpoint);
            self.fresh += usize::from(is_new);
        }
        self.changes_bytes += NEW_BYTES;
        self.point(page, Some(place));
        Ok(())
    }

    fn find_equal(&mut self, content: u128) -> Option<u64> {
        let KnownContent { place, checkpoint } = *self.index.get(&content)?;
        if u64::from(checkpoint) != self.counters.checkpoints {
            // Not in the table in memory any more: a block of a run says it.
            #[expect(clippy::cast_possible_truncation, reason = "each half of a hash is one")]
            let block = content as u64 % self.layout.index_blocks;
            self.lookups.push(self.layout.index_at + block * BLOCK);
        }
        let place = u64::from(place);
        if self.references(place) == 0 || self.contents[usize_of(place)] != content {
            return None;
        }
        if self.compare && !self.staged.contains(&place) {
            self.counters.pages_compared += 1;
            self.lookups.push(self.layout.page_at(place));
        }
        Some(place)
    }

    fn allocate(&mut self) -> Result<u64> {
        while let Some((segment, within)) = self.free.candidate(&self.used) {
            let pages = segment * SEGMENT_PAGES + within..(segment + 1) * SEGMENT_PAGES;
            let is_free = |place: &u64| match self.references[usize_of(*place)] {
                UNTOUCHED => *place >= self.filled,
                references => references == 1,
            };
            if let Some(page) = pages.clone().find(is_free) {
                self.free.found(page);
                return Ok(page);
            }
            self.free.exhausted();
        }
        Err(Error::Full { volume: "outline".to_owned() })
    }

    fn point(&mut self, page: u64, place: Option<u64>) {
        let old = self.place(page);
        self.map[usize_of(page)] = place.map_or(UNMAPPED, |place| small(place) + 1);
        self.dirty.insert(page / MAP_ENTRIES);
        let Some(old) = old else { return };
        let left = self.references(old) - 1;
        self.set_references(old, left);
        if left == 0 {
            self.references[usize_of(old)] = PENDING;
            self.pending.push(old);
            self.staged.remove(&old);
        }
    }

    /// Makes `count` volume pages from `page` on read as zeros.
    pub(super) fn unmap(&mut self, page: u64, count: u64) {
        let (mut at, end) = (page, page + count);
        while at < end {
            let next = end.min((at / MAP_ENTRIES + 1) * MAP_ENTRIES);
            for page in at..next {
                if self.place(page).is_some() {
                    self.point(page, None);
                }
            }
            self.changes_bytes += UNMAP_BYTES;
            self.commit_if_much();
            at = next;
        }
    }

    pub(super) fn free_pending(&mut self) {
        for place in std::mem::take(&mut self.pending) {
            self.references[usize_of(place)] = 1;
            self.free.give(&mut self.used, place);
        }
    }
}
