//! One merge: chunk buffers in, steps on the processor, pages out to the reader of the interface.
//!
//! ```text
//!   flash ─► chunk buffers ─► step: at most a page, as far as the buffers go ─► ready pages ─► answer
//!              ▲                │ compares, records, copies take the processor      │
//!              └── room, once the step's work has ended ◄───────────────────────────┘ next step
//! ```
//!
//! | state | memory | next |
//! |---|---|---|
//! | idle | none | a read claims memory and starts |
//! | running | claimed | pages arrive, work ends, reads come |
//! | ending | claimed | when nothing is in flight, memory is released; then idle or closed |
//!
//! The result can be read from any offset. A read behind the last one continues the merge. A read
//! further ahead merges and drops the bytes between. A read further back starts again at the last
//! *mark*, an offset in the result for which the position in every chunk is known.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use merganser_sort::key::{Order, Place};
use merganser_sort::merge::step::{SortedSlice, StepMerge};
use merganser_storage::near::{Inside, RequestId};
use merganser_storage::{Buffer, Work};

use super::chunk_buffer::{ChunkBuffer, Supply};
use super::descriptor::{Descriptor, DescriptorError};
use super::schedule::{Candidate, ReadSchedule};
use super::settings::ActiveSortSettings;

/// Bytes of a key that a processor of 32 bits compares at once.
const WORD_BYTES: usize = 4;
/// The number of marks of one merge. Each has one number per chunk.
const MARKS: u64 = 64;
/// How often other reads that fit better may be served before the oldest read.
const PASSED_MAX: u32 = 32;

/// A read of the interface, until it is answered.
#[derive(Debug)]
struct InterfaceRead {
    id: RequestId,
    /// The range in the result, which may be behind its end.
    range: Range<u64>,
    passed: u32,
}

/// An offset in the result at which a merge can start.
#[derive(Debug)]
struct RestartMark {
    result: u64,
    chunks: Box<[u64]>,
}

/// The result of a step, while its work is on the processor.
#[derive(Debug)]
struct StepResult {
    token: u64,
    bytes: Vec<u8>,
}

/// The state of a running merge.
#[derive(Debug)]
struct RunningMerge {
    chunks: Vec<ChunkBuffer>,
    schedule: ReadSchedule,
    steps: StepMerge,
    free: Vec<Buffer>,
    /// The offset in the result of the first ready byte.
    start: u64,
    ready: MergedPages,
    /// The end of the read that waits for more bytes.
    wanted_end: u64,
    step: Option<StepResult>,
    reads_under_way: usize,
    claimed_bytes: u64,
    carry_claimed_bytes: u64,
    ending: bool,
}

/// One merge that the host has opened.
#[derive(Debug)]
pub(super) struct OpenMerge {
    descriptor: Descriptor,
    steps: StepMerge,
    /// The number of comparisons that a comparison of two keys is charged as.
    key_words: u64,
    settings: ActiveSortSettings,
    page_bytes: u64,
    reads: VecDeque<InterfaceRead>,
    marks: Vec<RestartMark>,
    running: Option<RunningMerge>,
    closed: bool,
    /// The request that closed it, until it is answered.
    closed_by: Option<RequestId>,
}

impl OpenMerge {
    /// A merge that was not read yet. Its memory is claimed.
    ///
    /// # Errors
    /// A descriptor that means nothing, or too little memory.
    pub(super) fn open(
        descriptor: Descriptor,
        settings: ActiveSortSettings,
        inside: &mut dyn Inside,
    ) -> io::Result<Self> {
        let invalid = |e: DescriptorError| io::Error::new(io::ErrorKind::InvalidInput, e);
        let steps = StepMerge::new(descriptor.compile().map_err(invalid)?);
        let start = RestartMark { result: 0, chunks: vec![0; descriptor.chunks.len()].into() };
        let mut merge = OpenMerge {
            key_words: key_words(steps.order()),
            page_bytes: settings.page_bytes(inside.geometry()),
            descriptor,
            steps,
            settings,
            reads: VecDeque::new(),
            marks: vec![start],
            running: None,
            closed: false,
            closed_by: None,
        };
        merge.start(inside)?;
        Ok(merge)
    }

    pub(super) fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Whether it was closed and has released everything.
    pub(super) fn gone(&self) -> bool {
        self.closed && self.running.is_none()
    }

    /// A read of `range` of the interface.
    pub(super) fn read(&mut self, id: RequestId, range: Range<u64>) {
        self.reads.push_back(InterfaceRead { id, range, passed: 0 });
    }

    /// Ends it; `id` is answered when its memory is released.
    pub(super) fn close(&mut self, id: RequestId, inside: &mut dyn Inside) {
        self.closed = true;
        self.closed_by = Some(id);
        let error = io::Error::new(io::ErrorKind::ConnectionAborted, "closed by the host");
        self.fail(&error, inside);
    }

