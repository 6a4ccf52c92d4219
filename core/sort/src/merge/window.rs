//! One window: the stretch of the output between two bounds, and the blocks it is made from.
//!
//! ```text
//!   run 0   ──┼────[ block  block  block ]────┼──    only blocks that may hold a record of the
//!   run 1   ──┼──[ block  block ]─────────────┼──    window are read, all of them at once
//!   run 2   ──┼─────────────[ block block ]───┼──
//!           lower                           upper    the exact ends are found in memory afterwards
//! ```

use std::ops::Range;
use std::sync::Arc;

use merganser_storage::{Buffer, Completions};

use super::exact::fences_left;
use super::kernel::{MergeCount, SortedSlice, merge};
use super::segments::Segments;
use crate::access::with_access;
use crate::activity::{WorkerState, wait};
use crate::bound::Bound;
use crate::key::Order;
use crate::record::{Framing, with_framing};
use crate::run::Run;
use crate::run::format::corrupt;
use crate::{Error, Result};

/// The largest single read, in bytes.
const READ_BYTES: u64 = 1 << 20;

/// Records are small when a block holds at least this many.
const SMALL_RECORDS: u64 = 32;

/// The reads of one window: a plan that holds no memory yet.
#[derive(Debug, Clone)]
pub(crate) struct WindowPlan {
    pub(crate) lower: Option<Bound>,
    pub(crate) upper: Option<Bound>,
    /// For each run, the blocks to read; may be empty.
    pub(crate) blocks: Vec<Range<u64>>,
    /// For each run, the position where the search for the lower bound begins, at or before it.
    pub(crate) from: Vec<u64>,
    /// For each run, the fences on the left of each bound.
    pub(crate) lower_left: Vec<usize>,
    pub(crate) upper_left: Vec<usize>,
}

impl WindowPlan {
    /// The blocks between two bounds. `None` stands for the start or the end of everything.
    ///
    /// # Errors
    /// Those of [`fences_left`].
    pub(crate) fn between(
        segments: &Segments,
        lower: Option<Bound>,
        upper: Option<Bound>,
    ) -> Result<Self> {
        let (lower_left, open) = left_and_open(segments, lower.as_ref())?;
        Self::new(segments, lower, lower_left, upper, open, false)
    }

    /// As [`WindowPlan::between`], where `lower_left` fences of each run are on the left of the lower bound, and those that
    /// are `open`: neither on the left nor on the right of the upper one for sure.
    ///
    /// # Errors
    /// Those of [`fences_left`].
    pub(crate) fn following(
        segments: &Segments,
        lower: Option<Bound>,
        lower_left: Vec<usize>,
        upper: Option<Bound>,
        open: Vec<Range<usize>>,
    ) -> Result<Self> {
        Self::new(segments, lower, lower_left, upper, open, false)
    }

    /// As [`WindowPlan::between`], but where the last block is there only for the rest of a small
    /// record, it is left out: the window grows when that record turns out to be needed, once in as
    /// many times as a block has records.
    ///
    /// # Errors
    /// Those of [`fences_left`].
    pub(crate) fn barely_between(
        segments: &Segments,
        lower: Option<Bound>,
        upper: Option<Bound>,
    ) -> Result<Self> {
        let (lower_left, open) = left_and_open(segments, lower.as_ref())?;
        Self::new(segments, lower, lower_left, upper, open, true)
    }

