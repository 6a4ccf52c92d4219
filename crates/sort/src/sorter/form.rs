//! Chunks become runs, or the output itself where there is only one.
//!
//! ```text
//!   reader ──full──► sort the chunk ──► gather into pieces ──► a run, its last writes under way
//!      ◄──empty── while it sorts, the next is read               └──► or the output, at once
//! ```

use std::sync::Arc;
use std::sync::mpsc::{channel, sync_channel};

use merganser_storage::thread::spawn_scoped;
use merganser_storage::{Buffer, Clock, Operation, RealClock, Storage, StorageExt, Work};

use super::{SortOutput, Sorter, run_name};
use crate::activity::{Activity, State, wait};
use crate::budget::Reservation;
use crate::distribute::one_pass::OnePass;
use crate::output::InTurn;
use crate::plan::{FENCES_SHARE_MAX, RunPlan};
use crate::run::RunWriter;
use crate::run::form::{Gather, SortMemory, sort_chunk};
use crate::run::format::PIECE_BYTES;
use crate::run::index::{FENCES, IndexMemory};
use crate::run::input::{Chunk, ChunkReader};
use crate::run::write_behind::WriteBehind;
use crate::{Error, Progress, Result};

/// How many more runs are made room for when nobody knows how many come.
const RUNS_AHEAD: u64 = 8;

/// What formed chunks become.
pub(super) enum Formed {
    /// All of them are runs.
    Runs { header: Vec<u8> },
    /// There was one, and it is in the output already.
    Done,
}

/// A run of which all is gathered, but not all written.
struct Unfinished {
    writer: RunWriter,
    records: u64,
    durable: bool,
}

