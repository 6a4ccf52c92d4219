//! Where finished operations are collected.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex};

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

/// A queue of completions: made by who waits, handed (cloned) to every submit. Any number of
/// storages may post to one.
#[derive(Clone, Default)]
pub struct Completions {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
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
        self.shared.done.lock().expect("no poster panics").push_back(completion);
        self.shared.arrived.notify_one();
    }

    /// The next completion if there is one.
    #[must_use]
    pub fn poll(&self) -> Option<Completion> {
        self.shared.done.lock().expect("no poster panics").pop_front()
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
                let mut queue = self.shared.done.lock().expect("no poster panics");
                while queue.is_empty() {
                    queue = self.shared.arrived.wait(queue).expect("no poster panics");
                }
                return queue.pop_front().expect("not empty");
            }
        }
    }
}
