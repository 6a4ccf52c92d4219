//! The memory of one chunk. It has one size, but for a record that is longer.

use std::io;

use merganser_sort::Budget;
use merganser_sort::budget::Reservation;
use merganser_storage::{Buffer, Operation, Storage, StorageExt};

/// Memory of a worker for the records of one chunk.
pub(super) struct WorkerBuffer {
    buffer: Buffer,
    memory: Reservation,
    /// Its length, but for long records.
    usual: usize,
}

impl WorkerBuffer {
    /// `len` bytes of `budget`.
    ///
    /// # Errors
    /// Too little memory.
    pub(super) fn new(len: usize, budget: &Budget) -> merganser_sort::Result<Self> {
        let memory = budget.reserve(len as u64, "chunks of input")?;
        Ok(WorkerBuffer { buffer: Buffer::try_new(len)?, memory, usual: len })
    }

    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// Makes it at least `len` bytes long; the first `kept` bytes stay.
    ///
    /// # Errors
    /// Too little memory.
    pub(super) fn grow(
        &mut self,
        len: usize,
        kept: usize,
        budget: &Budget,
    ) -> merganser_sort::Result<()> {
        if len > self.buffer.len() {
            // Both are there while bytes are copied.
            let memory = budget.reserve(len as u64, "a long record")?;
            let mut longer = Buffer::try_new(len)?;
            longer[..kept].copy_from_slice(&self.buffer[..kept]);
            self.buffer = longer;
            self.memory = memory;
        }
        Ok(())
    }

    /// Gives back what a long record took.
    ///
    /// # Errors
    /// When the system has no memory.
    pub(super) fn shrink(&mut self) -> merganser_sort::Result<()> {
        if self.buffer.len() > self.usual {
            self.buffer = Buffer::empty();
            self.buffer = Buffer::try_new(self.usual)?;
            self.memory.shrink_to(self.usual as u64);
        }
        Ok(())
    }

    /// Reads from `offset` of `storage` into the bytes `from..to`; how many were read.
    ///
    /// # Errors
    /// The storage's own; the memory is then lost.
    pub(super) fn read(
        &mut self,
        storage: &dyn Storage,
        offset: u64,
        from: usize,
        to: usize,
    ) -> io::Result<usize> {
        // A cached file is copied by this thread into its own cache: handing the read to another thread
        // and waiting for it costs more than the copy.
        if let Some(read) = storage.read_now(offset, &mut self.buffer[from..to]) {
            return read;
        }
        let mut head = std::mem::replace(&mut self.buffer, Buffer::empty());
        let tail = head.split_off(to);
        let middle = head.split_off(from);
        let (middle, read) = storage.run(Operation::Read { offset, buffer: middle })?;
        for part in [middle.expect("a read returns its buffer"), tail] {
            if !part.is_empty() {
                head.unsplit(part).expect("it was split off there");
            }
        }
        self.buffer = head;
        Ok(read)
    }
}
