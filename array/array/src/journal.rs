//! The journal of the maps: a ring of transactions since the last checkpoint. Docs: docs/array/array.md,
//! "Journal".
//!
//! A transaction is durable before the next one is written, and before anything that it frees is used
//! again. Replaying from the superblock's place on therefore ends exactly at the last durable one: the
//! next block holds something else, or a transaction of another volume that had these members, or of an
//! earlier session, number or predecessor.

use std::sync::Arc;

use merganser_storage::numbers::{u64_of, usize_of};
use merganser_storage::{Buffer, Operation, Storage, StorageExt};

use crate::bytes::{BLOCK, PAGE, is_sealed, len_at, put_u32, put_u64, seal, u32_at, u64_at};
use crate::error::{Error, Result};
use crate::fingerprint::{FINGERPRINT_BYTES, Fingerprint};
use crate::layout::VolumeLayout;
use crate::log::RingPlace;
use crate::superblock::{place_at, put_place};

const MAGIC: u32 = u32::from_le_bytes(*b"MjrT");
const SEAL: usize = 4;
const CHECKPOINT_AT: usize = 64;
const VOLUME_AT: usize = 72;
pub(crate) const HEAD: usize = 88;

/// One change of the maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MapChange {
    /// Volume page `page` is stored at `place`, which was free.
    New { page: u64, place: u64, crc: u32, fingerprint: Fingerprint },
    /// Volume page `page` shares `place`.
    Map { page: u64, place: u64 },
    /// `count` volume pages from `page` on read as zeros.
    Unmap { page: u64, count: u32 },
    /// Volume page `page` was lost to damage.
    Lost { page: u64 },
}

impl MapChange {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            MapChange::New { page, place, crc, fingerprint } => {
                out.push(1);
                out.extend(page.to_le_bytes());
                out.extend(place.to_le_bytes());
                out.extend(crc.to_le_bytes());
                out.extend(fingerprint);
            }
            MapChange::Map { page, place } => {
                out.push(2);
                out.extend(page.to_le_bytes());
                out.extend(place.to_le_bytes());
            }
            MapChange::Unmap { page, count } => {
                out.push(3);
                out.extend(page.to_le_bytes());
                out.extend(count.to_le_bytes());
            }
            MapChange::Lost { page } => {
                out.push(4);
                out.extend(page.to_le_bytes());
            }
        }
    }

    /// Takes one change off the front of `bytes`; `None` if they are not a change.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Option<MapChange> {
        let len = match bytes.first()? {
            1 => 21 + FINGERPRINT_BYTES,
            2 => 17,
            3 => 13,
            4 => 9,
            _ => return None,
        };
        let (own, rest) = bytes.split_at_checked(len)?;
        *bytes = rest;
        let page = u64_at(own, 1);
        Some(match own[0] {
            1 => MapChange::New {
                page,
                place: u64_at(own, 9),
                crc: u32_at(own, 17),
                fingerprint: own[21..].try_into().expect("the length was chosen for it"),
            },
            2 => MapChange::Map { page, place: u64_at(own, 9) },
            3 => MapChange::Unmap { page, count: u32_at(own, 9) },
            _ => MapChange::Lost { page },
        })
    }
}

/// A transaction without its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Transaction {
    pub(crate) volume: [u8; 16],
    pub(crate) session: u64,
    /// The checkpoint that it follows; 0 before version 3.
    pub(crate) checkpoint: u64,
    pub(crate) log_tail: RingPlace,
    pub(crate) log_synced: u64,
    /// Encoded [`MapChange`]s.
    pub(crate) changes: Vec<u8>,
}

impl Transaction {
    /// The bytes on the members, in whole blocks.
    pub(crate) fn encode(&self, place: RingPlace) -> Vec<u8> {
        let len = HEAD + self.changes.len();
        let mut out = vec![0; len.next_multiple_of(PAGE)];
        put_u32(&mut out, 0, MAGIC);
        put_u64(&mut out, 8, self.session);
        put_u64(&mut out, 16, place.seq);
        put_u32(&mut out, 24, place.chain);
        put_u32(&mut out, 28, u32::try_from(len).expect("less than a journal"));
        put_place(&mut out, 32, self.log_tail);
        put_u64(&mut out, 56, self.log_synced);
        put_u64(&mut out, CHECKPOINT_AT, self.checkpoint);
        out[VOLUME_AT..HEAD].copy_from_slice(&self.volume);
        out[HEAD..len].copy_from_slice(&self.changes);
        seal(&mut out, SEAL);
        out
    }

    /// How long the transaction that begins with `block` says it is, in blocks, if it can be number
    /// `seq` after `chain`.
    pub(crate) fn blocks(block: &[u8], seq: u64, chain: u32) -> Option<usize> {
        let len = len_at(block, 28);
        let fits = u32_at(block, 0) == MAGIC && u64_at(block, 16) == seq;
        let fits = fits && u32_at(block, 24) == chain && len >= HEAD;
        fits.then(|| len.div_ceil(PAGE))
    }

