//! Records on their way to the members. Those that follow one another in the ring are one transfer.

use std::io;
use std::sync::Arc;

use merganser_storage::numbers::u64_of;
use merganser_storage::{Buffer, Storage};

use super::record::ENTRIES_READ_MAX;
use crate::bytes::PAGE;
use crate::flights::{BufferPart, Flights};

/// Bytes of the longest record.
const RECORD_BYTES_MAX: usize = (1 + ENTRIES_READ_MAX) * PAGE;
/// Bytes of records after which they are written without being asked. A record more has room.
const GATHERED: usize = 1 << 20;
const BUFFER_BYTES: usize = GATHERED + RECORD_BYTES_MAX;
/// Buffers that are written at the same time, in addition to the one that is filled.
const UNDER_WAY: usize = 2;

/// Records that are gathered, and those that are written.
pub(super) struct Outgoing {
    flights: Flights,
    buffer: Buffer,
    /// Bytes of the buffer that records have.
    filled: usize,
    /// Where they go.
    parts: Vec<BufferPart>,
}

impl Outgoing {
    /// No records.
    pub(super) fn new(array: Arc<dyn Storage>) -> Outgoing {
        let flights = Flights::new(array, BUFFER_BYTES, UNDER_WAY);
        Outgoing { flights, buffer: Buffer::empty(), filled: 0, parts: Vec::new() }
    }

    /// Adds a record of these pages, which goes to byte `offset`.
    pub(super) fn add<'a>(
        &mut self,
        offset: u64,
        pages: impl Iterator<Item = &'a [u8; PAGE]>,
    ) -> io::Result<()> {
        if self.buffer.is_empty() {
            self.buffer = self.flights.take()?;
        }
        let from = self.filled;
        for page in pages {
            self.buffer[self.filled..self.filled + PAGE].copy_from_slice(page);
            self.filled += PAGE;
        }
        let len = self.filled - from;
        match self.parts.last_mut() {
            Some((before, Some(at))) if *at + u64_of(*before) == offset => *before += len,
            _ => self.parts.push((len, Some(offset))),
        }
        if self.filled >= GATHERED { self.write() } else { Ok(()) }
    }

    /// Begins to write all that was added.
    pub(super) fn write(&mut self) -> io::Result<()> {
        if self.filled == 0 {
            return Ok(());
        }
        let mut parts = std::mem::take(&mut self.parts);
        parts.push((BUFFER_BYTES - std::mem::take(&mut self.filled), None));
        self.flights.write(std::mem::replace(&mut self.buffer, Buffer::empty()), &parts)
    }

    /// Writes all that was added, and waits until no write is under way. A failure stays, and is the
    /// result of the next [`Outgoing::wait_for_all`].
    pub(super) fn land(&mut self) {
        let _ = self.write();
        self.flights.land();
    }

    /// Writes all that was added, and waits until it is written.
    pub(super) fn wait_for_all(&mut self) -> io::Result<()> {
        self.write()?;
        self.flights.wait_for_all()
    }
}

impl Drop for Outgoing {
    /// Nobody is left to be told of a failure, and none of it was flushed.
    fn drop(&mut self) {
        let _ = self.write();
    }
}
