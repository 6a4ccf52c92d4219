//! Merging inputs that are sorted already and have no fences: a buffer an input, refilled when dry.
//!
//! ```text
//!   input 0 ─► [ records ······ ]─┐
//!   input 1 ─► [ ····· ]──────────┼─► kernel ─► output, until one buffer is dry; refill it; again
//!   input 2 ─► [ ··········· ]────┘
//! ```
//!
//! One thread merges: without fences nobody knows where the next window begins.

use std::ops::Range;

use super::kernel::{Segment, merge};
use crate::access::with_access;
use crate::key::{Order, OrderSpec};
use crate::record::{Framing, with_framing};
use crate::run::Input;
use crate::run::input::{Chunk, ChunkReader};
use crate::{Budget, Error, Progress, Result};

/// The largest and smallest buffer of an input, in bytes read at a time.
const BUFFER_BYTES: Range<u64> = (64 << 10)..(4 << 20);
/// Merged bytes are handed on in pieces of about this many.
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

    /// Goes on until there are records in memory or none are left.
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

/// Merges `inputs`, each sorted by `order` already, and hands the bytes to `take` in order; it
/// returns whether it wants more. Returns the number of records handed over.
///
/// # Errors
/// Bad input, too many inputs for the memory, or what `take` fails with.
pub fn merge_sorted(
    inputs: Vec<Input>,
    order: &OrderSpec,
    budget: &Budget,
    progress: &dyn Progress,
    mut take: impl FnMut(&[u8]) -> Result<bool>,
) -> Result<u64> {
    let count = inputs.len().max(1) as u64;
    let total = inputs.iter().map(Input::size).try_fold(0u64, |sum, size| Some(sum + size?));
    progress.phase("merging", total);
    // A round writes at most one span of every input.
    let one = |bytes: u64| Chunk::memory_bytes(bytes as usize) as u64 + bytes.min(OUT_BYTES as u64);
    let memory = |bytes: u64| one(bytes) * count + OUT_BYTES as u64;
    let mut bytes = BUFFER_BYTES.end;
    while bytes > BUFFER_BYTES.start && memory(bytes) > budget.free_bytes() {
        bytes /= 2;
    }
    let _reserved = budget.reserve(memory(bytes), "merging this many inputs")?;
    let mut sources = Vec::new();
    let mut header: Option<Vec<u8>> = None;
    for input in inputs {
        let name = input.name().to_owned();
        let reader = ChunkReader::new(vec![input], order.format, bytes as usize);
        let chunk = Chunk::new(bytes as usize)?;
        let mut source = Source { reader, chunk, span: 0, used: 0 };
        source.refill(progress)?;
        if let Some(row) = source.reader.header() {
            let same = header.as_ref().is_none_or(|h| h.trim_ascii_end() == row.trim_ascii_end());
            if !same {
                return Err(Error::Input {
                    file: name,
                    offset: 0,
                    detail: "its header row is not that of the first input".to_owned(),
                });
            }
            header.get_or_insert_with(|| row.to_vec());
        }
        sources.push(source);
    }
    let compiled =
        order.compile(header.as_deref()).map_err(|e| Error::Unsupported(e.to_string()))?;
    if let Some(row) = &header
        && !take(row)?
    {
        return Ok(0);
    }
    merge_sources(&mut sources, &compiled, order.unique, progress, &mut take)
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
        let mut segments: Vec<Segment<'_>> =
            sources.iter().map(|s| Segment { bytes: s.current(), more: s.follows() }).collect();
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
        if !bytes.is_empty() && !take(bytes)? {
            return Ok(records);
        }
    }
}

/// Drops the first record when its key is `last_key`, which becomes the key of the last one.
fn drop_repeated<'a>(order: &Order, bytes: &'a [u8], last_key: &mut Option<Vec<u8>>) -> &'a [u8] {
    with_framing!(order.format(), framing => {
        let Some(len) = framing.next(bytes) else { return bytes };
        let mut key = Vec::new();
        order.encode(&bytes[..len], &mut key);
        let repeated = last_key.as_ref() == Some(&key);
        let kept = if repeated { &bytes[len..] } else { bytes };
        let (mut at, mut last) = (0, None);
        while let Some(len) = framing.next(&kept[at..]) {
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
