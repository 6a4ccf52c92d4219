//! Chunks become runs, or the output itself where there is only one.
//!
//! ```text
//!   reader ──full──► sort the chunk ──► gather into pieces ──► a run, its last writes under way
//!      ◄──empty── while it sorts, the next is read               └──► or the output, at once
//! ```

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::Scope;

use merganser_storage::thread::spawn_scoped;
use merganser_storage::{Buffer, Clock, RealClock, Work};

use super::spill::Unfinished;
use super::{SortOutput, Sorter};
use crate::activity::{Activity, WorkerState, wait};
use crate::budget::Reservation;
use crate::distribute::one_pass::OnePass;
use crate::key::Order;
use crate::run::chunk::Chunk;
use crate::run::chunk_reader::ChunkReader;
use crate::run::form::{SortMemory, sort_chunk};
use crate::run::format::PIECE_BYTES;
use crate::run::gather::GatherRecords;
use crate::run::header_lines::HeaderRule;
use crate::run::input::SortInput;
use crate::run::write_behind::WriteBehind;
use crate::{Error, Progress, Result};

/// The result of forming runs.
pub(super) enum Formed {
    /// All of them are runs.
    Runs { header: Vec<u8> },
    /// There was one, and it is in the output already.
    Done,
}

/// A chunk that was read.
struct FullChunk {
    chunk: Chunk,
    /// Whether it is the last one.
    last: bool,
    /// The header row so far.
    header: Vec<u8>,
}

/// State that is kept from chunk to chunk.
struct Forming {
    memory: SortMemory,
    clock: Arc<dyn Clock>,
    behinds: Vec<WriteBehind>,
    unfinished: Option<Unfinished>,
    /// The greatest key that can still be among the first records, where only those are wanted.
    threshold: Option<Vec<u8>>,
}

/// The chunks of the inputs, in order.
struct Chunks {
    /// The first one, where it was read already.
    ahead: Option<FullChunk>,
    /// Where one thread does all the work: the reader, and chunks to read into.
    own: Option<(ChunkReader, Receiver<Chunk>)>,
    full_from: Receiver<Result<FullChunk>>,
}

impl Chunks {
    fn next(&mut self, progress: &dyn Progress) -> Result<FullChunk> {
        if let Some(full) = self.ahead.take() {
            return Ok(full);
        }
        match &mut self.own {
            Some((reader, empty_from)) => {
                let chunk = empty_from.recv().expect("there is one that is not in use");
                fill(reader, chunk, progress)
            }
            None => {
                let _waiting = wait(WorkerState::Input);
                self.full_from.recv().expect("the reader sends until the last chunk")
            }
        }
    }
}

