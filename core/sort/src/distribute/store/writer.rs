//! A disk's writer: takes what waits longest or most, places it, joins its blocks into long writes,
//! and gives their memory back.

use std::sync::Arc;

use merganser_storage::{Buffer, Completions, Operation, Storage, StorageExt};

use super::{BucketStore, EXTENT_BYTES_MAX, FLIGHT_BYTES, INDEX_STEP_BYTES};
use crate::activity::{self, wait};
use crate::distribute::bucket::BucketExtent;
use crate::run::format::HEADER_BYTES;
use crate::{Error, Result};

/// Writes to disk number `disk` of `store` until all is written. One thread per disk.
///
/// # Errors
/// The storage's own, [`Error::TempLimit`], [`Error::Memory`]; the caller passes them to
/// [`Stops::fail`](crate::pipeline::Stops::fail).
pub(crate) fn write(store: &BucketStore, disk: usize) -> Result<()> {
    BucketWriter::new(store, disk).run()
}

/// The blocks of an extent, where it goes, and where among its bucket's checksums its own begin.
struct TakenExtent {
    bucket: usize,
    blocks: Vec<(Buffer, usize)>,
    at: u64,
    first_crc: usize,
}

/// A write on its way.
struct WriteInFlight {
    bucket: usize,
    /// The bytes that should be written.
    bytes: usize,
    /// The rest of its buffer, where blocks were joined.
    rest: Option<Buffer>,
}

struct BucketWriter<'a> {
    store: &'a BucketStore,
    disk: usize,
    storage: &'a Arc<dyn Storage>,
    completions: Completions,
    /// Whether blocks are joined before they are written.
    joins: bool,
    /// Free memory to join them in.
    joined: Vec<Buffer>,
    /// Writes by token.
    flying: Vec<Option<WriteInFlight>>,
    in_flight: usize,
    /// Where the next extent goes.
    next: u64,
    allocated: u64,
}

impl<'a> BucketWriter<'a> {
    pub(super) fn new(store: &'a BucketStore, disk: usize) -> Self {
        let joined = std::mem::take(&mut *store.joined[disk].lock());
        BucketWriter {
            store,
            disk,
            storage: &store.disks[disk],
            completions: Completions::new(),
            joins: !joined.is_empty(),
            joined,
            flying: Vec::new(),
            in_flight: 0,
            next: HEADER_BYTES as u64,
            allocated: 0,
        }
    }

    pub(super) fn run(&mut self) -> Result<()> {
        loop {
            let full = match self.joins {
                true => self.joined.is_empty(),
                false => self.in_flight * self.store.plan.block_bytes >= FLIGHT_BYTES,
            };
            let taken = if full { None } else { self.take()? };
            match taken {
                Some(taken) => self.put(taken)?,
                None if self.in_flight > 0 => self.reap()?,
                None => return Ok(()),
            }
        }
    }

    /// The next extent's blocks and its place. `None` when there is no extent now and something is
    /// in flight, or when no more will come.
    fn take(&mut self) -> Result<Option<TakenExtent>> {
        let plan = &self.store.plan;
        let mut state = self.store.pool();
        let bucket = loop {
            if state.stopped {
                return Err(Error::Cancelled);
            }
            if let Some(bucket) = state.choose(plan, self.store.shared) {
                break bucket;
            }
            if self.in_flight > 0 || state.closed {
                return Ok(None);
            }
            let _waiting = wait(activity::WorkerState::Input);
            self.store.filled.wait(&mut state);
        };
        let most = if plan.policy.is_double() { 1 } else { EXTENT_BYTES_MAX / plan.block_bytes };
        let n = state.pending[bucket].len().min(most.max(1));
        let blocks: Vec<_> = state.pending[bucket].drain(..n).collect();
        state.pending_blocks -= n;
        let bytes: u64 = blocks.iter().map(|(_, len)| *len as u64).sum();
        let at = self.next;
        self.next += bytes.next_multiple_of(4096);
        state.written_bytes += bytes;
        if let Some(limit_bytes) = plan.limit_bytes.filter(|l| state.written_bytes > *l) {
            return Err(Error::TempLimit { limit_bytes });
        }
        let extent = BucketExtent { file: self.disk as u32, physical: at, bytes };
        state.extents[bucket].push(extent);
        let grown = (size_of::<BucketExtent>() + 4 * n) as u64;
        state.index_bytes += grown;
        // Vectors grow by doubling.
        let lists = (2 * state.index_bytes).next_multiple_of(INDEX_STEP_BYTES);
        state.lists.grow_to(lists)?;
        // The order of checksums is that of extents: decided here, computed without the lock.
        let first_crc = state.crcs[bucket].len();
        state.crcs[bucket].resize(first_crc + n, 0);
        drop(state);
        // Each full block wakes one writer, which may have taken the blocks of several.
        self.store.filled.notify_one();
        Ok(Some(TakenExtent { bucket, blocks, at, first_crc }))
    }

