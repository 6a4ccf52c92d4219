//! The write buffer: a log on the hard disks. Docs: docs/array.md, "Log".
//!
//! ```text
//!   buffer array   │ … free │ record 7 │ record 8 │ record 9 │ free … │
//!                            ▲ tail: moves next                ▲ head: the next write
//! ```
//!
//! A record is a block that says what follows, and the pages. Writes only ever go to the head, which
//! is what a hard disk is fast at. Records leave at the tail, when what they hold is durable on the data
//! members.

pub(crate) mod record;

use std::collections::VecDeque;
use std::sync::Arc;

use merganser_storage::{Buffer, Operation, Storage, StorageExt};

use crate::bytes::{PAGE, Page};
use crate::error::{Error, Result};
use record::{Entry, Header};

/// One block of this many is kept for trims.
const TRIM_RESERVE_SHARE: u64 = 16;

/// A place in a ring of blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of what begins there.
    pub(crate) seq: u64,
    /// Block, from the begin of the ring.
    pub(crate) at: u64,
    /// Checksum of what is before it.
    pub(crate) chain: u32,
}

/// A record that has not moved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resident {
    pub(crate) place: Place,
    /// Blocks, without those that were skipped before it.
    pub(crate) blocks: u64,
    /// Blocks that were skipped at the end of the ring before it.
    skipped: u64,
}

/// The log.
pub(crate) struct Log {
    array: Arc<dyn Storage>,
    blocks: u64,
    volume: [u8; 16],
    session: u64,
    head: Place,
    residents: VecDeque<Resident>,
    used: u64,
    /// The last record that is durable.
    synced: u64,
}

impl Log {
    /// An empty log whose next record is at `head`.
    pub(crate) fn new(array: Arc<dyn Storage>, volume: [u8; 16], session: u64, head: Place) -> Log {
        let blocks = array.size() / PAGE as u64;
        let synced = head.seq - 1;
        let residents = VecDeque::new();
        Log { array, blocks, volume, session, head, residents, used: 0, synced }
    }

    /// Blocks in all, and those in use.
    pub(crate) fn fill(&self) -> (u64, u64) {
        (self.blocks, self.used)
    }

    /// The last record that is known to be durable.
    pub(crate) fn synced(&self) -> u64 {
        self.synced
    }

    /// Where the first record is that has not moved.
    pub(crate) fn tail(&self) -> Place {
        self.residents.front().map_or(self.head, |resident| resident.place)
    }

    /// Record number `n` from the tail.
    pub(crate) fn resident(&self, n: usize) -> Option<Resident> {
        self.residents.get(n).copied()
    }

    /// Where the record after the `n`-th from the tail is.
    pub(crate) fn place_after(&self, n: usize) -> Place {
        self.residents.get(n + 1).map_or(self.head, |resident| resident.place)
    }

    /// Whether a record of `pages` pages has room. Trims, which have none, may use the reserve: when all
    /// else is full, they are what makes room.
    pub(crate) fn has_room(&self, pages: usize) -> bool {
        let (need, skipped) = self.need(pages);
        let reserve = if pages == 0 { 0 } else { self.blocks / TRIM_RESERVE_SHARE };
        self.used + need + skipped + reserve <= self.blocks
    }

    fn need(&self, pages: usize) -> (u64, u64) {
        let need = 1 + pages as u64;
        let left = self.blocks - self.head.at;
        (need, if need > left { left } else { 0 })
    }

    /// Appends a record, for which there is room. Returns its number and the block of its first page.
    pub(crate) fn append(&mut self, entries: &[Entry], pages: &[&Page]) -> Result<(u64, u64)> {
        let (need, skipped) = self.need(pages.len());
        assert!(self.used + need + skipped <= self.blocks, "callers ask for room first");
        let at = if skipped > 0 { 0 } else { self.head.at };
        let place = Place { at, ..self.head };
        let header = Header {
            volume: self.volume,
            session: self.session,
            seq: place.seq,
            chain: place.chain,
            synced: self.synced,
            entries: entries.to_vec(),
        };
        let head = header.encode();
        let mut buffer = Buffer::try_new(need as usize * PAGE)?;
        buffer[..PAGE].copy_from_slice(&*head);
        for (page, to) in pages.iter().zip(buffer[PAGE..].chunks_mut(PAGE)) {
            to.copy_from_slice(*page);
        }
        self.array.run(Operation::Write { offset: at * PAGE as u64, buffer })?;
        self.residents.push_back(Resident { place, blocks: need, skipped });
        self.used += need + skipped;
        let next = Place {
            seq: place.seq + 1,
            at: (at + need) % self.blocks,
            chain: record::chain_of(&head[..]),
        };
        self.head = next;
        Ok((place.seq, at + 1))
    }

