//! One session: an SSDlet, the splits that it maps, and its result.
//!
//! ```text
//!   SET ─► splits ─► pages, all channels ─► whole records ─► SSDlet ─► table ──► result in memory, or
//!                    read ahead              carry joins       │ meter    sorted    PUT: pages of flash
//!                                            cut ones          ▼
//!                                                         the processor
//! ```
//!
//! One page is mapped at a time: its output is in the table at once, and the next page is mapped when
//! the processor has done the work.

use std::collections::VecDeque;
use std::io;

use merganser_sort::error::stray_quote;
use merganser_sort::record::{Format, InputRecords, Tail};
use merganser_storage::near::{Inside, RequestId};
use merganser_storage::{Buffer, Work};

use super::area::Area;
use super::command::{ByteExtent, DeviceSplit};
use super::pages::SplitPages;
use super::status::{IscState, IscStatus, PAGE_BYTES, RUNS_MAX};
use super::table::OutputTable;
use super::{IscSettings, Tokens};
use crate::active_sort::chunk_buffer::complete;
use merganser_map::ssdlet::{Chunk, CollectedOutput, Emitter, Ssdlet, SsdletError, Worker};

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunPhase {
    /// Splits are mapped, or awaited.
    Mapping,
    /// The worker was closed; the table holds everything.
    Closed,
    /// The result is on its way to the extents of PUT.
    Writing,
    /// The result can be read.
    Done,
}

/// A session.
pub(super) struct DeviceSession {
    ssdlet: Box<dyn Ssdlet>,
    format: Format,
    worker: Box<dyn Worker>,
    memory_bytes: u64,
    page_bytes: u64,
    pages_max: usize,
    result_max: u64,
    phase: RunPhase,
    splits: VecDeque<DeviceSplit>,
    /// Whether the last split of this run was given, and whether any was.
    ended: bool,
    begun: bool,
    pages: Option<SplitPages>,
    /// The start of a record that ends in a later page, and its place in the split.
    carry: Vec<u8>,
    carry_at: u64,
    collect: CollectedOutput,
    table: OutputTable,
    splits_mapped: u64,
    mapped_bytes: u64,
    metered: u64,
    /// Bytes of the records that the worker got since its meter was read.
    unmetered_bytes: u64,
    runs: Vec<u64>,
    result: Vec<u8>,
    area: Option<Area>,
    /// The token of the work under way.
    work: Option<u64>,
    reads_under_way: u64,
    error: Option<String>,
    closing: Option<RequestId>,
}

fn text(error: &SsdletError) -> String {
    error.to_string()
}

