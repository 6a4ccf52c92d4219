//! Merging inputs that are sorted already and have no fences: a buffer an input, refilled when dry.
//!
//! ```text
//!   input 0 ─► [ records ······ ]─┐
//!   input 1 ─► [ ····· ]──────────┼─► kernel ─► output, until one buffer is dry; refill it; again
//!   input 2 ─► [ ··········· ]────┘
//! ```
//!
//! One thread merges, because without fences it is unknown where the next window begins.
//!
//! More inputs than memory or descriptors allow are merged in passes: neighbours first, into a
//! temporary file, so that equal keys keep input order.
//!
//! ```text
//!   inputs 0 1 2 3 4 5 6 7 8     at most 4 at once
//!          └──┬──┘ └──┬──┘ │
//!             a       b    8  ─► output
//! ```

use std::ops::Range;
use std::sync::Arc;

use merganser_storage::region::Regions;
use merganser_storage::{Directory, Operation, Storage, StorageExt};

use super::kernel::{SortedSlice, merge};
use crate::access::with_access;
use crate::budget::Reservation;
use crate::key::{Order, OrderSpec};
use crate::record::{Framing, with_framing};
use crate::run::SortInput;
use crate::run::chunk::Chunk;
use crate::run::chunk_reader::{ChunkReader, check_header};
use crate::run::header_lines::HeaderRule;
use crate::run::release::ignore_unsupported;
use crate::{Budget, Error, Progress, Result};

/// The largest and smallest buffer of an input, in bytes read at a time.
const BUFFER_BYTES: Range<u64> = (64 << 10)..(4 << 20);
/// Merged bytes are passed on in pieces of about this many.
const OUT_BYTES: usize = 1 << 20;

struct Source {
    reader: ChunkReader,
    chunk: Chunk,
    /// The span being merged, and how much of it is used.
    span: usize,
    used: usize,
}

impl Source {
    /// Whether records follow those in memory.
    fn more(&self) -> bool {
        !self.reader.finished()
    }

    fn current(&self) -> &[u8] {
        match self.chunk.spans.get(self.span) {
            Some(span) => &self.chunk.bytes()[span.start + self.used..span.end],
            None => &[],
        }
    }

    /// Reads until there are records in memory or no more come.
    fn refill(&mut self, progress: &dyn Progress) -> Result<()> {
        while self.current().is_empty() {
            if self.span + 1 < self.chunk.spans.len() {
                self.span += 1;
            } else if self.more() {
                self.reader.fill(&mut self.chunk, progress)?;
                self.span = 0;
            } else {
                return Ok(());
            }
            self.used = 0;
        }
        Ok(())
    }

    /// Whether anything follows the current span.
    fn follows(&self) -> bool {
        self.more() || self.span + 1 < self.chunk.spans.len()
    }
}

/// The settings of a merge of sorted inputs.
pub struct Merging<'a> {
    /// Format and order of the records; whether duplicates are removed.
    pub order: &'a OrderSpec,
    /// All memory that grows with data.
    pub budget: &'a Budget,
    /// Where records go that are merged in several passes; the first folder is used.
    pub temp: &'a [Arc<dyn Directory>],
    /// How much they may take there.
    pub temp_limit_bytes: Option<u64>,
    /// How many inputs may be open at once, at least 2.
    pub inputs_max: usize,
}

/// Bytes of the result of a merge.
#[derive(Debug, Clone, Copy)]
pub struct MergedPiece<'a> {
    /// The bytes: whole records, or all that comes before the first one.
    pub bytes: &'a [u8],
    /// Whether they are what comes before the first record.
    pub is_header: bool,
}

