//! What is in the buffer and counts: the newest bytes of a page, and trims that have not moved.
//!
//! ```text
//!   read of a page ── in the overlay? ── its block of the log
//!                  └─ trimmed?        ── zeros
//!                  └─ else            ── the store
//! ```

use std::collections::BTreeMap;

use foldhash::HashMap;

use super::State;
use crate::bytes::{PAGE, Page};
use crate::error::{Error, Result};
use crate::log::Resident;
use crate::log::record::{ENTRIES_MAX, Entry};
use crate::store::BATCH_PAGES;

/// Memory that a page of the overlay takes, in bytes.
pub(super) const SLOT_BYTES: u64 = 64;

/// Where the newest bytes of a page are in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    seq: u64,
    block: u64,
    pub(crate) crc: u32,
}

/// The newest of what is in the log.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    pub(crate) pages: HashMap<u64, Slot>,
    /// First page: end and record. They don't overlap, and no page of the overlay is older than its
    /// trim.
    trims: BTreeMap<u64, (u64, u64)>,
    /// Pages that were replaced before they moved.
    pub(super) absorbed: u64,
}

/// Where a read finds a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Log(Slot),
    Zeros,
    Store,
}

impl Overlay {
    /// Adds what record `seq` says. `block` is where the next page of the record is.
    pub(super) fn add(&mut self, seq: u64, entry: &Entry, block: &mut u64) {
        match *entry {
            Entry::Page { page, crc } => {
                let slot = Slot { seq, block: *block, crc };
                self.absorbed += u64::from(self.pages.insert(page, slot).is_some());
                *block += 1;
            }
            Entry::Trim { page, count } => self.trim(seq, page, page + u64::from(count)),
        }
    }

    fn trim(&mut self, seq: u64, from: u64, end: u64) {
        let before = self.pages.len();
        if end - from < before as u64 {
            for page in from..end {
                self.pages.remove(&page);
            }
        } else {
            self.pages.retain(|page, _| !(from..end).contains(page));
        }
        self.absorbed += (before - self.pages.len()) as u64;
        // What older trims cover on both sides stays theirs.
        let older: Vec<_> = self.trims.range(..end).rev().map(|(&a, &(b, s))| (a, b, s)).collect();
        for (a, b, s) in older.into_iter().take_while(|&(_, b, _)| b > from) {
            self.trims.remove(&a);
            if a < from {
                self.trims.insert(a, (from, s));
            }
            if b > end {
                self.trims.insert(end, (b, s));
            }
        }
        self.trims.insert(from, (end, seq));
    }

    pub(super) fn find(&self, page: u64) -> Found {
        if let Some(&slot) = self.pages.get(&page) {
            return Found::Log(slot);
        }
        match self.trims.range(..=page).next_back() {
            Some((_, &(end, _))) if page < end => Found::Zeros,
            _ => Found::Store,
        }
    }

    /// Forgets what records up to `seq` have brought.
    fn moved(&mut self, pages: &[u64], seq: u64) {
        for page in pages {
            if self.pages.get(page).is_some_and(|slot| slot.seq <= seq) {
                self.pages.remove(page);
            }
        }
        self.trims.retain(|_, &mut (_, of)| of > seq);
    }
}

impl State {
    /// Appends pages and trims to the log as records, in order. `bytes` are those of the pages.
    pub(super) fn append(&mut self, entries: &[Entry], bytes: &[&Page]) -> Result<()> {
        let mut bytes = bytes;
        for entries in entries.chunks(ENTRIES_MAX) {
            let pages = entries.iter().filter(|entry| matches!(entry, Entry::Page { .. })).count();
            let (own, rest) = bytes.split_at(pages);
            bytes = rest;
            self.make_room(pages)?;
            let log = self.log.as_mut().expect("callers have one");
            let (seq, mut block) = log.append(entries, own)?;
            self.store.counters.log_bytes += ((1 + pages) * PAGE) as u64;
            for entry in entries {
                self.overlay.add(seq, entry, &mut block);
            }
        }
        if self.durable_writes {
            self.log.as_mut().expect("callers have one").sync()?;
        }
        Ok(())
    }

