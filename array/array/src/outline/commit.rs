//! Commits and checkpoints of an outline, as steps.

use merganser_storage::numbers::{u64_of, usize_of};

use super::maps::OutlineMaps;
use super::{Access, BLOCK, Step, Transfer, sync};
use crate::index::run::blocks_of;
use crate::label::Role;

/// Bytes of a transaction before its changes.
const HEAD: usize = crate::journal::HEAD;

impl OutlineMaps {
    fn transfer(&mut self, access: Access, transfers: impl Iterator<Item = (u64, u64)>) {
        let before = self.steps.len();
        let of = |(offset, len)| Step::Transfer(Transfer { role: Role::Data, access, offset, len });
        self.steps.extend(transfers.map(of));
        if self.steps.len() > before {
            self.steps.push(Step::Wait);
        }
    }

    /// Fingerprints and look-ups since the last step.
    fn flush_engine(&mut self) {
        if self.hashed > 0 {
            self.steps.extend([Step::Hash(std::mem::take(&mut self.hashed)), Step::Wait]);
        }
        let lookups = std::mem::take(&mut self.lookups);
        self.transfer(Access::Read, lookups.into_iter().map(|at| (at, BLOCK)));
    }

    /// Writes the staged pages, neighbours in one transfer.
    pub(super) fn write_staged(&mut self) {
        self.flush_engine();
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for place in std::mem::take(&mut self.staged) {
            let at = self.layout.page_at(place);
            match runs.last_mut() {
                Some((first, len)) if *first + *len == at => *len += BLOCK,
                _ => runs.push((at, BLOCK)),
            }
        }
        self.unsynced |= !runs.is_empty();
        self.transfer(Access::Write, runs.into_iter());
    }

    /// Makes all changes durable.
    pub(super) fn commit(&mut self) {
        if self.changes_bytes == 0 && self.log_tail == self.log_tail_durable {
            return self.flush_engine();
        }
        let blocks = (HEAD + self.changes_bytes).div_ceil(usize_of(BLOCK));
        let is_half_full = self.journal.used * 2 > self.journal.blocks;
        if is_half_full || self.fresh >= self.fresh_max || !self.journal.fits(blocks - 1) {
            return self.checkpoint();
        }
        self.write_staged();
        if std::mem::take(&mut self.unsynced) {
            self.steps.extend(sync(Role::Data));
        }
        let place = self.journal.next(blocks - 1);
        self.journal.advance(&place, 0);
        let at = self.layout.journal_at + place.place.at * BLOCK;
        self.transfer(Access::Write, std::iter::once((at, u64_of(blocks) * BLOCK)));
        self.steps.extend(sync(Role::Data));
        self.counters.journal_bytes += u64_of(blocks) * BLOCK;
        self.changes_bytes = 0;
        self.log_tail_durable = self.log_tail;
        self.free_pending();
    }

    fn checkpoint(&mut self) {
        self.write_staged();
        self.free_pending();
        self.counters.checkpoints += 1;
        // The table of new fingerprints becomes a run; its place rotates over the index.
        let run = blocks_of(u64_of(std::mem::take(&mut self.fresh))).min(self.layout.index_blocks);
        if self.index_at + run > self.layout.index_blocks {
            self.index_at = 0;
        }
        let run_at = self.layout.index_at + self.index_at * BLOCK;
        self.index_at += run;
        let slot = u8::from(!self.counters.checkpoints.is_multiple_of(2));
        let dirty = self.dirty.take();
        let blocks = dirty.iter().map(|&block| (self.layout.slot_at(block, slot), BLOCK));
        let mut writes: Vec<(u64, u64)> = blocks.collect();
        let states = self.layout.state_blocks * BLOCK;
        writes.push((self.layout.states_at + u64::from(slot) * states, states));
        let tables: u64 = writes.iter().map(|write| write.1).sum();
        self.counters.table_bytes += tables + 2 * BLOCK;
        self.counters.index_bytes += run * BLOCK;
        if run > 0 {
            writes.push((run_at, run * BLOCK));
        }
        for writes in writes.chunks(crate::bulk::IN_FLIGHT) {
            self.transfer(Access::Write, writes.iter().copied());
        }
        self.steps.extend(sync(Role::Data));
        for copy in 0..2 {
            self.transfer(Access::Write, std::iter::once((copy * BLOCK, BLOCK)));
            self.steps.extend(sync(Role::Data));
        }
        self.unsynced = false;
        self.journal.used = 0;
        self.changes_bytes = 0;
        self.log_tail_durable = self.log_tail;
    }
}
