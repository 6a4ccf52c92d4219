//! Changes of writable storages, done by workers that all clients share.
//!
//! The protocol orders nothing that is under way at the same time: a flush covers what was answered
//! before it came. So changes go to any worker in any order. Several workers make a storage's own
//! gathering possible: writes that wait together can become one.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use merganser_storage::{Buffer, Completions, Operation, Storage};
use parking_lot::{Condvar, Mutex};

use super::wire::errno;
use crate::failures::is_full;
use crate::spare::SpareBuffers;
use crate::{Error, READ_BYTES_MAX};

/// Threads for changes of a writable export. There are as many as a client usually has changes in flight, so that a storage
/// can join them into one write. With 4, a client with 16 writes in flight had them written in pieces of 4.
pub(super) const WRITERS: usize = 16;

/// A request that changes the device.
pub(super) enum NbdChange {
    /// These bytes.
    Write(Buffer),
    /// Zeros, by giving the space back.
    Discard(u64),
    /// Zeros: as bytes, or, if `holes` says so, by giving the space back where the storage can do that.
    Zeros { len: u64, holes: bool },
    /// Nothing but making everything before durable.
    Flush,
}

/// How a change ended: an error is its number and its sentence.
pub(super) type ChangeResult = Result<(), (u32, String)>;

/// A change on its way.
pub(super) struct QueuedChange {
    pub(super) export: usize,
    pub(super) offset: u64,
    pub(super) change: NbdChange,
    /// Whether it must be durable before it is answered.
    pub(super) durable: bool,
    /// Called once: with nothing, or with the error's number and its sentence.
    pub(super) answer: Box<dyn FnOnce(ChangeResult) + Send>,
}

/// The storages and what waits for them.
pub(super) struct Writes {
    /// By export; none for one that is read-only.
    storages: Vec<Option<Arc<dyn Storage>>>,
    waiting: Mutex<ChangeQueue>,
    work: Condvar,
    /// Buffers of finished writes, to be used again.
    pub(super) spare: SpareBuffers,
}

#[derive(Default)]
struct ChangeQueue {
    jobs: VecDeque<QueuedChange>,
    closed: bool,
}

impl Writes {
    pub(super) fn new(storages: Vec<Option<Arc<dyn Storage>>>) -> Writes {
        Writes {
            storages,
            waiting: Mutex::default(),
            work: Condvar::new(),
            spare: SpareBuffers::default(),
        }
    }

    /// How many workers it needs.
    pub(super) fn workers(&self) -> usize {
        if self.storages.iter().any(Option::is_some) { WRITERS } else { 0 }
    }

    /// Queues a change of a writable export.
    pub(super) fn submit(&self, job: QueuedChange) {
        self.waiting.lock().jobs.push_back(job);
        self.work.notify_one();
    }

    /// Lets the workers end when nothing waits any more.
    pub(super) fn close(&self) {
        self.waiting.lock().closed = true;
        self.work.notify_all();
    }

    /// The work of one worker, until [`Writes::close`]. `failed` hears of each failure.
    pub(super) fn work(&self, failed: impl Fn(Error)) {
        loop {
            let job = {
                let mut waiting = self.waiting.lock();
                loop {
                    if let Some(job) = waiting.jobs.pop_front() {
                        break job;
                    }
                    if waiting.closed {
                        return;
                    }
                    self.work.wait(&mut waiting);
                }
            };
            let QueuedChange { export, offset, change, durable, answer } = job;
            answer(self.change(export, offset, change, durable, &failed));
        }
    }

    /// Does a change in the calling thread. An error is what the client hears.
    pub(super) fn change(
        &self,
        export: usize,
        offset: u64,
        change: NbdChange,
        durable: bool,
        failed: &impl Fn(Error),
    ) -> ChangeResult {
        let storage = self.storages[export].as_ref().expect("callers know which are writable");
        let (what, len) = match &change {
            NbdChange::Write(bytes) => ("writing", bytes.len() as u64),
            NbdChange::Discard(len) => ("trimming", *len),
            NbdChange::Zeros { len, .. } => ("zeroing", *len),
            NbdChange::Flush => ("flushing", 0),
        };
        // A storage that panics must not take the worker with it.
        let done =
            catch_unwind(AssertUnwindSafe(|| self.perform(&**storage, offset, change, durable)));
        let done = done.unwrap_or_else(|_| Err(io::Error::other("the storage panicked")));
        done.map_err(|source| {
            let number = number_of(&source);
            let error =
                Error::Request { name: storage.name().to_owned(), what, offset, len, source };
            let why = error.to_string();
            failed(error);
            (number, why)
        })
    }

    fn perform(
        &self,
        storage: &dyn Storage,
        offset: u64,
        change: NbdChange,
        durable: bool,
    ) -> io::Result<()> {
        let flushes = durable || matches!(change, NbdChange::Flush);
        match change {
            NbdChange::Flush => {}
            NbdChange::Write(buffer) if buffer.is_empty() => {}
            NbdChange::Discard(0) => {}
            NbdChange::Write(buffer) => self.run(storage, Operation::Write { offset, buffer })?,
            NbdChange::Discard(len) => self.run(storage, Operation::Discard { offset, len })?,
            NbdChange::Zeros { len: 0, .. } => {}
            NbdChange::Zeros { len, holes } => {
                let is_hole = holes && self.make_hole(storage, offset, len)?;
                let mut done = if is_hole { len } else { 0 };
                while done < len {
                    let part = (len - done).min(READ_BYTES_MAX as u64);
                    let buffer = Buffer::try_new(part as usize)?;
                    self.run(storage, Operation::Write { offset: offset + done, buffer })?;
                    done += part;
                }
            }
        }
        if flushes { self.run(storage, Operation::Sync) } else { Ok(()) }
    }

    /// Gives space back; false where the storage can't do that.
    fn make_hole(&self, storage: &dyn Storage, offset: u64, len: u64) -> io::Result<bool> {
        match self.run(storage, Operation::Discard { offset, len }) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(false),
            made => made.map(|()| true),
        }
    }

    fn run(&self, storage: &dyn Storage, operation: Operation) -> io::Result<()> {
        let completions = Completions::new();
        storage.submit(0, operation, &completions);
        let done = completions.wait(&*storage.clock());
        if let Some(buffer) = done.buffer {
            self.spare.give_back(buffer);
        }
        done.result.map(|_| ())
    }
}

/// The number that a client gets for this error.
pub(super) fn number_of(error: &io::Error) -> u32 {
    if is_full(error) { errno::NOSPC } else { errno::IO }
}
