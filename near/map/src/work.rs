//! The workers of a map.
//!
//! ```text
//!                 ┌─ chunk ─► SSDlet ─► table ──── all have ended: spill it, or sort it
//!   sources ──────┤
//!                 └─ chunk ─► SSDlet ─► buffer ─── its turn: to the sink
//! ```
//!
//! The first failure in the order of the input ends the map: no chunk after it is begun, and the chunks
//! before it are finished, because one of those may fail as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use merganser_sort::budget::Reservation;
use merganser_sort::pipeline::{Turn, Turns};
use merganser_sort::{Error, Progress};
use parking_lot::{Condvar, Mutex};

use super::chunk_buffer::WorkerBuffer;
use super::source::{ChunkClaim, Failed, MapSources};
use super::spill::{Spills, WorkerSpills};
use super::{MapOptions, PartitionSize, RowSink};
use crate::ssdlet::{
    Chunk, Combine, Emitter, Keyed, Ordered, Overflow, SpillSink, Ssdlet, SsdletError, Type, Worker,
};
use crate::table::{SortedRows, Table};

/// What all workers of a map share.
pub(super) struct MapJob<'a> {
    pub(super) ssdlet: &'a dyn Ssdlet,
    pub(super) sources: &'a MapSources,
    pub(super) options: &'a MapOptions,
    pub(super) progress: &'a dyn Progress,
    failure: Mutex<Option<(u64, SsdletError)>>,
    failed: AtomicBool,
    bytes: AtomicU64,
    metered: AtomicU64,
}

/// The number of a failure that belongs to no chunk.
pub(super) const NO_CHUNK: u64 = u64::MAX;

impl<'a> MapJob<'a> {
    pub(super) fn new(
        ssdlet: &'a dyn Ssdlet,
        sources: &'a MapSources,
        options: &'a MapOptions,
        progress: &'a dyn Progress,
    ) -> Self {
        MapJob {
            ssdlet,
            sources,
            options,
            progress,
            failure: Mutex::default(),
            failed: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
            metered: AtomicU64::new(0),
        }
    }

    /// Ends the map, with the error of the first chunk that fails. [`Error::Cancelled`] gives way to any
    /// other, since workers give up when something else fails.
    pub(super) fn fail(&self, number: u64, error: SsdletError) {
        let cancelled =
            |error: &SsdletError| matches!(error, SsdletError::Engine(Error::Cancelled));
        let mut failure = self.failure.lock();
        let wins = failure
            .as_ref()
            .is_none_or(|(other, known)| (cancelled(&error), number) < (cancelled(known), *other));
        if wins {
            *failure = Some((number, error));
        }
        drop(failure);
        self.failed.store(true, Ordering::Relaxed);
        self.sources.stop();
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Bytes that were mapped, and units of the SSDlet's meter; the failure, if there was one.
    pub(super) fn finish(self) -> Result<(u64, u64), SsdletError> {
        match self.failure.into_inner() {
            Some((_, error)) => Err(error),
            None => Ok((self.bytes.into_inner(), self.metered.into_inner())),
        }
    }

    fn check_cancelled(&self) -> Result<(), SsdletError> {
        if self.progress.cancelled() { Err(Error::Cancelled.into()) } else { Ok(()) }
    }

    /// Tells a worker the header row before its first records.
    fn tell_header(&self, worker: &mut dyn Worker, due: &mut bool) -> Result<(), SsdletError> {
        if !std::mem::take(due) {
            return Ok(());
        }
        self.sources.header().map_or(Ok(()), |row| worker.header(&row))
    }

    /// Puts the header row of the output in front of that of the first chunk.
    fn begin_output(&self, claim: &ChunkClaim, out: &mut Vec<u8>) -> Result<(), SsdletError> {
        if claim.number == 0
            && let Some(row) = self.sources.header()
        {
            out.extend(self.ssdlet.header(&row)?);
        }
        Ok(())
    }

    fn count(&self, worker: &mut dyn Worker, claim: Option<&ChunkClaim>) {
        self.metered.fetch_add(worker.meter(), Ordering::Relaxed);
        if let Some(claim) = claim {
            self.bytes.fetch_add(claim.bytes, Ordering::Relaxed);
            self.progress.advance(claim.bytes);
        }
    }
}

/// Where the workers of a keyed output meet at the end: only then it is known whether one has spilled.
pub(super) struct Meeting {
    missing: Mutex<usize>,
    changed: Condvar,
}

impl Meeting {
    pub(super) fn of_workers(workers: usize) -> Self {
        Meeting { missing: Mutex::new(workers), changed: Condvar::new() }
    }

