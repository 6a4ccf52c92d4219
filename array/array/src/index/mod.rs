//! The index of fingerprints: which stored page may have this one. Step 3 of the engine.
//!
//! ```text
//!   insert ──► table in memory (newest) ──► full, or checkpoint ──► run on the SSD, sorted
//!   look up ──► table ──► Bloom filter of each run ──► the one block of the run that can have it
//!   a new run takes in the newest runs that are not four times its size: few runs, written once in order
//! ```
//!
//! The index is advice. A candidate counts only if the segment block of its page says the same
//! fingerprint, so that entries of pages that are free or used again do no harm, and need no removal.
//! A lost or damaged entry costs space and nothing else; the segment blocks can rebuild all of it.

mod bloom;
pub(crate) mod run;

use std::io;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use merganser_storage::Storage;
use merganser_storage::numbers::u64_of;

use crate::bytes::BLOCK;
use crate::error::Result;
use crate::layout::VolumeLayout;
use crate::superblock::{RUNS_MAX, RunPlace};
use run::{IndexMerge, IndexRun, IndexRunWriter, blocks_of};

/// Memory that an entry takes in the table, in bytes.
const ENTRY_BYTES: u64 = 40;
/// A new run takes in older ones up to this many times its size.
const GROWTH: u64 = 4;

/// Entries of the table in memory at most, of an index of `memory_bytes`.
pub(crate) fn table_entries(memory_bytes: u64) -> usize {
    usize::try_from(memory_bytes / 2 / ENTRY_BYTES).unwrap_or(usize::MAX).max(1024)
}

/// The index.
pub(crate) struct DedupIndex {
    array: Arc<dyn Storage>,
    at: u64,
    blocks: u64,
    table: HashMap<u64, u64>,
    table_max: usize,
    /// Oldest first.
    runs: Vec<IndexRun>,
    /// Space of runs that the last checkpoint still names.
    retired: Vec<(u64, u64)>,
    next_number: u64,
    /// Entries in runs beyond which the index is rebuilt without its stale entries.
    entries_max: u64,
    bloom_bytes_left: u64,
    bloom_bytes: u64,
    pub(crate) bytes_written: u64,
    /// Blocks that could not be read as what they should be.
    pub(crate) damaged_blocks: u64,
}

impl DedupIndex {
    /// An index of `memory_bytes` with the runs of the last checkpoint. Runs that can't be read are
    /// dropped; then the second value is false.
    pub(crate) fn open(
        array: Arc<dyn Storage>,
        layout: &VolumeLayout,
        places: &[RunPlace],
        memory_bytes: u64,
    ) -> Result<(DedupIndex, bool)> {
        let (at, blocks) = (layout.index_at, layout.index_blocks);
        let mut index = DedupIndex {
            array,
            at,
            blocks,
            table: HashMap::new(),
            table_max: table_entries(memory_bytes),
            runs: Vec::new(),
            retired: Vec::new(),
            next_number: 1,
            entries_max: layout.pages() * 3 / 2 + 1024,
            bloom_bytes_left: memory_bytes / 2,
            bloom_bytes: memory_bytes / 2,
            bytes_written: 0,
            damaged_blocks: 0,
        };
        let mut whole = true;
        for place in places {
            index.next_number = index.next_number.max(place.number.saturating_add(1));
            match IndexRun::open(&index.array, at, blocks, *place, &mut index.bloom_bytes_left)? {
                Some(run) => index.runs.push(run),
                None => {
                    index.damaged_blocks += 1;
                    whole = false;
                    // Until the next checkpoint, if it is inside at all.
                    let len = blocks_of(place.entries);
                    if place.at.checked_add(len).is_some_and(|end| end <= blocks) {
                        index.retired.push((place.at, len));
                    }
                }
            }
        }
        Ok((index, whole))
    }

    /// The runs, for the superblock.
    pub(crate) fn places(&self) -> Vec<RunPlace> {
        self.runs.iter().map(|run| run.place).collect()
    }

