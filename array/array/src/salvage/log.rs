//! The remains of the log: all first blocks of records, from either copy, and the pages behind them.

use std::collections::{BTreeMap, HashSet};

use merganser_storage::numbers::{u64_of, usize_of};

use super::Findings;
use super::blocks::Blocks;
use crate::bytes::{BLOCK, PageBytes};
use crate::log::record::{RecordEntry, RecordFacts, RecordHeader, chain_of};
use crate::log::{Known, LogRing, Resident, RingPlace};
use crate::overlay::{LogSlot, Overlay};

/// A first block that was found.
struct FoundHeader {
    at: u64,
    header: RecordHeader,
    chain: u32,
}

/// A record that counts.
struct SalvagedRecord {
    seq: u64,
    /// The block of its first page.
    first: u64,
    facts: RecordFacts,
}

/// The records that have not moved.
pub(super) struct SalvagedRecords {
    blocks: Blocks,
    pub(super) overlay: Overlay,
    /// The first record after the last one that is missing.
    certain_from: u64,
    /// Whether none is missing.
    pub(super) is_complete: bool,
    /// Whether a record shows that the data members are older.
    pub(super) data_are_older: bool,
    /// Pages of the records at the end, from the first one on that is not whole and not known to be durable. A power cut
    /// may have torn these, so each such page is given as it is there, and is not certain.
    pub(super) undecided: HashSet<u64>,
}

/// All first blocks of records of a volume, by number.
struct Scan {
    blocks: u64,
    found: BTreeMap<u64, Vec<FoundHeader>>,
}

impl Scan {
    fn new(array: &Blocks, blocks: u64, volume: [u8; 16]) -> Scan {
        let mut found: BTreeMap<u64, Vec<FoundHeader>> = BTreeMap::new();
        for at in 0..blocks {
            let Some(block) = array.block(at * BLOCK) else { continue };
            let header = RecordHeader::decode(&block[..]).filter(|header| header.volume == volume);
            if let Some(header) = header {
                let chain = chain_of(&block[..]);
                found.entry(header.seq).or_default().push(FoundHeader { at, header, chain });
            }
        }
        Scan { blocks, found }
    }

    fn of_seq(&self, seq: u64) -> impl Iterator<Item = &FoundHeader> {
        self.found.get(&seq).into_iter().flatten()
    }

    /// The record at `head`, from its own first block or from the copy in the next one: its place, what it says, and
    /// the checksum that its first block has or had.
    fn at_head(&self, head: RingPlace, known: &Known) -> Option<(Resident, RecordFacts, u32)> {
        let place = |place: RingPlace, pages: usize| {
            let ring = LogRing::new(self.blocks, place);
            (place.at < self.blocks && ring.fits(pages)).then(|| ring.next(pages))
        };
        let mut own = self.of_seq(head.seq).filter_map(|found| {
            let facts = &found.header.facts;
            let resident = place(head, facts.pages())?;
            let is_there = facts.chain == head.chain && resident.place.at == found.at;
            is_there.then(|| (resident, facts.clone(), found.chain))
        });
        let mut copies = self.of_seq(head.seq + 1).filter_map(|next| {
            let facts = next.header.before.as_ref()?;
            let resident = place(head, facts.pages())?;
            let behind = RingPlace {
                seq: head.seq + 1,
                at: (resident.place.at + resident.blocks) % self.blocks,
                chain: next.header.facts.chain,
            };
            let is_next = place(behind, next.header.facts.pages())?.place.at == next.at;
            let is_before = facts.chain == head.chain && is_next;
            is_before.then(|| (resident, facts.clone(), next.header.facts.chain))
        });
        let newest = |all: &mut dyn Iterator<Item = (Resident, RecordFacts, u32)>| {
            all.filter(|(_, facts, _)| could_write(facts.session, head.seq, known))
                .max_by_key(|(_, facts, _)| facts.session)
        };
        newest(&mut own).or_else(|| newest(&mut copies))
    }

