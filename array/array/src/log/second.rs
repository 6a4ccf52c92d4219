//! The second copy of a record's first block: in the first block of the next record.

use merganser_storage::StorageExt;
use merganser_storage::numbers::{u64_of, usize_of};

use super::record::{ENTRIES_MAX, RecordFacts, RecordHeader};
use super::{Log, LogRing, Resident, RingPlace};
use crate::bytes::{BLOCK, PAGE, zeroed};
use crate::error::Result;

/// Blocks of the longest record whose first block has a copy.
const BLOCKS_MAX: u64 = 1 + u64_of(ENTRIES_MAX);

/// The record at the head, as the next one repeats it.
pub(super) struct Repeated {
    pub(super) resident: Resident,
    pub(super) facts: RecordFacts,
    /// The checksum that its first block had.
    pub(super) chain: u32,
    /// The block that has the copy.
    pub(super) found_at: u64,
}

/// Where a record of `pages` pages begins after `place`, as [`LogRing`] puts it.
fn placed(blocks: u64, place: RingPlace, pages: usize) -> Option<Resident> {
    let ring = LogRing::new(blocks, place);
    ring.fits(pages).then(|| ring.next(pages))
}

impl Log {
    /// All records that could be at the head, whose first block has a copy in the next one.
    pub(super) fn repeated(&self) -> Result<Vec<Repeated>> {
        let LogRing { head, blocks: all, .. } = self.ring;
        // The next record is behind it, or at the begin of the ring, or behind it there.
        let behind = head.at + 1..(head.at + 1 + BLOCKS_MAX).min(all);
        let first = 0..(1 + BLOCKS_MAX).min(all).min(behind.start.max(1 + BLOCKS_MAX));
        let mut found: Vec<Repeated> = Vec::new();
        for blocks in [behind, first] {
            let count = usize_of(blocks.end - blocks.start);
            let bytes = self.array.read_vec(blocks.start * BLOCK, count * PAGE)?;
            for (block, at) in bytes.chunks(PAGE).zip(blocks) {
                let known = found.iter().any(|other| other.found_at == at);
                let Some(next) = RecordHeader::decode(block).filter(|_| !known) else { continue };
                found.extend(self.before(next, at));
            }
        }
        Ok(found)
    }

    /// The record at the head, if `next`, which is at block `at`, is the one after it.
    fn before(&self, next: RecordHeader, at: u64) -> Option<Repeated> {
        let LogRing { head, blocks: all, .. } = self.ring;
        let facts = next.before.filter(|facts| facts.chain == head.chain)?;
        if (next.volume, next.seq) != (self.volume, head.seq + 1) {
            return None;
        }
        let resident = placed(all, head, facts.pages())?;
        let behind = (resident.place.at + resident.blocks) % all;
        let behind = RingPlace { at: behind, seq: next.seq, chain: next.facts.chain };
        let is_next = placed(all, behind, next.facts.pages())?.place.at == at;
        is_next.then_some(Repeated { resident, facts, chain: next.facts.chain, found_at: at })
    }

    /// Removes the copies of records that could be at the head, as [`Log::erase_dropped`] removes these.
    pub(super) fn erase_repeated(&self) -> Result<()> {
        for repeated in self.repeated()? {
            self.array.write_at(repeated.found_at * BLOCK, &zeroed()[..])?;
        }
        Ok(())
    }

    /// The first block of a record, as the next one repeats it.
    pub(super) fn second_copy(&self, resident: &Resident) -> Result<Option<RecordHeader>> {
        let (ring, seq) = (&self.ring, resident.place.seq);
        let first = ring.residents.front().map_or(0, |resident| resident.place.seq);
        let next = seq.checked_sub(first).and_then(|n| ring.residents.get(usize_of(n) + 1));
        let Some(next) = next else { return Ok(None) };
        let block = self.array.read_vec(next.place.at * BLOCK, PAGE)?;
        let next = RecordHeader::decode(&block).filter(|next| next.seq == seq + 1);
        let next = next.filter(|next| next.volume == self.volume);
        let facts = next.and_then(|next| next.before);
        Ok(facts.map(|facts| RecordHeader { volume: self.volume, seq, facts, before: None }))
    }

    /// Whether the last record has no second copy yet: nothing follows it.
    pub(crate) fn wants_second_copy(&self) -> bool {
        let is_kept = !self.ring.residents.is_empty();
        let has_entries = self.last.as_ref().is_some_and(|last| !last.entries.is_empty());
        is_kept && has_entries && self.ring.has_room(1)
    }
}