    /// So many of them could not be started.
    pub(super) fn come_without(&self, workers: usize) {
        *self.missing.lock() -= workers;
        self.changed.notify_all();
    }
}

/// One worker on its way there. It arrives whatever happens to it.
struct Arriving<'a>(&'a Meeting);

impl Drop for Arriving<'_> {
    fn drop(&mut self) {
        *self.0.missing.lock() -= 1;
        self.0.changed.notify_all();
    }
}

/// Ends the map when a worker panics.
struct WorkerAlarm<'j, 'a> {
    job: &'j MapJob<'a>,
    stop: &'j dyn Fn(),
}

impl Drop for WorkerAlarm<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.job.fail(NO_CHUNK, Error::Cancelled.into());
            (self.stop)();
        }
    }
}

/// Settings of keyed output.
#[derive(Clone, Copy)]
pub(super) struct KeyedSettings<'a> {
    pub(super) combine: Combine,
    pub(super) value: Type,
    pub(super) table_bytes: u64,
    /// Whether there is a place to spill to.
    pub(super) spills: bool,
    pub(super) meeting: &'a Meeting,
    pub(super) state: &'a Arc<Spills>,
}

/// Refuses spills, because no folder was given for them.
struct NoSpill {
    limit_bytes: u64,
}

impl SpillSink for NoSpill {
    fn spill(&mut self, _: &Table) -> Result<(), SsdletError> {
        let (owner, limit_bytes) = ("a result that is not spilled", self.limit_bytes);
        let least_bytes = limit_bytes.saturating_add(1 << 20);
        Err(Error::Memory { owner, least_bytes, limit_bytes }.into())
    }

    fn finish(self: Box<Self>) -> Result<(), SsdletError> {
        Ok(())
    }
}

/// The memory of a worker of a keyed output.
pub(super) struct BegunKeyed {
    keyed: Keyed,
    buffer: WorkerBuffer,
}