    /// The read of a page of `chunk` has ended.
    pub(super) fn page_arrived(
        &mut self,
        chunk: usize,
        token: u64,
        buffer: Buffer,
        result: io::Result<usize>,
    ) {
        let running = self.running.as_mut().expect("it ends after its reads");
        running.reads_under_way -= 1;
        running.chunks[chunk].arrived(token, buffer, result, &mut running.free);
    }

    /// Work of a step has ended.
    pub(super) fn worked(&mut self, token: u64) {
        let running = self.running.as_mut().expect("it ends after its work");
        let step = running.step.take().filter(|step| step.token == token);
        running.ready.push(step.expect("one step at a time").bytes);
        for (number, chunk) in running.chunks.iter_mut().enumerate() {
            for _ in 0..chunk.release_used(&mut running.free) {
                running.schedule.room(number);
            }
        }
    }

    /// Ends the merge, starts it, and answers reads, as far as possible.
    pub(super) fn make_progress(&mut self, inside: &mut dyn Inside) {
        self.end_if_nothing_is_under_way(inside);
        if self.running.is_none()
            && !self.reads.is_empty()
            && !self.closed
            && let Err(error) = self.start(inside)
        {
            self.fail(&error, inside);
        }
        self.answer_what_is_ready(inside);
    }

    /// Takes the next step, if there is one, with `token` for its work; returns whether there was
    /// one.
    pub(super) fn advance(&mut self, token: u64, inside: &mut dyn Inside) -> bool {
        match self.step(token, inside) {
            Ok(work) => {
                let total = self.descriptor.total_bytes();
                let no_reads = self.reads.is_empty();
                if let Some(running) = &mut self.running
                    && running.start >= total
                    && no_reads
                {
                    running.ending = true;
                    self.end_if_nothing_is_under_way(inside);
                }
                work
            }
            Err(error) => {
                self.fail(&error, inside);
                false
            }
        }
    }

    /// Reads the next page, with `token`. Returns its chunk.
    pub(super) fn read_page(
        &mut self,
        token: u64,
        idle: bool,
        inside: &mut dyn Inside,
    ) -> Option<usize> {
        let running = self.running.as_mut()?;
        if running.ending || (self.reads.is_empty() && running.start == 0 && running.ready.len == 0)
        {
            // There was no read yet: chunks may still be on their way to flash.
            return None;
        }
        let candidates: Vec<Candidate> = running
            .chunks
            .iter()
            .enumerate()
            .filter_map(|(chunk, buffer)| {
                let channel = inside.channel_of(buffer.next_read()?.offset);
                Some(Candidate { chunk, at_hand: buffer.at_hand(), channel })
            })
            .collect();
        let busy = |channel| inside.is_busy(channel);
        let chunk = running.schedule.choose(&candidates, busy, idle)?;
        let buffer = &mut running.chunks[chunk];
        let read = buffer.next_read().expect("it is a candidate");
        let memory = buffer.buffer(&read, &mut running.free);
        buffer.asked(token, &read);
        running.reads_under_way += 1;
        inside.read(token, read.offset, memory);
        Some(chunk)
    }

    /// Claims memory and starts at the beginning.
    fn start(&mut self, inside: &mut dyn Inside) -> io::Result<()> {
        let chunks = self.descriptor.chunks.len();
        let pages = chunks as u64 * self.settings.chunk_pages as u64;
        let claimed_bytes = (pages + self.settings.output_pages as u64) * self.page_bytes;
        let id = self.descriptor.merge.0;
        inside.claim_memory(claimed_bytes).map_err(|e| {
            let (k, p) = (chunks, self.settings.chunk_pages);
            let what = format!(
                "merge {id} needs {claimed_bytes} bytes of the device's memory ({k} chunks of {p} \
                 pages, and {} for the result): {e}; close another merge, or merge fewer chunks",
                self.settings.output_pages
            );
            io::Error::new(e.kind(), what)
        })?;
        let buffer = |chunk: &super::descriptor::SortedChunk| {
            let format = self.descriptor.order.format;
            ChunkBuffer::new(chunk.clone(), format, self.page_bytes, self.settings.chunk_pages)
        };
        self.running = Some(RunningMerge {
            chunks: self.descriptor.chunks.iter().map(buffer).collect(),
            schedule: ReadSchedule::new(self.settings.policy, chunks, self.settings.chunk_pages),
            steps: self.steps.clone(),
            free: Vec::new(),
            start: 0,
            ready: MergedPages::default(),
            wanted_end: 0,
            step: None,
            reads_under_way: 0,
            claimed_bytes,
            carry_claimed_bytes: 0,
            ending: false,
        });
        Ok(())
    }