/// Merges `inputs`, which are each sorted by the order of `with`, and hands the bytes to `take` in
/// order. `take` returns whether it wants more. Returns the number of records that it got.
///
/// # Errors
/// Bad input, too little memory, a full disk where there are several passes, or what `take` fails
/// with.
pub fn merge_sorted(
    inputs: Vec<SortInput>,
    with: &Merging<'_>,
    progress: &dyn Progress,
    mut take: impl FnMut(MergedPiece<'_>) -> Result<bool>,
) -> Result<u64> {
    with.order.check_format()?;
    let total = inputs.iter().map(SortInput::size).try_fold(0u64, |sum, size| Some(sum + size?));
    let least = memory_bytes(BUFFER_BYTES.start, 1) - OUT_BYTES as u64;
    let unpacking = inputs.iter().map(SortInput::unpack_memory_bytes).max().unwrap_or(0);
    let by_memory = with.budget.free_bytes().saturating_sub(OUT_BYTES as u64) / (least + unpacking);
    let most = usize::try_from(by_memory).unwrap_or(usize::MAX);
    let most = most.min(with.inputs_max).clamp(2, INPUTS_MAX);
    progress.phase("merging", total);
    let mut merger = Merger { with, preamble: None, order: None, written: 0 };
    let mut parts: Vec<Part> = inputs.into_iter().map(Part::Input).collect();
    if parts.len() > most && !with.temp.is_empty() {
        let temp = Regions::new(with.temp[0].create_unnamed()?);
        while parts.len() > most {
            // Each group of `most` becomes one: no more groups than are needed.
            let groups = (parts.len() - most).div_ceil(most - 1);
            let mut rest = parts.into_iter();
            let mut fewer = Vec::new();
            for _ in 0..groups {
                let group: Vec<Part> = rest.by_ref().take(most).collect();
                fewer.push(merger.merge_group(group, &temp, progress)?);
            }
            fewer.extend(rest);
            parts = fewer;
        }
        progress.phase("merging", parts.iter().map(Part::size).sum());
    }
    let mut sources = merger.open(parts, progress)?;
    let order = merger.order()?;
    if let Some(preamble) = merger.preamble.as_ref().filter(|preamble| !preamble.is_empty())
        && !take(MergedPiece { bytes: preamble, is_header: true })?
    {
        return Ok(0);
    }
    let mut records = |bytes: &[u8]| take(MergedPiece { bytes, is_header: false });
    let records =
        merge_sources(&mut sources.sources, &order, with.order.unique, progress, &mut records)?;
    match order.unseen_column().filter(|_| records > 0) {
        None => Ok(records),
        Some(error) => Err(error.into()),
    }
}

/// More inputs than this are merged in passes, even if memory and descriptors would allow it: each
/// input has two memory mappings, and the system allows a process 65,530 of them.
const INPUTS_MAX: usize = 16_384;

/// Memory of a merge of `count` inputs that reads `bytes` of each at a time. A round writes at most
/// one span of every input.
fn memory_bytes(bytes: u64, count: u64) -> u64 {
    let one = Chunk::memory_bytes(bytes as usize) as u64 + bytes.min(OUT_BYTES as u64);
    one * count + OUT_BYTES as u64
}

/// An input of the merge.
enum Part {
    Input(SortInput),
    /// Inputs that were merged before, without a header row.
    Merged(Arc<dyn Storage>),
}

impl Part {
    fn size(&self) -> Option<u64> {
        match self {
            Part::Input(input) => input.size(),
            Part::Merged(storage) => Some(storage.size()),
        }
    }

    fn unpack_memory_bytes(&self) -> u64 {
        match self {
            Part::Input(input) => input.unpack_memory_bytes(),
            Part::Merged(_) => 0,
        }
    }
}

/// Parts being merged, and the memory of their buffers.
struct Sources {
    sources: Vec<Source>,
    _memory: Reservation,
}

struct Merger<'a> {
    with: &'a Merging<'a>,
    /// The bytes before the records of the first input, once it was opened; where there should be a header row, of
    /// the first input that has one.
    preamble: Option<Vec<u8>>,
    order: Option<Arc<Order>>,
    /// Bytes in the temporary file.
    written: u64,
}

