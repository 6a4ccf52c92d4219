//! Reads that programs have in flight.

use std::io;

use merganser_storage::Buffer;
use merganser_storage::near::Wake;

use crate::ssd::event::Call;

/// A read that a program started.
#[derive(Debug)]
pub(crate) struct InsideRead {
    pub program: u32,
    pub token: u64,
    pub buffer: Option<Buffer>,
    /// Pieces that have not ended.
    pub remaining: u32,
    pub error: Option<io::Error>,
}

/// The reads of programs by number; numbers are reused.
#[derive(Debug, Default)]
pub(crate) struct InsideReads {
    slots: Vec<Option<InsideRead>>,
    free: Vec<u32>,
}

impl InsideReads {
    pub fn add(&mut self, read: InsideRead) -> u32 {
        let number = self.free.pop().unwrap_or(self.slots.len() as u32);
        if number as usize == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[number as usize] = Some(read);
        number
    }

    /// A piece of a read has ended. Returns the call of the program if it was the last piece.
    pub fn ended(&mut self, number: u32) -> Option<Call> {
        let slot = &mut self.slots[number as usize];
        let read = slot.as_mut().expect("a read that has not ended");
        read.remaining = read.remaining.saturating_sub(1);
        if read.remaining > 0 {
            return None;
        }
        let InsideRead { program, token, buffer, error, .. } = slot.take().expect("it is there");
        self.free.push(number);
        let buffer = buffer.expect("kept until the end");
        let result = error.map_or(Ok(buffer.len()), Err);
        Some(Call::Wake { program, wake: Wake::Read { token, buffer, result } })
    }
}
