//! The directory of the buffer: where the newest bytes of a page are, and trims that have not moved.
//!
//! ```text
//!   read of a page ── in the overlay? ── its block of the log
//!                  └─ trimmed?        ── zeros
//!                  └─ else            ── the store
//! ```

use std::collections::BTreeMap;

use foldhash::HashMap;
use merganser_storage::numbers::u64_of;

use crate::error::{Error, Result};
use crate::log::Log;
use crate::log::record::RecordEntry;

/// Memory that a page, a trim and a record of the log take, in bytes, with the maps that hold them.
pub(crate) const SLOT_BYTES: u64 = 64;
const TRIM_BYTES: u64 = 96;
pub(crate) const RECORD_BYTES: u64 = 64;

/// Where the newest bytes of a page are in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogSlot {
    pub(crate) seq: u64,
    pub(crate) block: u64,
    pub(crate) crc: u32,
}

/// The newest pages and trims in the log.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    pub(crate) pages: HashMap<u64, LogSlot>,
    /// First page: end and record. They don't overlap, and no page of the overlay is older than its
    /// trim.
    pub(crate) trims: BTreeMap<u64, (u64, u64)>,
    /// Pages that were replaced before they moved.
    pub(crate) absorbed: u64,
}

/// Where a read finds a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageLocation {
    Log(LogSlot),
    Zeros,
    Store,
}

impl Overlay {
    /// Memory that it takes, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        u64_of(self.pages.len()) * SLOT_BYTES + u64_of(self.trims.len()) * TRIM_BYTES
    }

    /// Adds an entry of record `seq`. `block` is where the next page of the record is.
    pub(crate) fn add(&mut self, seq: u64, entry: &RecordEntry, block: &mut u64) {
        match *entry {
            RecordEntry::Page { page, crc } => {
                let slot = LogSlot { seq, block: *block, crc };
                self.absorbed += u64::from(self.pages.insert(page, slot).is_some());
                *block += 1;
            }
            RecordEntry::Trim { page, count } => self.trim(seq, page, page + u64::from(count)),
        }
    }

    fn trim(&mut self, seq: u64, from: u64, end: u64) {
        let before = self.pages.len();
        if end - from < u64_of(before) {
            for page in from..end {
                self.pages.remove(&page);
            }
        } else {
            self.pages.retain(|page, _| !(from..end).contains(page));
        }
        self.absorbed += u64_of(before - self.pages.len());
        // Older trims keep the pages on both sides of the new one.
        let older: Vec<_> = self.trims.range(..end).rev().map(|(&a, &(b, s))| (a, b, s)).collect();
        for (a, b, s) in older.into_iter().take_while(|&(_, b, _)| b > from) {
            self.trims.remove(&a);
            if a < from {
                self.trims.insert(a, (from, s));
            }
            if b > end {
                self.trims.insert(end, (b, s));
            }
        }
        self.trims.insert(from, (end, seq));
    }

    pub(crate) fn find(&self, page: u64) -> PageLocation {
        if let Some(&slot) = self.pages.get(&page) {
            return PageLocation::Log(slot);
        }
        match self.trims.range(..=page).next_back() {
            Some((_, &(end, _))) if page < end => PageLocation::Zeros,
            _ => PageLocation::Store,
        }
    }

    /// Forgets pages and trims of records up to `seq`.
    pub(crate) fn moved(&mut self, pages: &[u64], seq: u64) {
        for page in pages {
            if self.pages.get(page).is_some_and(|slot| slot.seq <= seq) {
                self.pages.remove(page);
            }
        }
        self.trims.retain(|_, &mut (_, of)| of > seq);
    }
}

impl LogSlot {
    /// Reads volume page `page` of `volume`, which is here.
    pub(crate) fn read(
        &self,
        log: &mut Log,
        volume: &str,
        page: u64,
        out: &mut [u8],
    ) -> Result<()> {
        log.read_page(self.block, out)?;
        if crc32c::crc32c(out) == self.crc {
            return Ok(());
        }
        Err(Error::Damaged {
            volume: volume.to_owned(),
            what: "page",
            number: page,
            detail: format!(
                "its bytes, in record {} of the buffer, have a wrong checksum",
                self.seq
            ),
        })
    }
}
