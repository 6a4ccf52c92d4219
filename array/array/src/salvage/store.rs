//! The remains on the data members: the last checkpoint, and the journal after it.

use foldhash::HashMap;
use merganser_storage::numbers::{u64_of, usize_of};

use super::blocks::Blocks;
use super::{Findings, Trust};
use crate::bytes::{BLOCK, PageBytes, u32_at, u64_at};
use crate::journal::{MapChange, Transaction};
use crate::layout::{HEAD, MAP_ENTRIES, SEGMENT_PAGES, VolumeLayout};
use crate::log::{Known, RingPlace};
use crate::states::{self, BlockStates, states_of};
use crate::store::Stored;
use crate::superblock::Superblock;
use crate::table::{OLD_BLOCK, check_block, sum_of};

/// Entries of a map block for a page without content, and for one that was lost to damage.
const UNMAPPED: u64 = 0;
const LOST: u64 = u64::MAX;

/// Where the bytes of a page are, and their checksum, which was named at the same time.
#[derive(Debug, Clone, Copy)]
enum SalvagedPage {
    Zeros,
    Lost,
    Stored { place: u64, crc: u32 },
}

/// Maps and journal.
pub(super) struct SalvagedMaps {
    blocks: Blocks,
    layout: VolumeLayout,
    /// The states, if a copy of them is whole, and their checkpoint.
    states: Option<(BlockStates, u64)>,
    /// By page: what the journal says, and the number of the transaction.
    changed: HashMap<u64, (SalvagedPage, u64)>,
    /// The first transaction after the last one that is missing.
    certain_from: u64,
    /// Whether no page of the checkpoint is certain.
    pub(super) is_doubtful: bool,
    tail: RingPlace,
    synced: u64,
    /// A map block and a segment block that were used last.
    recent: [Option<(u64, Option<Box<PageBytes>>)>; 2],
}

impl SalvagedMaps {
    pub(super) fn open(
        blocks: Blocks,
        superblock: &Superblock,
        findings: &mut Findings,
    ) -> SalvagedMaps {
        let layout = superblock.layout(blocks.stripe());
        let mut maps = SalvagedMaps {
            blocks,
            layout,
            states: None,
            changed: HashMap::default(),
            certain_from: 0,
            is_doubtful: false,
            tail: superblock.log_tail,
            synced: superblock.log_synced,
            recent: [None, None],
        };
        let (copy, checkpoint) = (superblock.states_copy, superblock.checkpoint);
        match maps.read_states(copy, checkpoint, superblock.sum_of_states()) {
            Ok(states) => maps.states = Some((states, checkpoint)),
            Err(text) => {
                findings.add(text);
                // Those of the checkpoint before: where a slot has the content of then, it is given, and may be old.
                maps.is_doubtful = true;
                let before = checkpoint - 1;
                let states = maps.read_states(1 - copy, before, None);
                maps.states = states.ok().map(|states| (states, before));
            }
        }
        maps.replay(superblock, findings);
        maps
    }

    fn read_states(
        &self,
        copy: u8,
        checkpoint: u64,
        sum: Option<u32>,
    ) -> Result<BlockStates, String> {
        let at = states::copy_at(&self.layout, copy);
        let (mut payload, mut blocks) = (Vec::new(), Vec::new());
        for number in 0..self.layout.state_blocks {
            let damaged = |detail: &str| {
                let name = self.blocks.name();
                format!("{name}: block of states {number} is damaged: {detail}")
            };
            let block = self.blocks.block(at + number * BLOCK);
            let block = block.ok_or_else(|| damaged("it can't be read"))?;
            let own = states_of(&block[..], number, checkpoint);
            payload.extend_from_slice(own.map_err(|detail| damaged(&detail))?);
            blocks.push(block);
        }
        if sum.is_some_and(|sum| sum != states::sum_of(blocks.iter().map(|block| &block[..]))) {
            return Err(format!("{}: the states are damaged: {OLD_BLOCK}", self.blocks.name()));
        }
        Ok(BlockStates::decode(&self.layout, &payload))
    }