    fn new(
        segments: &Segments,
        lower: Option<Bound>,
        lower_left: Vec<usize>,
        upper: Option<Bound>,
        open: Vec<Range<usize>>,
        barely: bool,
    ) -> Result<Self> {
        let mut upper_left = Vec::with_capacity(segments.runs.len());
        let mut blocks = Vec::with_capacity(segments.runs.len());
        let mut from = Vec::with_capacity(segments.runs.len());
        for ((number, run), open) in segments.runs.iter().enumerate().zip(open) {
            let fences = run.fences();
            let low = lower_left[number];
            let start = if low == 0 { 0 } else { run.fence_position(low - 1) };
            from.push(start);
            // The first fence on the right of the upper bound ends the range.
            let left = match &upper {
                Some(bound) => fences_left(segments, bound, number, open)?,
                None => fences,
            };
            upper_left.push(left);
            let mut end = run.fence_position(left);
            // Where the bound is this run's own fence, the record before it is surely needed.
            let own = upper.as_ref().is_some_and(|b| b.tie.is_some_and(|tie| tie.0 == number));
            if barely && !own && (1..fences).contains(&left) {
                let block_end =
                    (run.block_of(run.fence_position(left - 1)) + 1) * run.block_bytes();
                if run.records() >= SMALL_RECORDS * run.footer().blocks {
                    end = end.min(block_end);
                }
            }
            blocks.push(if end > start {
                run.block_of(start)..run.block_of(end - 1) + 1
            } else {
                0..0
            });
        }
        Ok(WindowPlan { lower, upper, blocks, from, lower_left, upper_left })
    }

    /// Bytes of memory that the window's input takes.
    pub(crate) fn memory_bytes(&self, segments: &Segments) -> u64 {
        let runs = segments.runs.iter().zip(&self.blocks);
        runs.map(|(run, b)| (b.end - b.start) * run.block_bytes()).sum()
    }
}

/// For each run, the number of fences on the left of a lower bound (none at the start of everything), and those that are
/// not.
fn left_and_open(
    segments: &Segments,
    lower: Option<&Bound>,
) -> Result<(Vec<usize>, Vec<Range<usize>>)> {
    let (mut left, mut open) = (Vec::new(), Vec::new());
    for (number, run) in segments.runs.iter().enumerate() {
        let fences = 0..run.fences();
        left.push(match lower {
            Some(bound) => fences_left(segments, bound, number, fences)?,
            None => 0,
        });
        open.push(left[number]..run.fences());
    }
    Ok((left, open))
}

/// A window whose reads are under way.
pub(crate) struct LoadingWindow {
    plan: WindowPlan,
    memory: Buffer,
    /// For each run, its reads, and the pieces of `memory` that have come back with their count.
    reads: Vec<Vec<PieceRead>>,
    arrived: Vec<Vec<Option<(Buffer, usize)>>>,
    completions: Completions,
    in_flight: usize,
    error: Option<Error>,
}

/// A piece of a read: which run, which blocks, where on storage.
struct PieceRead {
    blocks: Range<u64>,
    physical: Range<u64>,
}

impl PieceRead {
    fn len(&self) -> usize {
        (self.physical.end - self.physical.start) as usize
    }
}

fn piece_reads(run: &Run, blocks: Range<u64>) -> Vec<PieceRead> {
    let step = (READ_BYTES / run.block_bytes()).max(1);
    let mut reads = Vec::new();
    let mut at = blocks.start;
    while at < blocks.end {
        // Cut at multiples of the step, so that packed pieces are read as they were written.
        let end = ((at / step + 1) * step).min(blocks.end);
        reads.push(PieceRead { blocks: at..end, physical: run.physical(at..end) });
        at = end;
    }
    reads
}

impl LoadingWindow {
    /// Starts reading all blocks of `plan` into `memory`, which is replaced when it is too short.
    ///
    /// # Errors
    /// When the system has no memory for a longer one.
    pub(crate) fn start(segments: &Segments, plan: WindowPlan, mut memory: Buffer) -> Result<Self> {
        let completions = Completions::new();
        let reads: Vec<Vec<PieceRead>> = segments
            .runs
            .iter()
            .zip(&plan.blocks)
            .map(|(run, blocks)| piece_reads(run, blocks.clone()))
            .collect();
        let need = reads.iter().flatten().map(PieceRead::len).sum();
        if memory.len() < need {
            memory = Buffer::try_new(need)?;
        }
        let mut in_flight = 0;
        for ((number, run), reads) in segments.runs.iter().enumerate().zip(&reads) {
            for (i, read) in reads.iter().enumerate() {
                let rest = memory.split_off(read.len());
                let buffer = std::mem::replace(&mut memory, rest);
                let token = (number as u64) << 32 | i as u64;
                run.submit(token, read.physical.start, buffer, &completions);
                in_flight += 1;
            }
        }
        let arrived = reads.iter().map(|reads| reads.iter().map(|_| None).collect()).collect();
        Ok(LoadingWindow { plan, memory, reads, arrived, completions, in_flight, error: None })
    }

