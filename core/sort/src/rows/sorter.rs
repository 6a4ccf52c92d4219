//! Rows on their way in: buffers, and the runs that full ones become.
//!
//! ```text
//!   push ─► buffer ──full──► lane ─► run          by the producer itself, where there are several
//!   push ─► buffer ──full──► thread ─► lane ─► run       while the producer fills the next buffer, where there is one
//! ```

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use merganser_storage::Directory;
use merganser_storage::thread::spawn;
use parking_lot::{Condvar, Mutex};

use super::buffer::{RowBuffer, SortedRowBuffer, has_length};
use super::lane::RowLane;
use super::merge::{CombinedRows, RowTree};
use super::row_run::{RowRun, RowRunReader, RowRunWriter};
use super::shares::{self, RowShares, RunPlace};
use super::view_runs::{RecordOfRow, ViewRuns};
use super::{Combiner, RowSource, RowsBy, RowsError};
use crate::run::Compression;
use crate::view::Segment;
use crate::{Budget, Error, Progress};

/// Rows between two looks at whether a merge was cancelled.
const CHECK_ROWS: u32 = 4096;

/// What all producers of one sort share.
pub(super) struct RowSorting<C: Combiner> {
    pub(super) by: RowsBy,
    pub(super) budget: Budget,
    pub(super) combine: C,
    pub(super) temp: Vec<Arc<dyn Directory>>,
    /// Where runs stay, if they do.
    pub(super) view: Option<ViewRuns>,
    pub(super) threads: usize,
    pub(super) producers: usize,
    pub(super) shares: RowShares,
    pub(super) state: Mutex<RowState<C>>,
    changed: Condvar,
    /// Held while runs are merged before all have come.
    merging: Mutex<()>,
}

/// Everything that has come so far.
pub(super) struct RowState<C: Combiner> {
    /// In the order of their producers; those of one producer in the order in which it pushed their rows.
    pub(super) runs: Vec<RowRun>,
    /// The last buffers of producers that have finished, with the numbers of these.
    pub(super) rest: Vec<(usize, RowBuffer)>,
    /// Their lanes, between two runs.
    pub(super) lanes: Vec<RowLane<C>>,
    /// Buffers whose rows were written.
    free: Vec<RowBuffer>,
    /// Producers that were made and have not finished.
    pub(super) missing: usize,
    /// Producers that were made.
    made: usize,
    /// The first failure, until it is handed out.
    failure: Option<C::Error>,
    failed: bool,
    pub(super) report: RowsReport,
}

impl<C: Combiner> RowState<C> {
    /// Adds a run behind those of its producer.
    fn insert(&mut self, run: RowRun) {
        let at = self.runs.partition_point(|other| other.producer <= run.producer);
        self.runs.insert(at, run);
    }
}

/// What a sort of rows did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowsReport {
    /// Rows that were pushed.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Runs that were written because memory was full.
    pub runs: u64,
    /// Merges of runs into longer ones.
    pub merges: u64,
}

impl<C: Combiner> RowSorting<C> {
    pub(super) fn new(
        (by, combine): (RowsBy, C),
        budget: &Budget,
        temp: Vec<Arc<dyn Directory>>,
        view: Option<(Arc<dyn Directory>, RecordOfRow, Compression)>,
        (producers, threads): (usize, usize),
    ) -> Result<Self, Error> {
        let runs = match (&view, &temp[..]) {
            (Some(_), _) => RunPlace::View,
            (None, [_, ..]) => RunPlace::Temp,
            (None, []) => RunPlace::Nowhere,
        };
        let shares = RowShares::new(budget, producers, threads, runs)?;
        let memory_bytes = budget.free_bytes();
        let view = view.map(|view| ViewRuns::new(view, memory_bytes, producers.max(1)));
        Ok(RowSorting {
            by,
            budget: budget.clone(),
            combine,
            temp,
            view,
            threads: threads.max(1),
            producers: producers.max(1),
            shares,
            state: Mutex::new(RowState {
                runs: Vec::new(),
                rest: Vec::new(),
                lanes: Vec::new(),
                free: Vec::new(),
                missing: 0,
                made: 0,
                failure: None,
                failed: false,
                report: RowsReport::default(),
            }),
            changed: Condvar::new(),
            merging: Mutex::new(()),
        })
    }

    /// Ends the sort. The first failure is the one to report.
    pub(super) fn fail(&self, error: Option<C::Error>) {
        let mut state = self.state.lock();
        if !std::mem::replace(&mut state.failed, true) {
            state.failure = error;
        }
        self.changed.notify_all();
    }

