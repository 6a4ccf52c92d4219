//! The store on the data members: maps, reference counts, free pages, and the deduplication engine in
//! the four steps of the dissertation (chapter 5.3.2).
//!
//! ```text
//!   put(page, bytes) ── 1. bytes come from the buffer ── 2. fingerprint ── 3. look up in the index
//!        ── 4a. found, and its bytes are these: the volume page shares the stored page, nothing is written
//!        ── 4b. fresh: a free page is taken, in order, and the bytes are staged
//!   commit ── staged pages, whole stripes ── sync ── transaction ── sync ── pages that it freed are free
//! ```
//!
//! The states of a stored page:
//!
//! | state | references | becomes |
//! |---|---|---|
//! | free | 0 | staged, by a fresh put |
//! | staged | 1 or more; the bytes are in memory | stored, when they are written |
//! | stored | 1 or more | shared, by an equal put; pending, when the last volume page leaves it |
//! | pending | 0; the last durable transaction still needs it | free, by the next commit |

mod allocate;
mod commit;
mod recover;
mod staged;
mod window;

pub(crate) use recover::{create, layout_of};

use std::collections::HashSet;
use std::sync::Arc;

use merganser_storage::numbers::{u64_of, usize_of};
use merganser_storage::{Storage, StorageExt};

use crate::bytes::{BLOCK, PAGE, PageBytes, put_u32, put_u64, u32_at, u64_at};
use crate::counters::VolumeCounters;
use crate::error::{Error, Result};
use crate::fingerprint::{self, FINGERPRINT_BYTES, Fingerprint};
use crate::index::DedupIndex;
use crate::journal::{MapChange, MapJournal};
use crate::layout::{MAP_ENTRIES, SEGMENT_PAGES, VolumeLayout};
use crate::log::RingPlace;
use crate::settings::{BATCH_PAGES, Hash, OpenOptions};
use crate::superblock::Superblock;
use crate::table::Tables;
pub(crate) use allocate::Free;
use staged::Staged;
use window::PageWindow;

/// Bytes of changes, at least and at most, after which they are committed without being asked. The least fits
/// the smallest journal.
const CHANGES_BYTES: (u64, u64) = (48 << 10, 1 << 20);
/// Freed pages after which the changes are committed, too.
pub(crate) const PENDING_PAGES_MAX: usize = 16 * BATCH_PAGES;
const SEGMENT_ENTRY: usize = 8 + FINGERPRINT_BYTES;
const UNMAPPED: u64 = 0;
const LOST: u64 = u64::MAX;

/// The entry of a segment block for one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) references: u32,
    pub(crate) crc: u32,
    pub(crate) fingerprint: Fingerprint,
}

impl Stored {
    pub(crate) fn decode(entries: &[u8], page: u64) -> Stored {
        let at = usize_of(page % SEGMENT_PAGES) * SEGMENT_ENTRY;
        Stored {
            references: u32_at(entries, at),
            crc: u32_at(entries, at + 4),
            fingerprint: entries[at + 8..at + SEGMENT_ENTRY].try_into().expect("its length"),
        }
    }

    pub(crate) fn encode(&self, entries: &mut [u8], page: u64) {
        let at = usize_of(page % SEGMENT_PAGES) * SEGMENT_ENTRY;
        put_u32(entries, at, self.references);
        put_u32(entries, at + 4, self.crc);
        entries[at + 8..at + SEGMENT_ENTRY].copy_from_slice(&self.fingerprint);
    }
}

/// Where the bytes of a volume page are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredContent {
    Zeros,
    Stored { place: u64, crc: u32 },
}

/// Bytes of changes after which they are committed without being asked: a commit costs two syncs.
pub(crate) fn changes_bytes_max(layout: &VolumeLayout, options: &OpenOptions) -> usize {
    let (least, most) = CHANGES_BYTES;
    let journal_share = layout.journal_blocks * BLOCK / 8;
    let bytes = journal_share.min(options.memory_bytes / 16).clamp(least, most);
    usize::try_from(bytes).expect("at most 1 MiB")
}

