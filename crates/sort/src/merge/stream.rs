//! Windows merged on all cores and handed out in order.
//!
//! ```text
//!   planner ──window n──► worker: reads of n+T under way while n is merged ──► slot n ──► reader
//!                         (one a core)                                       in order, bounded
//! ```
//!
//! Workers may run at most one window each and [`SLOTS_AHEAD`] more ahead of the reader: that is all of the
//! back-pressure, and with the size of a window it is all of the memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use storage::{ALIGNMENT, Buffer, Work};

use super::bound::Bound;
use super::plan::Planner;
use super::window::{Loading, Segments, Window, WindowPlan};
use crate::activity::{self, Activity, wait};
use crate::budget::Reservation;
use crate::portion::{Portion, Portions, Start, Ticket};
use crate::run::Compression;
use crate::run::format::Footer;
use crate::{Budget, Result};

/// Merged windows that wait for the reader, beyond one a worker.
const SLOTS_AHEAD: u64 = 1;

/// Windows of memory that a stream with `threads` workers holds at most: each worker one that is
/// being merged and one that is being read, all that are merged but not yet taken, the one that is
/// being taken, and two on their way to a file.
pub(crate) fn windows_held(threads: usize) -> u64 {
    let threads = threads as u64;
    3 * threads + SLOTS_AHEAD + 1 + 2
}

/// How large a stream's windows are, and how many threads merge them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamSize {
    pub(crate) window_bytes: u64,
    pub(crate) threads: usize,
}

impl StreamSize {
    /// Memory that a stream of this size holds at most, in bytes.
    pub(crate) fn memory_bytes(self, segments: &Segments) -> u64 {
        self.memory_bytes_of(segments.footers())
    }

    /// The same for runs with these footers.
    pub(crate) fn memory_bytes_of<'a>(self, mut runs: impl Iterator<Item = &'a Footer>) -> u64 {
        // Packed windows are in memory as they are stored, too.
        let packed = runs.any(|run| run.compression != Compression::Off);
        let unpacked = if packed { 2 * self.threads as u64 } else { 0 };
        self.window_bytes * (windows_held(self.threads) + unpacked)
    }
}

/// An ordered stream of merged bytes, produced ahead by worker threads.
pub struct Stream {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// The one worker, where the reader itself merges.
    own: Option<Box<Worker>>,
    _memory: Reservation,
}

/// What a worker has between two windows.
struct Worker {
    window_bytes: u64,
    /// The window whose reads are under way.
    loading: Option<(u64, Result<Loading>)>,
    memory: Vec<Buffer>,
}

impl Worker {
    fn new(window_bytes: u64) -> Self {
        let memory = (0..2).map(|_| Buffer::new(window_bytes as usize)).collect();
        Worker { window_bytes, loading: None, memory }
    }
}

struct Shared {
    segments: Segments,
    state: Mutex<State>,
    changed: Condvar,
    ahead: u64,
    align: Option<u64>,
}

struct State {
    planner: Planner,
    /// Number of the next window to plan, and of the next to hand out.
    next_plan: u64,
    next_out: u64,
    planned_all: bool,
    merged: BTreeMap<u64, Result<Portion>>,
    free: Vec<Buffer>,
    stop: bool,
    /// A worker panicked: its window never comes.
    broken: bool,
}

impl Stream {
    /// Merges from `lower` to `end` in windows of `window_bytes` of input. With `align`, each
    /// window lies in its buffer as it will in a file in which that many bytes come before the
    /// output, so that whole pages can be written from where they are.
    pub(crate) fn new(
        segments: Segments,
        lower: Option<Bound>,
        end: Option<Bound>,
        align: Option<u64>,
        size: StreamSize,
        budget: &Budget,
    ) -> Result<Self> {
        let StreamSize { window_bytes, threads } = size;
        let memory = budget.reserve(size.memory_bytes(&segments), "merging")?;
        let planner = Planner::new(segments.clone(), window_bytes, lower, end);
        let shared = Arc::new(Shared {
            segments,
            state: Mutex::new(State {
                planner,
                next_plan: 0,
                next_out: 0,
                planned_all: false,
                merged: BTreeMap::new(),
                free: Vec::new(),
                stop: false,
                broken: false,
            }),
            changed: Condvar::new(),
            ahead: threads as u64 + SLOTS_AHEAD,
            align,
        });
        let modelled =
            shared.segments.runs.first().is_some_and(|run| run.storage().clock().is_modelled());
        let own = (threads == 1 && modelled).then(|| Box::new(Worker::new(window_bytes)));
        let workers = (0..if own.is_some() { 0 } else { threads })
            .map(|_| {
                let shared = Arc::clone(&shared);
                let here = Activity::here();
                let work = move || {
                    let _worker = here.enroll("merge");
                    shared.work(window_bytes);
                };
                std::thread::Builder::new().name("merge".to_owned()).spawn(work)
            })
            .collect::<std::io::Result<_>>()?;
        Ok(Stream { shared, workers, own, _memory: memory })
    }
}

