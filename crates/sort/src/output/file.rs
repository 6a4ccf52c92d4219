//! Merged windows into a file, with direct I/O and without a copy.
//!
//! ```text
//!   window n      ┤ pad ├──── merged ────┼ tail ┤        pad = place in the file modulo a page
//!                   ▲                    └──────┐
//!   window n+1    ┤ tail ├──── merged ──────────┼…       the tail of one window, less than a page,
//!                                                        is copied into the pad of the next
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use storage::{ALIGNMENT, Buffer, Completions, Operation, Storage, StorageExt};

use crate::activity::{State, wait};
use crate::merge::stream::{Merged, Stream};
use crate::run::Run;
use crate::run::format::HEADER_BYTES;
use crate::{Error, Result};

/// Writes in flight.
const WRITES: usize = 2;
/// Space is reserved in steps: the output grows as the runs shrink, and neither by much at once.
const ALLOCATE_BYTES: u64 = 64 << 20;

/// Writes an ordered stream of bytes to a storage.
pub(crate) struct FileSink {
    storage: Arc<dyn Storage>,
    completions: Completions,
    /// By token: what a buffer holds beyond what is written, how much is written, and its ticket.
    flying: BTreeMap<u64, (Buffer, usize, u64)>,
    next_token: u64,
    /// Where the next byte goes; the bytes of its page before it are in `tail`.
    offset: u64,
    tail: Vec<u8>,
    allocated: u64,
    allocate_bytes: u64,
    total: Option<u64>,
}

impl FileSink {
    /// Goes on writing at `offset`; `before` are the bytes of its page that come before it.
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
            let _waiting = wait(State::Writing);
            self.storage.run(Operation::Allocate { offset, len })?;
            self.allocated = to;
        }
        Ok(())
    }

    /// Writes a window that was merged with the pad this sink needs; its buffer goes back to
    /// `stream` once written.
    pub(crate) fn push_window(&mut self, merged: Merged, stream: &mut Stream) -> Result<()> {
        let Merged { buffer, pad, len, .. } = merged;
        self.push_padded((buffer, pad, len), 0, &mut |buffer, _| stream.recycle(buffer))
    }

    /// Writes `len` bytes of a buffer from `pad` on, the pad that this sink needs. The buffer goes
    /// back to `recycle` once written, with its `ticket`.
    pub(crate) fn push_padded(
        &mut self,
        (mut buffer, pad, len): (Buffer, usize, usize),
        ticket: u64,
        recycle: &mut dyn FnMut(Buffer, u64),
    ) -> Result<()> {
        assert_eq!(pad, self.tail.len(), "windows come in order");
        buffer[..pad].copy_from_slice(&self.tail);
        let end = pad + len;
        let whole = end / ALIGNMENT * ALIGNMENT;
        self.tail.clear();
        self.tail.extend_from_slice(&buffer[whole..end]);
        let at = self.offset - pad as u64;
        self.offset += len as u64;
        if whole == 0 {
            recycle(buffer, ticket);
            return Ok(());
        }
        self.allocate(at + whole as u64)?;
        while self.flying.len() >= WRITES {
            let (buffer, ticket) = self.reap()?;
            recycle(buffer, ticket);
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
                self.submit(at, buffer, whole, 0);
            }
        }
        Ok(())
    }

    fn submit(&mut self, offset: u64, mut buffer: Buffer, len: usize, ticket: u64) {
        let rest = buffer.split_off(len);
        let token = self.next_token;
        self.next_token += 1;
        self.flying.insert(token, (rest, len, ticket));
        self.storage.submit(token, Operation::Write { offset, buffer }, &self.completions);
    }

    fn reap(&mut self) -> Result<(Buffer, u64)> {
        let done = {
            let _waiting = wait(State::Writing);
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
    pub(crate) fn written(&mut self) -> Result<Option<(Buffer, u64)>> {
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
        // What is in flight is nobody's once its completion arrives; an unfinished file is the
        // caller's to remove.
        while !self.flying.is_empty() {
            let done = self.completions.wait(&*self.storage.clock());
            self.flying.remove(&done.token);
        }
    }
}

/// Gives the blocks of runs back to the device as a merge leaves them behind.
pub(crate) struct Released {
    /// Space is given back in steps of at least this many bytes of a run.
    step: u64,
    /// For each run, bytes of storage that were given back.
    upto: Vec<u64>,
    completions: Completions,
    in_flight: usize,
}

/// Larger steps than this give nothing: punching a hole waits for the reads of its run that are in
/// flight, but not long.
const RELEASE_BYTES: u64 = 4 << 20;
/// Runs are given back in at least so many steps.
const STEPS: u64 = 16;

impl Released {
    pub(crate) fn new(runs: &[Arc<Run>]) -> Self {
        let shortest = runs.iter().map(|run| run.data_bytes()).min().unwrap_or(0);
        Self::every(runs, shortest / STEPS)
    }

    /// Gives back in steps of at least `step` bytes, at most of [`RELEASE_BYTES`].
    pub(crate) fn every(runs: &[Arc<Run>], step: u64) -> Self {
        Released {
            step: step.clamp(4096, RELEASE_BYTES),
            upto: vec![HEADER_BYTES as u64; runs.len()],
            completions: Completions::new(),
            in_flight: 0,
        }
    }

    /// Nothing before `positions` will be read again.
    pub(crate) fn release(&mut self, runs: &[Arc<Run>], positions: &[u64]) -> Result<()> {
        for ((run, position), upto) in runs.iter().zip(positions).zip(&mut self.upto) {
            let to = run.physical_floor(*position);
            if to >= *upto + self.step {
                let operation = Operation::Discard { offset: *upto, len: to - *upto };
                run.storage().submit(0, operation, &self.completions);
                self.in_flight += 1;
                *upto = to;
            }
        }
        while let Some(done) = self.completions.poll() {
            self.in_flight -= 1;
            ignore_unsupported(done.result)?;
        }
        Ok(())
    }

    /// Waits until all of it is given back.
    pub(crate) fn finish(&mut self, runs: &[Arc<Run>]) -> Result<()> {
        while self.in_flight > 0 {
            let done = self.completions.wait(&*runs[0].storage().clock());
            self.in_flight -= 1;
            ignore_unsupported(done.result)?;
        }
        Ok(())
    }
}

/// A file system that cannot punch holes costs space, not correctness.
pub(crate) fn ignore_unsupported(result: std::io::Result<usize>) -> Result<()> {
    match result {
        Err(e) if e.kind() != std::io::ErrorKind::Unsupported => Err(Error::Io(e)),
        _ => Ok(()),
    }
}