    /// Pages that may have this tag, the likeliest first.
    pub(crate) fn candidates(&mut self, tag: u64) -> Vec<u64> {
        let mut found: Vec<u64> = self.table.get(&tag).copied().into_iter().collect();
        for run in self.runs.iter().rev() {
            match run.find(&*self.array, self.at, tag) {
                Ok(page) => found.extend(page),
                // Users don't see this error: an equal page is stored again.
                Err(_) => self.damaged_blocks += 1,
            }
        }
        found
    }

    /// Remembers that page `page` is stored and has this tag.
    pub(crate) fn insert(&mut self, tag: u64, page: u64) {
        self.table.insert(tag, page);
    }

    /// Whether the table in memory is full, so that a checkpoint is due.
    pub(crate) fn is_full(&self) -> bool {
        self.table.len() >= self.table_max
    }

    /// Whether the index has enough stale entries to be rebuilt.
    pub(crate) fn is_stale(&self) -> bool {
        self.runs.iter().map(|run| run.place.entries).sum::<u64>() > self.entries_max
    }

    /// Forgets everything, so that it can be filled again.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.retire(0);
    }

    fn retire(&mut self, from: usize) {
        let gone = self.runs.drain(from..);
        self.retired.extend(gone.map(|run| (run.place.at, blocks_of(run.place.entries))));
        let kept: u64 = self.runs.iter().map(IndexRun::bloom_bytes).sum();
        self.bloom_bytes_left = self.bloom_bytes.saturating_sub(kept);
    }

    /// Writes the table as a run, together with the newest runs that are not much larger.
    pub(crate) fn spill(&mut self) -> Result<()> {
        if self.table.is_empty() {
            return Ok(());
        }
        let mut entries: Vec<(u64, u64)> = self.table.drain().collect();
        entries.sort_unstable();
        let (mut from, mut most) = (self.runs.len(), u64_of(entries.len()));
        while from > 0 && (self.runs[from - 1].place.entries <= GROWTH * most || from >= RUNS_MAX) {
            from -= 1;
            most += self.runs[from].place.entries;
        }
        let Some(at) = self.find_room(blocks_of(most)) else {
            // Runs in use and runs that the last checkpoint names take all room: start again. The
            // pages of this table and later ones are found again; older ones after the next rebuild.
            self.retire(0);
            return Ok(());
        };
        let number = self.next_number;
        self.next_number += 1;
        let kept: u64 = self.runs[..from].iter().map(IndexRun::bloom_bytes).sum();
        let bloom_left = self.bloom_bytes.saturating_sub(kept);
        let mut writer = IndexRunWriter::new(&self.array, self.at, at, number, most, bloom_left);
        let mut merge = IndexMerge::new(&*self.array, self.at, entries, &self.runs[from..]);
        loop {
            match merge.next() {
                Ok(Some((tag, page))) => writer.push(tag, page)?,
                Ok(None) => break,
                // The rest of this run is left out. Its pages are stored again if they are written again.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    self.damaged_blocks += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
        drop(merge);
        let mut run = writer.finish()?;
        self.bytes_written += blocks_of(run.place.entries) * BLOCK;
        self.retire(from);
        run.keep_bloom(&mut self.bloom_bytes_left);
        self.runs.push(run);
        Ok(())
    }

    /// The first block of `blocks` free ones.
    fn find_room(&self, blocks: u64) -> Option<u64> {
        let used = self.runs.iter().map(|run| (run.place.at, blocks_of(run.place.entries)));
        let mut used: Vec<(u64, u64)> = used.chain(self.retired.iter().copied()).collect();
        used.sort_unstable();
        let mut at = 0;
        for (begin, len) in used {
            if begin >= at + blocks {
                break;
            }
            at = at.max(begin + len);
        }
        (at + blocks <= self.blocks).then_some(at)
    }

    /// A checkpoint counts that names the present runs: the space of others is free.
    pub(crate) fn committed(&mut self) {
        self.retired.clear();
    }

    /// Checks every block of every run; the number of bad ones.
    pub(crate) fn verify(&self) -> u64 {
        self.runs.iter().map(|run| run.damaged_blocks(&*self.array, self.at)).sum()
    }

    /// Memory that it takes now, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let runs: u64 = self.runs.iter().map(|run| run.bloom_bytes() + run.fence_bytes()).sum();
        u64_of(self.table.len()) * ENTRY_BYTES + runs
    }
}
