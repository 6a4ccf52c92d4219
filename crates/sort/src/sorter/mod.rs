//! A whole sort: inputs in, a view, a file or a stream out.
//!
//! ```text
//!   inputs ──► chunks ──► runs ──(too many for memory? merge some)──► view: manifest
//!                 │                                            └────► file: windows written in order,
//!                 └── everything fits ──► straight to the output            blocks given back behind
//! ```

mod consume;
mod distribute;
mod explain;

use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{channel, sync_channel};
use std::time::Instant;

use storage::spread::Spread;
use storage::{Buffer, Clock, Directory, Operation, RealClock, Storage, StorageExt, Work};

use crate::activity::{self, Activity, State, wait};
use crate::budget::Reservation;
use crate::distribute::one_pass::OnePass;
use crate::key::{Order, OrderSpec};
use crate::merge::stream::{Stream, StreamSize, windows_held};
use crate::merge::window::Segments;
use crate::output::{FileSink, Released, Top, Turn};
use crate::plan::{FENCES_SHARE_MAX, RunPlan, Sample, sample};
use crate::run::form::{Gather, SortMemory, sort_chunk};
use crate::run::format::{HEADER_BYTES, PIECE_BYTES};
use crate::run::input::{Chunk, ChunkReader, Input};
use crate::run::writer::{FENCES, IndexMemory, RunBuilder, WriteBehind};
use crate::run::{Compression, Run, RunWriter};
use crate::view::{Manifest, Segment, least_memory_bytes, stream_size};
use crate::{Budget, Error, Progress, Result};

/// How blocks of runs are to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompressionChoice {
    /// As said.
    Fixed(Compression),
    /// LZ4 when a sample of the data shrinks to two thirds, as it is otherwise.
    #[default]
    Auto,
}

/// How a sort works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// What is likely to be faster.
    #[default]
    Auto,
    /// Sorted runs, merged.
    Merge,
    /// Buckets by key range, each sorted when it is wanted.
    Distribute {
        /// Trust that the leading bits of keys are uniform, and take no sample.
        uniform: bool,
    },
}

/// What a sort is asked for, besides its inputs and its output.
#[derive(Clone)]
pub struct SortOptions {
    /// Format and order of the records; whether duplicates are removed.
    pub order: OrderSpec,
    /// All memory that grows with data.
    pub budget: Budget,
    /// Threads that sort and merge, at least 1.
    pub threads: usize,
    /// Where temporary runs go, each on all of them. A view's runs go to the view.
    pub temp: Vec<Arc<dyn Directory>>,
    /// The most that all temporary runs together may take, in bytes.
    pub temp_limit_bytes: Option<u64>,
    /// How blocks of runs are stored.
    pub compression: CompressionChoice,
    /// Only this many records, from the front, are wanted.
    pub top: Option<u64>,
    /// Runs and a merge, or buckets.
    pub strategy: Strategy,
}

/// What a sort did.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct SortReport {
    /// Bytes of the inputs.
    pub input_bytes: u64,
    /// Records written to the output, or held by the view.
    pub records: u64,
    /// Bytes of the output, or of what the view reads like.
    pub output_bytes: u64,
    /// Runs that were formed.
    pub runs: u64,
    /// Buckets that records were parted into; 0 when runs were merged.
    pub buckets: u64,
    /// Buckets that did not fit into memory and were parted again.
    pub buckets_parted_again: u64,
    /// Bytes written to runs, by intermediate merges too.
    pub run_bytes: u64,
    /// Merge passes before the last.
    pub extra_passes: u64,
    /// The most of the budget that was reserved at once, in bytes.
    pub memory_peak_bytes: u64,
    /// Bytes of input in one chunk.
    pub chunk_bytes: u64,
    /// Logical bytes of a block.
    pub block_bytes: u64,
    /// How blocks were stored.
    pub compression: Compression,
    /// Seconds until all runs were formed.
    pub form_seconds: f64,
    /// Seconds after that.
    pub merge_seconds: f64,
}

/// Where the ordered bytes of [`sort`] go.
pub enum SortOutput<'a> {
    /// A new view in an empty folder, to be read under this name.
    View {
        /// The folder; the caller renames it into place.
        folder: Arc<dyn Directory>,
        /// The name that the view bears when it is mounted.
        name: String,
    },
    /// An empty storage.
    Storage(Arc<dyn Storage>),
    /// A stream.
    Writer(&'a mut (dyn Write + Send)),
}