impl Sorter<'_> {
    /// Reads, sorts and writes chunk after chunk; the next is read while one is sorted.
    pub(super) fn form(
        &mut self,
        output: &mut SortOutput<'_>,
        progress: &dyn Progress,
    ) -> Result<Formed> {
        let plan = self.plan;
        let budget = &self.options.budget;
        let chunk_memory = Chunk::memory_bytes(plan.chunk_bytes as usize);
        let parts = [
            ("chunks", plan.chunks * chunk_memory as u64),
            ("tags", 2 * plan.tag_bytes),
            ("keys", plan.key_bytes),
            ("write buffers", plan.pieces * (self.workers.count() * PIECE_BYTES) as u64),
        ];
        let _reserved = budget.reserve_parts(&parts, "sorting")?;
        let mut memory = SortMemory::new(
            Buffer::try_new(plan.tag_bytes as usize)?,
            Buffer::try_new(plan.tag_bytes as usize)?,
            Buffer::try_new(plan.key_bytes as usize)?,
            budget,
        );
        let inputs = std::mem::take(&mut self.inputs);
        let format = self.options.order.format;
        let chunk_bytes = plan.chunk_bytes as usize;
        let clock = self.clock(output);
        let order = Arc::clone(&self.order);
        let at_once = self.can_part_while_reading();
        let one_pass = match self.total_bytes.filter(|_| at_once) {
            Some(total) => {
                OnePass::plan(&inputs, &order, self.sample, total, self.workers.count())?
            }
            None => None,
        };
        let mut reader = match &self.journal {
            Some(journal) => journal.reader(inputs, format, chunk_bytes),
            None => ChunkReader::new(inputs, format, chunk_bytes),
        };
        let (empty_to, empty_from) = channel::<Chunk>();
        let (full_to, full_from) = sync_channel::<Result<(Chunk, bool, Vec<u8>)>>(1);
        for _ in 0..plan.chunks {
            empty_to.send(Chunk::new(plan.chunk_bytes as usize)?).expect("not closed");
        }
        // The first chunk, where it was read already.
        let mut ahead = None;
        if let Some(one_pass) = one_pass
            && let Ok(_lists) =
                budget.reserve(one_pass.memory_bytes(&mut memory), "the lists of tags")
        {
            let mut chunk = empty_from.recv().expect("one was sent");
            let parted =
                one_pass.read(&mut reader, &mut chunk, chunk_bytes, &mut memory, progress)?;
            let header = reader.header().unwrap_or_default().to_vec();
            if let Some(parted) = parted {
                self.report.input_bytes += chunk.data_bytes() as u64;
                let mut sorted = parted.of(&chunk, &mut memory);
                return self.hand_out(&mut sorted, output, header, progress);
            }
            ahead = Some((chunk, reader.finished(), header));
        }
        std::thread::scope(|scope| {
            // Both ends close with this scope's body, or the reader would wait for ever when it
            // fails.
            let (empty_to, full_from) = (empty_to, full_from);
            // A thread that is alone reads when it needs a chunk.
            let mut own = None;
            if self.workers.are_own() {
                own = Some((reader, empty_from));
            } else {
                let here = Activity::here();
                let reading = move || {
                    let _worker = here.enroll("read");
                    let empty = || {
                        let _waiting = wait(State::Memory);
                        empty_from.recv()
                    };
                    while let Ok(chunk) = empty() {
                        let filled = fill(&mut reader, chunk, progress);
                        let last = filled.as_ref().map_or(true, |(_, last, _)| *last);
                        let _waiting = wait(State::Output);
                        // The other side hangs up when it fails, and says why itself.
                        if full_to.send(filled).is_err() || last {
                            return;
                        }
                    }
                };
                spawn_scoped(scope, "read", reading)?;
            }
            let mut behinds: Vec<WriteBehind> = Vec::new();
            let mut unfinished = None;
            let mut threshold: Option<Vec<u8>> = None;
            loop {
                let (chunk, last, header) = match &mut own {
                    _ if ahead.is_some() => ahead.take().expect("just seen"),
                    Some((reader, empty_from)) => {
                        let chunk = empty_from.recv().expect("there is one that is not in use");
                        fill(reader, chunk, progress)?
                    }
                    None => {
                        let _waiting = wait(State::Input);
                        full_from.recv().expect("the reader sends until the last chunk")?
                    }
                };
                self.report.input_bytes += chunk.data_bytes() as u64;
                let mut from = None;
                loop {
                    let unique = self.options.order.unique;
                    let threads = self.workers.count();
                    let mut sorted =
                        sort_chunk(&chunk, from, &order, unique, threads, &mut memory)?;
                    if progress.cancelled() {
                        return Err(Error::Cancelled);
                    }
                    charge_sort(&*clock, sorted.records(), sorted.bytes());
                    let resume = sorted.resume;
                    if let Some(top) = self.options.top {
                        sorted.truncate(top);
                        if let Some(key) = &threshold {
                            sorted.truncate_at(key);
                        }
                        if sorted.records() == top {
                            threshold = sorted.last_key().or(threshold);
                        }
                    }
                    let only =
                        last && self.runs.is_empty() && unfinished.is_none() && resume.is_none();
                    if only && !matches!(output, SortOutput::View { .. }) {
                        self.emit(&mut sorted, output, &header, progress)?;
                        return Ok(Formed::Done);
                    }
                    if sorted.records() > 0 {
                        self.finish_run(&mut unfinished, &mut behinds)?;
                        unfinished =
                            Some(self.spill(&mut sorted, output, &mut behinds, progress)?);
                    }
                    if resume.is_none() {
                        break;
                    }
                    from = resume;
                }
                // The last writes of a run go on while the next chunk is sorted, unless a journal is
                // to name it now.
                if last || self.journal.is_some() {
                    self.finish_run(&mut unfinished, &mut behinds)?;
                }
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

    /// Gathers all records there are into the output, or into the only run of a view.
    fn hand_out(
        &mut self,
        sorted: &mut dyn Gather,
        output: &mut SortOutput<'_>,
        header: Vec<u8>,
        progress: &dyn Progress,
    ) -> Result<Formed> {
        if !matches!(output, SortOutput::View { .. }) {
            self.emit(sorted, output, &header, progress)?;
            return Ok(Formed::Done);
        }
        if sorted.records() > 0 {
            let mut behinds = Vec::new();
            let mut unfinished = Some(self.spill(sorted, output, &mut behinds, progress)?);
            self.finish_run(&mut unfinished, &mut behinds)?;
        }
        Ok(Formed::Runs { header })
    }

    /// Whether all records fit into one chunk, whose tags can be parted while it is read.
    pub(super) fn can_part_while_reading(&self) -> bool {
        // A thread that is alone does nothing while it reads.
        self.plan.chunks == 1
            && self.journal.is_none()
            && self.options.top.is_none()
            && !self.options.order.unique
            && !self.workers.are_own()
    }

    /// The clock by which the records are moved.
    fn clock(&self, output: &SortOutput<'_>) -> Arc<dyn Clock> {
        match (output, self.options.temp.first()) {
            (SortOutput::View { folder, .. }, _) => folder.clock(),
            (SortOutput::Storage(storage), _) => storage.clock(),
            (SortOutput::Writer(_), Some(temp)) => temp.clock(),
            (SortOutput::Writer(_), None) => Arc::new(RealClock::new()),
        }
    }

    /// Gathers a sorted chunk into a run, whose last pieces are being written yet.
    fn spill(
        &mut self,
        sorted: &mut dyn Gather,
        output: &SortOutput<'_>,
        behinds: &mut Vec<WriteBehind>,
        progress: &dyn Progress,
    ) -> Result<Unfinished> {
        let (storage, durable) = match output {
            SortOutput::View { folder, .. } => (folder.create(&run_name(self.runs.len()))?, true),
            _ => (self.temp_storage(sorted.bytes())?, false),
        };
        let (block_bytes, memory) = self.index_memory(sorted.bytes())?;
        let writer = RunWriter::new(
            Arc::clone(&storage),
            block_bytes,
            self.compression,
            Some(sorted.bytes()),
            memory,
        )?;
        self.prepare_behinds(&storage, behinds)?;
        let place = |number, piece, behind: &mut WriteBehind| {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            writer.place(number, piece, behind)
        };
        sorted.gather(block_bytes, true, behinds, &place)?;
        Ok(Unfinished { writer, records: sorted.records(), durable })
    }

    /// Waits for the writes of the run that was gathered last, if any, and completes it.
    fn finish_run(
        &mut self,
        unfinished: &mut Option<Unfinished>,
        behinds: &mut [WriteBehind],
    ) -> Result<()> {
        let Some(Unfinished { writer, records, durable }) = unfinished.take() else {
            return Ok(());
        };
        behinds.iter_mut().try_for_each(WriteBehind::drain)?;
        let _waiting = wait(State::Writing);
        let run = writer.finish(&self.spec, records, durable)?;
        self.report.run_bytes += run.storage().size();
        self.runs.push(Arc::new(run));
        Ok(())
    }

    /// Memory for the index of a run of `bytes`, and its blocks' size: the plan's, or larger when
    /// the fences of this and of the runs to come would not fit otherwise.
    fn index_memory(&self, bytes: u64) -> Result<(u32, Reservation)> {
        let budget = &self.options.budget;
        let ahead = match self.total_bytes {
            Some(total) => {
                total.saturating_sub(self.report.input_bytes).div_ceil(self.plan.chunk_bytes)
            }
            None => RUNS_AHEAD,
        };
        let free = budget.free_bytes();
        let block_bytes_max = RunPlan::block_bytes_max(budget.limit_bytes());
        let mut block_bytes = self.plan.block_bytes;
        loop {
            let expected = IndexMemory::expected(bytes, block_bytes, self.fence_key_bytes());
            let all = expected.most() + ahead * expected.open;
            if all <= free || block_bytes >= block_bytes_max {
                return match budget.reserve(expected.most(), FENCES) {
                    Ok(memory) => Ok((block_bytes, memory)),
                    Err(_) => {
                        let held: u64 = self.runs.iter().map(|run| run.reserved_bytes()).sum();
                        let limit_bytes = budget.limit_bytes();
                        let least_bytes = ((held + all) * FENCES_SHARE_MAX).max(limit_bytes + all);
                        Err(Error::Memory { owner: FENCES, least_bytes, limit_bytes })
                    }
                };
            }
            block_bytes *= 2;
        }
    }

    /// One write-behind a thread, all turned to `storage`.
    fn prepare_behinds(
        &self,
        storage: &Arc<dyn Storage>,
        behinds: &mut Vec<WriteBehind>,
    ) -> Result<()> {
        if behinds.is_empty() {
            for _ in 0..self.workers.count() {
                let buffers = (0..self.plan.pieces).map(|_| Buffer::try_new(PIECE_BYTES));
                let buffers = buffers.collect::<std::io::Result<_>>()?;
                behinds.push(WriteBehind::new(Arc::clone(storage), buffers));
            }
        }
        behinds.iter_mut().try_for_each(|b| b.retarget(Arc::clone(storage)))
    }

    /// Everything fits into one chunk: the output is gathered from it directly.
    fn emit(
        &mut self,
        sorted: &mut dyn Gather,
        output: &mut SortOutput<'_>,
        header: &[u8],
        progress: &dyn Progress,
    ) -> Result<()> {
        let base = header.len() as u64;
        let total = base + sorted.bytes();
        progress.phase("writing", Some(total));
        self.report.records = sorted.records();
        self.report.output_bytes = total;
        let mut behinds = Vec::new();
        match output {
            SortOutput::Storage(storage) => {
                if total > 0 {
                    let _waiting = wait(State::Writing);
                    storage.run(Operation::Allocate { offset: 0, len: total })?;
                }
                storage.write_at(0, header)?;
                self.prepare_behinds(storage, &mut behinds)?;
                sorted.gather(
                    self.plan.block_bytes,
                    false,
                    &mut behinds,
                    &|number, piece, behind| {
                        if progress.cancelled() {
                            return Err(Error::Cancelled);
                        }
                        let (buffer, len) = piece.into_bytes();
                        progress.advance(len as u64);
                        behind.write(base + number * PIECE_BYTES as u64, buffer, len)
                    },
                )?;
                behinds.iter_mut().try_for_each(WriteBehind::drain)?;
                Ok(())
            }
            SortOutput::Writer(writer) => {
                writer.write_all(header)?;
                // The write-behind only lends its buffers here; nothing goes to its storage.
                let nowhere: Arc<dyn Storage> =
                    merganser_storage::memory::MemoryStorage::new("nowhere");
                self.prepare_behinds(&nowhere, &mut behinds)?;
                let turn = InTurn::new(&mut **writer);
                sorted.gather(
                    self.plan.block_bytes,
                    false,
                    &mut behinds,
                    &|number, piece, behind| {
                        if progress.cancelled() {
                            turn.stop();
                            return Err(Error::Cancelled);
                        }
                        let (buffer, len) = piece.into_bytes();
                        turn.write(number, &buffer[..len])?;
                        progress.advance(len as u64);
                        behind.put_back(buffer);
                        Ok(())
                    },
                )
            }
            SortOutput::View { .. } => unreachable!("a view has a run"),
        }
    }
}

/// Reads the next chunk; also whether it is the last, and the header row so far.
fn fill(
    reader: &mut ChunkReader,
    mut chunk: Chunk,
    progress: &dyn Progress,
) -> Result<(Chunk, bool, Vec<u8>)> {
    reader.fill(&mut chunk, progress)?;
    let header = reader.header().unwrap_or_default().to_vec();
    Ok((chunk, reader.finished(), header))
}

/// Charges sorting and gathering `records` of `bytes` in memory. However they are sorted, it counts
/// as the comparisons of a sort that compares.
fn charge_sort(clock: &dyn Clock, records: u64, bytes: u64) {
    clock.charge(Work::Compares(records * u64::from(records.max(1).ilog2())));
    clock.charge(Work::Records(records));
    clock.charge(Work::CopiedBytes(bytes));
}
