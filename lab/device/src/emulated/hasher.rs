//! The thread that hashes the pages of writes, and then begins the writes.
//!
//! Hashing takes about as long as copying. In the thread that submits, the requests behind a write would
//! arrive later at the model than at the disk.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use merganser_storage::thread::spawn;
use merganser_storage::{Operation, Storage};

use super::shared::EmulationShared;
use crate::request::{ContentHash, RequestHashes};

/// The thread, and the way to it. Dropping it waits until all writes that it got have begun.
pub(super) struct Hasher {
    writes: Option<Sender<(usize, Operation)>>,
    thread: Option<JoinHandle<()>>,
}

impl Hasher {
    /// Starts the thread.
    pub(super) fn start(
        hash: ContentHash,
        shared: &Arc<EmulationShared>,
        backing: &Arc<dyn Storage>,
    ) -> std::io::Result<Hasher> {
        // Without a bound: the writes in flight are bounded by the door, and their buffers exist already.
        let (writes, waiting) = channel::<(usize, Operation)>();
        let (shared, backing) = (Arc::clone(shared), Arc::clone(backing));
        let thread = spawn("hasher", move || {
            for (slot, operation) in waiting {
                if let Operation::Write { buffer, .. } = &operation {
                    let content = RequestHashes::of_bytes(buffer, hash);
                    // Its flight is there, because its real operation has not begun.
                    shared.state.lock().flights[slot].request.content = Some(content);
                }
                shared.begin(&*backing, slot, operation);
            }
        })?;
        Ok(Hasher { writes: Some(writes), thread: Some(thread) })
    }

    /// Takes the write of a request that has arrived.
    pub(super) fn write(&self, slot: usize, operation: Operation) {
        let writes = self.writes.as_ref().expect("there until it is dropped");
        writes.send((slot, operation)).expect("the thread ends after this");
    }
}

impl Drop for Hasher {
    fn drop(&mut self) {
        drop(self.writes.take());
        if let Some(thread) = self.thread.take()
            // The last answer may be what drops the device, and this thread may give it.
            && thread.thread().id() != std::thread::current().id()
            && let Err(panic) = thread.join()
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}
