//! Reads that programs have in flight.

use std::io;

use merganser_storage::Buffer;
use merganser_storage::near::Wake;
use slab::Slab;

use crate::ssd::event::ProgramCall;

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
pub(crate) struct InsideReads(Slab<InsideRead>);

impl InsideReads {
    pub(super) fn add(&mut self, read: InsideRead) -> u32 {
        self.0.insert(read) as u32
    }

    /// A piece of a read has ended. Returns the call of the program if it was the last piece.
    pub(super) fn ended(&mut self, number: u32) -> Option<ProgramCall> {
        let read = &mut self.0[number as usize];
        read.remaining = read.remaining.saturating_sub(1);
        if read.remaining > 0 {
            return None;
        }
        let InsideRead { program, token, buffer, error, .. } = self.0.remove(number as usize);
        let buffer = buffer.expect("kept until the end");
        let result = error.map_or(Ok(buffer.len()), Err);
        Some(ProgramCall::Wake { program, wake: Wake::Read { token, buffer, result } })
    }
}