impl Portions for Stream {
    /// The next merged window, whole.
    fn next(&mut self) -> Result<Option<Portion>> {
        let mut state = self.shared.lock();
        loop {
            assert!(!state.broken, "a merging thread panicked");
            let number = state.next_out;
            if let Some(merged) = state.merged.remove(&number) {
                state.next_out += 1;
                self.shared.changed.notify_all();
                return merged.map(Some);
            }
            if state.planned_all && number >= state.next_plan {
                return Ok(None);
            }
            if let Some(worker) = &mut self.own {
                drop(state);
                self.shared.turn(worker);
                state = self.shared.lock();
                continue;
            }
            let _waiting = wait(activity::State::Input);
            state = self.shared.changed.wait(state).expect("workers do not panic");
        }
    }

    fn recycle(&mut self, buffer: Buffer, _ticket: Ticket) {
        self.shared.lock().free.push(buffer);
    }

    /// Windows are merged into fresh memory when there is no buffer.
    fn wants_buffers(&self) -> bool {
        false
    }

    fn is_at_end(&self) -> bool {
        let state = self.shared.lock();
        state.planned_all && state.next_out >= state.next_plan
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
        for worker in self.workers.drain(..) {
            // A panic of a worker was reported by itself, and went on in the reader.
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("workers do not panic")
    }

    /// Takes the next window's number and plan, waiting until it may be begun.
    fn plan(&self, state: &mut State) -> Option<(u64, Result<WindowPlan>)> {
        if state.planned_all || state.stop {
            return None;
        }
        let number = state.next_plan;
        let plan = match state.planner.next() {
            Ok(Some(plan)) => Ok(plan),
            Ok(None) => {
                state.planned_all = true;
                self.changed.notify_all();
                return None;
            }
            Err(e) => {
                state.planned_all = true;
                Err(e)
            }
        };
        state.next_plan += 1;
        Some((number, plan))
    }

    fn work(&self, window_bytes: u64) {
        let _alarm = Alarm(self);
        let mut worker = Worker::new(window_bytes);
        while self.turn(&mut worker) {}
    }

    /// Merges the window whose reads are under way, having asked for the next one's; false when that
    /// was the last for this worker.
    fn turn(&self, worker: &mut Worker) -> bool {
        // Ask for the next window's blocks before merging the one at hand.
        let next = self.plan(&mut self.lock());
        let next = next.map(|(number, plan)| {
            let loading = plan.map(|plan| {
                let memory = worker.memory.pop().expect("two a worker");
                Loading::start(&self.segments, plan, memory)
            });
            (number, loading)
        });
        let Some((number, ready)) = std::mem::replace(&mut worker.loading, next) else {
            return worker.loading.is_some();
        };
        let merged = ready
            .and_then(|loading| loading.finish(&self.segments))
            .and_then(|window| self.merge(number, window, worker));
        let failed = merged.is_err();
        if failed {
            worker.memory.push(Buffer::new(0));
        }
        let mut state = self.lock();
        if failed {
            state.planned_all = true;
        }
        state.merged.insert(number, merged);
        self.changed.notify_all();
        !(state.stop || failed)
    }

    /// Merges window `number` once the reader is near enough.
    fn merge(&self, number: u64, window: Window, worker: &mut Worker) -> Result<Portion> {
        let bytes = window.bytes() as usize;
        let mut state = self.lock();
        while number >= state.next_out + self.ahead && !state.stop {
            let _waiting = wait(activity::State::Output);
            state = self.changed.wait(state).expect("workers do not panic");
        }
        let free = state.free.pop();
        drop(state);
        let pad = self.align.map_or(0, |base| (base + window.output_offset) as usize % ALIGNMENT);
        let mut buffer = match free {
            Some(buffer) if buffer.len() >= pad + bytes => buffer,
            _ => {
                let most = bytes.max(worker.window_bytes as usize) + pad;
                Buffer::new(most.next_multiple_of(ALIGNMENT))
            }
        };
        let count = window.merge_into(&self.segments, &mut buffer[pad..pad + bytes])?;
        if let Some(run) = self.segments.runs.first() {
            let clock = run.storage().clock();
            clock.charge(Work::Compares(count.compares));
            clock.charge(Work::Records(count.records));
            clock.charge(Work::CopiedBytes(count.bytes));
        }
        let merged = Portion {
            buffer,
            pad,
            len: count.bytes as usize,
            output_offset: window.output_offset,
            ticket: Ticket::default(),
            start: Start::Merge { bound: window.lower.clone(), needed: window.needed.clone() },
        };
        worker.memory.push(window.into_memory());
        Ok(merged)
    }
}

/// Wakes the reader when a worker panics.
struct Alarm<'a>(&'a Shared);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let state = self.0.state.lock();
            state.unwrap_or_else(std::sync::PoisonError::into_inner).broken = true;
            self.0.changed.notify_all();
        }
    }
}
