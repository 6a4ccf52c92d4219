//! Workers that act on one thing in the order of their numbers.
//!
//! ```text
//!   worker A: 0 ──act── 3 ····wait····── act ─►
//!   worker B: 1 ·wait· act ── 2 ─ act ────────►     each number has its turn once, 0 first
//! ```
//!
//! A worker first does the part of its work that needs no order, and then waits for its turn. A
//! waiting worker holds only what it has made. That is all of the back-pressure.

use std::ops::{Deref, DerefMut};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::activity::{WorkerState, wait};

/// A thing that workers act on in turn.
pub struct Turns<T> {
    queue: Mutex<TurnQueue<T>>,
    changed: Condvar,
}

struct TurnQueue<T> {
    thing: T,
    next: u64,
    stopped: bool,
}

impl<T> Turns<T> {
    /// Number 0 has the first turn.
    pub fn new(thing: T) -> Self {
        let queue = TurnQueue { thing, next: 0, stopped: false };
        Turns { queue: Mutex::new(queue), changed: Condvar::new() }
    }

    /// A worker that panicked in its turn has stopped the others.
    fn lock(&self) -> MutexGuard<'_, TurnQueue<T>> {
        self.queue.lock()
    }

    /// Waits for turn number `number`, which is taken once; `None` when turns are stopped.
    pub fn wait(&self, number: u64) -> Option<Turn<'_, T>> {
        let mut queue = {
            // A worker whose turn it is holds the lock.
            let _waiting = wait(WorkerState::Turn);
            self.lock()
        };
        loop {
            if queue.stopped {
                return None;
            }
            if queue.next == number {
                return Some(Turn { turns: self, queue });
            }
            let _waiting = wait(WorkerState::Turn);
            self.changed.wait(&mut queue);
        }
    }

    /// There are no more turns. Not from within one.
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Looks at the thing out of turn.
    pub(crate) fn with<R>(&self, look: impl FnOnce(&mut T) -> R) -> R {
        look(&mut self.lock().thing)
    }

    /// The thing; all workers have ended.
    pub fn into_inner(self) -> T {
        self.queue.into_inner().thing
    }
}

/// The right to act. The next number's turn begins when this one is dropped; a panic stops all turns.
pub struct Turn<'a, T> {
    turns: &'a Turns<T>,
    queue: MutexGuard<'a, TurnQueue<T>>,
}

impl<T> Turn<'_, T> {
    /// Ends this turn and all others.
    pub fn stop(mut self) {
        self.queue.stopped = true;
    }
}

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.queue.thing
    }
}

impl<T> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.queue.thing
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.queue.next += 1;
        self.queue.stopped |= std::thread::panicking();
        self.turns.changed.notify_all();
    }
}
