//! The buffer of a volume: writes and trims go into the log, and move from there to the store.

use std::sync::Arc;

use merganser_storage::numbers::u64_of;
use merganser_storage::{Storage, StorageExt};

use super::VolumeParts;
use crate::bytes::{BLOCK, PAGE, PageBytes};
use crate::error::{Error, Result};
use crate::log::record::{ENTRIES_MAX, RecordEntry};
use crate::log::{Log, Resident};
use crate::overlay::{LogSlot, PageLocation, RECORD_BYTES, SLOT_BYTES};
use crate::settings::BATCH_PAGES;

/// The pages of a move.
#[derive(Default)]
struct Moved {
    /// Those that the store has now.
    pages: Vec<u64>,
    /// Whether others were left, because a later record has a newer version or a trim of them.
    left_some: bool,
}

impl VolumeParts {
    /// Appends pages and trims to the log as records, in order. `bytes` are those of the pages.
    pub(super) fn append(&mut self, entries: &[RecordEntry], bytes: &[&PageBytes]) -> Result<()> {
        let mut bytes = bytes;
        for entries in entries.chunks(ENTRIES_MAX) {
            let pages =
                entries.iter().filter(|entry| matches!(entry, RecordEntry::Page { .. })).count();
            let (own, rest) = bytes.split_at(pages);
            bytes = rest;
            self.make_room(pages)?;
            self.append_record(entries, own)?;
        }
        Ok(())
    }

    /// Appends a record for which there is room.
    fn append_record(&mut self, entries: &[RecordEntry], pages: &[&PageBytes]) -> Result<()> {
        let log = self.log.as_mut().expect("callers have one");
        log.checkpoint = self.store.superblock().checkpoint;
        let (seq, mut block) = log.append(entries, pages)?;
        self.store.counters.log_bytes += u64_of((1 + pages.len()) * PAGE);
        for entry in entries {
            self.overlay.add(seq, entry, &mut block);
        }
        Ok(())
    }

    /// Appends pages to the log.
    pub(super) fn append_pages(&mut self, pages: &[(u64, &PageBytes)]) -> Result<()> {
        let entry = |&(page, content): &(u64, &PageBytes)| RecordEntry::Page {
            page,
            crc: crc32c::crc32c(content),
        };
        let entries: Vec<RecordEntry> = pages.iter().map(entry).collect();
        let bytes: Vec<&PageBytes> = pages.iter().map(|&(_, content)| content).collect();
        self.append(&entries, &bytes)?;
        self.store.counters.pages_absorbed += std::mem::take(&mut self.overlay.absorbed);
        Ok(())
    }

    /// Whether a write of `pages` pages goes around the buffer, to the data members: it would have to wait for a
    /// move, and that costs more. A move of a page reads it from the log, and writes it to the data members, to
    /// make room for another one that is written to the log.
    pub(super) fn goes_around(&self, pages: usize) -> bool {
        self.around && (self.lacks_room(pages) || self.is_above_mark(pages))
    }

