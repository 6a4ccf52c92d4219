//! A run: entries in the order of their tags, in blocks. Docs: docs/array/array.md, "Index".

use std::io;
use std::sync::Arc;

use merganser_storage::numbers::{u64_of, upper_u32, usize_of};
use merganser_storage::{Buffer, Operation, Storage, StorageExt};

use super::bloom::Bloom;
use crate::bytes::{
    BLOCK, PAGE, PageBytes, is_sealed, len_at, put_len, put_u32, put_u64, seal, u32_at, u64_at,
    zeroed,
};
use crate::error::Result;
use crate::superblock::RunPlace;

const MAGIC: u32 = u32::from_le_bytes(*b"MixR");
const SEAL: usize = 4;
const HEAD: usize = 32;
/// Entries of a block.
pub(crate) const BLOCK_ENTRIES: usize = (PAGE - HEAD) / 16;
/// Blocks that are read or written at once.
const AT_ONCE: usize = 64;

/// Blocks of a run with `entries` entries.
pub(crate) fn blocks_of(entries: u64) -> u64 {
    entries.div_ceil(u64_of(BLOCK_ENTRIES))
}

/// Block `number` of run `run`.
pub(crate) fn encode(run: u64, number: u64, entries: &[(u64, u64)]) -> Box<PageBytes> {
    let mut out = zeroed();
    put_u32(&mut *out, 0, MAGIC);
    put_u64(&mut *out, 8, run);
    put_u64(&mut *out, 16, number);
    put_len(&mut *out, 24, entries.len());
    for (i, (tag, page)) in entries.iter().enumerate() {
        put_u64(&mut *out, HEAD + 16 * i, *tag);
        put_u64(&mut *out, HEAD + 16 * i + 8, *page);
    }
    seal(&mut *out, SEAL);
    out
}

/// The entries of block `number` of run `run`, if that is what `block` is.
pub(crate) fn decode(block: &[u8], run: u64, number: u64) -> Option<Vec<(u64, u64)>> {
    let right = block.len() == PAGE && u32_at(block, 0) == MAGIC && is_sealed(block, SEAL);
    let count = right.then(|| len_at(block, 24))?;
    if (u64_at(block, 8), u64_at(block, 16)) != (run, number) || count > BLOCK_ENTRIES {
        return None;
    }
    let entry = |i: usize| (u64_at(block, HEAD + 16 * i), u64_at(block, HEAD + 16 * i + 8));
    Some((0..count).map(entry).collect())
}