impl Sorter<'_> {
    /// Reads, sorts and writes chunk after chunk; the next is read while one is sorted.
    pub(super) fn form(
        &mut self,
        output: &mut SortOutput<'_>,
        progress: &dyn Progress,
    ) -> Result<Formed> {
        let plan = self.plan;
        let _reserved = self.reserve_chunks()?;
        let mut memory = self.sort_memory()?;
        let inputs = std::mem::take(&mut self.inputs);
        let format = self.options.order.format;
        let chunk_bytes = plan.chunk_bytes as usize;
        let clock = self.clock(output);
        let order = Arc::clone(&self.order);
        let one_pass = self.plan_one_pass(&inputs, &order)?;
        let mut reader = match &self.journal {
            Some(journal) => journal.reader(inputs, format, chunk_bytes),
            None => ChunkReader::new(inputs, format, chunk_bytes),
        }
        .with_header(HeaderRule::of_order(&self.options.order));
        let (empty_to, empty_from) = channel::<Chunk>();
        let (full_to, full_from) = sync_channel::<Result<FullChunk>>(1);
        for _ in 0..plan.chunks {
            empty_to.send(Chunk::new(chunk_bytes)?).expect("not closed");
        }
        // The first chunk, where it was read already.
        let mut ahead = None;
        if let Some(one_pass) = one_pass
            && let Ok(_lists) =
                self.options.budget.reserve(one_pass.memory_bytes(&mut memory), "the lists of tags")
        {
            let mut chunk = empty_from.recv().expect("one was sent");
            let bucketed =
                one_pass.read(&mut reader, &mut chunk, chunk_bytes, &mut memory, progress)?;
            let header = reader.preamble().unwrap_or_default().to_vec();
            if let Some(bucketed) = bucketed {
                self.report.input_bytes += chunk.data_bytes() as u64;
                let mut sorted = bucketed.of_chunk(&chunk, &mut memory);
                return self.hand_out(&mut sorted, output, header, progress);
            }
            ahead = Some(FullChunk { chunk, last: reader.finished(), header });
        }
        std::thread::scope(|scope| {
            // Both ends close with the body of this scope. Otherwise the reader would wait for ever
            // when the body fails.
            let (empty_to, full_from) = (empty_to, full_from);
            // A thread that is alone reads when it needs a chunk.
            let own = if self.workers.are_own() {
                Some((reader, empty_from))
            } else {
                read_ahead(scope, reader, empty_from, full_to, progress)?;
                None
            };
            let mut chunks = Chunks { ahead, own, full_from };
            let (behinds, unfinished, threshold) = Default::default();
            let mut forming = Forming { memory, clock, behinds, unfinished, threshold };
            loop {
                let full = chunks.next(progress)?;
                if self.form_chunk(&full, output, &mut forming, progress)? {
                    return Ok(Formed::Done);
                }
                // The last writes of a run continue while the next chunk is sorted, unless a journal
                // is to name the run now.
                if full.last || self.journal.is_some() {
                    self.finish_run(&mut forming.unfinished, &mut forming.behinds)?;
                }
                let FullChunk { chunk, last, header } = full;
                if let Some(journal) = &mut self.journal {
                    journal.record(&header, &self.runs, &chunk.taken)?;
                }
                if last {
                    return Ok(Formed::Runs { header });
                }
                // The reader may have sent its last chunk already.
                let _ = empty_to.send(chunk);
            }
        })
    }

    /// Sorts a chunk, in several rounds where its keys need it, and writes it as runs; or, where it
    /// is all there is, to the output (true).
    fn form_chunk(
        &mut self,
        full: &FullChunk,
        output: &mut SortOutput<'_>,
        forming: &mut Forming,
        progress: &dyn Progress,
    ) -> Result<bool> {
        let FullChunk { chunk, last, header } = full;
        self.report.input_bytes += chunk.data_bytes() as u64;
        let order = Arc::clone(&self.order);
        let (unique, threads) = (self.options.order.unique, self.workers.count());
        let mut from = None;
        loop {
            let mut sorted = sort_chunk(chunk, from, &order, unique, threads, &mut forming.memory)?;
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            charge_sort(&*forming.clock, sorted.records(), sorted.bytes());
            let resume = sorted.resume;
            if let Some(top) = self.options.top {
                sorted.truncate(top);
                if let Some(key) = &forming.threshold {
                    sorted.truncate_at(key);
                }
                if sorted.records() == top {
                    forming.threshold = sorted.last_key().or(forming.threshold.take());
                }
            }
            let (unfinished, behinds) = (&mut forming.unfinished, &mut forming.behinds);
            let only = *last && self.runs.is_empty() && unfinished.is_none() && resume.is_none();
            if only && !matches!(output, SortOutput::View { .. }) {
                self.emit(&mut sorted, output, header, progress)?;
                return Ok(true);
            }
            if sorted.records() > 0 {
                self.finish_run(unfinished, behinds)?;
                *unfinished = Some(self.spill(&mut sorted, output, behinds, progress)?);
            }
            if resume.is_none() {
                return Ok(false);
            }
            from = resume;
        }
    }

    /// Reads `inputs` until each key's column was in a row. Nearly always, the sample has shown that already.
    ///
    /// # Errors
    /// When no row has the column of a key.
    pub(super) fn look_for_columns(
        &self,
        inputs: Vec<SortInput>,
        progress: &dyn Progress,
    ) -> Result<()> {
        if self.order.unseen_column().is_none() {
            return Ok(());
        }
        progress.phase("looking for columns", self.total_bytes);
        let _reserved = self.reserve_chunks()?;
        let chunk_bytes = self.plan.chunk_bytes as usize;
        let mut reader = ChunkReader::new(inputs, self.order.format(), chunk_bytes);
        let mut chunk = Chunk::new(chunk_bytes)?;
        let mut has_rows = false;
        while let Some(error) = self.order.unseen_column() {
            if reader.finished() {
                return if has_rows { Err(error.into()) } else { Ok(()) };
            }
            reader.fill(&mut chunk, progress)?;
            for span in &chunk.spans {
                self.order.see_columns(&chunk.bytes()[span.clone()]);
            }
            has_rows |= !chunk.spans.is_empty();
        }
        Ok(())
    }

    /// All the memory of this phase.
    fn reserve_chunks(&self) -> Result<Vec<Reservation>> {
        let plan = self.plan;
        let chunk_memory = Chunk::memory_bytes(plan.chunk_bytes as usize);
        let parts = [
            ("chunks", plan.chunks * chunk_memory as u64),
            ("tags", 2 * plan.tag_bytes),
            ("keys", plan.key_bytes),
            ("write buffers", plan.pieces * (self.workers.count() * PIECE_BYTES) as u64),
        ];
        self.options.budget.reserve_parts(&parts, "sorting")
    }

    fn sort_memory(&self) -> Result<SortMemory> {
        let plan = self.plan;
        Ok(SortMemory::new(
            Buffer::try_new(plan.tag_bytes as usize)?,
            Buffer::try_new(plan.tag_bytes as usize)?,
            Buffer::try_new(plan.key_bytes as usize)?,
            &self.options.budget,
        ))
    }

    /// How to split one chunk by key while it is read, where that is worth it.
    fn plan_one_pass<'o>(
        &self,
        inputs: &[SortInput],
        order: &'o Order,
    ) -> Result<Option<OnePass<'o>>> {
        match self.total_bytes.filter(|_| self.can_part_while_reading()) {
            Some(total) => OnePass::plan(inputs, order, self.sample, total, self.workers.count()),
            None => Ok(None),
        }
    }

    /// Whether all records fit into one chunk whose tags can be split while it is read.
    pub(super) fn can_part_while_reading(&self) -> bool {
        // A thread that is alone does nothing while it reads.
        self.plan.chunks == 1
            && self.journal.is_none()
            && self.options.top.is_none()
            && !self.options.order.unique
            && !self.workers.are_own()
    }

    /// The clock of the storages that the records are moved to.
    fn clock(&self, output: &SortOutput<'_>) -> Arc<dyn Clock> {
        match (output, self.options.temp.first()) {
            (SortOutput::View { folder, .. }, _) => folder.clock(),
            (SortOutput::Storage(storage), _) => storage.clock(),
            (SortOutput::Writer(_), Some(temp)) => temp.clock(),
            (SortOutput::Writer(_), None) => Arc::new(RealClock::new()),
        }
    }
}