    /// The failure, if there was one.
    ///
    /// # Errors
    /// It, or [`Error::Cancelled`] where it was handed out already.
    pub(super) fn check(&self) -> Result<(), C::Error> {
        let mut state = self.state.lock();
        if !state.failed {
            return Ok(());
        }
        Err(state.failure.take().unwrap_or_else(|| Error::Cancelled.into()))
    }

    pub(super) fn lane(&self, number: usize) -> Result<RowLane<C>, Error> {
        if self.temp.is_empty() {
            return Err(Error::NoTemp);
        }
        let writer = RowRunWriter::new(&self.temp, number, self.shares.block_bytes, &self.budget)?;
        Ok(RowLane::new(writer, self.combine.clone(), self.by, &self.budget))
    }

    fn add(&self, ended: Vec<RowRun>) {
        let mut state = self.state.lock();
        state.report.runs += ended.len() as u64;
        ended.into_iter().for_each(|run| state.insert(run));
    }

    /// Writes the rows of `buffer`, which comes back empty.
    fn write(
        &self,
        lane: &mut RowLane<C>,
        buffer: RowBuffer,
        threads: usize,
    ) -> Result<RowBuffer, C::Error> {
        let sorted = match self.write_to_view(lane.producer(), buffer.sort(threads))? {
            Ok(empty) => return Ok(empty),
            Err(sorted) => sorted,
        };
        let mut ended = Vec::new();
        let mut empty = lane.take(sorted, &mut ended)?;
        self.add(ended);
        if self.state.lock().runs.len() >= shares::RUNS_MAX {
            let share_bytes = empty.share_bytes();
            // Its memory is that of the merge; what else is free is the others'.
            drop(empty);
            self.merge_early(lane, share_bytes)?;
            empty = RowBuffer::new(self.by, share_bytes, &self.budget)?;
        }
        Ok(empty)
    }

    /// Writes the rows of `sorted` as a run of the view, if there is one with room for it; it comes back empty then. After
    /// the first temporary run of a producer all of its runs are temporary.
    fn write_to_view(
        &self,
        producer: usize,
        sorted: SortedRowBuffer,
    ) -> Result<Result<RowBuffer, SortedRowBuffer>, C::Error> {
        let bytes = sorted.bytes();
        let has_temporary = || self.state.lock().runs.iter().any(|run| run.producer == producer);
        let Some(view) = self.view.as_ref().filter(|view| view.has_room(bytes) && !has_temporary())
        else {
            return Ok(Err(sorted));
        };
        let rows = CombinedRows::new(sorted, self.combine.clone());
        let mut rows = rows.within(&self.budget)?;
        view.write(producer, &mut rows, bytes, &self.budget, |_| Ok(()))?;
        self.state.lock().report.runs += 1;
        Ok(Ok(rows.into_inner().into_empty()))
    }

    /// Writes everything that is left as runs of the view.
    pub(super) fn finish_view(
        &self,
        (mut runs, rest): (Vec<RowRun>, Vec<(usize, RowBuffer)>),
        mut lane: Option<RowLane<C>>,
        progress: &dyn Progress,
    ) -> Result<Vec<Segment>, C::Error> {
        for (producer, buffer) in rest {
            if let Err(sorted) = self.write_to_view(producer, buffer.sort(self.threads))? {
                self.write_last(vec![(producer, sorted)], &mut runs, &mut lane)?;
            }
        }
        let view = self.view.as_ref().expect("a sort into a view");
        if !runs.is_empty() {
            progress.phase("reducing", Some(runs.iter().map(|run| run.bytes).sum()));
        }
        let mut taken = 0_u32;
        while let Some(producer) = runs.first().map(|run| run.producer) {
            // One more run of the view for each producer, so that its rows stay together.
            let others = runs.split_off(runs.partition_point(|run| run.producer == producer));
            let of_view = shares::view_bytes(self.budget.free_bytes(), 1);
            let for_view = self.budget.reserve(of_view, "writing a view")?;
            let few =
                self.merge_to_few(std::mem::replace(&mut runs, others), &mut lane, progress)?;
            if runs.is_empty() {
                lane = None;
            }
            let bytes = few.iter().map(|run| run.bytes).sum();
            let open = |run| self.open(run);
            let mut rows = self.combined(few.into_iter().map(open).collect::<Result<_, _>>()?)?;
            drop(for_view);
            view.write(producer, &mut rows, bytes, &self.budget, |bytes| {
                progress.advance(bytes);
                taken = taken.wrapping_add(1);
                let cancelled = taken.is_multiple_of(CHECK_ROWS) && progress.cancelled();
                if cancelled { Err(Error::Cancelled.into()) } else { Ok(()) }
            })?;
        }
        drop(lane);
        Ok(view.take())
    }

