//! The first block of a record, byte by byte.
//!
//! It ends with a second copy of what the first block of the record before it says. So a log with one bad block still
//! has all its records.

use merganser_storage::numbers::usize_of_u32;

use crate::bytes::{
    PAGE, PageBytes, is_sealed, len_at, put_len, put_u32, put_u64, seal, u32_at, u64_at, zeroed,
};

const MAGIC: u32 = u32::from_le_bytes(*b"MlgS");
/// Records without a copy of the one before, as version 2 of the formats had them.
const MAGIC_ALONE: u32 = u32::from_le_bytes(*b"MlgR");
const SEAL: usize = 4;
const HEAD: usize = 64;
const ENTRY: usize = 16;
/// Entries of a record that is written, at most: as many as leave room for those of the record before it.
pub(crate) const ENTRIES_MAX: usize = 125;
/// Entries of a record that is read, at most.
pub(crate) const ENTRIES_READ_MAX: usize = (PAGE - HEAD) / ENTRY;
const BEFORE_AT: usize = HEAD + ENTRIES_MAX * ENTRY;
const BEFORE_HEAD: usize = 32;
const _: () = assert!(BEFORE_AT + BEFORE_HEAD + ENTRIES_MAX * ENTRY == PAGE);
/// The number of entries before it when there is no copy.
const NO_COPY: u32 = u32::MAX;
const PAGE_KIND: u32 = 1;
const TRIM_KIND: u32 = 2;

/// One thing in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordEntry {
    /// A page of the volume, whose bytes follow in the record.
    Page {
        /// Its number.
        page: u64,
        /// CRC32C of its bytes.
        crc: u32,
    },
    /// Pages that read as zeros from here on.
    Trim {
        /// The first.
        page: u64,
        /// How many.
        count: u32,
    },
}

/// The first block of a record, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) volume: [u8; 16],
    pub(crate) seq: u64,
    pub(crate) facts: RecordFacts,
    /// The same of the record before it, unless the log began with this one.
    pub(crate) before: Option<RecordFacts>,
}

/// What the first block says of a record, and the first block of the next one repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordFacts {
    pub(crate) session: u64,
    /// The checkpoint that was the last one; 0 before version 3.
    pub(crate) checkpoint: u64,
    /// Checksum of the first block of the record before it.
    pub(crate) chain: u32,
    /// The last record that was durable when this one was written.
    pub(crate) synced: u64,
    pub(crate) entries: Vec<RecordEntry>,
}

impl RecordFacts {
    /// Pages that follow.
    pub(crate) fn pages(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry, RecordEntry::Page { .. })).count()
    }
}

fn put_entries(out: &mut PageBytes, at: usize, entries: &[RecordEntry]) {
    assert!(entries.len() <= ENTRIES_MAX, "callers cut");
    for (i, entry) in entries.iter().enumerate() {
        let (page, value, kind) = match *entry {
            RecordEntry::Page { page, crc } => (page, crc, PAGE_KIND),
            RecordEntry::Trim { page, count } => (page, count, TRIM_KIND),
        };
        let at = at + ENTRY * i;
        put_u64(out, at, page);
        put_u32(out, at + 8, value);
        put_u32(out, at + 12, kind);
    }
}

fn entries_at(block: &[u8], at: usize, count: usize) -> Option<Vec<RecordEntry>> {
    let entry = |i: usize| {
        let at = at + ENTRY * i;
        let (page, value) = (u64_at(block, at), u32_at(block, at + 8));
        match u32_at(block, at + 12) {
            PAGE_KIND => Some(RecordEntry::Page { page, crc: value }),
            TRIM_KIND => Some(RecordEntry::Trim { page, count: value }),
            _ => None,
        }
    };
    (0..count).map(entry).collect()
}

impl RecordHeader {
    pub(crate) fn encode(&self) -> Box<PageBytes> {
        let mut out = zeroed();
        put_u32(&mut *out, 0, MAGIC);
        out[8..24].copy_from_slice(&self.volume);
        put_u64(&mut *out, 24, self.facts.session);
        put_u64(&mut *out, 32, self.seq);
        put_u64(&mut *out, 40, self.facts.synced);
        put_u32(&mut *out, 48, self.facts.chain);
        put_len(&mut *out, 52, self.facts.entries.len());
        put_u64(&mut *out, 56, self.facts.checkpoint);
        put_entries(&mut out, HEAD, &self.facts.entries);
        match &self.before {
            Some(before) => {
                put_u64(&mut *out, BEFORE_AT, before.session);
                put_u64(&mut *out, BEFORE_AT + 8, before.synced);
                put_u32(&mut *out, BEFORE_AT + 16, before.chain);
                put_len(&mut *out, BEFORE_AT + 20, before.entries.len());
                put_u64(&mut *out, BEFORE_AT + 24, before.checkpoint);
                put_entries(&mut out, BEFORE_AT + BEFORE_HEAD, &before.entries);
            }
            None => put_u32(&mut *out, BEFORE_AT + 20, NO_COPY),
        }
        seal(&mut *out, SEAL);
        out
    }

    /// The header in `block`; `None` when the block isn't one, or is damaged.
    pub(crate) fn decode(block: &[u8]) -> Option<RecordHeader> {
        let magic = (block.len() == PAGE).then(|| u32_at(block, 0))?;
        let most = match magic {
            MAGIC => ENTRIES_MAX,
            MAGIC_ALONE => ENTRIES_READ_MAX,
            _ => return None,
        };
        let count = len_at(block, 52);
        if !is_sealed(block, SEAL) || count > most {
            return None;
        }
        let facts = RecordFacts {
            session: u64_at(block, 24),
            checkpoint: if magic == MAGIC { u64_at(block, 56) } else { 0 },
            chain: u32_at(block, 48),
            synced: u64_at(block, 40),
            entries: entries_at(block, HEAD, count)?,
        };
        let before = match (magic, u32_at(block, BEFORE_AT + 20)) {
            (MAGIC_ALONE, _) | (_, NO_COPY) => None,
            (_, count) if usize_of_u32(count) > ENTRIES_MAX => return None,
            (_, count) => Some(RecordFacts {
                session: u64_at(block, BEFORE_AT),
                checkpoint: u64_at(block, BEFORE_AT + 24),
                chain: u32_at(block, BEFORE_AT + 16),
                synced: u64_at(block, BEFORE_AT + 8),
                entries: entries_at(block, BEFORE_AT + BEFORE_HEAD, usize_of_u32(count))?,
            }),
        };
        let volume = block[8..24].try_into().expect("sixteen bytes");
        Some(RecordHeader { volume, seq: u64_at(block, 32), facts, before })
    }
}

/// The checksum of a record's first block, which the next record repeats.
pub(crate) fn chain_of(block: &[u8]) -> u32 {
    u32_at(block, SEAL)
}
