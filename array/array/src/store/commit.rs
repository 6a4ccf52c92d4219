//! Commits and checkpoints: what was put becomes durable.

use merganser_storage::StorageExt;
use merganser_storage::numbers::usize_of;

use super::PageStore;
use crate::error::Result;
use crate::fingerprint;
use crate::index::DedupIndex;
use crate::layout::SEGMENT_PAGES;
use crate::superblock::Superblock;

impl PageStore {
    /// Begins to write the staged pages.
    pub(super) fn write_staged(&mut self) -> Result<()> {
        let layout = self.layout;
        self.window.clear();
        let begun = self.staged.write(|place| layout.page_at(place));
        // Whatever became of it: some of it may have been written.
        self.unsynced |= *begun.as_ref().unwrap_or(&true);
        begun?;
        Ok(())
    }

    /// Writes the staged pages, and waits until no page is on its way any more.
    fn wait_for_staged(&mut self) -> Result<()> {
        self.write_staged()?;
        Ok(self.staged.wait_for_all()?)
    }

    /// Makes everything durable that was put, unmapped or lost, and [`PageStore::log_tail`], as one.
    pub(crate) fn commit(&mut self) -> Result<()> {
        if self.changes.is_empty() && self.log_tail == self.superblock.log_tail {
            return Ok(());
        }
        let mut due = self.journal.is_half_full();
        due |= self.index.as_ref().is_some_and(DedupIndex::is_full);
        // The journal gets no change that counts on something which a replay may not find. Until the superblock is
        // durable, an opening finds the state of the last commit.
        due |= self.diverged;
        if due || !self.journal.has_room(self.changes.len()) {
            return self.checkpoint(false);
        }
        self.wait_for_staged()?;
        if self.unsynced {
            self.array.sync()?;
            self.unsynced = false;
        }
        let changes = std::mem::take(&mut self.changes);
        self.append_transaction(changes)?;
        self.free_pending();
        Ok(())
    }

    fn append_transaction(&mut self, changes: Vec<u8>) -> Result<()> {
        self.journal.append(changes, self.log_tail, self.log_synced)?;
        self.array.sync()?;
        // The last transaction knows more of the log than the last checkpoint.
        self.superblock.log_tail = self.log_tail;
        self.superblock.log_synced = self.log_synced;
        Ok(())
    }

    /// Commits, and makes the members show that the last transaction, and the records of the log up to
    /// [`PageStore::log_synced`], were durable. Without that, damage to them after a power cut looks like a
    /// write that the cut tore.
    pub(crate) fn seal(&mut self) -> Result<()> {
        self.commit()?;
        if !self.journal.is_open_ended() && self.superblock.log_synced == self.log_synced {
            return Ok(());
        }
        if !self.journal.has_room(0) {
            return self.checkpoint(false);
        }
        self.append_transaction(Vec::new())
    }

    /// Begins this session: its number and the first record that it can write become durable.
    pub(crate) fn begin_session(&mut self, log_opened: u64) -> Result<()> {
        self.superblock.log_opened = log_opened;
        self.checkpoint(false)
    }

    /// Commits, and writes all tables, so that the journal is empty. `clean` says that the volume is
    /// closed.
    pub(crate) fn checkpoint(&mut self, clean: bool) -> Result<()> {
        self.wait_for_staged()?;
        self.free_pending();
        if let Some(mut index) = self.index.take() {
            let filled = self.fill_index(&mut index);
            self.index = Some(index);
            filled?;
        }
        let copy = 1 - self.superblock.states_copy;
        let states_sum = self.tables.prepare(copy)?;
        self.array.sync()?;
        self.unsynced = false;
        self.counters.checkpoints += 1;
        let superblock = Superblock {
            checkpoint: self.superblock.checkpoint + 1,
            states_copy: copy,
            states_sum,
            clean,
            journal: self.journal.head(),
            log_tail: self.log_tail,
            log_synced: self.log_synced,
            counters: self.counted(),
            runs: self.index.as_ref().map(DedupIndex::places).unwrap_or_default(),
            ..self.superblock.clone()
        };
        superblock.write(&*self.array)?;
        self.superblock = superblock;
        self.tables.committed();
        if let Some(index) = &mut self.index {
            index.committed();
        }
        self.journal.restart(self.superblock.session, self.superblock.checkpoint);
        self.changes.clear();
        self.diverged = false;
        Ok(())
    }

    /// Writes the index's table as a run. If many entries are stale, rebuilds the index first.
    fn fill_index(&mut self, index: &mut DedupIndex) -> Result<()> {
        if index.is_stale() {
            self.rebuild_index(index)?;
        }
        index.spill()
    }

    pub(super) fn rebuild_index(&mut self, index: &mut DedupIndex) -> Result<()> {
        index.clear();
        for segment in 0..self.layout.segments {
            if self.tables.used[usize_of(segment)] == 0 {
                continue;
            }
            for place in segment * SEGMENT_PAGES..(segment + 1) * SEGMENT_PAGES {
                match self.stored(place) {
                    Ok(stored) if stored.references > 0 => {
                        index.insert(fingerprint::tag(&stored.fingerprint), place);
                    }
                    Ok(_) => {}
                    Err(error) if error.is_damage() => break,
                    Err(error) => return Err(error),
                }
            }
            if index.is_full() {
                index.spill()?;
            }
        }
        Ok(())
    }
}