    /// Merges some of the runs of one producer, so that there are not too many while others come.
    fn merge_early(&self, lane: &mut RowLane<C>, memory_bytes: u64) -> Result<(), C::Error> {
        let _turn = self.merging.lock();
        if let Some(run) = lane.end()? {
            self.add(vec![run]);
        }
        let all = self.state.lock().runs.clone();
        if all.len() < shares::RUNS_MAX {
            return Ok(());
        }
        let runs = all.chunk_by(|a, b| a.producer == b.producer).max_by_key(|runs| runs.len());
        let runs = runs.expect("there are many");
        let producer = runs[0].producer;
        let count = fan_in(runs, memory_bytes.min(self.budget.free_bytes())).min(runs.len());
        let first = least_window(runs, count);
        let cancelled = || self.state.lock().failed;
        let merged = self.merge(&runs[first..first + count], lane.writer(), &cancelled)?;
        drop(all);
        let mut state = self.state.lock();
        // Others have come meanwhile: those of this producer behind these.
        let first = first + state.runs.partition_point(|run| run.producer < producer);
        state.runs.splice(first..first + count, [merged.pushed_by(producer)]);
        state.report.merges += 1;
        Ok(())
    }

    pub(super) fn open(&self, run: RowRun) -> Result<RowSource, Error> {
        let reader = RowRunReader::new(run, &self.budget)?;
        Ok(RowSource::Run(reader))
    }

    /// The rows of all these, combined.
    pub(super) fn combined(
        &self,
        sources: Vec<RowSource>,
    ) -> Result<CombinedRows<RowTree<RowSource>, C>, Error> {
        let tree = RowTree::new(sources, self.by);
        CombinedRows::new(tree, self.combine.clone()).within(&self.budget)
    }