    /// The transaction in `bytes`, which are whole blocks; `None` when its checksum is wrong.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Transaction> {
        if bytes.len() < PAGE || !is_sealed(bytes, SEAL) || u32_at(bytes, 0) != MAGIC {
            return None;
        }
        Some(Transaction {
            volume: bytes[VOLUME_AT..HEAD].try_into().expect("sixteen bytes"),
            session: u64_at(bytes, 8),
            log_tail: place_at(bytes, 32),
            log_synced: u64_at(bytes, 56),
            checkpoint: u64_at(bytes, CHECKPOINT_AT),
            changes: bytes.get(HEAD..len_at(bytes, 28))?.to_vec(),
        })
    }
}

/// The ring.
pub(crate) struct MapJournal {
    array: Arc<dyn Storage>,
    volume: [u8; 16],
    at: u64,
    blocks: u64,
    /// Where the next transaction goes, if there is room before the end.
    head: RingPlace,
    /// Blocks since the last checkpoint, with those that were skipped at the end.
    used: u64,
    session: u64,
    /// The checkpoint that transactions name.
    checkpoint: u64,
    /// Whether the last transaction has changes, so that nothing shows yet that it was durable.
    is_open_ended: bool,
    pub(crate) bytes_written: u64,
}

impl MapJournal {
    /// An empty journal of volume `volume` whose next transaction is at `head`.
    pub(crate) fn new(
        array: Arc<dyn Storage>,
        volume: [u8; 16],
        layout: &VolumeLayout,
        head: RingPlace,
        session: u64,
        checkpoint: u64,
    ) -> Self {
        let (at, blocks) = (layout.journal_at, layout.journal_blocks);
        let is_open_ended = false;
        MapJournal {
            array,
            volume,
            at,
            blocks,
            head,
            used: 0,
            session,
            checkpoint,
            is_open_ended,
            bytes_written: 0,
        }
    }

    /// Where the next transaction goes.
    pub(crate) fn head(&self) -> RingPlace {
        self.head
    }

    /// Whether more than half of it is used, so that a checkpoint is due.
    pub(crate) fn is_half_full(&self) -> bool {
        self.used * 2 > self.blocks
    }

    /// Checkpoint `checkpoint` has secured all transactions, and sessions are numbered `session` now.
    pub(crate) fn restart(&mut self, session: u64, checkpoint: u64) {
        self.checkpoint = checkpoint;
        self.used = 0;
        self.session = session;
        self.is_open_ended = false;
    }

    /// Whether the last transaction has changes. If it is damaged after a cut, it looks like one that
    /// was torn; a transaction after it tells the two apart.
    pub(crate) fn is_open_ended(&self) -> bool {
        self.is_open_ended
    }

    /// Whether a transaction with `changes` bytes of changes has room.
    pub(crate) fn has_room(&self, changes: usize) -> bool {
        let (need, skipped) = self.need(changes);
        self.used + need + skipped <= self.blocks
    }

    fn need(&self, changes: usize) -> (u64, u64) {
        let need = u64_of((HEAD + changes).div_ceil(PAGE));
        let left = self.blocks - self.head.at;
        (need, if need > left { left } else { 0 })
    }

    /// Appends a transaction for which there is room. It is durable after the next sync.
    pub(crate) fn append(
        &mut self,
        changes: Vec<u8>,
        log_tail: RingPlace,
        log_synced: u64,
    ) -> Result<()> {
        let (need, skipped) = self.need(changes.len());
        assert!(self.used + need + skipped <= self.blocks, "callers ask for room first");
        if skipped > 0 {
            self.head.at = 0;
        }
        self.is_open_ended = !changes.is_empty();
        let (volume, session, checkpoint) = (self.volume, self.session, self.checkpoint);
        let transaction =
            Transaction { volume, session, checkpoint, log_tail, log_synced, changes };
        let bytes = transaction.encode(self.head);
        let mut buffer = Buffer::try_new(bytes.len())?;
        buffer.copy_from_slice(&bytes);
        self.array.run(Operation::Write { offset: self.at + self.head.at * BLOCK, buffer })?;
        self.bytes_written += u64_of(bytes.len());
        self.used += need + skipped;
        self.advance(u32_at(&bytes, SEAL), need);
        Ok(())
    }

    fn advance(&mut self, chain: u32, blocks: u64) {
        let at = (self.head.at + blocks) % self.blocks;
        self.head = RingPlace { seq: self.head.seq + 1, at, chain };
    }