/// Sorts `inputs`.
///
/// # Errors
/// Bad input, a full disk, too little memory or the storage's own. The inputs are never changed,
/// and nothing that bears a name is left of temporary runs; the caller removes an unfinished
/// output or view folder.
pub fn sort(
    inputs: Vec<Input>,
    output: SortOutput<'_>,
    options: &SortOptions,
    progress: &dyn Progress,
) -> Result<SortReport> {
    let started = Instant::now();
    if options.order.unique && matches!(output, SortOutput::View { .. }) {
        return Err(Error::Unsupported(
            "-u and --view cannot go together: how many duplicates there are, and so the view's exact size, is known only after merging; use -o FILE".to_owned(),
        ));
    }
    if options.top.is_some() && matches!(output, SortOutput::View { .. }) {
        return Err(Error::Unsupported(
            "--top and --view cannot go together; use -o FILE, or read the front of a view with 'merganser cat --head'".to_owned(),
        ));
    }
    let mut sorter = Sorter::prepare(inputs, options)?;
    progress.phase("sorting", sorter.total_bytes);
    sorter.run(output, started, progress)
}

pub use explain::{Estimate, Explanation, explain};

pub use consume::{end_consuming, is_interrupted_sort, sort_consuming};

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

/// How many more runs are made room for when nobody knows how many come.
const RUNS_AHEAD: u64 = 8;

struct Sorter<'a> {
    options: &'a SortOptions,
    order: Arc<Order>,
    spec: String,
    inputs: Vec<Input>,
    total_bytes: Option<u64>,
    plan: RunPlan,
    sample: Sample,
    compression: Compression,
    runs: Vec<Arc<Run>>,
    /// The journal of a sort that consumes its inputs.
    journal: Option<consume::Journal>,
    report: SortReport,
}

/// Bytes of all inputs, where all are known.
fn total_bytes(inputs: &[Input]) -> Option<u64> {
    inputs.iter().map(Input::size).try_fold(0u64, |sum, size| Some(sum + size?))
}

/// A run of which all is gathered, but not all written.
struct Unfinished {
    writer: RunWriter,
    records: u64,
    durable: bool,
}

/// What formed chunks become.
enum Formed {
    /// All of them are runs.
    Runs { header: Vec<u8> },
    /// There was one, and it is in the output already.
    Done,
}

impl<'a> Sorter<'a> {
    fn prepare(inputs: Vec<Input>, options: &'a SortOptions) -> Result<Self> {
        Self::prepare_from(inputs, options, &[], true)
    }

    /// Without `look`, the inputs are partly gone already: their header is given.
    fn prepare_from(
        mut inputs: Vec<Input>,
        options: &'a SortOptions,
        header: &[u8],
        look: bool,
    ) -> Result<Self> {
        let (sampled, header) = if look {
            sample(&mut inputs, options.order.format)?
        } else {
            (Vec::new(), Some(header.to_vec()).filter(|h| !h.is_empty()))
        };
        let order = options
            .order
            .compile(header.as_deref())
            .map_err(|e| Error::Unsupported(e.to_string()))?;
        let total_bytes = total_bytes(&inputs);
        let (free_bytes, limit_bytes) = (options.budget.free_bytes(), options.budget.limit_bytes());
        let sample = Sample::of(&order, &sampled);
        let plan = RunPlan::new(
            free_bytes,
            total_bytes,
            inputs.len() as u64,
            sample,
            order.direct().is_none(),
            options.threads,
        )
        .map_err(|e| match e {
            Error::Memory { owner, least_bytes, .. } => {
                let least_bytes = least_bytes + limit_bytes - free_bytes;
                Error::Memory { owner, least_bytes, limit_bytes }
            }
            other => other,
        })?;
        let compression = match options.compression {
            CompressionChoice::Fixed(compression) => compression,
            CompressionChoice::Auto => {
                let packed = lz4_flex::block::compress(&sampled).len();
                if packed * 3 <= sampled.len() * 2 { Compression::Lz4 } else { Compression::Off }
            }
        };
        let report = SortReport {
            chunk_bytes: plan.chunk_bytes,
            block_bytes: u64::from(plan.block_bytes),
            compression,
            ..SortReport::default()
        };
        let spec = serde_json::to_string(&options.order).expect("plain data");
        Ok(Sorter {
            options,
            order: Arc::new(order),
            spec,
            inputs,
            total_bytes,
            plan,
            sample,
            compression,
            runs: Vec::new(),
            journal: None,
            report,
        })
    }