    /// Waits for all reads, checks every block, and finds the exact ends.
    pub(crate) fn finish(mut self, segments: &Segments) -> Result<Window> {
        let clock = match segments.runs.first() {
            Some(run) => run.storage().clock(),
            None => {
                let lower = self.plan.lower;
                return Ok(Window {
                    parts: Vec::new(),
                    memory: self.memory,
                    lower,
                    needed: Vec::new(),
                    output_offset: 0,
                });
            }
        };
        while self.in_flight > 0 {
            let done = {
                let _waiting = wait(WorkerState::Reading);
                self.completions.wait(&*clock)
            };
            self.in_flight -= 1;
            let (number, i) = ((done.token >> 32) as usize, (done.token & 0xffff_ffff) as usize);
            match (done.result, done.buffer) {
                (Ok(bytes), Some(buffer)) => {
                    self.arrived[number][i] = Some((buffer, bytes));
                }
                (Err(e), _) => self.error = Some(self.error.take().unwrap_or(Error::Io(e))),
                (Ok(_), None) => unreachable!("a read returns its buffer"),
            }
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut parts = Vec::with_capacity(segments.runs.len());
        let mut output_offset = 0;
        let pieces = self.reads.iter().zip(self.arrived);
        for (number, (reads, arrived)) in pieces.enumerate() {
            let run = &segments.runs[number];
            let blocks = self.plan.blocks[number].clone();
            let (memory, copied) = assemble(run, reads, arrived)?;
            let mut part = RunPart {
                run: Arc::clone(run),
                number,
                start: blocks.start * run.block_bytes(),
                next_block: blocks.end,
                memory,
                copied,
                range: 0..0,
            };
            let from = self.plan.from[number];
            if blocks.is_empty() {
                part.next_block = run.block_of(from);
                part.start = part.next_block * run.block_bytes();
            }
            let low = match &self.plan.lower {
                Some(bound) => {
                    part.locate(bound, from, self.plan.lower_left[number], &segments.order)?
                }
                None => 0,
            };
            let high = match &self.plan.upper {
                Some(bound) => {
                    part.locate(bound, low, self.plan.upper_left[number], &segments.order)?
                }
                None => run.data_bytes(),
            };
            if high < low {
                let detail = "its fences are not in the order of their keys";
                return Err(contradiction(run, high, detail));
            }
            output_offset += low;
            part.range = (low - part.start) as usize..(high - part.start) as usize;
            if high > low {
                part.cover(high)?;
            }
            parts.push(part);
        }
        let WindowPlan { lower, from: needed, .. } = self.plan;
        Ok(Window { parts, memory: self.memory, lower, needed, output_offset })
    }
}

/// Joins and checks the pieces of one run; those of a packed run are unpacked into the vector.
fn assemble(
    run: &Run,
    reads: &[PieceRead],
    arrived: Vec<Option<(Buffer, usize)>>,
) -> Result<(Option<Buffer>, Vec<u8>)> {
    let mut whole: Option<Buffer> = None;
    let mut unpacked = Vec::new();
    for (read, piece) in reads.iter().zip(arrived) {
        let (buffer, bytes) = piece.expect("all reads have arrived");
        let end = (read.blocks.end * run.block_bytes()).min(run.data_bytes());
        let logical = (end - read.blocks.start * run.block_bytes()) as usize;
        if run.packed() {
            let at = unpacked.len();
            unpacked.resize(at + logical, 0);
            let stored = &buffer[..bytes];
            run.unpack(read.blocks.clone(), read.physical.start, stored, &mut unpacked[at..])?;
        } else if bytes < logical {
            return Err(corrupt(
                run.storage().name(),
                read.physical.start + bytes as u64,
                "the file is shorter than its footer says".to_owned(),
            ));
        } else {
            run.verify(read.blocks.start, &buffer[..logical])?;
        }
        match &mut whole {
            None => whole = Some(buffer),
            Some(first) => first.unsplit(buffer).expect("pieces were split off in this order"),
        }
    }
    Ok((whole, unpacked))
}

/// The part of a window that comes from one run.
struct RunPart {
    run: Arc<Run>,
    number: usize,
    /// Position in the run of the first byte in memory.
    start: u64,
    next_block: u64,
    /// The bytes that were read, unless `copied` holds them.
    memory: Option<Buffer>,
    copied: Vec<u8>,
    /// The window's records in memory.
    range: Range<usize>,
}

impl RunPart {
    fn bytes(&self) -> &[u8] {
        match &self.memory {
            Some(memory) if self.copied.is_empty() => memory,
            _ => &self.copied,
        }
    }

