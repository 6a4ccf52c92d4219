//! Items that workers make ahead of a reader, which takes them in order.
//!
//! ```text
//!             ┌──claim── item n+T: reads begun ─┐
//!   source ───┤                                 ├─ worker: loads n, makes n ──► made ──in order──► reader
//!    (in order, under one lock)                 │      (one a core)              bounded           │
//!             ◄────────────────── what the reader gives back: buffers, memory ──────────────────────┘
//! ```
//!
//! - **In order.** Items are claimed in order under one lock, so every item before a claimed one is
//!   claimed too, and the item that the reader waits for is never behind one that takes its memory.
//! - **Bounded.** A stage says when an item may be begun ([`Stage::claim`]) and how far ahead of the
//!   reader one may be made ([`Desk::near`]). There is no other queue.
//! - **Errors** leave in order: the reader gets all items before the failed one, then the error, and
//!   then the end. Nothing after the failed item is begun.
//! - **A panic** of a worker panics in the reader, at once.
//! - **One thread.** With [`Workers::are_own`] the reader makes each item itself when it wants it,
//!   and nothing else runs. A modelled clock needs this.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;

use merganser_storage::thread::spawn;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Workers;
use crate::activity::{Activity, WorkerState, wait};
use crate::{Error, Result};

/// The work of a pipeline.
pub(crate) trait Stage: Send + Sync + 'static {
    /// Where items come from, and what else workers and reader share under the lock.
    type Source: Send;
    /// One claim on the source.
    type Item;
    /// An item whose reads are under way.
    type Begun: Send;
    /// An item that is in memory.
    type Loaded;
    /// State that a worker keeps from item to item.
    type Kept: Send;
    /// The item that the reader gets.
    type Made: Send;

    /// Name of the workers.
    const ROLE: &'static str;
    /// Weight ([`Stage::weight`]) of the items that a worker has begun beyond the one that it
    /// makes: it begins more items while it has less.
    const AHEAD: u64;
    /// Whether those are begun before the reads of the current item are waited for, or after.
    const EAGER: bool;

    /// The state of a worker at its beginning.
    ///
    /// # Errors
    /// When the system has no memory for it.
    fn keep(&self) -> Result<Self::Kept>;

    /// Takes the next item. Holds the lock.
    fn claim(&self, source: &mut Self::Source) -> Result<Claim<Self::Item>>;

    /// Gives up memory that other workers may wait for.
    fn give_up(&self, _kept: &mut Self::Kept) {}

    /// Begins an item: starts its reads.
    ///
    /// # Errors
    /// When the system has no memory for the reads.
    fn begin(&self, kept: &mut Self::Kept, item: Self::Item) -> Result<Self::Begun>;

    /// How much an item that is begun counts.
    fn weight(&self, _begun: &Self::Begun) -> u64 {
        1
    }

    /// Waits for the reads of an item.
    fn load(&self, kept: &mut Self::Kept, begun: Self::Begun) -> Result<Self::Loaded>;

    /// Makes an item.
    fn make(
        &self,
        kept: &mut Self::Kept,
        loaded: Self::Loaded,
        desk: Desk<'_, Self>,
    ) -> Result<Self::Made>
    where
        Self: Sized;
}

/// The answer of a source.
pub(crate) enum Claim<T> {
    /// The next item.
    Item(T),
    /// There is an item, but it may not be begun yet.
    Later,
    /// There are no more.
    End,
}

/// An ordered pipeline, as its reader sees it.
pub(crate) struct Pipeline<S: Stage> {
    line: Arc<PipelineShared<S>>,
    workers: Vec<JoinHandle<()>>,
    /// The only worker, where the reader itself is the worker.
    own: Option<Box<WorkerBench<S>>>,
}

/// The state that workers and reader share.
struct PipelineShared<S: Stage> {
    stage: S,
    ledger: Mutex<Ledger<S>>,
    changed: Condvar,
}

struct Ledger<S: Stage> {
    source: S::Source,
    /// Number of the next item to claim, and of the next to hand out.
    next_in: u64,
    next_out: u64,
    /// Nothing more is claimed.
    ended: bool,
    /// The first item that failed; items after it are not made any more.
    failed: Option<u64>,
    made: BTreeMap<u64, Result<S::Made>>,
    /// The reader has left, or has got an error.
    stop: bool,
    panicked: bool,
}

