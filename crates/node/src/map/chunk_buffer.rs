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

/// A few bytes that a reader carries over, within the budget.
pub(super) struct Carry {
    bytes: Vec<u8>,
    memory: Reservation,
    budget: Budget,
}

/// Bytes that one holds at least.
pub(super) const CARRY_BYTES: usize = 64 << 10;

impl Carry {
    /// No bytes, with room for [`CARRY_BYTES`].
    ///
    /// # Errors
    /// Too little memory.
    pub(super) fn new(budget: &Budget) -> merganser_sort::Result<Self> {
        let memory = budget.reserve(CARRY_BYTES as u64, "a record that is cut")?;
        Ok(Carry { bytes: Vec::with_capacity(CARRY_BYTES), memory, budget: budget.clone() })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > CARRY_BYTES {
            self.bytes = Vec::with_capacity(CARRY_BYTES);
            self.memory.shrink_to(CARRY_BYTES as u64);
        }
    }

    /// Appends `more`.
    ///
    /// # Errors
    /// Too little memory.
    pub(super) fn push(&mut self, more: &[u8]) -> merganser_sort::Result<()> {
        let len = self.bytes.len() + more.len();
        if len > self.bytes.capacity() {
            self.make_room(len.next_power_of_two())?;
        }
        self.bytes.extend_from_slice(more);
        Ok(())
    }

    /// Room for `len` bytes in all.
    ///
    /// # Errors
    /// Too little memory.
    pub(super) fn make_room(&mut self, len: usize) -> merganser_sort::Result<()> {
        if len > self.bytes.capacity() {
            // The old bytes and the new ones, while they are copied.
            let memory = self.budget.reserve(len as u64, "a record that is cut")?;
            let mut longer = Vec::new();
            longer.try_reserve_exact(len).map_err(|_| out_of_memory(len))?;
            longer.extend_from_slice(&self.bytes);
            self.bytes = longer;
            self.memory = memory;
        }
        Ok(())
    }
}

fn out_of_memory(bytes: usize) -> io::Error {
    let why = format!("the system has no memory for a record of {bytes} bytes");
    io::Error::new(io::ErrorKind::OutOfMemory, why)
}