    /// End position of the bytes in memory.
    fn end(&self) -> u64 {
        (self.start + self.bytes().len() as u64).min(self.run.data_bytes())
    }

    /// Bytes between two positions that are in memory.
    fn bytes_of(&self, positions: Range<u64>) -> &[u8] {
        let from = positions.start.max(self.start) - self.start;
        let to = positions.end.max(self.start) - self.start;
        &self.bytes()[from as usize..to as usize]
    }

    /// Makes sure that everything before `position` is in memory.
    fn cover(&mut self, position: u64) -> Result<()> {
        while self.end() < position {
            self.grow()?;
        }
        Ok(())
    }

    /// Reads the next block, or more the more was read so.
    fn grow(&mut self) -> Result<()> {
        let keep = (self.end() - self.start) as usize;
        let blocks = (self.copied.len() as u64 / self.run.block_bytes() / 4).clamp(1, 64);
        let end = (self.next_block + blocks).min(self.run.footer().blocks);
        let more = self.run.read_blocks(self.next_block..end)?;
        let mut bytes = Vec::with_capacity(keep + more.len());
        bytes.extend_from_slice(&self.bytes()[..keep]);
        bytes.extend_from_slice(&more);
        self.copied = bytes;
        self.next_block = end;
        Ok(())
    }