    /// Answers every waiting read with `error`, and ends.
    fn fail(&mut self, error: &io::Error, inside: &mut dyn Inside) {
        let id = self.descriptor.merge.0;
        for read in self.reads.drain(..) {
            let text = format!("merge {id}: {error}");
            inside.answer(read.id, Err(io::Error::new(error.kind(), text)));
        }
        if let Some(running) = &mut self.running {
            running.ending = true;
        }
        self.end_if_nothing_is_under_way(inside);
    }

    fn end_if_nothing_is_under_way(&mut self, inside: &mut dyn Inside) {
        let over = |r: &RunningMerge| r.ending && r.reads_under_way == 0 && r.step.is_none();
        if self.running.as_ref().is_some_and(over) {
            let running = self.running.take().expect("it is there");
            inside.release_memory(running.claimed_bytes + running.carry_claimed_bytes);
        }
        if self.running.is_none()
            && let Some(id) = self.closed_by.take()
        {
            inside.answer(id, Ok(Buffer::new(0)));
        }
    }

    /// Answers the reads whose bytes are all merged, and moves to the start of the next one.
    fn answer_what_is_ready(&mut self, inside: &mut dyn Inside) {
        let total = self.descriptor.total_bytes();
        while let Some(running) = &mut self.running
            && !running.ending
            && let Some(at) = choose_read(&mut self.reads, running.start)
        {
            let wanted = self.reads[at].range.start.min(total)..self.reads[at].range.end.min(total);
            if wanted.start < running.start && !wanted.is_empty() {
                if running.step.is_some() {
                    // Its pages are being copied; start again after that.
                    return;
                }
                running.restart(&self.marks, wanted.start);
            }
            if !wanted.is_empty() {
                let passed_over = (wanted.start - running.start).min(running.ready.len as u64);
                running.ready.drop_front(passed_over as usize);
                running.start += passed_over;
            }
            let len = (wanted.end - wanted.start) as usize;
            let here = running.start == wanted.start && running.ready.len >= len;
            if !wanted.is_empty() && !here {
                running.wanted_end = wanted.end;
                return;
            }
            let InterfaceRead { id, range, .. } = self.reads.remove(at).expect("it was chosen");
            let mut buffer = Buffer::new((range.end - range.start) as usize);
            running.ready.take_front(&mut buffer[..len]);
            running.start += len as u64;
            inside.answer(id, Ok(buffer));
        }
    }

    /// Merges at most a page and charges the work to the processor.
    fn step(&mut self, token: u64, inside: &mut dyn Inside) -> io::Result<bool> {
        let total = self.descriptor.total_bytes();
        let Some(running) = &mut self.running else { return Ok(false) };
        if running.ending || running.step.is_some() {
            return Ok(false);
        }
        let ready_end = running.start + running.ready.len as u64;
        let ahead = self.settings.output_pages as u64 * self.page_bytes;
        let room = (running.start + ahead).max(running.wanted_end).saturating_sub(ready_end);
        let len = self.page_bytes.min(room).min(total - ready_end);
        if len == 0 {
            return Ok(false);
        }
        let mut bytes = vec![0; len as usize];
        let mut done = running.merge(&mut bytes)?;
        let carried: u64 = running.chunks.iter().map(ChunkBuffer::carry_bytes).sum();
        if carried > running.carry_claimed_bytes {
            let more = carried.next_multiple_of(self.page_bytes) - running.carry_claimed_bytes;
            inside.claim_memory(more).map_err(|e| {
                let text = format!("a record that spans pages needs {more} bytes of memory: {e}");
                io::Error::new(e.kind(), text)
            })?;
            running.carry_claimed_bytes += more;
        }
        done.copied_bytes += running.chunks.iter_mut().map(ChunkBuffer::take_copied).sum::<u64>();
        if done.bytes == 0 && done.copied_bytes == 0 {
            return Ok(false);
        }
        bytes.truncate(done.bytes);
        let ready_end = ready_end + done.bytes as u64;
        if ready_end >= self.marks.last().map_or(0, |m| m.result) + total.div_ceil(MARKS) {
            self.marks.push(running.mark(ready_end));
        }
        running.step = Some(StepResult { token, bytes });
        inside.work(token, &done.work(self.key_words, inside.copy_unit_bytes()));
        Ok(true)
    }
}

/// Merged bytes that were not read yet, in the pieces of the steps.
#[derive(Debug, Default)]
struct MergedPages {
    pages: VecDeque<Vec<u8>>,
    /// Bytes of the first page that were already taken.
    gone: usize,
    len: usize,
}

impl MergedPages {
    fn push(&mut self, page: Vec<u8>) {
        self.len += page.len();
        self.pages.push_back(page);
    }

    fn drop_front(&mut self, bytes: usize) {
        self.front(bytes, |_, _| {});
    }

