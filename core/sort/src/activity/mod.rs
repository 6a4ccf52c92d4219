//! What every worker did at which time: the record behind a report's time lines.
//!
//! ```text
//!   enroll("sort") ──► a row: busy ─ wait(Reading) ─ busy ─ wait(Memory) ─ busy ─ …  one state at a time
//!   Activity::storage ──► bytes and requests in flight, over time
//! ```
//!
//! A thread enrolls under a role and is *busy* until it calls [`wait`], which says what it waits
//! for. The row is found through the thread, not through arguments. A stage calls `wait` whether or
//! not a record is kept, and without one the call costs one look at a thread-local variable. Rows
//! are in `bins`, whose memory does not grow with time. Time is that of a [`Clock`], so work on a
//! modelled device has its record in modelled time.
//!
//! A role's threads may come and go: a thread that enrolls takes the first free row of its role.

mod bins;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use merganser_storage::metered::{Meter, Metered, MeteredDirectory, Transfer};
use merganser_storage::{Clock, Directory, Storage};
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;

use crate::Progress;
use bins::Bins;

/// The activity of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    /// Computes or copies.
    Busy,
    /// Waits for reads that are in flight.
    Reading,
    /// Waits for writes that are in flight, or for a stream that takes bytes.
    Writing,
    /// Waits for the worker before it.
    Input,
    /// Waits for the worker after it.
    Output,
    /// Waits for memory that others hold.
    Memory,
    /// Waits until everything before it has been written.
    Turn,
}

impl WorkerState {
    /// All of them, in the order in which they are drawn.
    pub const ALL: [WorkerState; 7] = [
        WorkerState::Busy,
        WorkerState::Reading,
        WorkerState::Writing,
        WorkerState::Input,
        WorkerState::Output,
        WorkerState::Memory,
        WorkerState::Turn,
    ];
}

/// A record of activity, shared by clones; or an empty one, which costs nothing and records
/// nothing.
#[derive(Clone, Default)]
pub struct Activity(Option<Arc<ActivityRecorder>>);

struct ActivityRecorder {
    clock: Arc<dyn Clock>,
    start_ns: u64,
    rows: Mutex<Vec<Arc<ActivityRow>>>,
    transfers: Mutex<[Transfers; 2]>,
    phases: Mutex<Vec<PhaseStart>>,
}

/// The activity of one worker.
struct ActivityRow {
    role: &'static str,
    timeline: Mutex<ActivityTimeline>,
}

struct ActivityTimeline {
    bins: Bins<{ WorkerState::ALL.len() }>,
    since_ns: u64,
    /// `None` when no thread is in this row.
    state: Option<WorkerState>,
}

impl ActivityTimeline {
    fn turn(&mut self, now_ns: u64, state: Option<WorkerState>) {
        if let Some(was) = self.state {
            self.bins.spread(was as usize, self.since_ns, now_ns, 1);
        }
        // Clocks are read before locks are taken: another thread's now may be a little later.
        self.since_ns = self.since_ns.max(now_ns);
        self.state = state;
    }
}

impl ActivityRow {
    fn timeline(&self) -> MutexGuard<'_, ActivityTimeline> {
        self.timeline.lock()
    }
}

/// Reads or writes.
struct Transfers {
    bins: Bins<2>,
    since_ns: u64,
    in_flight: u64,
    in_flight_max: u64,
    count: u64,
}

/// Columns of [`Transfers`]: bytes that arrived, and nanoseconds that requests were in flight.
const BYTES: usize = 0;
const FLIGHT: usize = 1;

impl Transfers {
    fn new() -> Self {
        Transfers { bins: Bins::new(), since_ns: 0, in_flight: 0, in_flight_max: 0, count: 0 }
    }

    fn pass(&mut self, now_ns: u64) {
        self.bins.spread(FLIGHT, self.since_ns, now_ns, self.in_flight);
        self.since_ns = self.since_ns.max(now_ns);
    }
}

