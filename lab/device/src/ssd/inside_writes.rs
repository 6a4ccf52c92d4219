//! Writes that programs have in flight: whole mapped units, from the memory to flash.

use std::io;

use merganser_storage::Buffer;
use merganser_storage::near::Wake;
use slab::Slab;

use crate::ssd::controller::Controller;
use crate::ssd::event::{Owner, ProgramCall, SsdEvent};
use crate::ssd::nand::LogicalUnit;
use crate::ssd::nand::array::UnitBytes;

/// A write that a program started.
#[derive(Debug)]
struct InsideWrite {
    program: u32,
    token: u64,
    buffer: Buffer,
    /// Pages that are not programmed yet.
    remaining: u32,
    error: Option<io::Error>,
}

/// The writes of programs by number; numbers are reused.
#[derive(Debug, Default)]
pub(crate) struct InsideWrites(Slab<InsideWrite>);

impl InsideWrites {
    /// A page of a write is programmed, or none was. Returns the call of the program if it was the
    /// last page.
    pub fn ended(&mut self, number: u32) -> Option<ProgramCall> {
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

impl Controller {
    /// A program writes `buffer` at `offset`. The write buffer is passed by; units in it that are
    /// written here are dropped from it.
    pub(super) fn inside_write(&mut self, program: u32, token: u64, offset: u64, buffer: Buffer) {
        let len = buffer.len() as u64;
        let unit_bytes = self.settings.map_unit_bytes;
        let mut checked = self.check_range(offset, len);
        if !offset.is_multiple_of(unit_bytes) || !len.is_multiple_of(unit_bytes) {
            let why = format!(
                "a program writes whole units of {unit_bytes} bytes; {len} bytes at {offset} are none"
            );
            checked = Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut pages = Vec::new();
        if checked.is_ok() {
            pages = self.whole_pages(offset, &buffer);
        }
        let number = self.inside_writes.0.insert(InsideWrite {
            program,
            token,
            buffer,
            remaining: 0,
            error: checked.err(),
        }) as u32;
        let mut issued = 0;
        for mut units in pages {
            for (unit, _) in &units {
                self.buffer.drop_unit(*unit);
                self.ahead.used(*unit);
            }
            let bytes = units.len() as u64 * unit_bytes;
            if self.program(&mut units, None, Owner::InsideWrite { write: number }) {
                issued += 1;
                if self.settings.programs_use_memory == 1 {
                    // The page leaves the memory while it crosses the slower channel.
                    self.memory.carry(self.engine.now(), bytes);
                }
            } else {
                let why = "the device is worn out: no block takes another page";
                let write = &mut self.inside_writes.0[number as usize];
                write.error = Some(io::Error::new(io::ErrorKind::StorageFull, why));
                break;
            }
        }
        self.inside_writes.0[number as usize].remaining = issued;
        if issued == 0 {
            self.engine.at(self.engine.now(), SsdEvent::InsideWritten { write: number });
        }
    }

    /// `buffer`, to be stored at `offset`, as units of the page map, those of one flash page
    /// together.
    fn whole_pages(&self, offset: u64, buffer: &[u8]) -> Vec<Vec<(LogicalUnit, UnitBytes)>> {
        let unit_bytes = self.settings.map_unit_bytes;
        let first = offset / unit_bytes;
        let mut pages: Vec<Vec<(LogicalUnit, UnitBytes)>> = Vec::new();
        for (number, bytes) in (first..).zip(buffer.chunks(unit_bytes as usize)) {
            if pages.is_empty() || number.is_multiple_of(self.settings.units_per_page()) {
                pages.push(Vec::new());
            }
            let page = pages.last_mut().expect("one was pushed");
            page.push((LogicalUnit(number as u32), Some(bytes.into())));
        }
        pages
    }
}
