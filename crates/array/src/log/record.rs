//! The first block of a record, byte by byte.

use crate::bytes::{PAGE, Page, is_sealed, put_u32, put_u64, seal, u32_at, u64_at, zeroed};

const MAGIC: u32 = u32::from_le_bytes(*b"MlgR");
const SEAL: usize = 4;
const HEAD: usize = 64;
/// Entries of a record at most.
pub(crate) const ENTRIES_MAX: usize = (PAGE - HEAD) / 16;
const PAGE_KIND: u32 = 1;
const TRIM_KIND: u32 = 2;

/// One thing in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
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
pub(crate) struct Header {
    pub(crate) volume: [u8; 16],
    pub(crate) session: u64,
    pub(crate) seq: u64,
    /// Checksum of the first block of the record before it.
    pub(crate) chain: u32,
    /// The last record that was durable when this one was written.
    pub(crate) synced: u64,
    pub(crate) entries: Vec<Entry>,
}

impl Header {
    /// Pages that follow.
    pub(crate) fn pages(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry, Entry::Page { .. })).count()
    }

    pub(crate) fn encode(&self) -> Box<Page> {
        assert!(self.entries.len() <= ENTRIES_MAX, "callers cut");
        let mut out = zeroed();
        put_u32(&mut *out, 0, MAGIC);
        out[8..24].copy_from_slice(&self.volume);
        put_u64(&mut *out, 24, self.session);
        put_u64(&mut *out, 32, self.seq);
        put_u64(&mut *out, 40, self.synced);
        put_u32(&mut *out, 48, self.chain);
        put_u32(&mut *out, 52, self.entries.len() as u32);
        for (i, entry) in self.entries.iter().enumerate() {
            let (page, value, kind) = match *entry {
                Entry::Page { page, crc } => (page, crc, PAGE_KIND),
                Entry::Trim { page, count } => (page, count, TRIM_KIND),
            };
            let at = HEAD + 16 * i;
            put_u64(&mut *out, at, page);
            put_u32(&mut *out, at + 8, value);
            put_u32(&mut *out, at + 12, kind);
        }
        seal(&mut *out, SEAL);
        out
    }

    /// The header in `block`; `None` when the block isn't one, or is damaged.
    pub(crate) fn decode(block: &[u8]) -> Option<Header> {
        if block.len() != PAGE || u32_at(block, 0) != MAGIC || !is_sealed(block, SEAL) {
            return None;
        }
        let count = u32_at(block, 52) as usize;
        if count > ENTRIES_MAX {
            return None;
        }
        let entry = |i: usize| {
            let at = HEAD + 16 * i;
            let (page, value) = (u64_at(block, at), u32_at(block, at + 8));
            match u32_at(block, at + 12) {
                PAGE_KIND => Some(Entry::Page { page, crc: value }),
                TRIM_KIND => Some(Entry::Trim { page, count: value }),
                _ => None,
            }
        };
        Some(Header {
            volume: block[8..24].try_into().expect("sixteen bytes"),
            session: u64_at(block, 24),
            seq: u64_at(block, 32),
            synced: u64_at(block, 40),
            chain: u32_at(block, 48),
            entries: (0..count).map(entry).collect::<Option<_>>()?,
        })
    }
}

/// The checksum of a record's first block, which the next record repeats.
pub(crate) fn chain_of(block: &[u8]) -> u32 {
    u32_at(block, SEAL)
}