    /// Position of the first record from `from` (a record's start) on that is right of `bound`, which has `left`
    /// fences on its left.
    fn locate(&mut self, bound: &Bound, from: u64, left: usize, order: &Order) -> Result<u64> {
        if let Some((run, position)) = bound.tie
            && run == self.number
        {
            return Ok(position);
        }
        // Nearly all of the part is on one side, so the search leaps over fences first. The next fence is on the
        // right and ends the search: its record does not have to be in memory.
        let end = self.run.fence_position(left);
        if left == 0 {
            return Ok(0);
        }
        let mut at = from.max(self.run.fence_position(left - 1));
        let mut key = Vec::new();
        while at < end {
            let in_memory = (self.end() - self.start) as usize;
            let rest = &self.bytes()[((at - self.start) as usize).min(in_memory)..in_memory];
            let to_the_end = self.next_block >= self.run.footer().blocks;
            let (passed, found) = with_framing!(order.format(), framing => {
                let mut passed = 0;
                loop {
                    let record = &rest[passed..];
                    let Some(len) = framing.len_in(record, to_the_end) else {
                        break (passed, false);
                    };
                    key.clear();
                    order.encode_full(&record[..len], &mut key);
                    if !bound.is_after(&key, self.number, at + passed as u64) {
                        break (passed, true);
                    }
                    passed += len;
                }
            });
            at += passed as u64;
            if found {
                break;
            }
            if at < end {
                if self.next_block >= self.run.footer().blocks {
                    let detail = "the record that begins here does not end in the run";
                    return Err(contradiction(&self.run, at, detail));
                }
                self.grow()?;
            }
        }
        if at > end {
            let detail = "no record begins here, where a fence says so";
            return Err(contradiction(&self.run, end, detail));
        }
        Ok(at)
    }
}

/// The error for records that are whole in every block, but contradict the run's index.
fn contradiction(run: &Run, position: u64, detail: &str) -> Error {
    let (file, block) = (run.storage().name(), run.block_of(position));
    let first = run.physical(block..(block + 1).min(run.footer().blocks)).start;
    let offset = if run.packed() { first } else { first + position % run.block_bytes() };
    corrupt(file, offset, format!("{detail}: records and index contradict each other"))
}

/// The number of records in `bytes`, which are whole ones.
pub(crate) fn count_records(order: &Order, bytes: &[u8]) -> u64 {
    with_framing!(order.format(), framing => {
        let (mut rest, mut count) = (bytes, 0);
        while let Some(len) = framing.first(rest) {
            rest = &rest[len..];
            count += 1;
        }
        count
    })
}

/// A window in memory, ready to be merged.
pub(crate) struct Window {
    parts: Vec<RunPart>,
    memory: Buffer,
    /// Where it begins.
    pub(crate) lower: Option<Bound>,
    /// For each run, the position where the search for it began: a window that begins here or later
    /// reads nothing before it.
    pub(crate) needed: Vec<u64>,
    /// Where in the output its first byte is (before any removal of duplicates).
    pub(crate) output_offset: u64,
}

impl Window {
    /// Bytes between its bounds.
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.iter().map(|p| p.range.len() as u64).sum()
    }

    /// The number of the window's first record in the whole output.
    pub(crate) fn first_record(&self, segments: &Segments) -> u64 {
        let count = |part: &RunPart| {
            let position = part.start + part.range.start as u64;
            let run = &part.run;
            let fence = run.fence_floor(position);
            let Some(fence) = fence else { return 0 };
            let from = run.fence_position(fence);
            let before = part.bytes_of(from..position);
            run.fence_record(fence) + count_records(&segments.order, before)
        };
        self.parts.iter().map(count).sum()
    }

    /// Merges into `out`, until it is full or the window ends.
    pub(crate) fn merge_into(&self, segments: &Segments, out: &mut [u8]) -> Result<MergeCount> {
        fn slice(part: &RunPart) -> &[u8] {
            &part.bytes()[part.range.clone()]
        }
        let mut slices: Vec<_> =
            self.parts.iter().map(|p| SortedSlice { bytes: slice(p), more: false }).collect();
        let (unique, wide) = (segments.unique, segments.width.choose());
        let count = with_access!(&segments.order, framing, access => {
            if wide {
                merge::<u128, _, _>(framing, access, &mut slices, unique, out)
            } else {
                merge::<u64, _, _>(framing, access, &mut slices, unique, out)
            }
        });
        if !wide {
            segments.width.learn(&count);
        }
        if let Some(number) = count.broken {
            let part = &self.parts[number];
            let at = part.start + (part.range.end - slices[number].bytes.len()) as u64;
            let detail = "the record that begins here goes past the next fence";
            return Err(contradiction(&part.run, at, detail));
        }
        Ok(count)
    }

    /// Whether the bytes of `range` of the output are in it.
    pub(crate) fn encloses(&self, range: &Range<u64>) -> bool {
        self.output_offset <= range.start && self.output_offset + self.bytes() >= range.end
    }

    /// Gives the memory back, for the next window.
    pub(crate) fn into_memory(self) -> Buffer {
        let mut parts = self.parts.into_iter().filter_map(|part| part.memory).chain([self.memory]);
        let mut whole = parts.next().expect("the rest is always there");
        for part in parts {
            whole.unsplit(part).expect("parts were split off in this order");
        }
        whole
    }
}
