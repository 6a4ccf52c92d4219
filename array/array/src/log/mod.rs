//! The write buffer: a log on the hard disks. Docs: docs/array/array.md, "Log".
//!
//! ```text
//!   buffer array   │ … free │ record 7 │ record 8 │ record 9 │ free … │
//!                            ▲ tail: moves next                ▲ head: the next write
//! ```
//!
//! A record is a block that lists its pages and trims, and then the pages. Writes only ever go to the head, which
//! is what a hard disk is fast at. Records leave at the tail, when all that they hold is durable on the
//! data members.

mod outgoing;
pub(crate) mod record;
mod ring;
mod second;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use merganser_storage::numbers::{u64_of, usize_of};
use merganser_storage::{Completion, Completions, Operation, Storage, StorageExt};

use crate::bytes::{BLOCK, NUMBER_MAX, PAGE, PageBytes, zeroed};
use crate::error::{Error, Result};
use outgoing::Outgoing;
use record::{ENTRIES_MAX, ENTRIES_READ_MAX, RecordEntry, RecordFacts, RecordHeader};
pub(crate) use ring::{LogRing, Resident, RingPlace};
use second::Repeated;

/// Blocks that are written without a sync at most: 32 MiB. It bounds what recovery has to remember, and
/// how far behind a damaged record the proof is that it was durable.
const UNSYNCED_BLOCKS_MAX: u64 = 8192;
/// Blocks after which a sync begins while others are written. When it ends, half of the most is left for them.
const SYNC_FROM_BLOCKS: u64 = UNSYNCED_BLOCKS_MAX / 2;
/// Blocks that recovery reads at once when it looks for that proof.
const SCAN_BLOCKS: u64 = 256;

/// The log.
pub(crate) struct Log {
    array: Arc<dyn Storage>,
    volume: [u8; 16],
    session: u64,
    /// The last checkpoint of the data members, which records name.
    pub(crate) checkpoint: u64,
    ring: LogRing,
    /// The last record, which the next one repeats.
    last: Option<RecordFacts>,
    /// The last record that is durable.
    synced: u64,
    /// Blocks that were written after it.
    unsynced_blocks: u64,
    /// A sync that continues while records are added.
    syncing: Option<Syncing>,
    /// Records that [`Log::recover`] found and dropped: not whole, and not known to be durable.
    dropped: u64,
    /// Records on their way to the members.
    outgoing: Outgoing,
}

/// A sync under way.
struct Syncing {
    completions: Completions,
    /// The last record that it makes durable.
    last: u64,
    /// Blocks that were not durable when it began.
    blocks: u64,
}

/// The state of the log, as the data members know it when a volume is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    /// The first record that has not moved.
    pub(crate) tail: RingPlace,
    /// The last record that is known to be durable.
    pub(crate) synced: u64,
    /// The last session that was begun; 0 before the first.
    pub(crate) session: u64,
    /// The last checkpoint.
    pub(crate) checkpoint: u64,
    /// The first record that this session could write. So earlier records are of earlier sessions, and
    /// it and later ones are of this session: a record that an opening dropped can't come back.
    pub(crate) opened: u64,
}

impl Log {
    /// An empty log whose next record is at `head`.
    pub(crate) fn new(
        array: Arc<dyn Storage>,
        volume: [u8; 16],
        session: u64,
        head: RingPlace,
    ) -> Log {
        let ring = LogRing::new(array.size() / BLOCK, head);
        let (synced, unsynced_blocks, dropped) = (head.seq - 1, 0, 0);
        let outgoing = Outgoing::new(Arc::clone(&array));
        Log {
            array,
            volume,
            session,
            checkpoint: 0,
            ring,
            last: None,
            synced,
            unsynced_blocks,
            dropped,
            syncing: None,
            outgoing,
        }
    }

    /// Number of the next record.
    pub(crate) fn next_seq(&self) -> u64 {
        self.ring.head.seq
    }

    /// Records that have not moved.
    pub(crate) fn records(&self) -> usize {
        self.ring.residents.len()
    }

    /// Records that the opening dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Blocks in all, and those in use.
    pub(crate) fn fill(&self) -> (u64, u64) {
        (self.ring.blocks, self.ring.used)
    }

    /// The last record that is known to be durable.
    pub(crate) fn synced(&self) -> u64 {
        self.synced
    }

    /// Where the first record is that has not moved.
    pub(crate) fn tail(&self) -> RingPlace {
        self.ring.tail()
    }

    /// Record number `n` from the tail.
    pub(crate) fn resident(&self, n: usize) -> Option<Resident> {
        self.ring.residents.get(n).copied()
    }

