//! Where finished operations are collected.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::metered::{Meter, Transfer};
use crate::numbers::u64_of;
use crate::{Buffer, Clock};

/// One finished operation.
#[derive(Debug)]
pub struct Completion {
    /// The token it was submitted with.
    pub token: u64,
    /// The buffer that the operation carried, whatever the result.
    pub buffer: Option<Buffer>,
    /// Bytes transferred (0 for operations that transfer none).
    pub result: io::Result<usize>,
}

/// A queue of completions. The caller that waits makes it and passes a clone to every submit. Any number of
/// storages may post to one.
#[derive(Clone, Default)]
pub struct Completions {
    shared: Arc<CompletionQueue>,
    /// Told of what is posted through this handle.
    watch: Option<Arc<TransferWatch>>,
    /// Gets it, instead of the queue.
    collect: Option<Arc<dyn Collect>>,
}

/// Gets completions at once, instead of a queue that a caller waits on: to make one of several, or to
/// answer without a thread between.
pub trait Collect: Send + Sync {
    /// An operation has ended. The storage's own thread calls this, or the thread that submits, before
    /// its submit returns; so it must not wait for anything.
    fn arrived(&self, completion: Completion);
}

struct TransferWatch {
    meter: Arc<dyn Meter>,
    transfer: Transfer,
    /// The watch of the handle that this one was made of.
    outer: Option<Arc<TransferWatch>>,
}

#[derive(Default)]
struct CompletionQueue {
    done: Mutex<VecDeque<Completion>>,
    arrived: Condvar,
}

impl Completions {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a finished operation; called by storages.
    pub fn post(&self, completion: Completion) {
        let mut watch = self.watch.as_deref();
        while let Some(TransferWatch { meter, transfer, outer }) = watch {
            meter.ended(*transfer, u64_of(*completion.result.as_ref().unwrap_or(&0)));
            watch = outer.as_deref();
        }
        if let Some(collect) = &self.collect {
            return collect.arrived(completion);
        }
        self.shared.done.lock().push_back(completion);
        self.shared.arrived.notify_one();
    }

    /// A handle of the same queue that tells `meter` when what it was given for has ended.
    pub(crate) fn watched(&self, meter: Arc<dyn Meter>, transfer: Transfer) -> Self {
        let watch = TransferWatch { meter, transfer, outer: self.watch.clone() };
        Completions { watch: Some(Arc::new(watch)), ..self.clone() }
    }

    /// A handle that passes what is posted to `collect`. No caller waits on it.
    #[must_use]
    pub fn collected(collect: Arc<dyn Collect>) -> Self {
        Completions { collect: Some(collect), ..Self::default() }
    }

    /// The next completion if there is one.
    #[must_use]
    pub fn poll(&self) -> Option<Completion> {
        self.shared.done.lock().pop_front()
    }

    /// Waits for the next completion, letting `clock` move when it is a modelled one. The caller
    /// must have something in flight, or this never returns.
    #[must_use]
    pub fn wait(&self, clock: &dyn Clock) -> Completion {
        loop {
            if let Some(done) = self.poll() {
                return done;
            }
            if !clock.advance() {
                let mut queue = self.shared.done.lock();
                while queue.is_empty() {
                    self.shared.arrived.wait(&mut queue);
                }
                return queue.pop_front().expect("not empty");
            }
        }
    }
}