impl Merger<'_> {
    /// The order; only inputs that are all empty have no header row where there should be one.
    fn order(&mut self) -> Result<Arc<Order>> {
        if let Some(order) = &self.order {
            return Ok(Arc::clone(order));
        }
        let order = Arc::new(self.with.order.compile(self.preamble.as_deref())?);
        self.order = Some(Arc::clone(&order));
        Ok(order)
    }

    /// Opens each of `parts` and reads its front.
    fn open(&mut self, parts: Vec<Part>, progress: &dyn Progress) -> Result<Sources> {
        let budget = self.with.budget;
        let count = parts.len().max(1) as u64;
        let mut bytes = BUFFER_BYTES.end;
        // Decompressors take theirs when they are first read, which is below.
        let unpacking: u64 = parts.iter().map(Part::unpack_memory_bytes).sum();
        let free = budget.free_bytes().saturating_sub(unpacking);
        while bytes > BUFFER_BYTES.start && memory_bytes(bytes, count) > free {
            bytes /= 2;
        }
        let memory = budget.reserve(memory_bytes(bytes, count), "merging this many inputs")?;
        let mut sources = Vec::new();
        for part in parts {
            let format = self.with.order.format;
            let (input, is_merged) = match part {
                Part::Input(input) => (input, false),
                Part::Merged(storage) => (SortInput::Storage(storage), true),
            };
            let name = input.name().to_owned();
            // A short input gets a short buffer: to map and clear a large one takes longer than to
            // merge a few bytes.
            let whole = input.size().map_or(bytes, |size| size.max(1).next_multiple_of(4096));
            let bytes = bytes.min(whole) as usize;
            let of = if is_merged { ChunkReader::of_records } else { ChunkReader::new };
            let header = HeaderRule::of_order(self.with.order).filter(|_| !is_merged);
            let reader = of(vec![input], format, bytes).with_header(header.clone());
            let chunk = Chunk::new(bytes);
            let mut source = Source { reader, chunk: chunk?, span: 0, used: 0 };
            source.refill(progress)?;
            if let Some(rule) = &header {
                let own = source.reader.preamble().unwrap_or_default().to_vec();
                rule.join(&mut self.preamble, own, &name)?;
            } else if !is_merged {
                let preamble = source.reader.preamble().unwrap_or_default();
                match &self.preamble {
                    Some(first) if preamble.is_empty() || first.is_empty() => {}
                    Some(first) => check_header(format, first, preamble, &name)?,
                    None if preamble.is_empty() && format.has_header() => {}
                    None => self.preamble = Some(preamble.to_vec()),
                }
            }
            sources.push(source);
        }
        Ok(Sources { sources, _memory: memory })
    }

    /// Merges `group` into the next region of `temp`.
    fn merge_group(
        &mut self,
        group: Vec<Part>,
        temp: &Regions,
        progress: &dyn Progress,
    ) -> Result<Part> {
        let merged: Arc<dyn Storage> = temp.next();
        let earlier: Vec<Arc<dyn Storage>> = group
            .iter()
            .filter_map(|part| match part {
                Part::Merged(storage) => Some(Arc::clone(storage)),
                Part::Input(_) => None,
            })
            .collect();
        let mut sources = self.open(group, progress)?;
        if self.preamble.is_none() && self.with.order.format.has_header() {
            // There is not even a header row: all of them are empty, and the order is not known
            // yet.
            return Ok(Part::Merged(merged));
        }
        let order = self.order()?;
        let (limit, before) = (self.with.temp_limit_bytes, self.written);
        let mut end = 0;
        let mut write = |bytes: &[u8]| {
            if let Some(limit_bytes) = limit.filter(|l| before + end + bytes.len() as u64 > *l) {
                return Err(Error::TempLimit { limit_bytes });
            }
            merged.write_at(end, bytes)?;
            end += bytes.len() as u64;
            Ok(true)
        };
        let unique = self.with.order.unique;
        merge_sources(&mut sources.sources, &order, unique, progress, &mut write)?;
        self.written += end;
        // Results of earlier passes that were merged again are not needed any more.
        for storage in earlier {
            let discard = Operation::Discard { offset: 0, len: storage.size() };
            ignore_unsupported(storage.run(discard).map(|(_, n)| n))?;
        }
        Ok(Part::Merged(merged))
    }
}

fn merge_sources(
    sources: &mut [Source],
    order: &Order,
    unique: bool,
    progress: &dyn Progress,
    take: &mut impl FnMut(&[u8]) -> Result<bool>,
) -> Result<u64> {
    let mut out = vec![0; OUT_BYTES];
    let mut last_key: Option<Vec<u8>> = None;
    let mut records = 0;
    loop {
        if progress.cancelled() {
            return Err(Error::Cancelled);
        }
        for source in &mut *sources {
            source.refill(progress)?;
        }
        let mut segments: Vec<SortedSlice<'_>> =
            sources.iter().map(|s| SortedSlice { bytes: s.current(), more: s.follows() }).collect();
        let before: Vec<usize> = segments.iter().map(|s| s.bytes.len()).collect();
        if before.iter().all(|len| *len == 0) {
            return Ok(records);
        }
        let room: usize = before.iter().sum();
        if out.len() < room {
            out.resize(room, 0);
        }
        let merged = with_access!(order, framing, access => {
            merge::<u128, _, _>(framing, access, &mut segments, unique, &mut out)
        });
        let used: Vec<usize> =
            before.iter().zip(&segments).map(|(len, s)| len - s.bytes.len()).collect();
        for (source, used) in sources.iter_mut().zip(used) {
            source.used += used;
        }
        let mut bytes = &out[..merged.bytes as usize];
        if unique {
            bytes = drop_repeated(order, bytes, &mut last_key);
        }
        records += super::window::count_records(order, bytes);
        // A merge does not encode all rows.
        order.see_columns(bytes);
        if !bytes.is_empty() && !take(bytes)? {
            return Ok(records);
        }
    }
}

/// Drops the first record when its key is `last_key`, which becomes the key of the last one.
fn drop_repeated<'a>(order: &Order, bytes: &'a [u8], last_key: &mut Option<Vec<u8>>) -> &'a [u8] {
    with_framing!(order.format(), framing => {
        let Some(len) = framing.first(bytes) else { return bytes };
        let mut key = Vec::new();
        order.encode(&bytes[..len], &mut key);
        let repeated = last_key.as_ref() == Some(&key);
        let kept = if repeated { &bytes[len..] } else { bytes };
        let (mut at, mut last) = (0, None);
        while let Some(len) = framing.first(&kept[at..]) {
            last = Some(at..at + len);
            at += len;
        }
        if let Some(last) = last {
            key.clear();
            order.encode(&kept[last], &mut key);
            *last_key = Some(key);
        }
        kept
    })
}