/// A part of the work, named as progress names it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseStart {
    /// For example `merging`.
    pub name: &'static str,
    /// When it began, in nanoseconds.
    pub start_ns: u64,
}

/// Phases remembered; more than these are of no use to a reader.
const PHASES: usize = 64;

impl ActivityRecorder {
    fn now_ns(&self) -> u64 {
        self.clock.now_ns().saturating_sub(self.start_ns)
    }

    fn transfers(&self) -> MutexGuard<'_, [Transfers; 2]> {
        self.transfers.lock()
    }
}

impl Meter for ActivityRecorder {
    fn began(&self, transfer: Transfer) {
        let now_ns = self.now_ns();
        let transfers = &mut self.transfers()[transfer as usize];
        transfers.pass(now_ns);
        transfers.in_flight += 1;
        transfers.in_flight_max = transfers.in_flight_max.max(transfers.in_flight);
    }

    fn ended(&self, transfer: Transfer, bytes: u64) {
        let now_ns = self.now_ns();
        let transfers = &mut self.transfers()[transfer as usize];
        transfers.pass(now_ns);
        transfers.in_flight -= 1;
        transfers.count += 1;
        transfers.bins.add(BYTES, now_ns, bytes);
    }
}

/// The row that a thread is in.
struct Here {
    recorder: Arc<ActivityRecorder>,
    row: Arc<ActivityRow>,
    state: WorkerState,
}

thread_local! {
    static HERE: RefCell<Option<Here>> = const { RefCell::new(None) };
}

