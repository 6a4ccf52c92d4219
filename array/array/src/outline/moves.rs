//! Moves of an outline: the oldest records go from the buffer to the data members.

use super::{Access, BLOCK, Item, Moving, Outline, READ_BYTES_MAX, Step, Transfer};
use crate::error::{Error, Result};
use crate::label::Role;
use crate::log::RingPlace;
use crate::settings::BATCH_PAGES;

impl Outline {
    /// Begins to move the oldest records, before number `end`: the steps that do it, or `None` if there
    /// is no such record. When they have ended, call [`Outline::end_move`]. Until then the records stay
    /// in the buffer, and are read there.
    ///
    /// # Errors
    /// [`Error::Full`], when not even one record could move.
    ///
    /// # Panics
    /// When a move has not ended.
    pub fn begin_move(&mut self, end: u64) -> Result<Option<Vec<Step>>> {
        assert!(self.moving.is_none(), "one move at a time");
        let (mut records, mut items, mut last_seq) = (0, 0, 0);
        let mut pages = Vec::new();
        let mut reads: Vec<Transfer> = Vec::new();
        let mut full = None;
        while pages.len() < BATCH_PAGES && records < 4 * BATCH_PAGES {
            let resident = self.ring.residents.get(records).copied();
            let Some(resident) = resident.filter(|resident| resident.place.seq < end) else {
                break;
            };
            let count = usize::from(self.counts[records]);
            match self.move_record(items, count, resident.place, &mut pages) {
                Ok(()) => {}
                Err(Error::Full { .. }) if self.trim_early(resident.place.seq) => continue,
                Err(error) => {
                    full = Some(error);
                    break;
                }
            }
            let (offset, len) = (resident.place.at * BLOCK, resident.blocks * BLOCK);
            match reads.last_mut() {
                Some(last)
                    if last.offset + last.len == offset && last.len + len <= READ_BYTES_MAX =>
                {
                    last.len += len;
                }
                _ => {
                    let (role, access) = (Role::Buffer, Access::Read);
                    reads.push(Transfer { role, access, offset, len });
                }
            }
            last_seq = resident.place.seq;
            records += 1;
            items += count;
        }
        if records == 0 {
            return full.map_or(Ok(None), Err);
        }
        self.maps.log_tail = self.ring.place_after(records - 1).seq;
        self.maps.commit();
        self.moving = Some(Moving { records, items, pages, last_seq });
        let mut steps: Vec<Step> = reads.into_iter().map(Step::Transfer).collect();
        steps.push(Step::Wait);
        steps.append(&mut self.maps.steps);
        Ok(Some(steps))
    }

    /// The steps of [`Outline::begin_move`] have ended. Does nothing without a move.
    pub fn end_move(&mut self) {
        let Some(Moving { records, items, pages, last_seq }) = self.moving.take() else { return };
        self.ring.release(records);
        self.counts.drain(..records);
        self.items.drain(..items);
        self.overlay.moved(&pages, last_seq);
    }

    fn move_record(
        &mut self,
        from: usize,
        count: usize,
        place: RingPlace,
        moved: &mut Vec<u64>,
    ) -> Result<()> {
        let mut block = place.at + 1;
        for at in from..from + count {
            let Item { page, trimmed, content } = self.items[at];
            if trimmed > 0 {
                self.maps.unmap(page, u64::from(trimmed));
                continue;
            }
            let slot = self.overlay.pages.get(&page);
            if slot.is_some_and(|slot| (slot.seq, slot.block) == (place.seq, block)) {
                self.maps.put(page, content)?;
                moved.push(page);
            }
            block += 1;
        }
        Ok(())
    }

    /// As the volume does when it is full: the trims of records after `seq`, which moves now, make room
    /// early. This move has applied the other trims itself, and may have put pages since.
    fn trim_early(&mut self, seq: u64) -> bool {
        let before = self.maps.pages_used();
        let later = self.overlay.trims.iter().filter(|(_, (_, of))| *of > seq);
        let trims: Vec<(u64, u64)> = later.map(|(&from, &(end, _))| (from, end)).collect();
        for (from, end) in trims {
            self.maps.unmap(from, end - from);
        }
        self.maps.commit();
        self.maps.pages_used() < before
    }
}