    /// Where the record after the `n`-th from the tail is.
    pub(crate) fn place_after(&self, n: usize) -> RingPlace {
        self.ring.place_after(n)
    }

    /// Whether all records are durable.
    pub(crate) fn is_synced(&self) -> bool {
        self.synced + 1 == self.next_seq()
    }

    /// Whether a record of `pages` pages has room.
    pub(crate) fn has_room(&self, pages: usize) -> bool {
        self.ring.has_room(pages)
    }

    /// Appends a record, for which there is room. Returns its number and the block of its first page. It
    /// may be on its way yet; if that fails, the next sync does.
    pub(crate) fn append(
        &mut self,
        entries: &[RecordEntry],
        pages: &[&PageBytes],
    ) -> Result<(u64, u64)> {
        let resident = self.ring.next(pages.len());
        if self.unsynced_blocks + resident.blocks > UNSYNCED_BLOCKS_MAX {
            self.sync()?;
        } else if self.unsynced_blocks + resident.blocks > SYNC_FROM_BLOCKS {
            self.sync_meanwhile()?;
        }
        self.unsynced_blocks += resident.blocks;
        let place = resident.place;
        let facts = RecordFacts {
            session: self.session,
            checkpoint: self.checkpoint,
            chain: place.chain,
            synced: self.synced,
            entries: entries.to_vec(),
        };
        let before = self.last.take();
        let header = RecordHeader { volume: self.volume, seq: place.seq, facts, before };
        let head = header.encode();
        let blocks = std::iter::once(&*head).chain(pages.iter().copied());
        self.outgoing.add(place.at * BLOCK, blocks)?;
        self.ring.push(resident, record::chain_of(&head[..]));
        self.last = Some(header.facts);
        Ok((place.seq, place.at + 1))
    }

    /// Begins to write all records that are in memory yet.
    pub(crate) fn write(&mut self) -> Result<()> {
        Ok(self.outgoing.write()?)
    }