    /// Starts the writes of an extent, waiting for earlier ones where memory to join is short.
    fn put(&mut self, taken: TakenExtent) -> Result<()> {
        if self.next > self.allocated {
            let len = (self.next - self.allocated).next_multiple_of(self.store.plan.step_bytes());
            self.storage.run(Operation::Allocate { offset: self.allocated, len })?;
            self.allocated += len;
        }
        if self.joins { self.put_joined(taken) } else { self.put_blocks(taken) }
    }

    fn put_blocks(
        &mut self,
        TakenExtent { bucket, blocks, mut at, first_crc }: TakenExtent,
    ) -> Result<()> {
        for (number, (mut block, len)) in blocks.into_iter().enumerate() {
            let crc = crc32c::crc32c(&block[..len]);
            self.store.pool().crcs[bucket][first_crc + number] = crc;
            let whole = len.next_multiple_of(4096);
            block[len..whole].fill(0);
            // Only the last block of a bucket is short; the rest of its memory is not needed again.
            drop(block.split_off(whole));
            self.submit(bucket, at, block, None);
            at += whole as u64;
        }
        Ok(())
    }

    fn put_joined(
        &mut self,
        TakenExtent { bucket, blocks, mut at, first_crc }: TakenExtent,
    ) -> Result<()> {
        let mut blocks = blocks.into_iter().peekable();
        let mut crcs = Vec::with_capacity(blocks.len());
        while blocks.peek().is_some() {
            while self.joined.is_empty() {
                self.reap()?;
            }
            let mut joined = self.joined.pop().expect("not empty");
            let mut filled = 0;
            let mut copied = Vec::new();
            while let Some((block, len)) =
                blocks.next_if(|(_, len)| filled + len.next_multiple_of(4096) <= joined.len())
            {
                crcs.push(crc32c::crc32c(&block[..len]));
                joined[filled..filled + len].copy_from_slice(&block[..len]);
                let whole = len.next_multiple_of(4096);
                joined[filled + len..filled + whole].fill(0);
                filled += whole;
                copied.push(block);
            }
            self.store.give_back(copied);
            let rest = joined.split_off(filled);
            self.submit(bucket, at, joined, Some(rest));
            at += filled as u64;
        }
        self.store.pool().crcs[bucket][first_crc..first_crc + crcs.len()].copy_from_slice(&crcs);
        Ok(())
    }

    fn submit(&mut self, bucket: usize, offset: u64, buffer: Buffer, rest: Option<Buffer>) {
        let free = self.flying.iter().position(Option::is_none);
        let token = free.unwrap_or_else(|| {
            self.flying.push(None);
            self.flying.len() - 1
        });
        self.flying[token] = Some(WriteInFlight { bucket, bytes: buffer.len(), rest });
        self.in_flight += 1;
        let operation = Operation::Write { offset, buffer };
        self.storage.submit(token as u64, operation, &self.completions);
    }

    fn reap(&mut self) -> Result<()> {
        let done = {
            let _waiting = wait(activity::WorkerState::Writing);
            self.completions.wait(&*self.storage.clock())
        };
        self.in_flight -= 1;
        let flying = self.flying[done.token as usize].take();
        let WriteInFlight { bucket, bytes, rest } = flying.expect("in flight");
        let written = done.result?;
        if written != bytes {
            let text = format!("{}: {written} of {bytes} bytes written", self.storage.name());
            return Err(Error::Io(std::io::Error::new(std::io::ErrorKind::WriteZero, text)));
        }
        let mut buffer = done.buffer.expect("a write returns its buffer");
        if let Some(rest) = rest {
            buffer.unsplit(rest).expect("the rest follows what was written");
            self.joined.push(buffer);
            return Ok(());
        }
        // A tail that was handed to the writers at the end was not counted.
        let mut state = self.store.pool();
        state.held[bucket] = state.held[bucket].saturating_sub(1);
        drop(state);
        self.store.give_back(vec![buffer]);
        Ok(())
    }
}

impl Drop for BucketWriter<'_> {
    fn drop(&mut self) {
        // Buffers in flight belong to the kernel until they come back.
        while self.in_flight > 0 {
            let _ = self.completions.wait(&*self.storage.clock());
            self.in_flight -= 1;
        }
    }
}
