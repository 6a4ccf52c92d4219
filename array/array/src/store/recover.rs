//! A store is made, or opened: the last checkpoint, and the journal on top of it.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use merganser_storage::Storage;
use merganser_storage::numbers::usize_of;

use super::allocate::Free;
use super::staged::Staged;
use super::window::PageWindow;
use super::{LOST, PageStore, Stored, UNMAPPED, changes_bytes_max};
use crate::counters::VolumeCounters;
use crate::error::{Error, Result};
use crate::fingerprint;
use crate::index::DedupIndex;
use crate::journal::{self, MapChange, MapJournal, Transaction};
use crate::layout::{SEGMENT_PAGES, VolumeLayout};
use crate::log::RingPlace;
use crate::settings::{Hash, OpenOptions, VolumeSettings};
use crate::superblock::{Superblock, VERSION};
use crate::table::Tables;

/// The first place of a ring of volume `volume`.
fn first_place(volume: &[u8; 16]) -> RingPlace {
    RingPlace { seq: 1, at: 0, chain: crc32c::crc32c(volume) }
}

/// Writes what an empty store consists of. Table blocks and runs that another volume left there are never read,
/// because the states and the superblock name none.
pub(crate) fn create(
    array: &Arc<dyn Storage>,
    volume: [u8; 16],
    settings: &VolumeSettings,
    buffered: bool,
    layout: VolumeLayout,
    chunk_bytes: (u32, u32),
) -> Result<()> {
    journal::erase(&**array, &layout)?;
    let mut tables = Tables::new(Arc::clone(array), layout, 0);
    let states_sum = tables.prepare(0)?;
    merganser_storage::StorageExt::sync(&**array)?;
    let superblock = Superblock {
        version: VERSION,
        volume,
        checkpoint: 1,
        session: 1,
        volume_pages: layout.volume_pages,
        segments: layout.segments,
        journal_blocks: layout.journal_blocks,
        dedup: settings.dedup.is_some(),
        sha1: settings.dedup == Some(Hash::Sha1),
        compare: settings.compare && settings.dedup.is_some(),
        buffered,
        thin: settings.thin,
        clean: true,
        states_copy: 0,
        sums: layout.sums,
        states_sum,
        chunk_bytes,
        journal: first_place(&volume),
        log_tail: first_place(&volume),
        log_synced: 0,
        log_opened: 1,
        counters: VolumeCounters::default(),
        runs: Vec::new(),
    };
    superblock.write(&**array)
}

/// The layout that a superblock describes, if the array has room for it.
pub(crate) fn layout_of(
    superblock: &Superblock,
    array: &dyn Storage,
    stripe: u64,
) -> Result<VolumeLayout> {
    let layout = superblock.layout(stripe);
    if layout.end() > array.size() {
        return Err(Error::Damaged {
            volume: array.name().to_owned(),
            what: "superblock",
            number: superblock.checkpoint,
            detail: format!(
                "it needs {} bytes, and the members have {}",
                layout.end(),
                array.size()
            ),
        });
    }
    Ok(layout)
}

/// The error of a volume that stays closed because a block that the journal changes can't be read. It is not taken for
/// damaged: if it could be read after all, pages that are in use there would be stored into again.
fn keeps_closed(error: Error) -> Error {
    let Error::Unreadable(error) = error else { return error };
    let text = format!(
        "{error}; the volume opens when this block can be read, or with a copy of the member in which zeros stand for what can't be read: then only the pages of this block are lost"
    );
    Error::Unreadable(io::Error::new(error.kind(), text))
}

