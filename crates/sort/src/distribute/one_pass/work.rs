//! What there is to do beside the reads: memory to be backed before them, spans to be parted after.
//!
//! ```text
//!   reader ── before a read: its memory is backed ──► Feed ──► Work ──► workers: a step to back,
//!          ── a span has arrived ──────────────────►                     or a span to part
//! ```

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard};

use storage::{Backing, Buffer};

use crate::activity::{State, wait};
use crate::run::input::Follower;

/// Memory that is backed at a time: a huge page.
const STEP_BYTES: usize = 2 << 20;
/// So much memory is backed ahead of the reads before anything else is done.
const BACKED_AHEAD_BYTES: usize = 64 << 20;

/// Records as they arrived: whole ones from `from` of `bytes` on, which lie at `at` in the chunk.
pub(super) struct Span {
    pub(super) at: usize,
    pub(super) bytes: Buffer,
    pub(super) from: usize,
}

pub(super) enum Task {
    Part(Span),
    /// Back the memory of this step.
    Back(usize),
}

/// What there is to do beside the reads.
pub(super) struct Work {
    backing: Backing,
    /// What of the chunk is read into.
    reads: Range<usize>,
    steps: usize,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    spans: VecDeque<Span>,
    done: Vec<Span>,
    /// The first step that nobody backs or has backed.
    next_step: usize,
    being_backed: Vec<usize>,
    /// The step up to which reads have been asked for.
    wanted: usize,
    closed: bool,
    broken: bool,
}

impl Work {
    pub(super) fn new(backing: Backing, reads: Range<usize>) -> Self {
        let steps = reads.end.div_ceil(STEP_BYTES);
        let queue = Queue { next_step: reads.start / STEP_BYTES, ..Queue::default() };
        Work { backing, reads, steps, queue: Mutex::new(queue), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn wait<'q>(&self, queue: MutexGuard<'q, Queue>, state: State) -> MutexGuard<'q, Queue> {
        let _waiting = wait(state);
        self.changed.wait(queue).unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// What to do next; `None` when all is done.
    pub(super) fn next(&self) -> Option<Task> {
        let mut queue = self.lock();
        loop {
            let due = queue.wanted + BACKED_AHEAD_BYTES / STEP_BYTES;
            let left = queue.next_step < self.steps && !queue.closed;
            if left && (queue.next_step < due || queue.spans.is_empty()) {
                let step = queue.next_step;
                queue.next_step += 1;
                queue.being_backed.push(step);
                return Some(Task::Back(step));
            }
            if let Some(span) = queue.spans.pop_front() {
                return Some(Task::Part(span));
            }
            if queue.closed {
                return None;
            }
            queue = self.wait(queue, State::Input);
        }
    }

    /// Backs the memory of a step that was taken.
    pub(super) fn back(&self, step: usize) {
        let from = (step * STEP_BYTES).max(self.reads.start);
        self.backing.back(from..((step + 1) * STEP_BYTES).min(self.reads.end));
        self.lock().being_backed.retain(|other| *other != step);
        self.changed.notify_all();
    }

    pub(super) fn give_back(&self, span: Span) {
        self.lock().done.push(span);
    }

    /// Nothing more is read.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// All that was handed out, in order.
    pub(super) fn done(&self) -> impl Iterator<Item = Buffer> {
        let mut spans = std::mem::take(&mut self.lock().done);
        spans.sort_unstable_by_key(|span| span.at);
        spans.into_iter().map(|span| span.bytes)
    }
}

/// Wakes the reader when a worker panics.
pub(super) struct Alarm<'a>(pub(super) &'a Work);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().broken = true;
            self.0.changed.notify_all();
        }
    }
}

/// The reader's side of [`Work`].
pub(super) struct Feed<'a> {
    pub(super) work: &'a Work,
}

impl Follower for Feed<'_> {
    fn before_read(&mut self, end: usize) {
        let end = end.div_ceil(STEP_BYTES).min(self.work.steps);
        let mut queue = self.work.lock();
        queue.wanted = end;
        while queue.next_step < end {
            let step = queue.next_step;
            queue.next_step += 1;
            drop(queue);
            self.work.back(step);
            queue = self.work.lock();
        }
        while queue.being_backed.iter().any(|step| *step < end) && !queue.broken {
            queue = self.work.wait(queue, State::Memory);
        }
        drop(queue);
        self.work.changed.notify_one();
    }

    fn arrived(&mut self, at: usize, bytes: Buffer, from: usize) {
        self.work.lock().spans.push_back(Span { at, bytes, from });
        self.work.changed.notify_one();
    }
}
