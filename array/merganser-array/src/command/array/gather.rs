//! Requests of a mount, passed to the volume by several threads.
//!
//! The kernel's requests are read by one thread, and a volume does a request in the thread that brings it. One after
//! another, each durable write would wait for a sync of its own. With several threads, requests that come while others are
//! under way are gathered: they are one record of the log, and one sync serves all of them.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use merganser_storage::thread::spawn;
use merganser_storage::{Clock, Completion, Completions, Geometry, Operation, Storage};
use parking_lot::{Condvar, Mutex};

/// As many as the NBD server has for changes of an export.
const THREADS: usize = 16;

/// A storage whose requests are done by threads of this object, in any order. Dropping it waits for them to end.
pub(super) struct GatheredStorage {
    shared: Arc<GatherShared>,
    threads: Vec<JoinHandle<()>>,
}

struct GatherShared {
    storage: Arc<dyn Storage>,
    waiting: Mutex<GatherQueue>,
    work: Condvar,
}

#[derive(Default)]
struct GatherQueue {
    requests: VecDeque<(u64, Operation, Completions)>,
    closed: bool,
}

impl GatheredStorage {
    /// Starts the threads in front of `storage`.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub(super) fn start(storage: Arc<dyn Storage>) -> io::Result<Self> {
        let shared = GatherShared { storage, waiting: Mutex::default(), work: Condvar::new() };
        let mut gathered = GatheredStorage { shared: Arc::new(shared), threads: Vec::new() };
        for number in 0..THREADS {
            let shared = Arc::clone(&gathered.shared);
            gathered.threads.push(spawn(format!("array-{number}"), move || shared.work())?);
        }
        Ok(gathered)
    }
}

impl Drop for GatheredStorage {
    fn drop(&mut self) {
        self.shared.waiting.lock().closed = true;
        self.shared.work.notify_all();
        let this = std::thread::current().id();
        // The answer to the last request may be what lets go of this, in one of its own threads.
        for thread in self.threads.drain(..).filter(|thread| thread.thread().id() != this) {
            // Its panics were caught.
            let _ = thread.join();
        }
    }
}

impl GatherShared {
    fn work(&self) {
        while let Some((token, operation, completions)) = self.next() {
            let submit = || self.storage.submit(token, operation, &completions);
            if catch_unwind(AssertUnwindSafe(submit)).is_err() {
                // The program that waits gets an error, and the others continue.
                let result = Err(io::Error::other("the storage panicked"));
                completions.post(Completion { token, buffer: None, result });
            }
        }
    }

    /// The next request; `None` at the end.
    fn next(&self) -> Option<(u64, Operation, Completions)> {
        let mut waiting = self.waiting.lock();
        loop {
            if let Some(request) = waiting.requests.pop_front() {
                return Some(request);
            }
            if waiting.closed {
                return None;
            }
            self.work.wait(&mut waiting);
        }
    }
}

impl Storage for GatheredStorage {
    fn name(&self) -> &str {
        self.shared.storage.name()
    }

    fn size(&self) -> u64 {
        self.shared.storage.size()
    }

    fn geometry(&self) -> Geometry {
        self.shared.storage.geometry()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.shared.storage.clock()
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        self.shared.waiting.lock().requests.push_back((token, operation, completions.clone()));
        self.shared.work.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use merganser_storage::StorageExt;
    use merganser_storage::memory::MemoryStorage;

    use super::*;

    #[test]
    fn requests_reach_the_storage_and_its_panics_are_errors() {
        struct Panics(Arc<MemoryStorage>);
        impl Storage for Panics {
            fn name(&self) -> &str {
                "panics"
            }
            fn size(&self) -> u64 {
                self.0.size()
            }
            fn clock(&self) -> Arc<dyn Clock> {
                self.0.clock()
            }
            fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
                assert!(!matches!(operation, Operation::Discard { .. }), "a discard");
                self.0.submit(token, operation, completions);
            }
        }
        let memory = MemoryStorage::new("memory");
        memory.run(Operation::SetSize { size: 1 << 20 }).expect("sized");
        let gathered = GatheredStorage::start(Arc::new(Panics(memory))).expect("threads");
        assert_eq!((gathered.name(), gathered.size()), ("panics", 1 << 20));
        for _ in 0..2 * THREADS {
            let error = gathered.run(Operation::Discard { offset: 0, len: 1 }).expect_err("panics");
            assert!(error.to_string().contains("panicked"), "{error}");
        }
        gathered.write_at(4096, b"after that").expect("written");
        gathered.sync().expect("synced");
        assert_eq!(gathered.read_vec(4096, 10).expect("read"), b"after that");
    }
}
