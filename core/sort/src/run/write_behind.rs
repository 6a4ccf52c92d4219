//! Writes in flight: a thread fills the next buffer while earlier ones are written.

use std::sync::Arc;

use merganser_storage::{Buffer, Completions, Operation, Storage};

use crate::activity::{WorkerState, wait};
use crate::{Error, Result};

/// Keeps a bounded number of writes in flight, each with its own buffer, for one thread.
pub(crate) struct WriteBehind {
    storage: Arc<dyn Storage>,
    completions: Completions,
    free: Vec<Buffer>,
    /// Indexed by token: the unwritten rest of the buffer in flight, and the bytes awaited.
    flying: Vec<Option<(Buffer, usize)>>,
    in_flight: usize,
}

impl WriteBehind {
    /// Writes to `storage` from `buffers`, as many in flight as there are buffers.
    pub(crate) fn new(storage: Arc<dyn Storage>, buffers: Vec<Buffer>) -> Self {
        let flying = buffers.iter().map(|_| None).collect();
        WriteBehind {
            storage,
            completions: Completions::new(),
            free: buffers,
            flying,
            in_flight: 0,
        }
    }

    /// Turns to another storage, once all is written.
    pub(crate) fn retarget(&mut self, storage: Arc<dyn Storage>) -> Result<()> {
        self.drain()?;
        self.storage = storage;
        Ok(())
    }

    /// A free buffer. If there is no free one, waits for a write.
    pub(crate) fn buffer(&mut self) -> Result<Buffer> {
        while self.free.is_empty() {
            self.reap()?;
        }
        Ok(self.free.pop().expect("not empty"))
    }

    /// Puts back a buffer that was not needed.
    pub(crate) fn put_back(&mut self, buffer: Buffer) {
        self.free.push(buffer);
    }

    /// Starts writing the first `len` bytes of `buffer` at `offset`.
    pub(crate) fn write(&mut self, offset: u64, mut buffer: Buffer, len: usize) -> Result<()> {
        let rest = buffer.split_off(len);
        let token = self.flying.iter().position(Option::is_none).unwrap_or_else(|| {
            // A buffer that another owner lent.
            self.flying.push(None);
            self.flying.len() - 1
        });
        self.flying[token] = Some((rest, len));
        self.in_flight += 1;
        self.storage.submit(token as u64, Operation::Write { offset, buffer }, &self.completions);
        Ok(())
    }

    fn reap(&mut self) -> Result<()> {
        assert!(self.in_flight > 0, "waiting for a buffer that is not in flight");
        let done = {
            let _waiting = wait(WorkerState::Writing);
            self.completions.wait(&*self.storage.clock())
        };
        self.in_flight -= 1;
        let slot = usize::try_from(done.token).expect("a slot number");
        let (rest, len) = self.flying[slot].take().expect("in flight");
        if let Some(mut buffer) = done.buffer
            && buffer.unsplit(rest).is_ok()
        {
            self.free.push(buffer);
        }
        let written = done.result?;
        if written != len {
            return Err(Error::Io(std::io::Error::new(
                std::io::ErrorKind::WriteZero,
                format!("{}: {written} of {len} bytes written", self.storage.name()),
            )));
        }
        Ok(())
    }

    /// Waits until everything is written. Waits for all of it even after an error.
    pub(crate) fn drain(&mut self) -> Result<()> {
        let mut first = Ok(());
        while self.in_flight > 0 {
            let one = self.reap();
            if first.is_ok() {
                first = one;
            }
        }
        first
    }
}

impl Drop for WriteBehind {
    fn drop(&mut self) {
        // Buffers in flight belong to the kernel until they come back.
        let _ = self.drain();
    }
}