    /// The next transaction to replay, or `None` at the end. Each opening makes a checkpoint, so only
    /// transactions of the superblock's session come after it; one of an earlier session was torn then.
    ///
    /// # Errors
    /// When there is a transaction of a later session: the superblock is an old one.
    pub(crate) fn replay(&mut self) -> Result<Option<Transaction>> {
        let starts =
            if self.head.at == 0 { [Some(0), None] } else { [Some(self.head.at), Some(0)] };
        for start in starts.into_iter().flatten() {
            let first = self.array.read_vec(self.at + start * BLOCK, PAGE)?;
            let blocks = Transaction::blocks(&first, self.head.seq, self.head.chain);
            let Some(blocks) = blocks.filter(|&n| u64_of(n) <= self.blocks - start) else {
                continue;
            };
            let bytes = self.array.read_vec(self.at + start * BLOCK, blocks * PAGE)?;
            let transaction = Transaction::decode(&bytes);
            let own = transaction.filter(|transaction| transaction.volume == self.volume);
            let Some(transaction) = own else { continue };
            if transaction.session > self.session {
                return Err(Error::Damaged {
                    volume: self.array.name().to_owned(),
                    what: "superblock",
                    number: 0,
                    detail: format!(
                        "it is of session {}, and transaction {} of session {}",
                        self.session, self.head.seq, transaction.session
                    ),
                });
            }
            if transaction.session < self.session || transaction.checkpoint != self.checkpoint {
                continue;
            }
            self.used += u64_of(blocks);
            self.head.at = start;
            self.advance(u32_at(&bytes, SEAL), u64_of(blocks));
            return Ok(Some(transaction));
        }
        Ok(None)
    }

    /// After the replay of everything: the number of a durable transaction behind the end, if there is
    /// one. Then one before it is damaged, or it follows a later checkpoint, and the superblock is an old one.
    /// Transactions are durable in turn, so a cut leaves none. A volume that had these members before may have left
    /// some, of a session with the same number: they don't count.
    pub(crate) fn beyond_end(&self) -> Result<Option<u64>> {
        const AT_ONCE: u64 = 256;
        for from in (0..self.blocks).step_by(usize_of(AT_ONCE)) {
            let count = usize_of(AT_ONCE.min(self.blocks - from));
            let bytes = self.array.read_vec(self.at + from * BLOCK, count * PAGE)?;
            for (block, at) in bytes.chunks(PAGE).zip(from..) {
                let (seq, chain) = (u64_at(block, 16), u32_at(block, 24));
                let is_later =
                    seq > self.head.seq || u64_at(block, CHECKPOINT_AT) > self.checkpoint;
                let blocks = Transaction::blocks(block, seq, chain).filter(|_| is_later);
                let Some(blocks) = blocks.filter(|&n| u64_of(n) <= self.blocks - at) else {
                    continue;
                };
                let whole = self.array.read_vec(self.at + at * BLOCK, blocks * PAGE)?;
                let own = |found: &Transaction| {
                    let is_own = found.volume == self.volume;
                    let is_next = found.checkpoint == self.checkpoint;
                    let is_next = is_next && found.session == self.session;
                    is_own && (is_next || found.checkpoint > self.checkpoint)
                };
                if Transaction::decode(&whole).as_ref().is_some_and(own) {
                    return Ok(Some(seq));
                }
            }
        }
        Ok(None)
    }
}

/// Zeros for the whole ring of an empty journal.
pub(crate) fn erase(array: &dyn Storage, layout: &VolumeLayout) -> Result<()> {
    let zeros = crate::bytes::zeroed();
    let places = (0..layout.journal_blocks).map(|n| layout.journal_at + n * BLOCK);
    Ok(crate::bulk::write_blocks(array, places.map(|at| (at, &*zeros)))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Kinds;
    use merganser_storage::memory::MemoryStorage;

    /// A ring of 16 blocks.
    fn ring() -> (Arc<dyn Storage>, VolumeLayout) {
        let layout = VolumeLayout::of_sizes(508, 4, 16, Kinds { dedup: false, sums: true }, 4096);
        (MemoryStorage::from_bytes("ring", &vec![0; layout.end() as usize]), layout)
    }

    fn journal(
        array: &Arc<dyn Storage>,
        layout: &VolumeLayout,
        volume: u8,
        head: RingPlace,
    ) -> MapJournal {
        MapJournal::new(Arc::clone(array), [volume; 16], layout, head, 2, 5)
    }

    fn replayed(mut journal: MapJournal) -> (u64, Option<u64>) {
        let mut count = 0;
        while journal.replay().expect("reads").is_some() {
            count += 1;
        }
        (count, journal.beyond_end().expect("reads"))
    }

    /// Two volumes had these members, one after the other, and both are in their second session.
    #[test]
    fn transactions_of_another_volume_do_not_count() {
        let (array, layout) = ring();
        let head = RingPlace { seq: 1, at: 0, chain: 7 };
        let mut other = journal(&array, &layout, 1, head);
        for _ in 0..9 {
            other.append(vec![], RingPlace::default(), 0).expect("written");
        }
        assert_eq!(replayed(journal(&array, &layout, 1, head)), (9, None));
        // It isn't the first one, although number and predecessor are right.
        assert_eq!(replayed(journal(&array, &layout, 2, head)), (0, None));
        let mut own = journal(&array, &layout, 2, head);
        for _ in 0..3 {
            own.append(vec![], RingPlace::default(), 0).expect("written");
        }
        assert_eq!(replayed(journal(&array, &layout, 2, head)), (3, None));
        // One of its own shows that another one is damaged.
        array.write_at(layout.journal_at + PAGE as u64 + 100, b"damage").expect("written");
        assert_eq!(replayed(journal(&array, &layout, 2, head)), (1, Some(3)));
    }
}