impl DeviceSession {
    /// Opens `ssdlet` with `memory_bytes`, which are claimed.
    pub(super) fn open(
        ssdlet: Box<dyn Ssdlet>,
        memory_bytes: u64,
        settings: &IscSettings,
        inside: &mut dyn Inside,
    ) -> io::Result<DeviceSession> {
        let geometry = inside.geometry();
        let own = if geometry.stripe_bytes > 0 {
            geometry.stripe_bytes.max(geometry.page_bytes)
        } else {
            geometry.best_io_bytes
        };
        let page_bytes = u64::from(settings.page_bytes.unwrap_or(own));
        let description = ssdlet.description();
        let pages = (settings.pages as u64 + 1) * page_bytes;
        let least = pages + description.worker_bytes + page_bytes;
        if memory_bytes < least {
            let why = format!(
                "{} needs at least {least} bytes of memory in this device, OPEN gave {memory_bytes}",
                description.name
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let worker = ssdlet.worker().map_err(|e| io::Error::other(text(&e)))?;
        inside.claim_memory(memory_bytes).map_err(|e| {
            io::Error::new(e.kind(), format!("{}: {e}; close another session", description.name))
        })?;
        Ok(DeviceSession {
            format: description.input,
            table: OutputTable::new(description.output.clone()),
            worker,
            memory_bytes,
            page_bytes,
            pages_max: settings.pages,
            result_max: settings.window_bytes - PAGE_BYTES as u64,
            phase: RunPhase::Mapping,
            splits: VecDeque::new(),
            ended: false,
            begun: false,
            pages: None,
            carry: Vec::new(),
            carry_at: 0,
            collect: CollectedOutput::default(),
            splits_mapped: 0,
            mapped_bytes: 0,
            metered: 0,
            unmetered_bytes: 0,
            runs: Vec::new(),
            result: Vec::new(),
            area: None,
            work: None,
            reads_under_way: 0,
            error: None,
            closing: None,
            ssdlet,
        })
    }

    /// SET: another split.
    pub(super) fn set(&mut self, split: DeviceSplit, more: bool) -> Result<(), String> {
        self.usable()?;
        if self.phase == RunPhase::Done {
            self.start_run()?;
        }
        if self.ended {
            return Err("SET: the last split of this run was given; read the result first".into());
        }
        self.splits.push_back(split);
        self.begun = true;
        self.ended = !more;
        Ok(())
    }

    /// PUT: where the result of the next run goes.
    pub(super) fn put(&mut self, extents: Vec<ByteExtent>, device_page: u64) -> Result<(), String> {
        self.usable()?;
        let area = Area::new(extents, device_page)?;
        if self.phase == RunPhase::Done {
            self.start_run()?;
        }
        if self.begun {
            return Err("PUT: a split of this run was given; PUT comes before the first".into());
        }
        self.area = Some(area);
        Ok(())
    }

    fn usable(&self) -> Result<(), String> {
        match &self.error {
            Some(error) => Err(format!("the session has failed: {error}")),
            None if self.closing.is_some() => Err("the session is being closed".to_owned()),
            None => Ok(()),
        }
    }

    /// Forgets the result, and starts again with the same SSDlet.
    fn start_run(&mut self) -> Result<(), String> {
        self.worker = self.ssdlet.worker().map_err(|e| text(&e))?;
        self.phase = RunPhase::Mapping;
        (self.ended, self.begun) = (false, false);
        (self.splits_mapped, self.mapped_bytes, self.metered) = (0, 0, 0);
        self.runs.clear();
        self.result = Vec::new();
        self.area = None;
        Ok(())
    }

    /// GET: what the session does.
    pub(super) fn status(&self) -> IscStatus {
        let idle = self.splits.is_empty() && self.pages.is_none() && !self.ended;
        let state = match self.phase {
            _ if self.error.is_some() => IscState::Failed,
            RunPhase::Done => IscState::Done,
            RunPhase::Mapping if idle => IscState::Waiting,
            _ => IscState::Running,
        };
        IscStatus {
            state,
            splits: self.splits_mapped,
            mapped_bytes: self.mapped_bytes,
            metered: self.metered,
            runs: if state == IscState::Done { self.runs.clone() } else { Vec::new() },
            put: self.area.is_some(),
            error: self.error.clone().unwrap_or_default(),
        }
    }

    /// GET: bytes of the result, with zeros after its end.
    pub(super) fn result(&self, at: u64, out: &mut [u8]) -> Result<(), String> {
        self.usable()?;
        if self.phase != RunPhase::Done {
            return Err("the result is not ready; poll the status".to_owned());
        }
        if self.area.is_some() {
            return Err("the result was written where PUT said".to_owned());
        }
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(self.result.len());
        let len = out.len().min(self.result.len() - from);
        out[..len].copy_from_slice(&self.result[from..from + len]);
        Ok(())
    }

    /// CLOSE: `request` is answered when nothing is under way.
    pub(super) fn close(&mut self, request: RequestId) -> Result<(), String> {
        if self.closing.is_some() {
            return Err("the session is being closed".to_owned());
        }
        self.closing = Some(request);
        Ok(())
    }

    /// Whether it is closed and nothing is under way: then its memory is released, and its CLOSE is
    /// answered.
    pub(super) fn gone(&mut self, inside: &mut dyn Inside) -> bool {
        let writes = self.area.as_ref().is_some_and(Area::is_busy);
        if self.reads_under_way > 0 || self.work.is_some() || writes {
            return false;
        }
        let Some(request) = self.closing else { return false };
        inside.release_memory(self.memory_bytes);
        inside.answer(request, Ok(Buffer::empty()));
        true
    }

    /// A read has ended.
    pub(super) fn read_ended(&mut self, token: u64, buffer: Buffer, result: io::Result<usize>) {
        self.reads_under_way -= 1;
        if let Some(pages) = &mut self.pages {
            pages.arrived(token, buffer, result);
        }
    }

    /// A write has ended.
    pub(super) fn write_ended(&mut self, token: u64, result: io::Result<()>) {
        if let Some(area) = &mut self.area {
            area.written(token);
        }
        if let Err(error) = result {
            self.fail(format!("PUT: {error}"));
        }
    }

    /// Work has ended.
    pub(super) fn worked(&mut self) {
        self.work = None;
    }

    fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
        // Its data is of no use. Pages stay until their reads have ended.
        self.table.take_run();
        self.result = Vec::new();
    }

    /// Starts whatever can be started.
    pub(super) fn advance(&mut self, tokens: &mut Tokens<'_>, inside: &mut dyn Inside) {
        if self.usable().is_ok()
            && let Err(error) = self.try_advance(tokens, inside)
        {
            self.fail(error);
        }
    }

    fn try_advance(
        &mut self,
        tokens: &mut Tokens<'_>,
        inside: &mut dyn Inside,
    ) -> Result<(), String> {
        loop {
            self.start_reads(tokens, inside);
            let writes = self.area.as_ref().is_some_and(Area::is_busy);
            if self.work.is_some() || writes {
                return Ok(());
            }
            let work = match self.phase {
                RunPhase::Mapping => self.map_next(tokens, inside)?,
                RunPhase::Closed => self.finish(tokens, inside)?,
                RunPhase::Writing => {
                    self.phase = RunPhase::Done;
                    None
                }
                RunPhase::Done => None,
            };
            let Some(work) = work else {
                let more = self.phase == RunPhase::Mapping && !self.splits.is_empty();
                if more && self.pages.is_none() {
                    continue;
                }
                return Ok(());
            };
            let token = tokens.next();
            self.work = Some(token);
            inside.work(token, &work);
        }
    }

    fn start_reads(&mut self, tokens: &mut Tokens<'_>, inside: &mut dyn Inside) {
        if self.pages.is_none()
            && self.phase == RunPhase::Mapping
            && let Some(split) = self.splits.pop_front()
        {
            self.pages = Some(SplitPages::new(split, self.page_bytes, self.pages_max));
        }
        let Some(pages) = &mut self.pages else { return };
        while let Some(read) = pages.next_read() {
            let token = tokens.next();
            pages.started(token, read);
            self.reads_under_way += 1;
            inside.read(token, read.offset, Buffer::new(read.len));
        }
    }

    /// Maps the next page, the rest of a split, or closes the worker after the last split. Returns the
    /// work; `None` if there is nothing to do now.
    fn map_next(
        &mut self,
        tokens: &mut Tokens<'_>,
        inside: &mut dyn Inside,
    ) -> Result<Option<Vec<Work>>, String> {
        let work = match &mut self.pages {
            None if self.ended && self.splits.is_empty() => {
                self.worker
                    .close(&mut Emitter::collecting(&mut self.collect))
                    .map_err(|e| text(&e))?;
                self.phase = RunPhase::Closed;
                vec![Work::Metered(self.worker.meter())]
            }
            None => return Ok(None),
            Some(pages) if pages.ended() => {
                let work = self.map_rest()?;
                self.splits_mapped += 1;
                self.pages = None;
                work
            }
            Some(pages) => match pages.take() {
                None => return Ok(None),
                Some(page) => {
                    let page = page?;
                    self.map_page(page.at, &page.buffer[page.from..page.to])?
                }
            },
        };
        self.table.add(&mut self.collect)?;
        self.keep_within_memory(tokens, inside)?;
        if let Some(Work::Metered(units)) = work.first() {
            self.metered += units;
        }
        Ok(Some(work))
    }

    /// Maps the records that end in `bytes`, which are at `at` in the split.
    fn map_page(&mut self, at: u64, bytes: &[u8]) -> Result<Vec<Work>, String> {
        let mut carried = 0;
        let mut from = 0;
        if !self.carry.is_empty() {
            let taken = complete(&mut self.carry, bytes, self.format);
            (from, carried) = (taken.bytes, taken.bytes);
            if taken.whole {
                let record = std::mem::take(&mut self.carry);
                self.map_chunk(self.carry_at, &record)?;
            }
        }
        let rest = &bytes[from..];
        let mut cuts = Vec::new();
        self.format.cut(rest, usize::MAX, &mut cuts);
        let end = cuts.last().copied().unwrap_or(0);
        if end > 0 {
            self.map_chunk(at + from as u64, &rest[..end])?;
        }
        if end < rest.len() {
            self.carry_at = at + (from + end) as u64;
            self.carry.extend_from_slice(&rest[end..]);
            carried += rest.len() - end;
        }
        let read = bytes.len() as u64;
        self.mapped_bytes += read;
        let mut work = vec![Work::Metered(self.meter()), Work::ReadBytes(read)];
        if carried > 0 {
            work.push(Work::CopiedBytes(carried as u64));
        }
        Ok(work)
    }

    /// Maps the record at the end of a split that has no terminator.
    fn map_rest(&mut self) -> Result<Vec<Work>, String> {
        let mut rest = std::mem::take(&mut self.carry);
        if rest.is_empty() {
            return Ok(vec![Work::Metered(0)]);
        }
        match InputRecords::within(self.format).tail(&rest) {
            Tail::Whole => {}
            Tail::Complete(terminator) => rest.extend_from_slice(terminator),
            Tail::Damaged(why) => {
                let pages = self.pages.as_ref().expect("a split ends");
                let place = pages.split().place + (self.carry_at - pages.split().start_offset);
                return Err(format!("at byte {place} of the input: {why}"));
            }
        }
        self.map_chunk(self.carry_at, &rest)?;
        Ok(vec![Work::Metered(self.meter())])
    }

    /// Runs the SSDlet on whole records at `at` in the split.
    fn map_chunk(&mut self, at: u64, bytes: &[u8]) -> Result<(), String> {
        let split = self.pages.as_ref().expect("a split is mapped").split();
        let offset = split.place + (at - split.start_offset);
        let told = InputRecords::within(self.format).records(bytes);
        told.map_err(|quote| stray_quote("the input", offset, quote).to_string())?;
        let chunk = Chunk { input: split.input, offset, bytes };
        let mut out = Emitter::collecting(&mut self.collect);
        self.unmetered_bytes += bytes.len() as u64;
        self.worker.chunk(chunk, &mut out).map_err(|e| text(&e))
    }

    /// The units since the last call. An SSDlet without a meter is charged one for each byte of its
    /// records. A page in which no record ends has none: its bytes are charged with their record.
    fn meter(&mut self) -> u64 {
        let bytes = std::mem::take(&mut self.unmetered_bytes);
        match self.worker.meter() {
            0 => bytes,
            units => units,
        }
    }

    /// Writes a sorted run to the extents of PUT if memory is short.
    fn keep_within_memory(
        &mut self,
        tokens: &mut Tokens<'_>,
        inside: &mut dyn Inside,
    ) -> Result<(), String> {
        let pages = (self.pages_max as u64 + 1) * self.page_bytes;
        let area = self.area.as_ref().map_or(0, Area::memory_bytes);
        let worker = self.ssdlet.description().worker_bytes;
        let others = pages + area + worker + self.carry.len() as u64;
        if others + self.table.memory_bytes() <= self.memory_bytes {
            return Ok(());
        }
        let memory = self.memory_bytes;
        if self.table.memory_bytes() == 0 || others > memory {
            return Err(format!(
                "a record takes more than the session's {memory} bytes of memory; OPEN with more"
            ));
        }
        let Some(area) = &mut self.area else {
            return Err(format!(
                "the result takes more than the session's {memory} bytes of memory; OPEN with \
                 more, SET less, or PUT the result on the device"
            ));
        };
        if self.runs.len() + 1 >= RUNS_MAX {
            return Err(format!(
                "{RUNS_MAX} runs of the session's {memory} bytes of memory are too few for this \
                 result; OPEN with more"
            ));
        }
        let run = self.table.take_run();
        self.runs.push(run.len() as u64);
        area.append(&run, tokens, inside)
    }

    /// Makes the result of what is in the table.
    fn finish(
        &mut self,
        tokens: &mut Tokens<'_>,
        inside: &mut dyn Inside,
    ) -> Result<Option<Vec<Work>>, String> {
        let run = self.table.take_run();
        let copied = run.len() as u64;
        if copied > 0 || self.runs.is_empty() {
            self.runs.push(copied);
        }
        match &mut self.area {
            Some(area) => {
                area.append(&run, tokens, inside)?;
                area.finish(tokens, inside)?;
            }
            None if copied > self.result_max => {
                return Err(format!(
                    "a result of {copied} bytes is longer than the {} that can be read; SET less, \
                     or PUT it on the device",
                    self.result_max
                ));
            }
            None => self.result = run,
        }
        self.phase = RunPhase::Writing;
        Ok(Some(vec![Work::CopiedBytes(copied)]))
    }
}