    /// Makes all records durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if let Some(syncing) = self.syncing.take() {
            let ended = syncing.completions.wait(&*self.array.clock());
            self.synced_by(&syncing, ended)?;
        }
        if !self.is_synced() {
            self.outgoing.wait_for_all()?;
            self.array.sync()?;
            self.synced = self.next_seq() - 1;
            self.unsynced_blocks = 0;
        }
        Ok(())
    }

    /// Begins to make all records durable, or takes the result of what began earlier.
    fn sync_meanwhile(&mut self) -> Result<()> {
        if self.syncing.is_none() {
            // It has to begin after the writes have ended.
            self.outgoing.wait_for_all()?;
            let (completions, last) = (Completions::new(), self.next_seq() - 1);
            self.array.submit(0, Operation::Sync, &completions);
            self.syncing = Some(Syncing { completions, last, blocks: self.unsynced_blocks });
        }
        let ended = self.syncing.as_ref().and_then(|syncing| syncing.completions.poll());
        if let Some(ended) = ended
            && let Some(syncing) = self.syncing.take()
        {
            self.synced_by(&syncing, ended)?;
        }
        Ok(())
    }

    fn synced_by(&mut self, syncing: &Syncing, ended: Completion) -> Result<()> {
        ended.result?;
        self.synced = syncing.last;
        self.unsynced_blocks -= syncing.blocks;
        Ok(())
    }

    /// Drops the `count` records at the tail: what they held is durable elsewhere.
    pub(crate) fn release(&mut self, count: usize) {
        self.ring.release(count);
    }

    /// Reads a whole record: its first block, decoded, and its pages, which may be damaged.
    pub(crate) fn read(&mut self, resident: &Resident) -> Result<(RecordHeader, Vec<u8>)> {
        self.outgoing.wait_for_all()?;
        let at = resident.place.at * BLOCK;
        let bytes = self.array.read_vec(at, usize_of(resident.blocks) * PAGE);
        let bytes = bytes.map_err(Error::of_read)?;
        let header = RecordHeader::decode(&bytes[..PAGE]);
        let header = header.filter(|header| header.seq == resident.place.seq);
        let header = match header {
            Some(header) => Some(header),
            None => self.second_copy(resident).map_err(|error| match error {
                Error::Io(error) => Error::of_read(error),
                error => error,
            })?,
        };
        match header {
            Some(header) => Ok((header, bytes[PAGE..].to_vec())),
            None => {
                Err(self.damaged(resident.place.seq, "its first block is not what was written"))
            }
        }
    }

    fn damaged(&self, seq: u64, detail: &str) -> Error {
        Error::Damaged {
            volume: self.array.name().to_owned(),
            what: "record",
            number: seq,
            detail: detail.to_owned(),
        }
    }

    /// The page at block `block`. If it could not be written, its checksum shows it, and the next sync
    /// fails.
    pub(crate) fn read_page(&mut self, block: u64, out: &mut [u8]) -> Result<()> {
        self.outgoing.land();
        let count = self.array.read_at(block * BLOCK, out).map_err(Error::of_read)?;
        if count < out.len() { Err(self.damaged(0, "the log ends before it")) } else { Ok(()) }
    }

    /// Reads the records from the tail on, and calls `found` with each, its number and the block of its
    /// first page. Returns the log, whose records will be of session `session`.
    ///
    /// Records that are known to be durable are passed on as they are: damaged pages are found when they
    /// are read. The first of the others that isn't whole ends the log.
    ///
    /// # Errors
    /// When a durable record is missing, or the log is newer than the data members.
    pub(crate) fn recover(
        array: Arc<dyn Storage>,
        volume: [u8; 16],
        session: u64,
        known: Known,
        mut found: impl FnMut(&RecordHeader, u64) -> Result<()>,
    ) -> Result<Log> {
        let blocks = array.size() / BLOCK;
        if known.tail.at >= blocks || !(1..NUMBER_MAX).contains(&known.tail.seq) {
            return Err(Error::Damaged {
                volume: array.name().to_owned(),
                what: "record",
                number: known.tail.seq,
                detail: format!("it is said to be at block {} of {blocks}", known.tail.at),
            });
        }
        let mut log = Log::new(array, volume, session, known.tail);
        let mut synced = known.synced;
        // Read, and not known to be durable yet. Their number is bounded: see UNSYNCED_BLOCKS_MAX.
        let mut waiting: VecDeque<(Resident, RecordHeader)> = VecDeque::new();
        let mut pass = |log: &mut Log, resident: Resident, header: &RecordHeader| {
            log.ring.residents.push_back(resident);
            found(header, resident.place.at + 1)
        };
        while let Some((resident, header, chain)) = log.next_record(&known)? {
            synced = synced.max(header.facts.synced);
            log.ring.advance(&resident, chain);
            let has_copy = header.facts.entries.len() <= ENTRIES_MAX;
            log.last = has_copy.then(|| header.facts.clone());
            waiting.push_back((resident, header));
            while waiting.front().is_some_and(|(_, header)| header.seq <= synced) {
                let (resident, header) = waiting.pop_front().expect("looked at");
                pass(&mut log, resident, &header)?;
            }
        }
        let synced = synced.max(log.synced_beyond()?);
        if log.next_seq() <= synced {
            let why =
                "it was durable, and its first block is not there; the writes from it on are lost";
            return Err(log.damaged(log.next_seq(), why));
        }
        while let Some((resident, header)) = waiting.pop_front() {
            if header.seq > synced {
                let Some(bytes) = log.whole(&resident, &header)? else {
                    waiting.push_front((resident, header));
                    break;
                };
                // If a sync of it failed, it may be in the system's page cache alone, which takes it for written: the
                // next sync would succeed without it.
                log.array.write_at(resident.place.at * BLOCK, &bytes)?;
            }
            pass(&mut log, resident, &header)?;
        }
        log.dropped = u64_of(waiting.len());
        if let Some((first, _)) = waiting.front()
            && log.last.is_some()
        {
            log.last = log.last_before(first)?;
        }
        while let Some((resident, _)) = waiting.pop_back() {
            log.ring.retreat(&resident);
        }
        log.erase_dropped()?;
        // From now on all of it counts as durable, so it has to be.
        log.array.sync()?;
        log.synced = log.next_seq() - 1;
        Ok(log)
    }

    /// The record at the head, if there is one: its place, its first block, and the checksum of that.
    fn next_record(&self, known: &Known) -> Result<Option<(Resident, RecordHeader, u32)>> {
        let mut next: Option<(Resident, RecordHeader, u32)> = None;
        for (start, bytes, header) in self.candidates()? {
            let LogRing { head, blocks: all, used, .. } = self.ring;
            let blocks = 1 + u64_of(header.facts.pages());
            let skipped = if start == head.at { 0 } else { all - head.at };
            if start + blocks > all || used + blocks + skipped > all {
                continue;
            }
            self.choose(
                &mut next,
                Resident { place: RingPlace { at: start, ..head }, blocks, skipped },
                header,
                record::chain_of(&bytes),
                known,
            )?;
        }
        if next.is_none() {
            for repeated in self.repeated()? {
                let Repeated { resident, facts, chain, .. } = repeated;
                if self.ring.used + resident.blocks + resident.skipped <= self.ring.blocks {
                    let (volume, seq) = (self.volume, resident.place.seq);
                    let header = RecordHeader { volume, seq, facts, before: None };
                    self.choose(&mut next, resident, header, chain, known)?;
                }
            }
        }
        Ok(next)
    }

    /// Takes a record for the one at the head, unless its session could not write it, or a later session wrote another.
    fn choose(
        &self,
        next: &mut Option<(Resident, RecordHeader, u32)>,
        resident: Resident,
        header: RecordHeader,
        chain: u32,
        known: &Known,
    ) -> Result<()> {
        let session = header.facts.session;
        if session > known.session || header.facts.checkpoint > known.checkpoint {
            return Err(self.newer_than_data(&header, known));
        }
        // The opening of the later session dropped the record of the earlier one.
        let is_later = next.as_ref().is_none_or(|(_, other, _)| session > other.facts.session);
        if (session == known.session) == (header.seq >= known.opened) && is_later {
            *next = Some((resident, header, chain));
        }
        Ok(())
    }

    /// The record before `resident`, as its first block repeats it.
    fn last_before(&self, resident: &Resident) -> Result<Option<RecordFacts>> {
        let block = self.array.read_vec(resident.place.at * BLOCK, PAGE)?;
        Ok(RecordHeader::decode(&block).and_then(|header| header.before))
    }

    /// The blocks where the next record can begin, at the head or at the begin of the ring, that have its number and its
    /// predecessor.
    fn candidates(&self) -> Result<Vec<(u64, Vec<u8>, RecordHeader)>> {
        let head = self.ring.head;
        let starts = if head.at == 0 { [Some(0), None] } else { [Some(head.at), Some(0)] };
        let mut candidates = Vec::new();
        for start in starts.into_iter().flatten() {
            let bytes = self.array.read_vec(start * BLOCK, PAGE)?;
            let next = (self.volume, head.seq, head.chain);
            let header = RecordHeader::decode(&bytes);
            let header =
                header.filter(|header| (header.volume, header.seq, header.facts.chain) == next);
            candidates.extend(header.map(|header| (start, bytes, header)));
        }
        Ok(candidates)
    }

    /// Removes what could be taken for the next record. A record that was dropped at one of the two places would
    /// count again if the next one is written at the other place, and is damaged later.
    fn erase_dropped(&self) -> Result<()> {
        for (start, ..) in self.candidates()? {
            self.array.write_at(start * BLOCK, &zeroed()[..])?;
        }
        self.erase_repeated()
    }

    fn newer_than_data(&self, header: &RecordHeader, known: &Known) -> Error {
        let detail = format!(
            "it was written in session {} after checkpoint {}, and the data members know {} sessions and {} checkpoints: they are older than the buffer members",
            header.facts.session, header.facts.checkpoint, known.session, known.checkpoint
        );
        self.damaged(header.seq, &detail)
    }

    /// The last record that blocks behind the end say was durable. If a record in the middle is damaged, the
    /// walk ends there; the proof that it was durable is then in a later record, which is not further away
    /// than what is written without a sync.
    fn synced_beyond(&self) -> Result<u64> {
        let LogRing { head, blocks: all, .. } = self.ring;
        let blocks = all.min(UNSYNCED_BLOCKS_MAX + 4 * (1 + u64_of(ENTRIES_READ_MAX)));
        let (mut done, mut synced) = (0, 0);
        while done < blocks {
            let at = (head.at + done) % all;
            let count = SCAN_BLOCKS.min(blocks - done).min(all - at);
            let bytes = self.array.read_vec(at * BLOCK, usize_of(count) * PAGE)?;
            let headers = bytes.chunks(PAGE).filter_map(RecordHeader::decode);
            let own = headers.filter(|header| header.volume == self.volume);
            synced = own.map(|header| header.facts.synced).fold(synced, u64::max);
            done += count;
        }
        Ok(synced)
    }

    /// The bytes of a record, if its pages are those that were written.
    fn whole(&self, resident: &Resident, header: &RecordHeader) -> Result<Option<Vec<u8>>> {
        let at = resident.place.at * BLOCK;
        let bytes = self.array.read_vec(at, usize_of(resident.blocks) * PAGE)?;
        let crcs = header.facts.entries.iter().filter_map(|entry| match entry {
            RecordEntry::Page { crc, .. } => Some(*crc),
            RecordEntry::Trim { .. } => None,
        });
        let pages = bytes.chunks(PAGE).skip(1);
        let is_whole = pages.zip(crcs).all(|(page, crc)| crc32c::crc32c(page) == crc);
        Ok(is_whole.then_some(bytes))
    }
}