impl Activity {
    /// A record that begins now, in the time of `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Activity(Some(Arc::new(ActivityRecorder {
            start_ns: clock.now_ns(),
            clock,
            rows: Mutex::new(Vec::new()),
            transfers: Mutex::new([Transfers::new(), Transfers::new()]),
            phases: Mutex::new(Vec::new()),
        })))
    }

    /// No record.
    #[must_use]
    pub fn off() -> Self {
        Activity(None)
    }

    /// The record that the calling thread is enrolled in: what to hand to a thread that it starts.
    #[must_use]
    pub fn here() -> Self {
        HERE.with_borrow(|here| Activity(here.as_ref().map(|here| Arc::clone(&here.recorder))))
    }

    /// The calling thread works as `role` until the guard is dropped. Then it has the role that it
    /// had before, in whatever record that was.
    pub fn enroll(&self, role: &'static str) -> Enrolled {
        let entered = self.0.as_ref().map(|recorder| {
            let now_ns = recorder.now_ns();
            let mut rows = recorder.rows.lock();
            let free =
                rows.iter().find(|row| row.role == role && row.timeline().state.is_none()).cloned();
            let row = free.unwrap_or_else(|| {
                let timeline =
                    ActivityTimeline { bins: Bins::new(), since_ns: now_ns, state: None };
                let row = Arc::new(ActivityRow { role, timeline: Mutex::new(timeline) });
                rows.push(Arc::clone(&row));
                row
            });
            row.timeline().turn(now_ns, Some(WorkerState::Busy));
            Here { recorder: Arc::clone(recorder), row, state: WorkerState::Busy }
        });
        match entered {
            Some(here) => Enrolled::replace(Some(here)),
            None => Enrolled { before: None, entered: false, thread: PhantomData },
        }
    }

    /// `storage`, with its transfers recorded.
    #[must_use]
    pub fn storage(&self, storage: Arc<dyn Storage>) -> Arc<dyn Storage> {
        match &self.0 {
            Some(recorder) => Metered::new(storage, Arc::clone(recorder) as Arc<dyn Meter>),
            None => storage,
        }
    }

    /// `directory`, with a record of the transfers of storages that are opened or made in it.
    #[must_use]
    pub fn directory(&self, directory: Arc<dyn Directory>) -> Arc<dyn Directory> {
        match &self.0 {
            Some(recorder) => {
                MeteredDirectory::new(directory, Arc::clone(recorder) as Arc<dyn Meter>)
            }
            None => directory,
        }
    }

    /// `progress`, with its phases recorded.
    #[must_use]
    pub fn phases<'a>(&'a self, progress: &'a dyn Progress) -> impl Progress + 'a {
        Phases { activity: self, inner: progress }
    }

    /// The record so far; `None` when nothing is recorded.
    #[must_use]
    pub fn report(&self) -> Option<ActivityReport> {
        let recorder = self.0.as_ref()?;
        let now_ns = recorder.now_ns();
        let mut end_ns = now_ns;
        let rows = recorder.rows.lock();
        let mut timelines = Vec::new();
        for row in &*rows {
            let mut timeline = row.timeline();
            let state = timeline.state;
            timeline.turn(now_ns, state);
            end_ns = end_ns.max(timeline.since_ns);
            timelines.push((row.role, timeline.bins.clone()));
        }
        let mut transfers = recorder.transfers();
        for transfers in &mut *transfers {
            transfers.pass(now_ns);
            end_ns = end_ns.max(transfers.since_ns);
        }
        let mut shift = bins::FIRST_SHIFT;
        while end_ns.saturating_sub(1) >> shift >= bins::BINS as u64 {
            shift += 1;
        }
        let bins = transfers.iter().map(|t| t.bins.shift());
        shift = timelines.iter().map(|(_, bins)| bins.shift()).chain(bins).fold(shift, u32::max);
        let len = ((end_ns.max(1) - 1) >> shift) as usize + 1;
        let workers = timelines.iter_mut().enumerate().map(|(at, (role, bins))| {
            bins.widen(shift);
            let number = 1 + rows[..at].iter().filter(|row| row.role == *role).count();
            let alone = rows.iter().filter(|row| row.role == *role).count() == 1;
            WorkerReport {
                name: if alone { (*role).to_owned() } else { format!("{role} {number}") },
                state_ns: WorkerState::ALL
                    .into_iter()
                    .map(|state| (state, bins.column(state as usize, len)))
                    .filter(|(_, ns)| ns.iter().any(|ns| *ns > 0))
                    .collect(),
            }
        });
        let workers = workers.collect();
        let [reads, writes] = [Transfer::Read, Transfer::Write].map(|transfer| {
            let transfers = &mut transfers[transfer as usize];
            let mut bins = transfers.bins.clone();
            bins.widen(shift);
            TransferReport {
                count: transfers.count,
                in_flight_max: transfers.in_flight_max,
                bytes: bins.column(BYTES, len),
                in_flight_ns: bins.column(FLIGHT, len),
            }
        });
        let phases = recorder.phases.lock().clone();
        Some(ActivityReport { end_ns, bin_ns: 1 << shift, phases, workers, reads, writes })
    }
}

/// The calling thread works as `role` in the record that it is enrolled in, if it is in one, until
/// the guard is dropped.
pub fn enter(role: &'static str) -> Enrolled {
    Activity::here().enroll(role)
}