    /// Waits, by moving the oldest records itself, until a record of `pages` pages has room, and until
    /// the buffer is below its high-water mark if that is possible.
    fn make_room(&mut self, pages: usize) -> Result<()> {
        loop {
            let log = self.log.as_ref().expect("callers have one");
            let must = !log.has_room(pages) || self.overlay.pages.len() + pages > self.overlay_max;
            let should = log.fill().1 > self.high_water_blocks;
            if !must && !should {
                return Ok(());
            }
            match self.migrate() {
                Ok(_) => {}
                // Above the mark the buffer still takes what it has room for.
                Err(Error::Full { .. }) if !must => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Says to the store what it secures of the log.
    pub(super) fn note_log(&mut self) {
        if let Some(log) = &self.log {
            self.store.log_tail = log.tail();
            self.store.log_synced = log.synced();
        }
    }

    /// Moves the oldest records, about [`BATCH_PAGES`] pages. Returns whether records are left.
    pub(super) fn migrate(&mut self) -> Result<bool> {
        let (mut count, mut moved, mut last_seq) = (0, Vec::new(), 0);
        let mut full = None;
        while moved.len() < BATCH_PAGES && count < 4 * BATCH_PAGES {
            let Some(resident) = self.log.as_ref().and_then(|log| log.resident(count)) else {
                break;
            };
            match self.move_record(&resident, &mut moved) {
                Ok(()) => {}
                Err(Error::Full { .. }) if self.trim_early()? => continue,
                Err(error @ Error::Full { .. }) => {
                    full = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            }
            last_seq = resident.place.seq;
            count += 1;
        }
        let Some(log) = &self.log else { return Ok(false) };
        if count > 0 {
            self.store.log_tail = log.place_after(count - 1);
            self.store.log_synced = log.synced().max(last_seq);
        }
        self.store.commit()?;
        let log = self.log.as_mut().expect("checked above");
        log.release(count);
        if count > 0 {
            self.overlay.moved(&moved, last_seq);
        }
        match full {
            Some(error) => Err(error),
            None => Ok(log.resident(0).is_some()),
        }
    }

    /// Does what trims in the log will do to the store: no record before a trim has pages in it that
    /// count, and those of later records don't need the store. Returns whether a page became free.
    fn trim_early(&mut self) -> Result<bool> {
        let before = self.store.pages_used().0;
        let trims = self.overlay.trims.iter().map(|(&from, &(end, _))| (from, end));
        for (from, end) in trims.collect::<Vec<_>>() {
            self.store.unmap(from, end - from)?;
        }
        self.store.commit()?;
        Ok(self.store.pages_used().0 < before)
    }

    /// Puts what a record holds and still counts into the store. Damaged pages become lost ones.
    fn move_record(&mut self, resident: &Resident, moved: &mut Vec<u64>) -> Result<()> {
        let seq = resident.place.seq;
        let log = self.log.as_ref().expect("it has the record");
        let (header, bytes) = match log.read(resident) {
            Ok(read) => read,
            Err(error) if error.is_damage() => return self.lose_record(seq, moved),
            Err(error) => return Err(error),
        };
        let mut block = resident.place.at + 1;
        let mut pages = bytes.chunks(PAGE);
        for entry in &header.entries {
            match *entry {
                Entry::Page { page, .. } => {
                    let content: &Page =
                        pages.next().expect("as many").try_into().expect("a whole page");
                    let slot = self.overlay.pages.get(&page).copied();
                    if let Some(slot) = slot.filter(|slot| (slot.seq, slot.block) == (seq, block)) {
                        if crc32c::crc32c(content) == slot.crc {
                            self.store.put(page, content)?;
                        } else {
                            self.store.lose(page)?;
                        }
                        moved.push(page);
                    }
                    block += 1;
                }
                Entry::Trim { page, count } => self.store.unmap(page, u64::from(count))?,
            }
        }
        Ok(())
    }

    /// A record can't be read any more: what is known of it is in the overlay.
    fn lose_record(&mut self, seq: u64, moved: &mut Vec<u64>) -> Result<()> {
        let pages = self.overlay.pages.iter().filter(|(_, slot)| slot.seq == seq);
        let pages: Vec<u64> = pages.map(|(&page, _)| page).collect();
        for page in pages {
            self.store.lose(page)?;
            moved.push(page);
        }
        let trims = self.overlay.trims.iter().filter(|(_, (_, of))| *of == seq);
        let trims: Vec<(u64, u64)> = trims.map(|(&from, &(end, _))| (from, end)).collect();
        for (from, end) in trims {
            self.store.unmap(from, end - from)?;
        }
        Ok(())
    }

    /// Reads a page that is in the log.
    pub(crate) fn read_buffered(&mut self, page: u64, slot: Slot, out: &mut [u8]) -> Result<()> {
        let log = self.log.as_ref().expect("the page is in it");
        log.read_page(slot.block, out)?;
        self.store.counters.buffer_pages_read += 1;
        if crc32c::crc32c(out) == slot.crc {
            return Ok(());
        }
        Err(Error::Damaged {
            volume: self.store.name.clone(),
            what: "page",
            number: page,
            detail: format!(
                "its bytes, in record {} of the buffer, have a wrong checksum",
                slot.seq
            ),
        })
    }
}