fn damaged(storage: &dyn Storage, run: u64, number: u64) -> io::Error {
    let text = format!("{}: block {number} of run {run} of the index is damaged", storage.name());
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// A run that can be looked up.
pub(crate) struct IndexRun {
    pub(crate) place: RunPlace,
    /// The upper half of the first tag of each block.
    fences: Vec<u32>,
    bloom: Option<Bloom>,
}

impl IndexRun {
    /// Reads a run once to make its fences and filter; `None` when it is damaged.
    pub(crate) fn open(
        array: &Arc<dyn Storage>,
        index_at: u64,
        index_blocks: u64,
        place: RunPlace,
        bloom_bytes_left: &mut u64,
    ) -> Result<Option<IndexRun>> {
        let blocks = blocks_of(place.entries);
        if place.at.checked_add(blocks).is_none_or(|end| end > index_blocks) {
            return Ok(None);
        }
        let mut run = IndexRun { place, fences: Vec::new(), bloom: None };
        let wanted = Bloom::bytes_of(place.entries);
        if wanted <= *bloom_bytes_left {
            *bloom_bytes_left -= wanted;
            run.bloom = Some(Bloom::new(place.entries));
        }
        let mut reader = IndexRunReader::new(&**array, index_at, &run.place);
        let mut fences = Vec::with_capacity(usize_of(blocks));
        let mut last = 0;
        for _ in 0..blocks {
            let entries = match reader.next_block() {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let Some(&(first, _)) = entries.first() else { return Ok(None) };
            fences.push(upper_u32(first));
            for (tag, _) in entries {
                if tag < last {
                    return Ok(None);
                }
                last = tag;
                if let Some(bloom) = &mut run.bloom {
                    bloom.add(tag);
                }
            }
        }
        run.fences = fences;
        Ok(Some(run))
    }

    pub(crate) fn bloom_bytes(&self) -> u64 {
        self.bloom.as_ref().map_or(0, Bloom::bytes)
    }

    pub(crate) fn fence_bytes(&self) -> u64 {
        u64_of(self.fences.len()) * 4
    }

    /// Keeps the filter only if there is memory for it.
    pub(crate) fn keep_bloom(&mut self, left: &mut u64) {
        let bytes = self.bloom_bytes();
        if bytes <= *left { *left -= bytes } else { self.bloom = None }
    }

    /// The page of the entry with this tag.
    pub(crate) fn find(
        &self,
        array: &dyn Storage,
        index_at: u64,
        tag: u64,
    ) -> io::Result<Option<u64>> {
        if self.bloom.as_ref().is_some_and(|bloom| !bloom.may_have(tag)) {
            return Ok(None);
        }
        let high = upper_u32(tag);
        // Blocks whose first tag has the same upper half may begin below it or above.
        let first = self.fences.partition_point(|&fence| fence < high).saturating_sub(1);
        let end = self.fences.partition_point(|&fence| fence <= high);
        for number in first..end {
            let at = index_at + (self.place.at + u64_of(number)) * BLOCK;
            let block = array.read_vec(at, PAGE)?;
            let entries = decode(&block, self.place.number, u64_of(number));
            let entries =
                entries.ok_or_else(|| damaged(array, self.place.number, u64_of(number)))?;
            if let Ok(found) = entries.binary_search_by_key(&tag, |entry| entry.0) {
                return Ok(Some(entries[found].1));
            }
        }
        Ok(None)
    }

    pub(crate) fn damaged_blocks(&self, array: &dyn Storage, index_at: u64) -> u64 {
        let mut reader = IndexRunReader::new(array, index_at, &self.place);
        let bad = |_: &u64| reader.next_block().is_err();
        u64_of((0..blocks_of(self.place.entries)).filter(bad).count())
    }
}

/// Reads a run in order.
struct IndexRunReader<'a> {
    array: &'a dyn Storage,
    index_at: u64,
    place: RunPlace,
    next: u64,
    bytes: Vec<u8>,
    bytes_from: u64,
}

impl<'a> IndexRunReader<'a> {
    fn new(array: &'a dyn Storage, index_at: u64, place: &RunPlace) -> IndexRunReader<'a> {
        IndexRunReader { array, index_at, place: *place, next: 0, bytes: Vec::new(), bytes_from: 0 }
    }

    /// The entries of the next block; none at the end.
    fn next_block(&mut self) -> io::Result<Vec<(u64, u64)>> {
        let blocks = blocks_of(self.place.entries);
        if self.next >= blocks {
            return Ok(Vec::new());
        }
        let inside = usize_of(self.next - self.bytes_from) * PAGE;
        if inside >= self.bytes.len() {
            let count = AT_ONCE.min(usize_of(blocks - self.next));
            let at = self.index_at + (self.place.at + self.next) * BLOCK;
            // One that can't be read is as good as a damaged one.
            let bytes = self.array.read_vec(at, count * PAGE);
            self.bytes = bytes.map_err(|_| damaged(self.array, self.place.number, self.next))?;
            self.bytes_from = self.next;
        }
        let inside = usize_of(self.next - self.bytes_from) * PAGE;
        let number = self.next;
        self.next += 1;
        decode(&self.bytes[inside..inside + PAGE], self.place.number, number)
            .ok_or_else(|| damaged(self.array, self.place.number, number))
    }
}

/// Writes a run in order.
pub(crate) struct IndexRunWriter<'a> {
    array: &'a Arc<dyn Storage>,
    index_at: u64,
    place: RunPlace,
    bytes: Vec<u8>,
    blocks_written: u64,
    pending: Vec<(u64, u64)>,
    fences: Vec<u32>,
    bloom: Option<Bloom>,
}

impl<'a> IndexRunWriter<'a> {
    pub(crate) fn new(
        array: &'a Arc<dyn Storage>,
        index_at: u64,
        at: u64,
        number: u64,
        entries_max: u64,
        bloom_bytes_max: u64,
    ) -> IndexRunWriter<'a> {
        let has_room = Bloom::bytes_of(entries_max) <= bloom_bytes_max;
        IndexRunWriter {
            array,
            index_at,
            place: RunPlace { at, entries: 0, number },
            bytes: Vec::new(),
            blocks_written: 0,
            pending: Vec::new(),
            fences: Vec::new(),
            bloom: has_room.then(|| Bloom::new(entries_max)),
        }
    }

    /// Adds an entry; tags rise.
    pub(crate) fn push(&mut self, tag: u64, page: u64) -> Result<()> {
        if let Some(bloom) = &mut self.bloom {
            bloom.add(tag);
        }
        self.pending.push((tag, page));
        self.place.entries += 1;
        if self.pending.len() == BLOCK_ENTRIES {
            self.end_block()?;
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.fences.push(upper_u32(self.pending[0].0));
        let number = u64_of(self.fences.len()) - 1;
        self.bytes.extend_from_slice(&*encode(self.place.number, number, &self.pending));
        self.pending.clear();
        if self.bytes.len() >= AT_ONCE * PAGE {
            self.write_out()?;
        }
        Ok(())
    }

    fn write_out(&mut self) -> Result<()> {
        let offset = self.index_at + (self.place.at + self.blocks_written) * BLOCK;
        let mut buffer = Buffer::try_new(self.bytes.len())?;
        buffer.copy_from_slice(&self.bytes);
        self.array.run(Operation::Write { offset, buffer })?;
        self.blocks_written += u64_of(self.bytes.len() / PAGE);
        self.bytes.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<IndexRun> {
        self.end_block()?;
        if !self.bytes.is_empty() {
            self.write_out()?;
        }
        Ok(IndexRun { place: self.place, fences: self.fences, bloom: self.bloom })
    }
}

/// Entries of several sources in the order of their tags; of equal tags the newest alone.
pub(crate) struct IndexMerge<'a> {
    /// Oldest first; the last one is the table.
    sources: Vec<IndexMergeSource<'a>>,
}

struct IndexMergeSource<'a> {
    reader: Option<IndexRunReader<'a>>,
    entries: std::vec::IntoIter<(u64, u64)>,
    head: Option<(u64, u64)>,
}

