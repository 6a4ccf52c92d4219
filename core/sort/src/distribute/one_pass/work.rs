//! The tasks of workers during the reads: backing memory, copying bytes to their place in it, and
//! splitting spans of records.
//!
//! ```text
//!   reader ◄── lend ── a few buffers, which stay in a cache ◄────────────────────────────┐
//!     │    └── so much memory is wanted soon ─► Work ──► workers: back it                │
//!     ├── keep: a buffer was read into ───────► Work ──► workers: copy it to its place ──┘
//!     └── arrived: a span is in its place ────► Work ──► workers: part it
//! ```
//!
//! Most of the time of reading into much memory is not spent by the disk. A system, and its host if
//! it is virtual, hands out and zeroes pages when they are first touched, and a device is slower
//! into memory that is in no cache. So the device gets the same few buffers again and again, and
//! the cores, which would otherwise wait for it, do the rest.
//!
//! This is not one of the [ordered pipelines](crate::pipeline): nothing leaves in order. There are
//! three kinds of tasks, and the reads decide which is needed next. A worker keeps the tags of its
//! spans in chains of its own. The memory belongs to the reader before and after.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use merganser_storage::{Backing, Buffer};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::activity::{WorkerState, wait};
use crate::run::chunk::{Follower, Keeping, READ_BYTES};

/// Memory that is backed at a time: a huge page, which two threads that touch it first would both zero.
const STEP_BYTES: usize = 2 << 20;
/// This much memory is backed ahead of the reads before anything else is done.
const BACKED_AHEAD_BYTES: usize = 8 << 20;

/// Records in their place: whole records begin at `from` in `bytes`, which begin at `at` in the
/// chunk.
pub(super) struct RecordSpan {
    pub(super) at: usize,
    pub(super) bytes: Buffer,
    pub(super) from: usize,
}

pub(super) enum SpanTask {
    /// Back the memory of this step.
    Back(usize),
    /// Copy bytes that were read to their place.
    Copy(Buffer, Keeping),
    Part(RecordSpan),
}

/// The tasks during the reads.
pub(super) struct SpanWork {
    backing: Backing,
    /// The part of the chunk that is read into.
    reads: Range<usize>,
    steps: usize,
    lends: usize,
    queue: Mutex<SpanQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct SpanQueue {
    free: Vec<Buffer>,
    copies: VecDeque<(Buffer, Keeping)>,
    spans: VecDeque<RecordSpan>,
    done: Vec<RecordSpan>,
    /// The first step that no worker backs or has backed.
    next_step: usize,
    being_backed: Vec<usize>,
    /// Reads have been asked for up to this step.
    wanted: usize,
    closed: bool,
    broken: bool,
}

impl SpanWork {
    /// For a chunk with the memory `backing`, whose part `reads` is read into, and with `lends`
    /// buffers to lend.
    ///
    /// # Errors
    /// When the system has no memory for them.
    pub(super) fn new(backing: Backing, reads: Range<usize>, lends: usize) -> io::Result<Self> {
        let mut rest = Buffer::try_new(lends * READ_BYTES)?;
        let mut cut = || {
            let after = rest.split_off(READ_BYTES);
            std::mem::replace(&mut rest, after)
        };
        let free = (0..lends).map(|_| cut()).collect();
        let steps = reads.end.div_ceil(STEP_BYTES);
        let queue = SpanQueue { free, next_step: reads.start / STEP_BYTES, ..SpanQueue::default() };
        let (queue, changed) = (Mutex::new(queue), Condvar::new());
        Ok(SpanWork { backing, reads, steps, lends, queue, changed })
    }

    fn lock(&self) -> MutexGuard<'_, SpanQueue> {
        self.queue.lock()
    }

    /// The next task; `None` when all are done.
    pub(super) fn next(&self) -> Option<SpanTask> {
        let mut queue = self.lock();
        loop {
            let due = queue.wanted + BACKED_AHEAD_BYTES / STEP_BYTES;
            let left = queue.next_step < self.steps && !queue.closed;
            let idle = queue.spans.is_empty() && queue.copies.is_empty();
            if left && (queue.next_step < due || idle) {
                let step = queue.next_step;
                queue.next_step += 1;
                queue.being_backed.push(step);
                return Some(SpanTask::Back(step));
            }
            let SpanQueue { copies, being_backed, .. } = &mut *queue;
            let backed = |end: usize| being_backed.iter().all(|step| step * STEP_BYTES >= end);
            if let Some((lent, keeping)) = copies.pop_front_if(|(_, keeping)| backed(keeping.end)) {
                return Some(SpanTask::Copy(lent, keeping));
            }
            if let Some(span) = queue.spans.pop_front() {
                return Some(SpanTask::Part(span));
            }
            if queue.closed {
                return None;
            }
            let _waiting = wait(WorkerState::Input);
            self.changed.wait(&mut queue);
        }
    }

    /// Does what a [`SpanTask::Back`] says.
    pub(super) fn back(&self, step: usize) {
        let from = (step * STEP_BYTES).max(self.reads.start);
        self.backing.back(from..((step + 1) * STEP_BYTES).min(self.reads.end));
        self.lock().being_backed.retain(|other| *other != step);
        self.changed.notify_all();
    }

    /// Does what a [`SpanTask::Copy`] says.
    pub(super) fn copy(&self, lent: Buffer, mut keeping: Keeping) {
        keeping.copy(&lent);
        self.lock().free.push(lent);
        // The buffer is free now, so the reader may be notified.
        drop(keeping);
    }

    pub(super) fn give_back(&self, span: RecordSpan) {
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

/// When a worker panics, this stops the reader, which would otherwise wait for ever.
pub(super) struct SpanAlarm<'a>(pub(super) &'a SpanWork);

impl Drop for SpanAlarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut queue = self.0.lock();
            queue.broken = true;
            queue.copies.clear();
        }
    }
}

/// The reader's side of [`SpanWork`].
pub(super) struct SpanFeed<'a> {
    pub(super) work: &'a SpanWork,
}

impl Follower for SpanFeed<'_> {
    fn lends(&self) -> usize {
        self.work.lends
    }

    fn lend(&mut self, end: usize) -> Buffer {
        let mut queue = self.work.lock();
        queue.wanted = end.div_ceil(STEP_BYTES);
        queue.free.pop().expect("no more are asked for than there are")
    }

    fn keep(&mut self, lent: Buffer, keeping: Keeping) {
        let mut queue = self.work.lock();
        if !queue.broken {
            queue.copies.push_back((lent, keeping));
            self.work.changed.notify_one();
        }
    }

    fn arrived(&mut self, at: usize, bytes: Buffer, from: usize) {
        self.work.lock().spans.push_back(RecordSpan { at, bytes, from });
        self.work.changed.notify_one();
    }
}