impl PageStore {
    /// Opens the store on `array` with its share of the memory in `options`. Nothing is written but
    /// the second superblock, where it differs; the caller makes a checkpoint.
    pub(crate) fn open(
        array: &Arc<dyn Storage>,
        volume: [u8; 16],
        stripe: u64,
        options: &OpenOptions,
    ) -> Result<PageStore> {
        let mut superblock = Superblock::read(&**array, true)?;
        let states_sum = superblock.sum_of_states();
        let transactions_of = superblock.transactions_of();
        if superblock.volume != volume {
            return Err(Error::Damaged {
                volume: array.name().to_owned(),
                what: "superblock",
                number: superblock.checkpoint,
                detail: "it is of another volume than the members' labels".to_owned(),
            });
        }
        if superblock.version < 2 {
            if !superblock.clean {
                return Err(Error::Unsupported {
                    volume: array.name().to_owned(),
                    detail: format!(
                        "its format has version {}, and it was not closed in order, so that its journal would have to be repeated; open and close it with the version of the program that made it",
                        superblock.version
                    ),
                });
            }
            // In version 1, bytes were compared only if the user asked for it.
            superblock.compare = superblock.dedup;
        }
        // The next checkpoint writes it.
        superblock.version = VERSION;
        let layout = layout_of(&superblock, &**array, stripe)?;
        let Superblock { checkpoint, states_copy, .. } = superblock;
        let hash = match (superblock.dedup, superblock.sha1) {
            (false, _) => None,
            (true, true) => Some(Hash::Sha1),
            (true, false) => Some(Hash::Blake3),
        };
        let for_index = if hash.is_some() { options.index_bytes() } else { 0 };
        let for_tables = options.store_bytes() - for_index;
        let tables = Tables::open(
            Arc::clone(array),
            layout,
            for_tables,
            checkpoint,
            states_copy,
            states_sum,
        )?;
        if tables.used.iter().any(|&used| u64::from(used) > SEGMENT_PAGES) {
            return Err(Error::Damaged {
                volume: array.name().to_owned(),
                what: "block of states",
                number: 0,
                detail: "a segment has more pages in use than pages".to_owned(),
            });
        }
        let (index, index_is_whole) = match hash {
            Some(_) => {
                let (index, whole) =
                    DedupIndex::open(Arc::clone(array), &layout, &superblock.runs, for_index)?;
                (Some(index), whole)
            }
            None => (None, true),
        };
        let (head, session) = (superblock.journal, superblock.session);
        let journal =
            MapJournal::new(Arc::clone(array), volume, &layout, head, session, transactions_of);
        let was_clean = superblock.clean;
        superblock.clean = false;
        let counters = superblock.counters;
        let mut store = PageStore {
            name: array.name().to_owned(),
            array: Arc::clone(array),
            layout,
            tables,
            journal,
            index,
            hash,
            compare: superblock.compare,
            log_tail: superblock.log_tail,
            log_synced: superblock.log_synced,
            superblock,
            free: Free::at_open(counters.checkpoints),
            pending: HashSet::new(),
            staged: Staged::new(Arc::clone(array)),
            window: PageWindow::default(),
            unsynced: false,
            changes: Vec::new(),
            changes_bytes_max: changes_bytes_max(&layout, options),
            diverged: false,
            counters,
        };
        store.free.count(&store.tables.used);
        if !was_clean {
            store.replay()?;
        }
        if !index_is_whole && let Some(mut index) = store.index.take() {
            let rebuilt = store.rebuild_index(&mut index);
            store.index = Some(index);
            rebuilt?;
        }
        store.superblock.session += 1;
        Ok(store)
    }

    fn replay(&mut self) -> Result<()> {
        while let Some(transaction) = self.journal.replay()? {
            let Transaction { log_tail, log_synced, changes, .. } = transaction;
            let mut rest = &changes[..];
            while !rest.is_empty() {
                let sound = MapChange::decode(&mut rest).filter(|change| self.is_possible(change));
                let Some(change) = sound else {
                    let number = self.journal.head().seq - 1;
                    return Err(self.damaged("transaction", number, "it has an impossible change"));
                };
                self.apply(change).map_err(keeps_closed)?;
            }
            self.free_pending();
            (self.log_tail, self.log_synced) = (log_tail, log_synced);
        }
        if let Some(later) = self.journal.beyond_end()? {
            let detail = format!("transaction {later} after it is there, so it was durable");
            return Err(self.damaged("transaction", self.journal.head().seq, &detail));
        }
        Ok(())
    }

    fn is_possible(&self, change: &MapChange) -> bool {
        let (volume, pages) = (self.layout.volume_pages, self.layout.pages());
        match *change {
            MapChange::New { page, place, .. } | MapChange::Map { page, place } => {
                page < volume && place < pages
            }
            MapChange::Unmap { page, count } => {
                page.checked_add(u64::from(count)).is_some_and(|end| end <= volume)
            }
            MapChange::Lost { page } => page < volume,
        }
    }

    /// Repeats a change of a durable transaction. Where the segment block of its stored page is damaged, the volume
    /// page still points there: reads give the error of the block, as for pages that were stored there earlier.
    fn apply(&mut self, change: MapChange) -> Result<()> {
        match change {
            MapChange::New { page, place, crc, fingerprint } => {
                let Some(before) = self.stored_if_sound(place)? else {
                    return self.point(page, place + 1);
                };
                let used = u64::from(self.tables.used[usize_of(place / SEGMENT_PAGES)]);
                let is_free = before.references == 0 && used < SEGMENT_PAGES;
                // Pages of a map block that was given up have not left their stored pages, as they had before the cut.
                if !is_free && !self.diverged {
                    let detail = "the journal stores into it, and it is not free";
                    return Err(self.damaged("stored page", place, detail));
                }
                self.set_stored(place, &Stored { references: 1, crc, fingerprint })?;
                if is_free {
                    self.take(place);
                }
                if let Some(index) = &mut self.index {
                    index.insert(fingerprint::tag(&fingerprint), place);
                }
                self.point(page, place + 1)
            }
            MapChange::Map { page, place } => {
                let Some(mut stored) = self.stored_if_sound(place)? else {
                    return self.point(page, place + 1);
                };
                if stored.references == 0 {
                    let detail = "the journal shares it, and it is free";
                    return Err(self.damaged("stored page", place, detail));
                }
                stored.references = stored.references.saturating_add(1);
                self.set_stored(place, &stored)?;
                self.point(page, place + 1)
            }
            MapChange::Unmap { page, count } => {
                for page in page..page + u64::from(count) {
                    if self.tables.is_written(page / crate::layout::MAP_ENTRIES) {
                        self.point(page, UNMAPPED)?;
                    }
                }
                Ok(())
            }
            MapChange::Lost { page } => self.point(page, LOST),
        }
    }

    /// The entry of a stored page, unless its segment block is damaged.
    fn stored_if_sound(&mut self, place: u64) -> Result<Option<Stored>> {
        match self.stored(place) {
            Ok(stored) => Ok(Some(stored)),
            Err(Error::Damaged { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