impl MapJob<'_> {
    /// A worker of a keyed output before it begins.
    ///
    /// # Errors
    /// Too little memory; a combine that its type of values does not have.
    pub(super) fn begin_keyed(
        &self,
        settings: KeyedSettings<'_>,
    ) -> Result<BegunKeyed, SsdletError> {
        let budget = &self.options.budget;
        let spill: Box<dyn SpillSink> = if settings.spills {
            Box::new(WorkerSpills::new(settings.state))
        } else {
            Box::new(NoSpill { limit_bytes: budget.limit_bytes() })
        };
        let of = (settings.combine, settings.value);
        let keyed = Keyed::new(of, budget, settings.table_bytes, spill)?;
        Ok(BegunKeyed { keyed, buffer: self.sources.buffer()? })
    }

    /// One worker of a keyed output. Its rows are in the answer, unless they were spilled.
    pub(super) fn keyed(
        &self,
        settings: KeyedSettings<'_>,
        begun: BegunKeyed,
    ) -> Option<SortedRows> {
        let arriving = Arriving(settings.meeting);
        let _alarm = WorkerAlarm { job: self, stop: &|| () };
        let mapped = self.map_keyed(settings, begun);
        let mapped = mapped.map_err(|ChunkFailure { number, error }| self.fail(number, error));
        drop(arriving);
        let mut missing = settings.meeting.missing.lock();
        while *missing > 0 {
            settings.meeting.changed.wait(&mut missing);
        }
        drop(missing);
        if self.has_failed() {
            return None;
        }
        let keyed = mapped.ok()?;
        if settings.state.any() {
            if let Err(error) = keyed.finish_spills() {
                self.fail(NO_CHUNK, error);
            }
            return None;
        }
        Some(keyed.into_table().into_sorted())
    }

    fn map_keyed(
        &self,
        settings: KeyedSettings<'_>,
        begun: BegunKeyed,
    ) -> Result<Keyed, ChunkFailure> {
        let nowhere = |error: SsdletError| ChunkFailure { number: NO_CHUNK, error };
        let BegunKeyed { mut keyed, mut buffer } = begun;
        let mut worker = self.ssdlet.worker().map_err(nowhere)?;
        let (mut partition, mut header_due) = (0, true);
        loop {
            self.check_cancelled().map_err(nowhere)?;
            let claim = self.sources.next(&mut buffer).map_err(|failed| ChunkFailure {
                number: failed.number,
                error: failed.error.into(),
            })?;
            let Some(claim) = claim else { break };
            let here = |error| ChunkFailure { number: claim.number, error };
            if let PartitionSize::Bytes(bytes) = self.options.partition {
                let now = claim.before / bytes.max(1);
                if std::mem::replace(&mut partition, now) < now && settings.spills {
                    keyed.spill().map_err(here)?;
                }
            }
            if !claim.records.is_empty() {
                self.tell_header(&mut *worker, &mut header_due).map_err(here)?;
                keyed.begin(claim.input, claim.offset);
                let bytes = &buffer.bytes()[claim.records.clone()];
                let chunk = Chunk { input: claim.input, offset: claim.offset, bytes };
                let done = worker.chunk(chunk, &mut Emitter::keyed(&mut keyed));
                let done = done.map_err(|error| error.of_input(self.sources.name(claim.input)));
                keyed.check().and(done).map_err(here)?;
            }
            self.count(&mut *worker, Some(&claim));
        }
        // After everything that has a place in an input.
        keyed.begin(u32::MAX, u64::MAX);
        let closed = worker.close(&mut Emitter::keyed(&mut keyed));
        keyed.check().and(closed).map_err(nowhere)?;
        self.count(&mut *worker, None);
        Ok(keyed)
    }
}

/// A failure, and at which chunk.
struct ChunkFailure {
    number: u64,
    error: SsdletError,
}

/// The sink of ordered output.
pub(super) struct OrderedOut<'a> {
    pub(super) rows: &'a mut dyn RowSink,
    pub(super) bytes: u64,
}

/// The memory of a worker of an ordered output.
pub(super) struct BegunOrdered {
    /// Output that waits for its turn.
    waiting: Ordered,
    buffer: WorkerBuffer,
    _memory: Reservation,
}

