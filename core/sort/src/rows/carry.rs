//! Bytes that a reader keeps from one piece of its input to the next.

use std::io;

use crate::budget::Reservation;
use crate::{Budget, Result};

/// A few bytes that a reader carries over, within the budget.
pub struct Carry {
    bytes: Vec<u8>,
    memory: Reservation,
    budget: Budget,
}

/// Bytes that one holds at least.
pub const CARRY_BYTES: usize = 64 << 10;

impl Carry {
    /// No bytes, with room for [`CARRY_BYTES`].
    ///
    /// # Errors
    /// Too little memory.
    pub fn new(budget: &Budget) -> Result<Self> {
        let memory = budget.reserve(CARRY_BYTES as u64, "a record that is cut")?;
        Ok(Carry { bytes: Vec::with_capacity(CARRY_BYTES), memory, budget: budget.clone() })
    }

    /// The bytes that it keeps.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Drops them, and the memory that a long record took.
    pub fn clear(&mut self) {
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
    pub fn push(&mut self, more: &[u8]) -> Result<()> {
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
    pub fn make_room(&mut self, len: usize) -> Result<()> {
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