/// The state of a worker.
struct WorkerBench<S: Stage> {
    kept: S::Kept,
    /// In order.
    begun: VecDeque<(u64, S::Begun)>,
    weight: u64,
}

impl<S: Stage> Pipeline<S> {
    /// Starts the workers.
    ///
    /// # Errors
    /// When the system gives no thread, or no memory for one.
    pub(crate) fn new(stage: S, source: S::Source, workers: Workers) -> Result<Self> {
        let ledger = Ledger {
            source,
            next_in: 0,
            next_out: 0,
            ended: false,
            failed: None,
            made: BTreeMap::new(),
            stop: false,
            panicked: false,
        };
        let line = PipelineShared { stage, ledger: Mutex::new(ledger), changed: Condvar::new() };
        let own = workers.are_own().then(|| line.bench().map(Box::new)).transpose()?;
        // Dropped on the way out when a thread or its memory is refused: those that run are stopped.
        let mut pipeline = Pipeline { line: Arc::new(line), workers: Vec::new(), own };
        let threads = if workers.are_own() { 0 } else { workers.count() };
        for _ in 0..threads {
            let (line, here) = (Arc::clone(&pipeline.line), Activity::here());
            let mut bench = line.bench()?;
            let work = move || {
                let _worker = here.enroll(S::ROLE);
                let _alarm = PipelineAlarm(&*line);
                while line.work(&mut bench, true) {}
            };
            pipeline.workers.push(spawn(S::ROLE, work)?);
        }
        Ok(pipeline)
    }

    /// The next item in order; `None` at the end.
    ///
    /// # Errors
    /// That of the item. The pipeline ends there.
    pub(crate) fn next(&mut self) -> Result<Option<S::Made>> {
        let mut ledger = self.line.lock();
        loop {
            assert!(!ledger.panicked, "a thread that made a part of the output panicked");
            // After an error there is nothing, whatever was made behind it.
            if ledger.stop {
                return Ok(None);
            }
            let number = ledger.next_out;
            if let Some(made) = ledger.made.remove(&number) {
                ledger.next_out += 1;
                ledger.stop |= made.is_err();
                self.line.changed.notify_all();
                return made.map(Some);
            }
            if ledger.is_at_end() {
                return Ok(None);
            }
            if let Some(bench) = &mut self.own {
                drop(ledger);
                let worked = self.line.work(bench, false);
                ledger = self.line.lock();
                // No other thread could make the item that it waits for.
                assert!(worked || ledger.made.contains_key(&number) || ledger.is_at_end());
                continue;
            }
            let _waiting = wait(WorkerState::Input);
            self.line.changed.wait(&mut ledger);
        }
    }

    /// Whether [`Pipeline::next`] would not wait.
    pub(crate) fn is_ready(&self) -> bool {
        let ledger = self.line.lock();
        ledger.made.contains_key(&ledger.next_out) || ledger.is_at_end() || ledger.panicked
    }

    /// Whether it is known that no item comes any more.
    pub(crate) fn is_at_end(&self) -> bool {
        self.line.lock().is_at_end()
    }

    /// Gives something back to the source, which workers may wait for.
    pub(crate) fn give_back(&self, give: impl FnOnce(&mut S::Source)) {
        give(&mut self.line.lock().source);
        self.line.changed.notify_all();
    }
}

impl<S: Stage> Drop for Pipeline<S> {
    fn drop(&mut self) {
        self.line.lock().stop = true;
        self.line.changed.notify_all();
        for worker in self.workers.drain(..) {
            // A worker that panicked has reported it, and the panic continued in the reader.
            let _ = worker.join();
        }
    }
}

impl<S: Stage> Ledger<S> {
    fn is_at_end(&self) -> bool {
        self.stop || self.ended && self.next_out >= self.next_in
    }

    /// Whether item `number` is still wanted.
    fn wants(&self, number: u64) -> bool {
        !self.stop && !self.panicked && self.failed.is_none_or(|failed| number < failed)
    }
}