    fn run(
        &mut self,
        mut output: SortOutput<'_>,
        started: Instant,
        progress: &dyn Progress,
    ) -> Result<SortReport> {
        let _front = distribute::look_ahead(self, &output)?;
        if let Some(uniform) = distribute::wanted(self, &output)? {
            return self.distribute(uniform, output, started, progress);
        }
        let formed = self.form(&mut output, progress)?;
        self.report.form_seconds = started.elapsed().as_secs_f64();
        if let Formed::Runs { header } = formed {
            self.report.runs = self.runs.len() as u64;
            match output {
                SortOutput::View { folder, name } => {
                    self.make_mergeable(Some(&folder), progress)?;
                    self.make_view(&folder, name, header)?;
                }
                SortOutput::Storage(storage) => {
                    self.make_mergeable(None, progress)?;
                    self.merge_to_storage(&storage, &header, progress)?;
                }
                SortOutput::Writer(writer) => {
                    self.make_mergeable(None, progress)?;
                    self.merge_to_writer(writer, &header, progress)?;
                }
            }
        }
        self.report.merge_seconds = started.elapsed().as_secs_f64() - self.report.form_seconds;
        self.report.memory_peak_bytes = self.options.budget.peak_bytes();
        Ok(self.report.clone())
    }

    /// Reads, sorts and writes chunk after chunk; the next is read while one is sorted.
    fn form(&mut self, output: &mut SortOutput<'_>, progress: &dyn Progress) -> Result<Formed> {
        let plan = self.plan;
        let budget = &self.options.budget;
        let chunk_memory = Chunk::memory_bytes(plan.chunk_bytes as usize);
        let parts = [
            ("chunks", plan.chunks * chunk_memory as u64),
            ("tags", 2 * plan.tag_bytes),
            ("keys", plan.key_bytes),
            ("write buffers", plan.pieces * (self.options.threads * PIECE_BYTES) as u64),
        ];
        let _reserved = budget.reserve_parts(&parts, "sorting")?;
        let mut memory = SortMemory::new(
            Buffer::new(plan.tag_bytes as usize),
            Buffer::new(plan.tag_bytes as usize),
            Buffer::new(plan.key_bytes as usize),
            budget,
        );
        let inputs = std::mem::take(&mut self.inputs);
        let format = self.options.order.format;
        let chunk_bytes = plan.chunk_bytes as usize;
        let clock = self.clock(output);
        let order = Arc::clone(&self.order);
        let at_once = self.can_part_while_reading(&*clock);
        let one_pass = match self.total_bytes.filter(|_| at_once) {
            Some(total) => {
                OnePass::plan(&inputs, &order, self.sample, total, self.options.threads)?
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
            empty_to.send(Chunk::new(plan.chunk_bytes as usize)).expect("not closed");
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
            // In modelled time one thread is one thread: it reads when it needs a chunk.
            let mut own = None;
            if self.options.threads == 1 && clock.is_modelled() {
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
                let builder = std::thread::Builder::new().name("read".to_owned());
                builder.spawn_scoped(scope, reading)?;
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
                    let threads = self.options.threads;
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
    fn can_part_while_reading(&self, clock: &dyn Clock) -> bool {
        // In modelled time nobody works beside the reads.
        self.plan.chunks == 1
            && self.journal.is_none()
            && self.options.top.is_none()
            && !self.options.order.unique
            && !clock.is_modelled()
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

    /// Mean length of a fence's key: the greatest of what the sample and the runs so far say.
    fn fence_key_bytes(&self) -> f64 {
        let runs = self.runs.iter().map(|run| run.mean_fence_key_bytes());
        runs.fold(self.plan.fence_key_bytes, f64::max)
    }

    /// One write-behind a thread, all turned to `storage`.
    fn prepare_behinds(
        &self,
        storage: &Arc<dyn Storage>,
        behinds: &mut Vec<WriteBehind>,
    ) -> Result<()> {
        if behinds.is_empty() {
            for _ in 0..self.options.threads {
                let buffers = (0..self.plan.pieces).map(|_| Buffer::new(PIECE_BYTES)).collect();
                behinds.push(WriteBehind::new(Arc::clone(storage), buffers));
            }
        }
        behinds.iter_mut().try_for_each(|b| b.retarget(Arc::clone(storage)))
    }

    /// A place for a temporary run of `bytes`.
    fn temp_storage(&self, bytes: u64) -> Result<Arc<dyn Storage>> {
        if let Some(limit_bytes) = self.options.temp_limit_bytes
            && self.report.run_bytes + bytes > limit_bytes
        {
            return Err(Error::TempLimit { limit_bytes });
        }
        let disks = self.options.temp.iter().map(|disk| disk.create_unnamed());
        let mut disks = disks.collect::<std::io::Result<Vec<_>>>()?;
        Ok(match disks.len() {
            1 => disks.remove(0),
            // All of them for each run: there is only one that is written, or is merged most.
            _ => Spread::new(disks, HEADER_BYTES as u64, PIECE_BYTES as u64),
        })
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
                let nowhere: Arc<dyn Storage> = storage::memory::MemoryStorage::new("nowhere");
                self.prepare_behinds(&nowhere, &mut behinds)?;
                let turn = Turn::new(writer);
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

    fn segments(&self) -> Segments {
        self.segments_of(&self.runs)
    }

    fn segments_of(&self, runs: &[Arc<Run>]) -> Segments {
        Segments {
            runs: runs.into(),
            order: Arc::clone(&self.order),
            unique: self.options.order.unique,
            width: Arc::default(),
        }
    }

    /// Merges neighbouring runs until memory allows to merge the rest at once.
    fn make_mergeable(
        &mut self,
        view: Option<&Arc<dyn Directory>>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let budget = self.options.budget.clone();
        let room = || merge_room(&budget);
        let mut made = self.runs.len();
        // A view must open again in the memory that made it.
        let fits = |segments: &Segments| match view {
            Some(_) => {
                let held: u64 = segments.runs.iter().map(|run| run.reserved_bytes()).sum();
                least_memory_bytes(segments.footers()) <= budget.free_bytes() + held
            }
            None => stream_size(segments, &budget, room(), 1).is_ok(),
        };
        while self.runs.len() > 1 && !fits(&self.segments()) {
            let packed = if self.compression == Compression::Off { 0 } else { 2 };
            let block_bytes = self.runs.iter().map(|run| run.block_bytes()).max();
            let least = 4 * block_bytes.expect("not empty") * (windows_held(1) + packed);
            let fan_in = (room() / least) as usize;
            if fan_in < 2 {
                return stream_size(&self.segments(), &budget, room(), 1).map(|_| ());
            }
            self.report.extra_passes += 1;
            let bytes = self.segments().data_bytes();
            progress.phase("merging runs", Some(bytes));
            let _worker = activity::enter("write");
            let key_bytes = self.fence_key_bytes();
            let mut old = std::mem::take(&mut self.runs);
            let replaced: Vec<_> = old.iter().map(|run| Segment::of(run).run).collect();
            let mut merged = Vec::new();
            while !old.is_empty() {
                let (segments, block_bytes, memory, size) =
                    self.merge_group(&old[..fan_in.min(old.len())], key_bytes)?;
                let group = Arc::clone(&segments.runs);
                let storage = match view {
                    Some(folder) => folder.create(&run_name(made))?,
                    None => self.temp_storage(0)?,
                };
                made += 1;
                let writer = RunWriter::new(storage, block_bytes, self.compression, None, memory)?;
                let mut builder = RunBuilder::new(writer, (*self.order).clone());
                let mut stream = Stream::new(segments, None, None, None, size, &budget)?;
                let mut released = Released::new(&group);
                while let Some(window) = stream.next_window()? {
                    if progress.cancelled() {
                        return Err(Error::Cancelled);
                    }
                    builder.append(window.bytes())?;
                    progress.advance(window.len as u64);
                    // What a journal names must stay until it names what replaces it.
                    if self.journal.is_none() {
                        released.release(&group, &window.needed)?;
                    }
                    stream.recycle(window.buffer);
                }
                released.finish(&group)?;
                let run = builder.finish(&self.spec, view.is_some())?;
                self.report.run_bytes += run.storage().size();
                merged.push(Arc::new(run));
                // Their fences go before the next group's come.
                old.drain(..group.len());
            }
            if let Some(journal) = &mut self.journal {
                journal.replace_runs(&merged)?;
            }
            if let Some(folder) = view {
                // What was merged has a name there; only the new runs are part of the view.
                for name in replaced {
                    match folder.remove(&name) {
                        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                            return Err(Error::Io(e));
                        }
                        _ => {}
                    }
                }
            }
            self.runs = merged;
        }
        Ok(())
    }

    /// As many of `runs` as can be merged at once, at least two; the block size and the memory of
    /// the index of what they become; the size of the windows that merge them.
    fn merge_group(
        &self,
        runs: &[Arc<Run>],
        key_bytes: f64,
    ) -> Result<(Segments, u32, Reservation, StreamSize)> {
        let budget = &self.options.budget;
        let mut count = runs.len();
        loop {
            let segments = self.segments_of(&runs[..count]);
            let expected =
                |block_bytes| IndexMemory::expected(segments.data_bytes(), block_bytes, key_bytes);
            let mut block_bytes = self.plan.block_bytes;
            while expected(block_bytes).most() > budget.free_bytes() / FENCES_SHARE_MAX
                && block_bytes < RunPlan::block_bytes_max(budget.limit_bytes())
            {
                block_bytes *= 2;
            }
            let sized = budget.reserve(expected(block_bytes).most(), FENCES).and_then(|memory| {
                let threads = self.options.threads;
                let size = stream_size(&segments, budget, merge_room(budget), threads)?;
                Ok((memory, size))
            });
            match sized {
                Ok((memory, size)) => return Ok((segments, block_bytes, memory, size)),
                Err(Error::Memory { .. }) if count > 2 => count -= 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn make_view(
        &mut self,
        folder: &Arc<dyn Directory>,
        name: String,
        header: Vec<u8>,
    ) -> Result<()> {
        let segments = self.runs.iter().map(|run| Segment::of(run)).collect();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
        let manifest = Manifest::new(name, self.options.order.clone(), header, now, segments);
        manifest.write(folder)?;
        self.report.records = manifest.records;
        self.report.output_bytes = manifest.size_bytes;
        Ok(())
    }

    fn merge_to_storage(
        &mut self,
        storage: &Arc<dyn Storage>,
        header: &[u8],
        progress: &dyn Progress,
    ) -> Result<()> {
        let _worker = activity::enter("write");
        let segments = self.segments();
        let base = header.len() as u64;
        // Removed duplicates move what follows, so windows cannot be aligned beforehand; and a sort
        // that wants only the top does not know its size.
        let exact = !segments.unique && self.options.top.is_none();
        let total = exact.then(|| base + segments.data_bytes());
        progress.phase("merging", Some(base + segments.data_bytes()));
        let mut sink = FileSink::new(Arc::clone(storage), 0, Vec::new(), total);
        sink.push_bytes(header)?;
        let size = {
            let budget = &self.options.budget;
            stream_size(&segments, budget, merge_room(budget), self.options.threads)?
        };
        let budget = &self.options.budget;
        let align = exact.then_some(base);
        let mut stream = Stream::new(segments.clone(), None, None, align, size, budget)?;
        let mut released = Released::new(&segments.runs);
        let mut top = Top::new(self.options.top);
        while let Some(window) = stream.next_window()? {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            released.release(&segments.runs, &window.needed)?;
            progress.advance(window.len as u64);
            if exact {
                sink.push_window(window, &mut stream)?;
            } else {
                let (bytes, more) = top.take(&self.order, window.bytes());
                sink.push_bytes(bytes)?;
                stream.recycle(window.buffer);
                if !more {
                    break;
                }
            }
        }
        released.finish(&segments.runs)?;
        self.report.output_bytes = sink.offset();
        self.report.records = match exact {
            true => segments.runs.iter().map(|r| r.records()).sum(),
            false => top.taken,
        };
        sink.finish()
    }

    fn merge_to_writer(
        &mut self,
        writer: &mut (dyn Write + Send),
        header: &[u8],
        progress: &dyn Progress,
    ) -> Result<()> {
        let _worker = activity::enter("write");
        let segments = self.segments();
        progress.phase("merging", Some(header.len() as u64 + segments.data_bytes()));
        writer.write_all(header)?;
        let size = {
            let budget = &self.options.budget;
            stream_size(&segments, budget, merge_room(budget), self.options.threads)?
        };
        let mut stream =
            Stream::new(segments.clone(), None, None, None, size, &self.options.budget)?;
        let mut released = Released::new(&segments.runs);
        let mut top = Top::new(self.options.top);
        let mut written = header.len() as u64;
        while let Some(window) = stream.next_window()? {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            released.release(&segments.runs, &window.needed)?;
            progress.advance(window.len as u64);
            let (bytes, more) = top.take(&self.order, window.bytes());
            {
                let _waiting = wait(State::Writing);
                writer.write_all(bytes)?;
            }
            written += bytes.len() as u64;
            stream.recycle(window.buffer);
            if !more {
                break;
            }
        }
        released.finish(&segments.runs)?;
        writer.flush()?;
        self.report.output_bytes = written;
        let known = !segments.unique && self.options.top.is_none();
        let all = segments.runs.iter().map(|r| r.records()).sum();
        self.report.records = if known { all } else { top.taken };
        Ok(())
    }
}

/// What of the budget a merge may take; the rest is for blocks that windows grow by.
fn merge_room(budget: &Budget) -> u64 {
    budget.free_bytes() / 10 * 9
}

fn run_name(number: usize) -> String {
    format!("{number:06}.run")
}