    /// The state that the log has to continue.
    pub(super) fn known(&self, superblock: &Superblock) -> Known {
        Known {
            tail: self.tail,
            synced: self.synced,
            session: superblock.session,
            checkpoint: superblock.checkpoint,
            opened: superblock.log_opened,
        }
    }

    /// All sound transactions of the volume after the checkpoint, by number.
    fn transactions(&self, superblock: &Superblock) -> Vec<(u64, Transaction)> {
        let (at, blocks) = (self.layout.journal_at, self.layout.journal_blocks);
        let base = self.states.as_ref().map_or(superblock.checkpoint, |(_, of)| *of);
        let mut found = Vec::new();
        for number in 0..blocks {
            let Some(first) = self.blocks.block(at + number * BLOCK) else { continue };
            let (seq, chain) = (u64_at(&first[..], 16), u32_at(&first[..], 24));
            let count = u64_of(Transaction::blocks(&first[..], seq, chain).unwrap_or(0));
            if count == 0 || count > blocks - number {
                continue;
            }
            let rest = (1..count).map(|n| self.blocks.block(at + (number + n) * BLOCK));
            let whole: Option<Vec<_>> = std::iter::once(Some(first)).chain(rest).collect();
            let bytes: Option<Vec<u8>> =
                whole.map(|blocks| blocks.iter().flat_map(|block| block.iter().copied()).collect());
            let Some(transaction) = bytes.and_then(|bytes| Transaction::decode(&bytes)) else {
                continue;
            };
            let is_after = match superblock.version >= 3 {
                true => transaction.checkpoint >= base,
                false => {
                    let of_session = transaction.session == superblock.session;
                    of_session && !superblock.clean && seq >= superblock.journal.seq
                }
            };
            if transaction.volume == superblock.volume && is_after {
                found.push((seq, transaction));
            }
        }
        found.sort_by_key(|(seq, _)| *seq);
        found
    }

    fn replay(&mut self, superblock: &Superblock, findings: &mut Findings) {
        let transactions = self.transactions(superblock);
        let mut stored: HashMap<u64, u32> = HashMap::default();
        let mut next = superblock.journal.seq;
        if let (true, Some((seq, _))) = (self.is_doubtful, transactions.first()) {
            next = *seq;
        }
        let mut checkpoint = superblock.checkpoint;
        for (seq, transaction) in transactions {
            // A later checkpoint may have changed what no transaction says.
            let is_later = superblock.version >= 3 && transaction.checkpoint > checkpoint;
            if seq != next || is_later {
                let name = self.blocks.name();
                findings.add(match is_later {
                    true => format!("{name}: the superblock is older than transaction {seq}"),
                    false => {
                        format!("{name}: the transactions from {next} to {} are damaged", seq - 1)
                    }
                });
                self.is_doubtful = true;
                self.certain_from = seq;
            }
            next = seq + 1;
            checkpoint = checkpoint.max(transaction.checkpoint);
            let mut rest = &transaction.changes[..];
            while let Some(change) = MapChange::decode(&mut rest) {
                self.apply(change, seq, &mut stored, findings);
            }
            if transaction.log_tail.seq >= self.tail.seq {
                self.tail = transaction.log_tail;
            }
            self.synced = self.synced.max(transaction.log_synced);
        }
    }

    fn apply(
        &mut self,
        change: MapChange,
        seq: u64,
        stored: &mut HashMap<u64, u32>,
        findings: &mut Findings,
    ) {
        let (page, count, kept) = match change {
            MapChange::New { page, place, crc, .. } => {
                stored.insert(place, crc);
                (page, 1, SalvagedPage::Stored { place, crc })
            }
            MapChange::Map { page, place } => {
                let crc = stored.get(&place).copied();
                let crc = crc.or_else(|| self.stored(place, findings).map(|stored| stored.crc));
                (page, 1, crc.map_or(SalvagedPage::Lost, |crc| SalvagedPage::Stored { place, crc }))
            }
            MapChange::Unmap { page, count } => (page, u64::from(count), SalvagedPage::Zeros),
            MapChange::Lost { page } => (page, 1, SalvagedPage::Lost),
        };
        let end = page.saturating_add(count).min(self.layout.volume_pages);
        self.changed.extend((page..end).map(|page| (page, (kept, seq))));
    }