impl MapJob<'_> {
    /// A worker of an ordered output before it begins; its chunks wait for their turn in `waiting_bytes`.
    ///
    /// # Errors
    /// Too little memory.
    pub(super) fn begin_ordered(&self, waiting_bytes: usize) -> Result<BegunOrdered, Error> {
        let memory = self.options.budget.reserve(waiting_bytes as u64, "waiting output")?;
        let waiting = Ordered { buffer: Vec::with_capacity(waiting_bytes), misused: false };
        Ok(BegunOrdered { waiting, buffer: self.sources.buffer()?, _memory: memory })
    }

    /// One worker of an ordered output.
    pub(super) fn ordered(&self, turns: &Turns<OrderedOut<'_>>, begun: BegunOrdered) {
        let stop = || turns.stop();
        let _alarm = WorkerAlarm { job: self, stop: &stop };
        if let Err(error) = self.map_ordered(turns, begun) {
            self.fail(NO_CHUNK, error);
            turns.stop();
        }
    }

    fn map_ordered(
        &self,
        turns: &Turns<OrderedOut<'_>>,
        begun: BegunOrdered,
    ) -> Result<(), SsdletError> {
        let BegunOrdered { waiting: mut ordered, mut buffer, _memory } = begun;
        let mut worker = self.ssdlet.worker()?;
        let mut header_due = true;
        loop {
            self.check_cancelled()?;
            let claim = match self.sources.next(&mut buffer) {
                Ok(Some(claim)) => claim,
                Ok(None) => break,
                Err(Failed { number, error }) => {
                    self.fail_in_turn(turns.wait(number), number, error.into());
                    return Ok(());
                }
            };
            let mut desk = OutputDesk { turns, number: claim.number, state: DeskState::Waiting };
            let mut done = self.begin_output(&claim, &mut ordered.buffer);
            if done.is_ok() && !claim.records.is_empty() {
                done = self.tell_header(&mut *worker, &mut header_due);
            }
            if done.is_ok() && !claim.records.is_empty() {
                let bytes = &buffer.bytes()[claim.records.clone()];
                let chunk = Chunk { input: claim.input, offset: claim.offset, bytes };
                done = worker.chunk(chunk, &mut Emitter::ordered(&mut ordered, &mut desk));
                done = done.map_err(|error| error.of_input(self.sources.name(claim.input)));
                done = misuse(&ordered).and(done);
            }
            self.count(&mut *worker, Some(&claim));
            // What came before a failure leaves, too.
            desk.overflow(&mut ordered.buffer, &[]);
            match (desk.state, done) {
                (DeskState::Turn(turn), Err(error)) => {
                    self.fail_in_turn(Some(turn), claim.number, error);
                    return Ok(());
                }
                (DeskState::Failed(turn, error), _) => {
                    self.fail_in_turn(Some(turn), claim.number, error);
                    return Ok(());
                }
                (DeskState::Enough(turn), _) => {
                    self.sources.stop();
                    turn.stop();
                    return Ok(());
                }
                // Something before it has failed.
                (DeskState::Waiting | DeskState::Stopped, _) => return Ok(()),
                (DeskState::Turn(_), Ok(())) => {}
            }
        }
        let mut nothing = Ordered { buffer: Vec::new(), misused: false };
        let mut refuse = Refuse(false);
        worker.close(&mut Emitter::ordered(&mut nothing, &mut refuse))?;
        misuse(&nothing)?;
        if refuse.0 {
            let detail =
                "it handed out records in order after the last chunk, where they have no place";
            return Err(SsdletError::Failed(detail.to_owned()));
        }
        self.count(&mut *worker, None);
        Ok(())
    }

    /// Fails when all before `number` has left; not if that has failed.
    fn fail_in_turn(
        &self,
        turn: Option<Turn<'_, OrderedOut<'_>>>,
        number: u64,
        error: SsdletError,
    ) {
        if let Some(turn) = turn {
            self.fail(number, error);
            turn.stop();
        }
    }
}

fn misuse(ordered: &Ordered) -> Result<(), SsdletError> {
    if ordered.misused {
        let detail = "it handed out keys and values, but its output is records in order";
        return Err(SsdletError::Failed(detail.to_owned()));
    }
    Ok(())
}

/// The output of one chunk on its way to the sink.
struct OutputDesk<'t, 's> {
    turns: &'t Turns<OrderedOut<'s>>,
    number: u64,
    state: DeskState<'t, 's>,
}

enum DeskState<'t, 's> {
    /// Its turn was not asked for.
    Waiting,
    /// It is its turn.
    Turn(Turn<'t, OrderedOut<'s>>),
    /// The sink wants no more.
    Enough(Turn<'t, OrderedOut<'s>>),
    /// The sink has failed.
    Failed(Turn<'t, OrderedOut<'s>>, SsdletError),
    /// There are no more turns.
    Stopped,
}

impl Overflow for OutputDesk<'_, '_> {
    fn overflow(&mut self, buffer: &mut Vec<u8>, records: &[u8]) {
        if let DeskState::Waiting = self.state {
            let turn = self.turns.wait(self.number);
            self.state = turn.map_or(DeskState::Stopped, DeskState::Turn);
        }
        for bytes in [&buffer[..], records] {
            if bytes.is_empty() {
                continue;
            }
            let state = std::mem::replace(&mut self.state, DeskState::Stopped);
            self.state = match state {
                DeskState::Turn(mut turn) => {
                    turn.bytes += bytes.len() as u64;
                    match turn.rows.records(bytes) {
                        Ok(true) => DeskState::Turn(turn),
                        Ok(false) => DeskState::Enough(turn),
                        Err(error) => DeskState::Failed(turn, error),
                    }
                }
                other => other,
            };
        }
        buffer.clear();
    }
}

/// Takes nothing.
struct Refuse(bool);

impl Overflow for Refuse {
    fn overflow(&mut self, _: &mut Vec<u8>, _: &[u8]) {
        self.0 = true;
    }
}