    /// Merges runs into one.
    fn merge(
        &self,
        runs: &[RowRun],
        writer: &mut RowRunWriter,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<RowRun, C::Error> {
        let open = |run: &RowRun| self.open(run.clone());
        let readers = runs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let mut rows = self.combined(readers)?;
        let mut taken = 0_u32;
        while rows.advance_parts(|key, value| Ok(writer.push(key, value)?))? {
            taken = taken.wrapping_add(1);
            if taken.is_multiple_of(CHECK_ROWS) && cancelled() {
                return Err(Error::Cancelled.into());
            }
        }
        Ok(writer.end_run()?)
    }

    /// Whether `runs` are merged in one go in the memory that is free, and so much is left.
    pub(super) fn has_room_for(&self, runs: &[RowRun], left_bytes: u64) -> bool {
        let bytes = runs.iter().map(RowRun::reader_bytes).sum::<u64>();
        let needed = bytes.saturating_add(left_bytes);
        runs.len() <= shares::FAN_IN_MAX as usize && needed <= self.budget.free_bytes()
    }

    /// Writes the last buffers as runs, too, each behind those of its producer.
    pub(super) fn write_last(
        &self,
        last: Vec<(usize, SortedRowBuffer)>,
        runs: &mut Vec<RowRun>,
        lane: &mut Option<RowLane<C>>,
    ) -> Result<(), C::Error> {
        if lane.is_none() {
            *lane = Some(self.lane(self.producers)?);
        }
        let lane = lane.as_mut().expect("made above");
        for (producer, sorted) in last {
            let mut ended = Vec::new();
            lane.take(sorted, &mut ended)?;
            ended.extend(lane.end()?);
            self.state.lock().report.runs += ended.len() as u64;
            let at = runs.partition_point(|run| run.producer <= producer);
            runs.splice(at..at, ended.into_iter().map(|run| run.pushed_by(producer)));
        }
        Ok(())
    }

    /// Merges runs until one merge takes all that are left.
    pub(super) fn merge_to_few(
        &self,
        mut runs: Vec<RowRun>,
        lane: &mut Option<RowLane<C>>,
        progress: &dyn Progress,
    ) -> Result<Vec<RowRun>, C::Error> {
        if self.has_room_for(&runs, 0) {
            return Ok(runs);
        }
        if lane.is_none() {
            *lane = Some(self.lane(self.producers)?);
        }
        let fan_in = fan_in(&runs, self.budget.free_bytes());
        while runs.len() > fan_in {
            // So many that every later merge is a full one.
            let count = 2 + (runs.len() - 2) % (fan_in - 1);
            let first = least_window(&runs, count);
            let cancelled = || progress.cancelled();
            let lane = lane.as_mut().expect("made above");
            let merged = self.merge(&runs[first..first + count], lane.writer(), &cancelled)?;
            runs.splice(first..first + count, [merged]);
            self.state.lock().report.merges += 1;
        }
        Ok(runs)
    }
}

/// How many of these runs are merged at once in so much memory.
fn fan_in(runs: &[RowRun], memory_bytes: u64) -> usize {
    let most = runs.iter().map(RowRun::reader_bytes).max().unwrap_or(1);
    shares::fan_in(memory_bytes, most)
}

/// Where the `count` neighbours begin that have the fewest bytes. Only neighbours are merged, so that equal rows stay
/// in the order in which they came.
fn least_window(runs: &[RowRun], count: usize) -> usize {
    let mut bytes: u64 = runs[..count].iter().map(|run| run.bytes).sum();
    let (mut least, mut first) = (bytes, 0);
    for from in 1..=runs.len() - count {
        bytes = bytes - runs[from - 1].bytes + runs[from + count - 1].bytes;
        if bytes < least {
            (least, first) = (bytes, from);
        }
    }
    first
}

/// Pushes rows into a sort; for one thread at a time. Each must be finished: a sort whose producer was dropped does not
/// have all rows, and fails.
pub struct RowProducer<C: Combiner> {
    sorting: Arc<RowSorting<C>>,
    number: usize,
    buffer: Option<RowBuffer>,
    way: Way<C>,
    rows: u64,
    bytes: u64,
    finished: bool,
}

/// What becomes of full buffers.
enum Way<C: Combiner> {
    /// There was none yet.
    Unused,
    /// This thread writes them.
    Lane(Box<RowLane<C>>),
    /// Another thread does.
    Thread(LaneThread<C>),
}

struct LaneThread<C: Combiner> {
    sender: SyncSender<RowBuffer>,
    thread: JoinHandle<RowLane<C>>,
}

impl<C: Combiner> RowProducer<C> {
    pub(super) fn new(sorting: &Arc<RowSorting<C>>) -> Result<Self, Error> {
        let buffer = RowBuffer::new(sorting.by, sorting.shares.buffer_bytes, &sorting.budget)?;
        let mut state = sorting.state.lock();
        if state.made >= sorting.producers {
            return Err(RowsError::TooManyProducers { announced: sorting.producers }.into());
        }
        let number = state.made;
        (state.missing, state.made) = (state.missing + 1, state.made + 1);
        drop(state);
        Ok(RowProducer {
            sorting: Arc::clone(sorting),
            number,
            buffer: Some(buffer),
            way: Way::Unused,
            rows: 0,
            bytes: 0,
            finished: false,
        })
    }

    /// Takes one more row.
    ///
    /// # Errors
    /// A full disk, a combiner's own, memory that is full while there is no folder for runs, a row that is too long for
    /// the memory. The sort has then failed, for all producers.
    #[inline]
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), C::Error> {
        if has_length(key, value)
            && let Some(buffer) = &mut self.buffer
            && let Ok(true) = buffer.push(key, value)
        {
            return Ok(());
        }
        let pushed = self.push_into_next(key, value);
        if pushed.is_err() {
            self.sorting.fail(None);
        }
        pushed
    }

    #[cold]
    fn push_into_next(&mut self, key: &[u8], value: &[u8]) -> Result<(), C::Error> {
        self.sorting.check()?;
        if !has_length(key, value) {
            return Err(Error::from(RowsError::TooLong).into());
        }
        let Some(buffer) = self.buffer.take() else { return Err(Error::Cancelled.into()) };
        let mut buffer = if buffer.is_empty() { buffer } else { self.hand_over(buffer)? };
        let mut pushed = buffer.push(key, value);
        if pushed.is_err() && matches!(self.way, Way::Thread(_)) {
            // A long row that is being written has the memory.
            self.wait_until_written()?;
            pushed = buffer.push(key, value);
        }
        let has_room = pushed?;
        debug_assert!(has_room, "an empty buffer has room for any row, or fails");
        self.buffer = Some(buffer);
        Ok(())
    }