    /// Puts pages into the store. If the log has another version of a page, it goes to the log, too: the other
    /// version would come back with the next opening.
    pub(super) fn write_around(&mut self, pages: &[(u64, &PageBytes)]) -> Result<()> {
        let is_in_store =
            |&&(page, _): &&(u64, &PageBytes)| self.overlay.find(page) == PageLocation::Store;
        let (around, mut logged): (Vec<_>, Vec<_>) = pages.iter().partition(is_in_store);
        for (at, &(page, content)) in around.iter().enumerate() {
            match self.store.put(page, content) {
                Ok(()) => self.store.counters.pages_around += 1,
                // The log may have room yet.
                Err(Error::Full { .. }) => {
                    logged.extend(&around[at..]);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if logged.is_empty() { Ok(()) } else { self.append_pages(&logged) }
    }

    /// Whether the buffer has no room for `pages` more pages.
    fn lacks_room(&self, pages: usize) -> bool {
        let log = self.log.as_ref().expect("callers have one");
        // Trims make room where all is full, so that they don't wait for it.
        !log.has_room(pages) || (pages > 0 && self.is_directory_full(pages))
    }

    /// Whether the buffer is above its high-water mark, or its directory would be too large with `pages`
    /// more pages.
    fn is_above_mark(&self, pages: usize) -> bool {
        let log = self.log.as_ref().expect("callers have one");
        self.is_directory_full(pages) || log.fill().1 > self.high_water_blocks
    }

    fn is_directory_full(&self, pages: usize) -> bool {
        let log = self.log.as_ref().expect("callers have one");
        let memory = self.overlay.memory_bytes() + u64_of(log.records()) * RECORD_BYTES;
        memory + u64_of(pages) * SLOT_BYTES > self.directory_bytes_max
    }

    /// Waits, by moving the oldest records itself, until a record of `pages` pages has room, and until
    /// the buffer is below its high-water mark if that is possible.
    fn make_room(&mut self, pages: usize) -> Result<()> {
        while self.lacks_room(pages) || self.is_above_mark(pages) {
            match self.migrate() {
                Ok(_) => {}
                // Above the mark the buffer still takes what it has room for. Some records may have moved.
                Err(Error::Full { .. }) if !self.lacks_room(pages) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Passes the state of the log to the store, which makes it durable.
    pub(super) fn note_log(&mut self) {
        if let Some(log) = &self.log {
            self.store.log_tail = log.tail();
            self.store.log_synced = log.synced();
        }
    }

    /// Moves the oldest records, about [`BATCH_PAGES`] pages. Returns whether records are left.
    pub(super) fn migrate(&mut self) -> Result<bool> {
        let (mut count, mut moved, mut last_seq) = (0, Moved::default(), 0);
        let mut stopped = None;
        while moved.pages.len() < BATCH_PAGES && count < 4 * BATCH_PAGES {
            let Some(resident) = self.log.as_ref().and_then(|log| log.resident(count)) else {
                break;
            };
            match self.move_record(&resident, &mut moved) {
                Ok(()) => {}
                Err(Error::Full { .. }) if self.trim_early(resident.place.seq)? => continue,
                // The records before it have moved.
                Err(error) if matches!(error, Error::Full { .. }) || error.is_damage() => {
                    stopped = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            }
            last_seq = resident.place.seq;
            count += 1;
        }
        let Some(log) = &mut self.log else { return Ok(false) };
        if moved.left_some {
            // Else a cut could lose the newer version, and the older one is not in the log any more.
            log.sync()?;
        }
        if count > 0 {
            self.store.log_tail = log.place_after(count - 1);
            self.store.log_synced = log.synced().max(last_seq);
        }
        self.store.commit()?;
        let log = self.log.as_mut().expect("checked above");
        log.release(count);
        if count > 0 {
            self.overlay.moved(&moved.pages, last_seq);
        }
        match stopped {
            Some(error) => Err(error),
            None => Ok(log.resident(0).is_some()),
        }
    }

    /// Applies the trims of records after `seq`, which moves now, to the store early: no record before a
    /// trim has pages in it that count, and those of later records don't need the store. This move has
    /// applied the other trims itself, and may have put pages since that they would take away. Returns
    /// whether a page became free.
    fn trim_early(&mut self, seq: u64) -> Result<bool> {
        let before = self.store.pages_used().0;
        let later = self.overlay.trims.iter().filter(|(_, (_, of))| *of > seq);
        let trims: Vec<(u64, u64)> = later.map(|(&from, &(end, _))| (from, end)).collect();
        for (from, end) in trims {
            self.store.unmap(from, end - from)?;
        }
        self.store.commit()?;
        Ok(self.store.pages_used().0 < before)
    }

    /// Puts the pages of a record that still count into the store. Damaged and unreadable pages become lost ones.
    fn move_record(&mut self, resident: &Resident, moved: &mut Moved) -> Result<()> {
        let seq = resident.place.seq;
        let log = self.log.as_mut().expect("it has the record");
        let (header, bytes) = match log.read(resident) {
            Ok(read) => read,
            Err(error) if error.is_damage() => return self.save_record(seq, moved),
            Err(error) => return Err(error),
        };
        let mut block = resident.place.at + 1;
        let mut pages = bytes.chunks(PAGE);
        for entry in &header.facts.entries {
            match *entry {
                RecordEntry::Page { page, .. } => {
                    let content: &PageBytes =
                        pages.next().expect("as many").try_into().expect("a whole page");
                    let slot = self.overlay.pages.get(&page).copied();
                    if let Some(slot) = slot.filter(|slot| (slot.seq, slot.block) == (seq, block)) {
                        if crc32c::crc32c(content) == slot.crc {
                            self.store.put(page, content)?;
                        } else {
                            self.store.lose(page)?;
                        }
                        moved.pages.push(page);
                    } else {
                        moved.left_some = true;
                    }
                    block += 1;
                }
                RecordEntry::Trim { page, count } => self.store.unmap(page, u64::from(count))?,
            }
        }
        Ok(())
    }

    /// A record can't be read as a whole any more. The overlay knows which of its pages and trims count, and where the
    /// pages are.
    fn save_record(&mut self, seq: u64, moved: &mut Moved) -> Result<()> {
        // It may have had others.
        moved.left_some = true;
        // No page of the overlay is older than its trim.
        let trims = self.overlay.trims.iter().filter(|(_, (_, of))| *of == seq);
        let trims: Vec<(u64, u64)> = trims.map(|(&from, &(end, _))| (from, end)).collect();
        for (from, end) in trims {
            self.store.unmap(from, end - from)?;
        }
        let pages = self.overlay.pages.iter().filter(|(_, slot)| slot.seq == seq);
        let mut pages: Vec<(u64, LogSlot)> = pages.map(|(&page, &slot)| (page, slot)).collect();
        pages.sort_unstable_by_key(|(_, slot)| slot.block);
        let mut content = [0; PAGE];
        for (page, slot) in pages {
            let log = self.log.as_mut().expect("it has the record");
            match slot.read(log, &self.store.name, page, &mut content) {
                Ok(()) => self.store.put(page, &content)?,
                Err(error) if error.is_damage() => {
                    // If a member is only away for a while, it may still have all these pages.
                    if matches!(error, Error::Unreadable(_)) && !self.buffer_answers() {
                        return Err(error);
                    }
                    self.store.lose(page)?;
                }
                Err(error) => return Err(error),
            }
            moved.pages.push(page);
        }
        Ok(())
    }

    /// Whether each buffer member can read its label.
    fn buffer_answers(&self) -> bool {
        let mut label = [0; PAGE];
        let mut answers =
            |member: &Arc<dyn Storage>, copy| member.read_at(copy * BLOCK, &mut label).is_ok();
        self.buffer.iter().all(|member| answers(member, 0) || answers(member, 1))
    }

    /// Reads a page that is in the log.
    pub(super) fn read_buffered(&mut self, page: u64, slot: LogSlot, out: &mut [u8]) -> Result<()> {
        let log = self.log.as_mut().expect("the page is in it");
        self.store.counters.buffer_pages_read += 1;
        slot.read(log, &self.store.name, page, out)
    }

    /// Makes it visible on the members that all that was flushed is durable.
    pub(super) fn seal(&mut self) -> Result<()> {
        if let Some(log) = &mut self.log {
            log.write()?;
        }
        self.end_log()?;
        self.note_log();
        self.store.seal()
    }

    /// Writes a record without entries, which has the second copy of the last one, if all records are durable.
    pub(super) fn end_log(&mut self) -> Result<()> {
        let is_wanted = |log: &Log| log.is_synced() && log.wants_second_copy();
        if self.log.as_ref().is_some_and(is_wanted) {
            self.append_record(&[], &[])?;
            self.log.as_mut().expect("looked at").sync()?;
        }
        Ok(())
    }
}