impl<S: Stage> PipelineShared<S> {
    fn lock(&self) -> MutexGuard<'_, Ledger<S>> {
        self.ledger.lock()
    }

    fn bench(&self) -> Result<WorkerBench<S>> {
        Ok(WorkerBench { kept: self.stage.keep()?, begun: VecDeque::new(), weight: 0 })
    }

    /// Begins the next item; waits until it may be begun when `patient`. False without one.
    fn begin(&self, bench: &mut WorkerBench<S>, patient: bool) -> bool {
        let mut ledger = self.lock();
        let (number, item) = loop {
            if ledger.ended || !ledger.wants(ledger.next_in) {
                return false;
            }
            let claim = self.stage.claim(&mut ledger.source);
            let number = ledger.next_in;
            match claim {
                Ok(Claim::Item(item)) => {
                    ledger.next_in += 1;
                    break (number, item);
                }
                Ok(Claim::Later) if patient => {
                    self.stage.give_up(&mut bench.kept);
                    let _waiting = wait(WorkerState::Memory);
                    self.changed.wait(&mut ledger);
                }
                Ok(Claim::Later) => return false,
                end => {
                    ledger.ended = true;
                    if let Err(error) = end {
                        ledger.next_in += 1;
                        ledger.fail(number, error);
                    }
                    self.changed.notify_all();
                    return false;
                }
            }
        };
        drop(ledger);
        let begun = match self.stage.begin(&mut bench.kept, item) {
            Ok(begun) => begun,
            Err(error) => {
                self.lock().fail(number, error);
                self.changed.notify_all();
                return false;
            }
        };
        bench.weight += self.stage.weight(&begun);
        bench.begun.push_back((number, begun));
        true
    }

    fn begin_ahead(&self, bench: &mut WorkerBench<S>) {
        while bench.weight < S::AHEAD && self.begin(bench, false) {}
    }

    /// Makes one item; false when this worker gets no more.
    fn work(&self, bench: &mut WorkerBench<S>, patient: bool) -> bool {
        if bench.begun.is_empty() && !self.begin(bench, patient) {
            return false;
        }
        let (number, begun) = bench.begun.pop_front().expect("just begun");
        bench.weight -= self.stage.weight(&begun);
        if !self.lock().wants(number) {
            return false;
        }
        if S::EAGER {
            self.begin_ahead(bench);
        }
        let loaded = self.stage.load(&mut bench.kept, begun);
        if !S::EAGER {
            self.begin_ahead(bench);
        }
        let desk = Desk { line: self, number };
        let made = loaded.and_then(|loaded| self.stage.make(&mut bench.kept, loaded, desk));
        let mut ledger = self.lock();
        match made {
            Ok(made) => drop(ledger.made.insert(number, Ok(made))),
            Err(error) => ledger.fail(number, error),
        }
        drop(ledger);
        self.changed.notify_all();
        true
    }
}

impl<S: Stage> Ledger<S> {
    /// Item `number` failed. One that gave up because an earlier one failed is not heard of.
    fn fail(&mut self, number: u64, error: Error) {
        self.ended = true;
        if self.wants(number) {
            self.failed = Some(number);
            self.made.insert(number, Err(error));
        }
    }
}

/// The operations of a worker under the lock while it makes an item.
pub(crate) struct Desk<'a, S: Stage> {
    line: &'a PipelineShared<S>,
    number: u64,
}

impl<S: Stage> Desk<'_, S> {
    /// Waits until fewer than `ahead` items are between this one and the reader, then looks at the source.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when the item is not wanted any more.
    pub(crate) fn near<R>(&self, ahead: u64, look: impl FnOnce(&mut S::Source) -> R) -> Result<R> {
        let mut ledger = self.line.lock();
        loop {
            if !ledger.wants(self.number) {
                return Err(Error::Cancelled);
            }
            if self.number < ledger.next_out + ahead {
                return Ok(look(&mut ledger.source));
            }
            let _waiting = wait(WorkerState::Output);
            self.line.changed.wait(&mut ledger);
        }
    }

    /// Looks at the source.
    pub(crate) fn source<R>(&self, look: impl FnOnce(&mut S::Source) -> R) -> R {
        look(&mut self.line.lock().source)
    }
}

/// Wakes the reader when a worker panics.
struct PipelineAlarm<'a, S: Stage>(&'a PipelineShared<S>);

impl<S: Stage> Drop for PipelineAlarm<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().panicked = true;
            self.0.changed.notify_all();
        }
    }
}