/// Starts the thread that reads chunks while others are sorted.
fn read_ahead<'s>(
    scope: &'s Scope<'s, '_>,
    mut reader: ChunkReader,
    empty_from: Receiver<Chunk>,
    full_to: SyncSender<Result<FullChunk>>,
    progress: &'s dyn Progress,
) -> Result<()> {
    let here = Activity::here();
    let reading = move || {
        let _worker = here.enroll("read");
        let empty = || {
            let _waiting = wait(WorkerState::Memory);
            empty_from.recv()
        };
        while let Ok(chunk) = empty() {
            let filled = fill(&mut reader, chunk, progress);
            let last = filled.as_ref().map_or(true, |full| full.last);
            let _waiting = wait(WorkerState::Output);
            // The other side hangs up when it fails, and returns its own error.
            if full_to.send(filled).is_err() || last {
                return;
            }
        }
    };
    spawn_scoped(scope, "read", reading)?;
    Ok(())
}

/// Reads the next chunk.
fn fill(reader: &mut ChunkReader, mut chunk: Chunk, progress: &dyn Progress) -> Result<FullChunk> {
    reader.fill(&mut chunk, progress)?;
    let header = reader.preamble().unwrap_or_default().to_vec();
    Ok(FullChunk { chunk, last: reader.finished(), header })
}

/// Charges sorting and gathering `records` of `bytes` in memory. However they are sorted, it counts
/// as the comparisons of a sort that compares.
fn charge_sort(clock: &dyn Clock, records: u64, bytes: u64) {
    clock.charge(Work::Compares(records * u64::from(records.max(1).ilog2())));
    clock.charge(Work::Records(records));
    clock.charge(Work::CopiedBytes(bytes));
}