/// The store.
pub(crate) struct PageStore {
    pub(crate) name: String,
    array: Arc<dyn Storage>,
    pub(crate) layout: VolumeLayout,
    tables: Tables,
    journal: MapJournal,
    index: Option<DedupIndex>,
    hash: Option<Hash>,
    compare: bool,
    superblock: Superblock,
    free: Free,
    /// Pages without references that the last durable transaction still needs.
    pending: HashSet<u64>,
    staged: Staged,
    window: PageWindow,
    /// Whether pages were written since the last sync.
    unsynced: bool,
    changes: Vec<u8>,
    changes_bytes_max: usize,
    /// Whether the maps have something that a replay of the journal may make otherwise: a block could not be used when
    /// a change needed it, and perhaps it can when the change is repeated. The next commit is a checkpoint then.
    diverged: bool,
    /// The first record of the log that has not moved; durable with the next commit.
    pub(crate) log_tail: RingPlace,
    /// The last record of the log that is known to be durable.
    pub(crate) log_synced: u64,
    pub(crate) counters: VolumeCounters,
}

impl PageStore {
    /// The entry of the map for a volume page: 0, [`LOST`], or a stored page plus one.
    fn entry(&mut self, page: u64) -> Result<u64> {
        let entries = self.tables.read(page / MAP_ENTRIES)?;
        Ok(u64_at(entries, usize_of(page % MAP_ENTRIES) * 8))
    }

    /// The entry of a volume page that is about to change. If its map block is damaged, nothing is known of the
    /// block's pages any more: they are lost, and writes make them good again.
    fn entry_to_change(&mut self, page: u64) -> Result<u64> {
        match self.entry(page) {
            Err(Error::Damaged { .. }) => {
                self.diverged = true;
                self.tables.replace(page / MAP_ENTRIES, LOST)?;
                self.entry(page)
            }
            other => other,
        }
    }

    /// The stored page that the map names for a volume page.
    pub(crate) fn place_of(&mut self, page: u64) -> Result<Option<u64>> {
        let entry = self.entry(page)?;
        Ok((entry != UNMAPPED && entry != LOST).then(|| entry - 1))
    }

    /// Gives `error` back unless the data members answer at all: the superblock can be read. If they don't, no part of
    /// them is given up.
    fn answers(&self, error: Error) -> Result<()> {
        self.array.read_at(0, &mut [0; PAGE]).map_or(Err(error), |_| Ok(()))
    }

    fn stored(&mut self, place: u64) -> Result<Stored> {
        if place >= self.layout.pages() {
            return Err(Error::Damaged {
                volume: self.name.clone(),
                what: "stored page",
                number: place,
                detail: "a map block names it, and there are fewer".to_owned(),
            });
        }
        let entries = self.tables.read(self.layout.map_blocks + place / SEGMENT_PAGES)?;
        Ok(Stored::decode(entries, place))
    }

    fn set_stored(&mut self, place: u64, stored: &Stored) -> Result<()> {
        let entries = self.tables.write(self.layout.map_blocks + place / SEGMENT_PAGES)?;
        stored.encode(entries, place);
        Ok(())
    }

    /// Where the bytes of a volume page are.
    pub(crate) fn locate(&mut self, page: u64) -> Result<StoredContent> {
        let entry = self.entry(page)?;
        match entry {
            UNMAPPED => Ok(StoredContent::Zeros),
            LOST => Err(Error::Lost { volume: self.name.clone(), page }),
            entry => {
                let place = entry - 1;
                if place >= self.layout.pages() {
                    return Err(self.damaged("map entry", page, "it points behind the last page"));
                }
                let stored = self.stored(place)?;
                if stored.references == 0 {
                    return Err(self.damaged("map entry", page, "it points to a free page"));
                }
                Ok(StoredContent::Stored { place, crc: stored.crc })
            }
        }
    }

    fn damaged(&self, what: &'static str, number: u64, detail: &str) -> Error {
        Error::Damaged { volume: self.name.clone(), what, number, detail: detail.to_owned() }
    }