impl<'a> IndexMerge<'a> {
    pub(crate) fn new(
        array: &'a dyn Storage,
        index_at: u64,
        table: Vec<(u64, u64)>,
        runs: &[IndexRun],
    ) -> IndexMerge<'a> {
        let of_run = |run: &IndexRun| {
            (Some(IndexRunReader::new(array, index_at, &run.place)), Vec::new().into_iter())
        };
        let sources = runs.iter().map(of_run).chain([(None, table.into_iter())]);
        let sources =
            sources.map(|(reader, entries)| IndexMergeSource { reader, entries, head: None });
        IndexMerge { sources: sources.collect() }
    }

    /// The next entry. After an error, the rest of the damaged source is left out.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u64, u64)>> {
        let mut best: Option<(u64, u64)> = None;
        for source in &mut self.sources {
            source.fill()?;
            if let Some((tag, page)) = source.head
                && best.is_none_or(|(least, _)| tag <= least)
            {
                best = Some((tag, page));
            }
        }
        if let Some((tag, _)) = best {
            for source in &mut self.sources {
                if source.head.is_some_and(|(other, _)| other == tag) {
                    source.head = None;
                }
            }
        }
        Ok(best)
    }
}

impl IndexMergeSource<'_> {
    fn fill(&mut self) -> io::Result<()> {
        while self.head.is_none() {
            if let Some(next) = self.entries.next() {
                self.head = Some(next);
                break;
            }
            let Some(reader) = &mut self.reader else { break };
            let block = match reader.next_block() {
                Ok(block) => block,
                Err(error) => {
                    self.reader = None;
                    return Err(error);
                }
            };
            if block.is_empty() {
                self.reader = None;
                break;
            }
            self.entries = block.into_iter();
        }
        Ok(())
    }
}
