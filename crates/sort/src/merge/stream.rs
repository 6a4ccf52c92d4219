//! Windows merged on all cores and handed out in order.
//!
//! ```text
//!   planner ──window n──► worker: reads of n+T under way while n is merged ──► slot n ──► reader
//!                         (one a core)                                       in order, bounded
//! ```
//!
//! A worker may run at most [`SLOTS_AHEAD`] windows ahead of the reader: that is all of the
//! back-pressure, and with the size of a window it is all of the memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use storage::{Buffer, Work};

use super::bound::Bound;
use super::plan::Planner;
use super::window::{Loading, Segments, WindowPlan};
use crate::budget::Reservation;
use crate::{Budget, Error, Result};

/// Merged windows that wait for the reader, beyond one a worker.
const SLOTS_AHEAD: u64 = 1;

/// Windows of memory that a stream with `threads` workers holds at most: each worker one that is
/// being merged and one that is being read, and all that are merged but not yet taken.
pub(crate) fn windows_held(threads: usize) -> u64 {
    let threads = threads as u64;
    2 * threads + 2 * (threads + SLOTS_AHEAD)
}

/// A merged window.
pub(crate) struct Merged {
    /// Its bytes: the first `len` of the buffer.
    pub(crate) buffer: Buffer,
    pub(crate) len: usize,
    /// Where in the output it begins.
    pub(crate) output_offset: u64,
    /// For each run, the position of its first record.
    pub(crate) positions: Vec<u64>,
}

/// An ordered stream of merged bytes, produced ahead by worker threads.
pub struct Stream {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    current: Option<(Merged, usize)>,
    _memory: Reservation,
}

struct Shared {
    segments: Segments,
    state: Mutex<State>,
    changed: Condvar,
    ahead: u64,
}

struct State {
    planner: Planner,
    /// Number of the next window to plan, and of the next to hand out.
    next_plan: u64,
    next_out: u64,
    planned_all: bool,
    merged: BTreeMap<u64, Result<Merged>>,
    free: Vec<Buffer>,
    stop: bool,
}

impl Stream {
    /// Merges from `lower` to `end` in windows of `window_bytes` of input.
    pub(crate) fn new(
        segments: Segments,
        lower: Option<Bound>,
        end: Option<Bound>,
        window_bytes: u64,
        threads: usize,
        budget: &Budget,
    ) -> Result<Self> {
        let memory = budget.reserve(window_bytes * windows_held(threads), "merging")?;
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
            }),
            changed: Condvar::new(),
            ahead: threads as u64 + SLOTS_AHEAD,
        });
        let workers = (0..threads)
            .map(|_| {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || shared.work(window_bytes))
            })
            .collect();
        Ok(Stream { shared, workers, current: None, _memory: memory })
    }

    /// The next merged window, whole; give its buffer back with [`Stream::recycle`].
    pub(crate) fn next_window(&mut self) -> Result<Option<Merged>> {
        let mut state = self.shared.lock();
        loop {
            let number = state.next_out;
            if let Some(merged) = state.merged.remove(&number) {
                state.next_out += 1;
                self.shared.changed.notify_all();
                return merged.map(Some);
            }
            if state.planned_all && number >= state.next_plan {
                return Ok(None);
            }
            state = self.shared.changed.wait(state).expect("workers do not panic");
        }
    }

    /// Takes a buffer back.
    pub(crate) fn recycle(&mut self, buffer: Buffer) {
        self.shared.lock().free.push(buffer);
    }

    /// The next merged bytes, at least one; `None` at the end. The bytes are good until the next
    /// call.
    ///
    /// # Errors
    /// Damage found, or the storage's own; the stream ends there.
    pub fn next_bytes(&mut self) -> Result<Option<&[u8]>> {
        loop {
            if let Some((merged, from)) = self.current.take() {
                if from < merged.len {
                    let len = merged.len;
                    let (merged, _) = self.current.insert((merged, len));
                    return Ok(Some(&merged.buffer[from..len]));
                }
                self.recycle(merged.buffer);
            }
            match self.next_window()? {
                Some(merged) => self.current = Some((merged, 0)),
                None => return Ok(None),
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
        for worker in self.workers.drain(..) {
            // A panic of a worker was reported by itself; the reader saw the stream end.
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
        let mut loading: Option<(u64, Result<Loading>)> = None;
        let mut memory = vec![Buffer::new(window_bytes as usize), Buffer::new(window_bytes as usize)];
        loop {
            // Ask for the next window's blocks before merging the one at hand.
            let next = self.plan(&mut self.lock());
            let next = next.map(|(number, plan)| {
                let loading = plan.map(|plan| {
                    Loading::start(&self.segments, plan, memory.pop().expect("two a worker"))
                });
                (number, loading)
            });
            let Some((number, ready)) = std::mem::replace(&mut loading, next) else {
                if loading.is_none() {
                    return;
                }
                continue;
            };
            let merged = ready.and_then(|l| l.finish(&self.segments)).map(|window| {
                let bytes = window.bytes() as usize;
                let mut state = self.lock();
                while number >= state.next_out + self.ahead && !state.stop {
                    state = self.changed.wait(state).expect("workers do not panic");
                }
                let free = state.free.pop();
                drop(state);
                let mut buffer = match free {
                    Some(buffer) if buffer.len() >= bytes => buffer,
                    _ => Buffer::new(bytes.max(window_bytes as usize)),
                };
                let count = window.merge_into(&self.segments, &mut buffer[..bytes]);
                if let Some(run) = self.segments.runs.first() {
                    let clock = run.storage().clock();
                    clock.charge(Work::Compares(count.compares));
                    clock.charge(Work::CopiedBytes(count.bytes));
                }
                let merged = Merged {
                    buffer,
                    len: count.bytes as usize,
                    output_offset: window.output_offset,
                    positions: window.positions(),
                };
                memory.push(window.into_memory());
                merged
            });
            let failed = merged.is_err();
            if failed {
                memory.push(Buffer::new(0));
            }
            let mut state = self.lock();
            if failed {
                state.planned_all = true;
            }
            state.merged.insert(number, merged);
            self.changed.notify_all();
            if state.stop || failed {
                return;
            }
        }
    }
}

impl From<&Error> for std::io::Error {
    /// For the layers below, which know only I/O errors: the text stays.
    fn from(error: &Error) -> Self {
        let kind = match error {
            Error::Io(e) => e.kind(),
            Error::Corrupt { .. } => std::io::ErrorKind::InvalidData,
            Error::Memory { .. } => std::io::ErrorKind::OutOfMemory,
            _ => std::io::ErrorKind::Other,
        };
        std::io::Error::new(kind, error.to_string())
    }
}