    /// The first record after number `seq` whose own first block is left, and where it belongs.
    fn after(
        &self,
        seq: u64,
        known: &Known,
        is_in_place: impl Fn(&FoundHeader) -> bool,
    ) -> Option<&FoundHeader> {
        let later = self.found.range(seq + 1..);
        let could = |found: &&FoundHeader| {
            let facts = &found.header.facts;
            could_write(facts.session, found.header.seq, known) && is_in_place(found)
        };
        let mut newest = later.filter_map(|(_, all)| {
            all.iter().filter(could).max_by_key(|found| found.header.facts.session)
        });
        newest.next()
    }
}

/// Whether a session could write a record, as an opening judges it. One that the data members don't know yet could.
fn could_write(session: u64, seq: u64, known: &Known) -> bool {
    session > known.session || (session == known.session) == (seq >= known.opened)
}

impl SalvagedRecords {
    /// Finds those on `blocks` that have not moved. Without `known`, nothing is certain.
    pub(super) fn open(
        blocks: &Blocks,
        bytes: Option<u64>,
        volume: [u8; 16],
        known: Option<Known>,
        volume_pages: u64,
        findings: &mut Findings,
    ) -> SalvagedRecords {
        let count = bytes.unwrap_or_else(|| blocks.size()) / BLOCK;
        let scan = Scan::new(blocks, count, volume);
        let mut records = SalvagedRecords {
            blocks: blocks.clone(),
            overlay: Overlay::default(),
            certain_from: if known.is_some() { 0 } else { u64::MAX },
            is_complete: known.is_some(),
            data_are_older: false,
            undecided: HashSet::new(),
        };
        // Without a superblock, all sessions and numbers that are there count.
        let known = known.unwrap_or_else(|| Known {
            tail: scan_tail(&scan),
            synced: scan.found.keys().next_back().copied().unwrap_or(0),
            session: 0,
            checkpoint: 0,
            opened: 0,
        });
        let all = scan.found.values().flatten();
        records.data_are_older = all.clone().any(|found| {
            let facts = &found.header.facts;
            facts.session > known.session || facts.checkpoint > known.checkpoint
        });
        let synced = all.map(|found| found.header.facts.synced).fold(known.synced, u64::max);
        let mut is_torn = false;
        for record in records.walk(&scan, &known, synced, findings) {
            let sound: Vec<bool> = match record.seq > synced {
                true => records.sound_pages(record.first, &record.facts).collect(),
                false => Vec::new(),
            };
            if !is_torn && sound.contains(&false) {
                is_torn = true;
                findings.add(format!(
                    "{}: record {} is not whole, and it and those after it are not known to be durable",
                    blocks.name(),
                    record.seq
                ));
            }
            records.add(&record, volume_pages, is_torn.then_some(&sound));
        }
        records
    }

    /// The records from the tail on. Where one is missing, those before it are not certain any more.
    fn walk(
        &mut self,
        scan: &Scan,
        known: &Known,
        synced: u64,
        findings: &mut Findings,
    ) -> Vec<SalvagedRecord> {
        let (mut head, mut used, mut walked) = (known.tail, 0, Vec::new());
        while used < scan.blocks {
            if let Some((resident, facts, chain)) = scan.at_head(head, known) {
                used += resident.blocks + resident.skipped;
                let at = (resident.place.at + resident.blocks) % scan.blocks;
                let (seq, first) = (head.seq, resident.place.at + 1);
                walked.push(SalvagedRecord { seq, first, facts });
                head = RingPlace { seq: seq + 1, at, chain };
                continue;
            }
            if head.seq > synced {
                break;
            }
            self.is_complete = false;
            let in_place = |found: &FoundHeader| self.is_in_place(scan, found);
            let Some(next) = scan.after(head.seq, known, in_place) else {
                findings.add(format!(
                    "{}: the records from {} to {synced} are damaged",
                    self.blocks.name(),
                    head.seq
                ));
                self.certain_from = u64::MAX;
                break;
            };
            let seq = next.header.seq;
            findings.add(format!(
                "{}: the records from {} to {} are damaged",
                self.blocks.name(),
                head.seq,
                seq - 1
            ));
            let mut certain_from = seq;
            // Its own copy of the record before it, if that can have only one place.
            if let Some(facts) = &next.header.before
                && seq > head.seq + 1
                && let Some(start) = next.at.checked_sub(1 + u64_of(facts.pages()))
            {
                let facts = facts.clone();
                walked.push(SalvagedRecord { seq: seq - 1, first: start + 1, facts });
                certain_from = seq - 1;
            }
            self.certain_from = self.certain_from.max(certain_from);
            head = RingPlace { seq, at: next.at, chain: next.header.facts.chain };
        }
        walked
    }