    /// Reads volume pages from `page` on into `out`, which is whole pages.
    pub(crate) fn read(&mut self, page: u64, out: &mut [u8]) -> Result<()> {
        let count = out.len() / PAGE;
        let mut at = 0;
        while at < count {
            let StoredContent::Stored { place, crc } = self.locate(page + u64_of(at))? else {
                out[at * PAGE..(at + 1) * PAGE].fill(0);
                at += 1;
                continue;
            };
            if let Some(staged) = self.staged.get(place) {
                out[at * PAGE..(at + 1) * PAGE].copy_from_slice(staged);
                at += 1;
                continue;
            }
            // Neighbours that are stored next to one another are one transfer.
            let mut crcs = vec![crc];
            while at + crcs.len() < count {
                let next = place + u64_of(crcs.len());
                match self.locate(page + u64_of(at + crcs.len()))? {
                    StoredContent::Stored { place, crc } if place == next => {
                        if self.staged.get(place).is_some() {
                            break;
                        }
                        crcs.push(crc);
                    }
                    _ => break,
                }
            }
            let bytes = &mut out[at * PAGE..(at + crcs.len()) * PAGE];
            self.read_stored(place, bytes)?;
            for (i, (bytes, crc)) in bytes.chunks(PAGE).zip(&crcs).enumerate() {
                if crc32c::crc32c(bytes) != *crc {
                    let (page, place) = (page + u64_of(at + i), place + u64_of(i));
                    self.window.clear();
                    let detail =
                        format!("its bytes, stored as page {place}, have a wrong checksum");
                    return Err(self.damaged("page", page, &detail));
                }
            }
            at += crcs.len();
        }
        self.counters.data_pages_read += u64_of(count);
        Ok(())
    }

    fn read_stored(&mut self, place: u64, out: &mut [u8]) -> Result<()> {
        // It may be on its way. If that fails, the next commit does, and the checksum shows it to readers.
        self.staged.land_at(place..place + u64_of(out.len() / PAGE));
        let at = self.layout.page_at(place);
        let count = self.array.read_at(at, out).map_err(Error::of_read)?;
        match count < out.len() {
            true => Err(self.damaged("stored page", place, "the member ends before it")),
            false => Ok(()),
        }
    }

    /// Gives a volume page these bytes.
    pub(crate) fn put(&mut self, page: u64, content: &PageBytes) -> Result<()> {
        match self.try_put(page, content) {
            Err(Error::Full { .. }) if !self.pending.is_empty() => {
                self.commit()?;
                self.try_put(page, content)
            }
            other => other,
        }?;
        self.commit_if_much()
    }

    /// Whether something was put, unmapped or lost since the last commit.
    pub(crate) fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    fn commit_if_much(&mut self) -> Result<()> {
        if self.changes.len() > self.changes_bytes_max || self.pending.len() > PENDING_PAGES_MAX {
            return self.commit();
        }
        if self.staged.is_full() { self.write_staged() } else { Ok(()) }
    }

    fn try_put(&mut self, page: u64, content: &PageBytes) -> Result<()> {
        let old = self.entry_to_change(page)?;
        let crc = crc32c::crc32c(content);
        let mut fingerprint = [0; FINGERPRINT_BYTES];
        if let Some(hash) = self.hash {
            if content.iter().all(|&byte| byte == 0) {
                self.counters.pages_fingerprinted += 1;
                self.counters.pages_duplicate += 1;
                self.counters.pages_zero += 1;
                if old != UNMAPPED {
                    self.change(page, MapChange::Unmap { page, count: 1 }, UNMAPPED)?;
                }
                return Ok(());
            }
            fingerprint = fingerprint::of_page(hash, content);
            if let Some(place) = self.find_equal(&fingerprint, crc, content)? {
                self.counters.pages_fingerprinted += 1;
                self.counters.pages_duplicate += 1;
                if old != place + 1 {
                    let mut stored = self.stored(place)?;
                    stored.references += 1;
                    self.set_stored(place, &stored)?;
                    self.change(page, MapChange::Map { page, place }, place + 1)?;
                }
                return Ok(());
            }
        }
        let place = self.allocate()?;
        self.counters.pages_fingerprinted += u64::from(self.hash.is_some());
        self.set_stored(place, &Stored { references: 1, crc, fingerprint })?;
        self.take(place);
        self.staged.insert(place, content)?;
        self.counters.pages_stored += 1;
        if let Some(index) = &mut self.index {
            index.insert(fingerprint::tag(&fingerprint), place);
        }
        self.change(page, MapChange::New { page, place, crc, fingerprint }, place + 1)
    }