    /// Makes all records durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if self.synced + 1 < self.head.seq {
            self.array.sync()?;
            self.synced = self.head.seq - 1;
        }
        Ok(())
    }

    /// Drops the `count` records at the tail: what they held is durable elsewhere.
    pub(crate) fn release(&mut self, count: usize) {
        for resident in self.residents.drain(..count) {
            self.used -= resident.blocks + resident.skipped;
        }
        if self.residents.is_empty() {
            self.used = 0;
        }
    }

    /// Reads a whole record: what it says, and its pages. The pages may be damaged.
    pub(crate) fn read(&self, resident: &Resident) -> Result<(Header, Vec<u8>)> {
        let at = resident.place.at * PAGE as u64;
        let bytes = self.array.read_vec(at, resident.blocks as usize * PAGE)?;
        let header = Header::decode(&bytes[..PAGE]);
        match header.filter(|header| header.seq == resident.place.seq) {
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

    /// The page at block `block`.
    pub(crate) fn read_page(&self, block: u64, out: &mut [u8]) -> Result<()> {
        let count = self.array.read_at(block * PAGE as u64, out)?;
        if count < out.len() { Err(self.damaged(0, "the log ends before it")) } else { Ok(()) }
    }

    /// Reads the records from the tail on, and calls `found` with each, its number and the block of its
    /// first page. `known` is the last record that is known to be durable. Returns the log.
    ///
    /// # Errors
    /// When a durable record is damaged.
    pub(crate) fn recover(
        array: Arc<dyn Storage>,
        volume: [u8; 16],
        session: u64,
        tail: Place,
        known: u64,
        mut found: impl FnMut(&Header, u64) -> Result<()>,
    ) -> Result<Log> {
        let mut log = Log::new(array, volume, session, tail);
        let mut headers = Vec::new();
        let (mut synced, mut last_session) = (known, 0);
        while let Some((start, header, chain)) = log.next_record(last_session)? {
            synced = synced.max(header.synced);
            last_session = header.session;
            let blocks = 1 + header.pages() as u64;
            let skipped = if start == log.head.at { 0 } else { log.blocks - log.head.at };
            let place = Place { at: start, ..log.head };
            log.head = Place { seq: place.seq + 1, at: (start + blocks) % log.blocks, chain };
            log.used += blocks + skipped;
            headers.push((Resident { place, blocks, skipped }, header));
        }
        // Of the records that may not be durable, the first whose pages aren't all there ends the log.
        let mut end = headers.len();
        for (i, (resident, header)) in headers.iter().enumerate() {
            if header.seq > synced && !log.is_whole(resident, header)? {
                end = i;
                break;
            }
        }
        for (resident, _) in headers.drain(end..).rev() {
            log.used -= resident.blocks + resident.skipped;
            log.head = Place {
                at: if resident.skipped > 0 {
                    log.blocks - resident.skipped
                } else {
                    resident.place.at
                },
                ..resident.place
            };
        }
        if log.head.seq <= synced {
            let why =
                "it was durable, and its first block is not there; the writes from it on are lost";
            return Err(log.damaged(log.head.seq, why));
        }
        for (resident, header) in headers {
            found(&header, resident.place.at + 1)?;
            log.residents.push_back(resident);
        }
        log.synced = synced.max(tail.seq - 1);
        Ok(log)
    }

    /// The record at the head, if there is one: its block, what it says, and its checksum.
    fn next_record(&self, last_session: u64) -> Result<Option<(u64, Header, u32)>> {
        let starts =
            if self.head.at == 0 { [Some(0), None] } else { [Some(self.head.at), Some(0)] };
        for start in starts.into_iter().flatten() {
            let bytes = self.array.read_vec(start * PAGE as u64, PAGE)?;
            let Some(header) = Header::decode(&bytes) else { continue };
            let blocks = 1 + header.pages() as u64;
            let skipped = if start == self.head.at { 0 } else { self.blocks - self.head.at };
            if header.volume == self.volume
                && header.seq == self.head.seq
                && header.chain == self.head.chain
                && header.session >= last_session
                && header.session <= self.session
                && start + blocks <= self.blocks
                && self.used + blocks + skipped <= self.blocks
            {
                return Ok(Some((start, header, record::chain_of(&bytes))));
            }
        }
        Ok(None)
    }

    fn is_whole(&self, resident: &Resident, header: &Header) -> Result<bool> {
        let at = (resident.place.at + 1) * PAGE as u64;
        let pages = self.array.read_vec(at, (resident.blocks as usize - 1) * PAGE)?;
        let crcs = header.entries.iter().filter_map(|entry| match entry {
            Entry::Page { crc, .. } => Some(*crc),
            Entry::Trim { .. } => None,
        });
        Ok(pages.chunks(PAGE).zip(crcs).all(|(page, crc)| crc32c::crc32c(page) == crc))
    }
}