    /// A table block of the checkpoint: `None` if it is damaged, and a block of zeros if it was never written.
    fn table_block(&mut self, block: u64, findings: &mut Findings) -> Option<&PageBytes> {
        let is_segment = block >= self.layout.map_blocks;
        let cached = matches!(&self.recent[usize::from(is_segment)], Some((of, _)) if *of == block);
        if !cached {
            let fetched = self.fetch(block);
            if let Err(detail) = &fetched {
                let (what, number) = match is_segment {
                    true => ("segment block", block - self.layout.map_blocks),
                    false => ("map block", block),
                };
                let name = self.blocks.name();
                findings.add(format!("{name}: {what} {number} is damaged: {detail}"));
            }
            self.recent[usize::from(is_segment)] = Some((block, fetched.ok()));
        }
        self.recent[usize::from(is_segment)].as_ref().and_then(|(_, page)| page.as_deref())
    }

    fn fetch(&self, block: u64) -> Result<Box<PageBytes>, String> {
        let (states, checkpoint) =
            self.states.as_ref().ok_or("the states that name it are damaged")?;
        let slot = match states.slots[usize_of(block)] {
            0 => return Ok(crate::bytes::zeroed()),
            slot @ (1 | 2) => slot - 1,
            _ => return Err("the states name a slot that there is not".to_owned()),
        };
        let page = self.blocks.block(self.layout.slot_at(block, slot));
        let page = page.ok_or("it can't be read")?;
        check_block(&page, block, *checkpoint)?;
        let is_old = states.sums.get(usize_of(block)).is_some_and(|&sum| sum != sum_of(&page));
        if is_old { Err(OLD_BLOCK.to_owned()) } else { Ok(page) }
    }

    /// What the checkpoint says of a stored page.
    fn stored(&mut self, place: u64, findings: &mut Findings) -> Option<Stored> {
        if place >= self.layout.pages() {
            return None;
        }
        let block = self.layout.map_blocks + place / SEGMENT_PAGES;
        let entries = &self.table_block(block, findings)?[HEAD..];
        Some(Stored::decode(entries, place)).filter(|stored| stored.references > 0)
    }

    /// Where a page is as of the checkpoint.
    fn of_checkpoint(&mut self, page: u64, findings: &mut Findings) -> SalvagedPage {
        let Some(block) = self.table_block(page / MAP_ENTRIES, findings) else {
            return SalvagedPage::Lost;
        };
        let entry = u64_at(&block[HEAD..], usize_of(page % MAP_ENTRIES) * 8);
        match entry {
            UNMAPPED => SalvagedPage::Zeros,
            LOST => SalvagedPage::Lost,
            entry => match self.stored(entry - 1, findings) {
                Some(stored) => SalvagedPage::Stored { place: entry - 1, crc: stored.crc },
                None => SalvagedPage::Lost,
            },
        }
    }

    pub(super) fn read(
        &mut self,
        page: u64,
        out: &mut PageBytes,
        findings: &mut Findings,
    ) -> Trust {
        let (kept, is_certain) = match self.changed.get(&page) {
            Some(&(kept, seq)) => (kept, seq >= self.certain_from),
            None => (self.of_checkpoint(page, findings), true),
        };
        match kept {
            SalvagedPage::Zeros => out.fill(0),
            SalvagedPage::Lost => return Trust::Lost,
            SalvagedPage::Stored { place, crc } => {
                let block = match place < self.layout.pages() {
                    true => self.blocks.block(self.layout.page_at(place)),
                    false => None,
                };
                match block.filter(|block| crc32c::crc32c(&block[..]) == crc) {
                    Some(block) => out.copy_from_slice(&block[..]),
                    None => {
                        let name = self.blocks.name();
                        findings.add(format!(
                            "{name}: page {page}, stored as page {place}, is damaged"
                        ));
                        return Trust::Lost;
                    }
                }
            }
        }
        if is_certain { Trust::Good } else { Trust::MayBeOld }
    }
}