    /// Has the rows of a full buffer written, and returns an empty one.
    fn hand_over(&mut self, full: RowBuffer) -> Result<RowBuffer, C::Error> {
        self.rows += full.count();
        self.bytes += full.bytes();
        let sorting = Arc::clone(&self.sorting);
        let RowShares { turn_bytes, .. } = sorting.shares;
        match &mut self.way {
            Way::Unused => {
                let mut lane = sorting.lane(self.number)?;
                let threads = (sorting.threads / sorting.producers).max(1);
                let empty = sorting.write(&mut lane, full, threads)?;
                if turn_bytes == 0 {
                    self.way = Way::Lane(Box::new(lane));
                    return Ok(empty);
                }
                drop(empty);
                let buffers = || RowBuffer::new(sorting.by, turn_bytes, &sorting.budget);
                sorting.state.lock().free.push(buffers()?);
                let (sender, receiver) = sync_channel(1);
                let of_thread = Arc::clone(&sorting);
                let thread = spawn("rows", move || write_all(&of_thread, lane, &receiver));
                let thread = thread.map_err(Error::from)?;
                self.way = Way::Thread(LaneThread { sender, thread });
                Ok(buffers()?)
            }
            Way::Lane(lane) => sorting.write(lane, full, 1),
            Way::Thread(writer) => {
                if writer.sender.send(full).is_err() {
                    sorting.check()?;
                    return Err(Error::Cancelled.into());
                }
                self.wait_until_written()?;
                let empty = sorting.state.lock().free.pop();
                Ok(empty.expect("one of two buffers is with the thread"))
            }
        }
    }

    /// Waits until the thread has a buffer free: that one or both are written.
    fn wait_until_written(&self) -> Result<(), C::Error> {
        let mut state = self.sorting.state.lock();
        while state.free.is_empty() && !state.failed {
            self.sorting.changed.wait(&mut state);
        }
        drop(state);
        self.sorting.check()
    }

    /// Says that all its rows were pushed.
    ///
    /// # Errors
    /// Those of rows that were pushed before.
    ///
    /// # Panics
    /// If the combiner did.
    pub fn finish(mut self) -> Result<(), C::Error> {
        let buffer = self.buffer.take();
        let lane = self.end_way();
        // A failure of the thread comes before those that it leads to.
        self.sorting.check()?;
        let lane = match lane {
            Some(mut lane) => {
                let run = lane.end()?;
                Some((lane, run))
            }
            None => None,
        };
        self.finished = true;
        let mut state = self.sorting.state.lock();
        state.missing -= 1;
        if let Some((lane, run)) = lane {
            state.report.runs += u64::from(run.is_some());
            run.into_iter().for_each(|run| state.insert(run));
            state.lanes.push(lane);
        }
        state.report.rows += self.rows;
        state.report.bytes += self.bytes;
        if let Some(buffer) = buffer.filter(|buffer| !buffer.is_empty()) {
            state.report.rows += buffer.count();
            state.report.bytes += buffer.bytes();
            state.rest.push((self.number, buffer));
        }
        state.free.clear();
        Ok(())
    }

    /// Waits until all full buffers are written, and returns the lane.
    fn end_way(&mut self) -> Option<RowLane<C>> {
        match std::mem::replace(&mut self.way, Way::Unused) {
            Way::Unused => None,
            Way::Lane(lane) => Some(*lane),
            Way::Thread(LaneThread { sender, thread }) => {
                drop(sender);
                match thread.join() {
                    Ok(lane) => Some(lane),
                    Err(panic) if std::thread::panicking() => {
                        drop(panic);
                        None
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        }
    }
}

impl<C: Combiner> Drop for RowProducer<C> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        self.sorting.fail(None);
        self.end_way();
    }
}

/// Ends the sort when the thread that has it panics.
struct RowAlarm<'a, C: Combiner>(&'a RowSorting<C>);

impl<C: Combiner> Drop for RowAlarm<'_, C> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(None);
        }
    }
}

/// Writes buffers until no more come.
fn write_all<C: Combiner>(
    sorting: &RowSorting<C>,
    mut lane: RowLane<C>,
    buffers: &Receiver<RowBuffer>,
) -> RowLane<C> {
    let _alarm = RowAlarm(sorting);
    while let Ok(full) = buffers.recv() {
        match sorting.write(&mut lane, full, sorting.threads) {
            Ok(empty) => {
                sorting.state.lock().free.push(empty);
                sorting.changed.notify_all();
            }
            Err(error) => {
                sorting.fail(Some(error));
                break;
            }
        }
    }
    lane
}