/// Whom helpers join that a worker starts for its own work.
#[derive(Clone, Default)]
pub struct Team(Option<(Activity, &'static str)>);

impl Team {
    /// That of the calling thread: its record and its role.
    #[must_use]
    pub fn here() -> Self {
        Team(HERE.with_borrow(|here| {
            let here = here.as_ref()?;
            Some((Activity(Some(Arc::clone(&here.recorder))), here.row.role))
        }))
    }

    /// The calling thread works with the team until the guard is dropped.
    pub fn join(&self) -> Enrolled {
        match &self.0 {
            Some((activity, role)) => activity.enroll(role),
            None => Activity::off().enroll(""),
        }
    }
}

/// The calling thread leaves its row to the first of its helpers, for all of whom it will wait,
/// until the guard is dropped.
pub fn leave() -> Enrolled {
    if HERE.with_borrow(Option::is_some) {
        Enrolled::replace(None)
    } else {
        Enrolled { before: None, entered: false, thread: PhantomData }
    }
}

/// The calling thread is in `state` until the guard is dropped, and then in the state before.
pub fn wait(state: WorkerState) -> ThreadWait {
    let before = HERE.with_borrow_mut(|here| {
        let here = here.as_mut()?;
        here.row.timeline().turn(here.recorder.now_ns(), Some(state));
        Some(std::mem::replace(&mut here.state, state))
    });
    ThreadWait { before, thread: PhantomData }
}

/// A thread's time under a role; see [`Activity::enroll`].
#[must_use = "the thread is enrolled only as long as this lives"]
pub struct Enrolled {
    before: Option<Here>,
    entered: bool,
    thread: PhantomData<*const ()>,
}

impl Enrolled {
    fn replace(next: Option<Here>) -> Self {
        let before = HERE.replace(next);
        if let Some(Here { recorder, row, .. }) = &before {
            row.timeline().turn(recorder.now_ns(), None);
        }
        Enrolled { before, entered: true, thread: PhantomData }
    }
}

impl Drop for Enrolled {
    fn drop(&mut self) {
        if self.entered {
            let ended = HERE.replace(self.before.take());
            if let Some(Here { recorder, row, .. }) = ended {
                row.timeline().turn(recorder.now_ns(), None);
            }
            HERE.with_borrow(|here| {
                if let Some(Here { recorder, row, state }) = here {
                    row.timeline().turn(recorder.now_ns(), Some(*state));
                }
            });
        }
    }
}

/// A thread's wait; see [`wait`].
#[must_use = "the thread waits only as long as this lives"]
pub struct ThreadWait {
    before: Option<WorkerState>,
    thread: PhantomData<*const ()>,
}

impl Drop for ThreadWait {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            HERE.with_borrow_mut(|here| {
                if let Some(here) = here {
                    here.row.timeline().turn(here.recorder.now_ns(), Some(before));
                    here.state = before;
                }
            });
        }
    }
}

struct Phases<'a> {
    activity: &'a Activity,
    inner: &'a dyn Progress,
}

impl Progress for Phases<'_> {
    fn phase(&self, name: &'static str, total_bytes: Option<u64>) {
        if let Some(recorder) = &self.activity.0 {
            let start_ns = recorder.now_ns();
            let mut phases = recorder.phases.lock();
            if phases.len() < PHASES {
                phases.push(PhaseStart { name, start_ns });
            }
        }
        self.inner.phase(name, total_bytes);
    }

    fn advance(&self, bytes: u64) {
        self.inner.advance(bytes);
    }

    fn cancelled(&self) -> bool {
        self.inner.cancelled()
    }
}

/// A record, in bins of equal width.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ActivityReport {
    /// How long the record is, in nanoseconds.
    pub end_ns: u64,
    /// Width of a bin, in nanoseconds. Every vector below has one entry a bin.
    pub bin_ns: u64,
    /// Parts of the work, in order.
    pub phases: Vec<PhaseStart>,
    /// In the order in which they first worked.
    pub workers: Vec<WorkerReport>,
    /// Reads of all recorded storages.
    pub reads: TransferReport,
    /// Writes of all recorded storages.
    pub writes: TransferReport,
}

/// The activity of one worker.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerReport {
    /// Its role, and a number where the role has several.
    pub name: String,
    /// Nanoseconds of each bin spent in each state; states that never occurred are left out. In the
    /// rest of a bin's width, no thread worked here.
    pub state_ns: BTreeMap<WorkerState, Vec<u64>>,
}

impl WorkerReport {
    /// Nanoseconds spent in `state` in all.
    #[must_use]
    pub fn total_ns(&self, state: WorkerState) -> u64 {
        self.state_ns.get(&state).map_or(0, |bins| bins.iter().sum())
    }
}

/// All reads, or all writes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TransferReport {
    /// How many ended.
    pub count: u64,
    /// The most that were in flight at once.
    pub in_flight_max: u64,
    /// Bytes that had arrived, by bin.
    pub bytes: Vec<u64>,
    /// Nanoseconds that requests were in flight, each counted by itself: divided by the width of a
    /// bin, the mean queue depth.
    pub in_flight_ns: Vec<u64>,
}

#[cfg(test)]
mod tests;