    fn take_front(&mut self, out: &mut [u8]) {
        self.front(out.len(), |at, part| out[at..at + part.len()].copy_from_slice(part));
    }

    /// Removes the first `bytes`, passing each stretch to `take` with its offset among them.
    fn front(&mut self, bytes: usize, mut take: impl FnMut(usize, &[u8])) {
        let mut at = 0;
        while at < bytes {
            let page = self.pages.front().expect("that many are ready");
            let n = (page.len() - self.gone).min(bytes - at);
            take(at, &page[self.gone..self.gone + n]);
            at += n;
            self.gone += n;
            if self.gone == page.len() {
                self.pages.pop_front();
                self.gone = 0;
            }
        }
        self.len -= bytes;
    }
}

/// The read to serve next: the oldest, or one that begins where the merge is.
fn choose_read(reads: &mut VecDeque<InterfaceRead>, start: u64) -> Option<usize> {
    let oldest = reads.front_mut()?;
    if oldest.range.start == start || oldest.passed >= PASSED_MAX {
        return Some(0);
    }
    let fitting = reads.iter().position(|read| read.range.start == start);
    if fitting.is_some() {
        reads[0].passed += 1;
    }
    fitting.or(Some(0))
}

/// The words of a key of fixed length in its record. Keys of varying length count as one word,
/// because most differ in their first word.
fn key_words(order: &Order) -> u64 {
    match order.direct().map(|key| key.place) {
        Some(Place::Range { len, .. }) => len.div_ceil(WORD_BYTES).max(1) as u64,
        _ => 1,
    }
}

/// The counts of a step.
#[derive(Debug, Clone, Copy, Default)]
struct StepCounts {
    bytes: usize,
    records: u64,
    compares: u64,
    copied_bytes: u64,
}

impl StepCounts {
    /// The charges. Each record is a separate copy of whole units.
    fn work(self, key_words: u64, unit_bytes: u32) -> [Work; 3] {
        let unit = u64::from(unit_bytes);
        let copies = self.records.max(1);
        let copied = copies * (self.copied_bytes.div_ceil(copies)).next_multiple_of(unit);
        [
            Work::Compares(self.compares * key_words),
            Work::Records(self.records),
            Work::CopiedBytes(copied),
        ]
    }
}

impl RunningMerge {
    /// Starts again at the last mark before `result`.
    fn restart(&mut self, marks: &[RestartMark], result: u64) {
        let at = marks.partition_point(|mark| mark.result <= result) - 1;
        let mark = &marks[at];
        for (chunk, position) in self.chunks.iter_mut().zip(&mark.chunks) {
            chunk.restart(*position);
        }
        self.steps.restart();
        self.ready = MergedPages::default();
        self.start = mark.result;
        self.wanted_end = 0;
    }

    /// Merges into `out` as far as the chunk buffers go.
    fn merge(&mut self, out: &mut [u8]) -> io::Result<StepCounts> {
        let mut done = StepCounts::default();
        loop {
            let ended = |chunk: &&ChunkBuffer| chunk.merged() == chunk.bytes();
            let alone = self.chunks.iter().filter(ended).count() + 1 >= self.chunks.len();
            let mut dry = false;
            for (number, chunk) in self.chunks.iter_mut().enumerate() {
                let supply = chunk
                    .supply(alone)
                    .map_err(|e| io::Error::new(e.kind(), format!("chunk {number}: {e}")))?;
                dry |= supply == Supply::Dry;
            }
            if dry || done.bytes == out.len() {
                break;
            }
            let mut segments: Vec<SortedSlice<'_>> = self
                .chunks
                .iter()
                .map(|chunk| SortedSlice { bytes: chunk.segment(), more: chunk.more() })
                .collect();
            let before: Vec<usize> = segments.iter().map(|s| s.bytes.len()).collect();
            let count = self.steps.merge(&mut segments, &mut out[done.bytes..]);
            let used: Vec<usize> =
                segments.iter().zip(before).map(|(s, before)| before - s.bytes.len()).collect();
            for (chunk, used) in self.chunks.iter_mut().zip(used) {
                chunk.merge(used);
            }
            if count.bytes == 0 {
                break;
            }
            done.bytes += count.bytes as usize;
            done.records += count.records;
            done.compares += count.compares;
            done.copied_bytes += count.bytes;
        }
        Ok(done)
    }

    /// Adds a mark for the start of the next step; if that is within a record, for the start of the
    /// record.
    fn mark(&self, ready_end: u64) -> RestartMark {
        let mut chunks: Box<[u64]> = self.chunks.iter().map(ChunkBuffer::merged).collect();
        let mut result = ready_end;
        if let Some(cut) = self.steps.cut() {
            result -= cut.written as u64;
            chunks[cut.segment] -= cut.written as u64;
        }
        RestartMark { result, chunks }
    }
}
