//! Writes that programs have in flight.

use std::io;

use merganser_storage::Buffer;
use merganser_storage::near::Wake;
use slab::Slab;

use crate::ssd::event::ProgramCall;

/// A write that a program started.
#[derive(Debug)]
pub(crate) struct InsideWrite {
    pub program: u32,
    pub token: u64,
    pub buffer: Buffer,
    /// Pages that are not programmed yet.
    pub remaining: u32,
    pub error: Option<io::Error>,
}

/// The writes of programs by number; numbers are reused.
#[derive(Debug, Default)]
pub(crate) struct InsideWrites(Slab<InsideWrite>);

impl InsideWrites {
    pub(super) fn add(&mut self, write: InsideWrite) -> u32 {
        self.0.insert(write) as u32
    }

    pub(super) fn get(&mut self, number: u32) -> &mut InsideWrite {
        &mut self.0[number as usize]
    }

    /// A page of a write is programmed, or none was. Returns the call of the program if it was the
    /// last page.
    pub(super) fn ended(&mut self, number: u32) -> Option<ProgramCall> {
        let write = &mut self.0[number as usize];
        write.remaining = write.remaining.saturating_sub(1);
        if write.remaining > 0 {
            return None;
        }
        let InsideWrite { program, token, buffer, error, .. } = self.0.remove(number as usize);
        let result = error.map_or(Ok(()), Err);
        Some(ProgramCall::Wake { program, wake: Wake::Written { token, buffer, result } })
    }
}