    /// A stored page with these bytes, whose checksum is `crc`.
    fn find_equal(
        &mut self,
        fingerprint: &Fingerprint,
        crc: u32,
        content: &PageBytes,
    ) -> Result<Option<u64>> {
        let Some(index) = &mut self.index else { return Ok(None) };
        for place in index.candidates(fingerprint::tag(fingerprint)) {
            if place >= self.layout.pages() {
                continue;
            }
            let stored = match self.stored(place) {
                Ok(stored) => stored,
                Err(error) if error.is_damage() => continue,
                Err(error) => return Err(error),
            };
            let usable = (1..u32::MAX).contains(&stored.references);
            if !usable || stored.fingerprint != *fingerprint {
                continue;
            }
            if !self.compare || self.has_bytes(place, &stored, crc, content)? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Whether a stored page has these bytes now. A page that was damaged since has not: another page that shared
    /// it would be lost, too, although the user has just written its bytes.
    fn has_bytes(
        &mut self,
        place: u64,
        stored: &Stored,
        crc: u32,
        content: &PageBytes,
    ) -> Result<bool> {
        let there = if let Some(staged) = self.staged.get(place) {
            *staged
        } else {
            self.counters.pages_compared += 1;
            match self.read_to_compare(place) {
                Ok(there) => there,
                Err(error) if error.is_damage() => return Ok(false),
                Err(error) => return Err(error),
            }
        };
        let is_equal = there == *content && stored.crc == crc;
        if !is_equal && crc32c::crc32c(&there) == stored.crc {
            self.counters.pages_collided += 1;
        }
        Ok(is_equal)
    }

    /// The bytes of a stored page that isn't staged, as the members have them.
    fn read_to_compare(&mut self, place: u64) -> Result<PageBytes> {
        if let Some(page) = self.window.get(place) {
            return Ok(*page);
        }
        let end = (place + self.window.pages_from(place)).min(self.layout.pages());
        let followers = (place + 1..end).take_while(|&place| !self.staged.is_on_its_way(place));
        let mut bytes = vec![0; (1 + followers.count()) * PAGE];
        let read = self.read_stored(place, &mut bytes);
        if read.is_err() && bytes.len() > PAGE {
            // Perhaps another one of them can't be read.
            bytes.truncate(PAGE);
            self.read_stored(place, &mut bytes)?;
        } else {
            read?;
        }
        self.window.fill(place, bytes);
        Ok(*self.window.get(place).expect("it was read"))
    }

    /// Points a volume page to `entry`, releases its old page, and remembers `change` for the journal.
    fn change(&mut self, page: u64, change: MapChange, entry: u64) -> Result<()> {
        // The caller may have counted a reference, which the journal does not get then.
        let pointed = self.point(page, entry);
        self.diverged |= pointed.is_err();
        pointed?;
        change.encode(&mut self.changes);
        Ok(())
    }

    fn point(&mut self, page: u64, entry: u64) -> Result<()> {
        let old = self.entry_to_change(page)?;
        let entries = self.tables.write(page / MAP_ENTRIES)?;
        let at = usize_of(page % MAP_ENTRIES) * 8;
        put_u64(entries, at, entry);
        if old == UNMAPPED || old == LOST { Ok(()) } else { self.release(old - 1) }
    }

    /// Takes a reference from a stored page. Where its segment block is damaged or can't be read, the page stays in
    /// use: nothing is known of it, and the volume page must be writable again.
    fn release(&mut self, place: u64) -> Result<()> {
        let mut stored = match self.stored(place) {
            Ok(stored) => stored,
            Err(error) if error.is_damage() => {
                self.diverged = true;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        stored.references = stored.references.saturating_sub(1);
        self.set_stored(place, &stored)?;
        if stored.references == 0 && self.pending.insert(place) {
            self.staged.remove(place);
        }
        Ok(())
    }

    /// Makes `count` volume pages from `page` on read as zeros.
    pub(crate) fn unmap(&mut self, page: u64, count: u64) -> Result<()> {
        let end = page + count;
        let mut at = page;
        while at < end {
            let block = at / MAP_ENTRIES;
            let next = end.min((block + 1) * MAP_ENTRIES);
            if self.tables.is_written(block) {
                let count = u32::try_from(next - at).expect("a part of a block");
                self.unmap_in_block(at, next)?;
                MapChange::Unmap { page: at, count }.encode(&mut self.changes);
                self.commit_if_much()?;
            }
            at = next;
        }
        Ok(())
    }

    fn unmap_in_block(&mut self, from: u64, end: u64) -> Result<()> {
        for page in from..end {
            if self.entry_to_change(page)? != UNMAPPED {
                self.point(page, UNMAPPED)?;
            }
        }
        Ok(())
    }

    /// Marks the bytes of a volume page as lost to damage.
    pub(crate) fn lose(&mut self, page: u64) -> Result<()> {
        self.change(page, MapChange::Lost { page }, LOST)
    }

    /// The counters, with the counts of all parts since the volume was opened.
    pub(crate) fn counted(&self) -> VolumeCounters {
        let superblocks = 2 * BLOCK * self.counters.checkpoints;
        let mut counters = self.counters;
        counters.journal_bytes += self.journal.bytes_written;
        counters.table_bytes += self.tables.bytes_written + superblocks - self.checkpoints_before();
        counters.index_bytes += self.index.as_ref().map_or(0, |index| index.bytes_written);
        counters
    }

    /// Bytes of superblocks that the counters have already from earlier openings.
    fn checkpoints_before(&self) -> u64 {
        2 * BLOCK * self.free.checkpoints_at_open
    }

    /// Memory of caches and index now, in bytes, and index blocks found damaged.
    pub(crate) fn index_state(&self) -> (u64, u64) {
        let of = |index: &DedupIndex| (index.memory_bytes(), index.damaged_blocks);
        self.index.as_ref().map_or((0, 0), of)
    }

    /// Pages in use, and all pages, of the data members.
    pub(crate) fn pages_used(&self) -> (u64, u64) {
        (self.layout.pages() - self.free.pages, self.layout.pages())
    }

    /// The superblock of the last checkpoint.
    pub(crate) fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Notes the chunks that the labels have, for the superblock of the next checkpoint.
    pub(crate) fn set_chunk_bytes(&mut self, chunk_bytes: (u32, u32)) {
        self.superblock.chunk_bytes = chunk_bytes;
    }

    /// Forgets cached blocks, so that a check reads the members. Callers have committed.
    pub(crate) fn flush_for_check(&mut self) -> Result<()> {
        self.write_staged()?;
        self.tables.forget_clean();
        Ok(())
    }

    /// Half of the memory of the tables, in bytes, for a check. It ends with [`PageStore::end_check`].
    pub(crate) fn memory_for_check(&mut self) -> Result<u64> {
        self.tables.lend()
    }

    /// Gives the tables their memory back.
    pub(crate) fn end_check(&mut self) {
        self.tables.take_back();
    }

    /// Whether the map block of a volume page was ever written.
    pub(crate) fn is_map_written(&self, page: u64) -> bool {
        self.tables.is_written(page / MAP_ENTRIES)
    }

    /// References of a stored page, as its segment block says.
    pub(crate) fn references(&mut self, place: u64) -> Result<u32> {
        if !self.tables.is_written(self.layout.map_blocks + place / SEGMENT_PAGES) {
            return Ok(0);
        }
        Ok(self.stored(place)?.references)
    }

    /// Gives a stored page a number of references, which may be wrong.
    #[cfg(test)]
    pub(crate) fn count_wrongly(&mut self, place: u64, references: u32) -> Result<()> {
        let stored = self.stored(place)?;
        self.set_stored(place, &Stored { references, ..stored })
    }

    /// Checks every block of the index; the number of bad ones.
    pub(crate) fn verify_index(&self) -> u64 {
        self.index.as_ref().map_or(0, DedupIndex::verify)
    }
}