    /// Whether a first block is where it was written, as far as pages and records behind it show: a disk may have put it
    /// elsewhere.
    fn is_in_place(&self, scan: &Scan, found: &FoundHeader) -> bool {
        let facts = &found.header.facts;
        let behind = (found.at + 1 + u64_of(facts.pages())) % scan.blocks;
        let follows =
            |next: &FoundHeader| next.header.facts.chain == found.chain && next.at == behind;
        let is_followed = scan.of_seq(found.header.seq + 1).any(follows);
        is_followed
            || facts.pages() == 0
            || self.sound_pages(found.at + 1, facts).any(|is_sound| is_sound)
    }

    /// Of each page of a record whose first page is in block `first`: whether it has its bytes.
    fn sound_pages<'a>(
        &'a self,
        first: u64,
        facts: &'a RecordFacts,
    ) -> impl Iterator<Item = bool> + 'a {
        let crcs = facts.entries.iter().filter_map(|entry| match entry {
            RecordEntry::Page { crc, .. } => Some(*crc),
            RecordEntry::Trim { .. } => None,
        });
        crcs.zip(first..).map(|(crc, block)| {
            let page = self.blocks.block(block * BLOCK);
            page.is_some_and(|page| crc32c::crc32c(&page[..]) == crc)
        })
    }

    /// Adds what a record says. If it may be torn, `sound` says which of its pages are there, and the others stay as
    /// they were.
    fn add(&mut self, record: &SalvagedRecord, volume_pages: u64, sound: Option<&Vec<bool>>) {
        let mut block = record.first;
        for entry in &record.facts.entries {
            let (page, count) = range_of(entry);
            let is_inside = page.checked_add(count).is_some_and(|end| end <= volume_pages);
            if let Some(sound) = sound {
                self.undecided.extend(page..page.saturating_add(count).min(volume_pages));
                if matches!(entry, RecordEntry::Page { .. })
                    && !sound[usize_of(block - record.first)]
                {
                    block += 1;
                    continue;
                }
            }
            if is_inside {
                self.overlay.add(record.seq, entry, &mut block);
            } else if matches!(entry, RecordEntry::Page { .. }) {
                block += 1;
            }
        }
    }

    /// Whether no later version of a page, or of a trim of it, in record `seq` can be missing.
    pub(super) fn is_certain(&self, page: u64, seq: u64) -> bool {
        seq >= self.certain_from && !self.undecided.contains(&page)
    }

    /// The record that trimmed a page.
    pub(super) fn trimmed_by(&self, page: u64) -> Option<u64> {
        let (_, &(end, seq)) = self.overlay.trims.range(..=page).next_back()?;
        (page < end).then_some(seq)
    }

    /// Reads a page that is here. Returns whether its bytes are those that were written.
    pub(super) fn read(&self, slot: LogSlot, out: &mut PageBytes) -> bool {
        let page = self.blocks.block(slot.block * BLOCK);
        let Some(page) = page.filter(|page| crc32c::crc32c(&page[..]) == slot.crc) else {
            return false;
        };
        out.copy_from_slice(&page[..]);
        true
    }
}

fn range_of(entry: &RecordEntry) -> (u64, u64) {
    match *entry {
        RecordEntry::Page { page, .. } => (page, 1),
        RecordEntry::Trim { page, count } => (page, u64::from(count)),
    }
}

/// The record with the lowest number, where no superblock says which one is the first that has not moved.
fn scan_tail(scan: &Scan) -> RingPlace {
    let first = scan.found.values().next().and_then(|all| all.first());
    first.map_or(RingPlace::default(), |found| RingPlace {
        seq: found.header.seq,
        at: found.at,
        chain: found.header.facts.chain,
    })
}
