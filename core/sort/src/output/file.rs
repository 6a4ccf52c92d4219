//! Portions of the output into a file, with direct I/O and without a copy.
//!
//! ```text
//!   portion n     ┤ pad ├──── bytes  ────┼ tail ┤        pad = place in the file modulo a page
//!                   ▲                    └──────┐
//!   portion n+1   ┤ tail ├──── bytes  ──────────┼…       the tail of one portion, less than a page,
//!                                                        is copied into the pad of the next
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use merganser_storage::{ALIGNMENT, Buffer, Completions, Operation, Storage, StorageExt};

use crate::activity::{WorkerState, wait};
use crate::portion::{Portion, Portions, Ticket};
use crate::{Error, Result};

/// Writes in flight.
const WRITES: usize = 2;
/// Space is reserved in steps: the output grows as the runs shrink, and neither by much at once.
pub(crate) const ALLOCATE_BYTES: u64 = 64 << 20;

/// Writes an ordered stream of bytes to a storage.
pub(crate) struct FileSink {
    storage: Arc<dyn Storage>,
    completions: Completions,
    /// By token: the bytes of a buffer behind those that are written, how many are written, and its
    /// ticket.
    flying: BTreeMap<u64, (Buffer, usize, Ticket)>,
    next_token: u64,
    /// Where the next byte goes; the bytes of its page before it are in `tail`.
    offset: u64,
    tail: Vec<u8>,
    allocated: u64,
    allocate_bytes: u64,
    total: Option<u64>,
}

impl FileSink {
    /// Continues to write at `offset`; `before` are the bytes of its page that come before it.
    /// `total` is the final size, when known.
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        offset: u64,
        before: Vec<u8>,
        total: Option<u64>,
    ) -> Self {
        assert_eq!(before.len() as u64, offset % ALIGNMENT as u64);
        FileSink {
            storage,
            completions: Completions::new(),
            flying: BTreeMap::new(),
            next_token: 0,
            offset,
            tail: before,
            allocated: offset,
            allocate_bytes: ALLOCATE_BYTES,
            total,
        }
    }

    /// Reserves space at most `bytes` ahead, for outputs that grow as something else shrinks.
    pub(crate) fn allocate_in_steps_of(&mut self, bytes: u64) {
        self.allocate_bytes = bytes.min(ALLOCATE_BYTES);
    }

    /// Where the next byte goes.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    fn allocate(&mut self, end: u64) -> Result<()> {
        if end > self.allocated {
            let to = (end + self.allocate_bytes).min(self.total.unwrap_or(u64::MAX)).max(end);
            let (offset, len) = (self.allocated, to - self.allocated);
            let _waiting = wait(WorkerState::Writing);
            self.storage.run(Operation::Allocate { offset, len })?;
            self.allocated = to;
        }
        Ok(())
    }

    /// Writes a portion that was made with the pad that this sink needs. Its buffer goes back to
    /// `from` once it is written.
    pub(crate) fn push(&mut self, portion: Portion, from: &mut dyn Portions) -> Result<()> {
        let Portion { mut buffer, pad, len, ticket, .. } = portion;
        assert_eq!(pad, self.tail.len(), "portions come in order");
        buffer[..pad].copy_from_slice(&self.tail);
        let end = pad + len;
        let whole = end / ALIGNMENT * ALIGNMENT;
        self.tail.clear();
        self.tail.extend_from_slice(&buffer[whole..end]);
        let at = self.offset - pad as u64;
        self.offset += len as u64;
        if whole == 0 {
            from.recycle(buffer, ticket);
            return Ok(());
        }
        self.allocate(at + whole as u64)?;
        while self.flying.len() >= WRITES {
            let (buffer, ticket) = self.reap()?;
            from.recycle(buffer, ticket);
        }
        self.submit(at, buffer, whole, ticket);
        Ok(())
    }

    /// Appends bytes from anywhere; they are copied.
    pub(crate) fn push_bytes(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let at = self.offset - self.tail.len() as u64;
            let n = bytes.len().min((1 << 20) - self.tail.len());
            let end = self.tail.len() + n;
            let whole = end / ALIGNMENT * ALIGNMENT;
            self.offset += n as u64;
            self.tail.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if whole > 0 {
                self.allocate(at + whole as u64)?;
                let mut buffer = if self.flying.len() < WRITES {
                    Buffer::try_new(1 << 20)?
                } else {
                    self.reap()?.0
                };
                buffer[..whole].copy_from_slice(&self.tail[..whole]);
                self.tail.drain(..whole);
                self.submit(at, buffer, whole, Ticket::default());
            }
        }
        Ok(())
    }

    fn submit(&mut self, offset: u64, mut buffer: Buffer, len: usize, ticket: Ticket) {
        let rest = buffer.split_off(len);
        let token = self.next_token;
        self.next_token += 1;
        self.flying.insert(token, (rest, len, ticket));
        self.storage.submit(token, Operation::Write { offset, buffer }, &self.completions);
    }

    fn reap(&mut self) -> Result<(Buffer, Ticket)> {
        let done = {
            let _waiting = wait(WorkerState::Writing);
            self.completions.wait(&*self.storage.clock())
        };
        let (rest, len, ticket) = self.flying.remove(&done.token).expect("in flight");
        let written = done.result?;
        if written != len {
            let text = format!("{}: {written} of {len} bytes written", self.storage.name());
            return Err(Error::Io(std::io::Error::new(std::io::ErrorKind::WriteZero, text)));
        }
        let mut buffer = done.buffer.expect("a write returns its buffer");
        buffer.unsplit(rest).expect("what was split off");
        Ok((buffer, ticket))
    }

    /// Waits for a write, and gives its buffer and ticket back; `None` when none is in flight.
    pub(crate) fn written(&mut self) -> Result<Option<(Buffer, Ticket)>> {
        if self.flying.is_empty() { Ok(None) } else { self.reap().map(Some) }
    }

    /// Waits for all writes, the last bytes included.
    pub(crate) fn flush(&mut self) -> Result<()> {
        while !self.flying.is_empty() {
            self.reap()?;
        }
        if !self.tail.is_empty() {
            self.storage.write_at(self.offset - self.tail.len() as u64, &self.tail)?;
        }
        Ok(())
    }

    /// Ends the file here.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()?;
        self.storage.run(Operation::SetSize { size: self.offset })?;
        Ok(())
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        // Completions of writes in flight are awaited and ignored; the caller removes an unfinished
        // file.
        while !self.flying.is_empty() {
            let done = self.completions.wait(&*self.storage.clock());
            self.flying.remove(&done.token);
        }
    }
}
