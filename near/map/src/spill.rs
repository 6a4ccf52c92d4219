//! Spills: rows of full tables go to a sort of their own, which knows runs, passes and disks.
//!
//! ```text
//!   worker: full table ──records──► batch ──┐  bounded
//!   worker: full table ──records──► batch ──┼──channel──► SpillReader ──► sort ──► view, or reduced rows
//! ```
//!
//! The sort begins with the first batch. Without a spill nothing is sorted. Where there is more than the memory of one
//! sort can index, another one follows (`sorting`).

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use merganser_sort::budget::Reservation;
use merganser_sort::reduced::Encoding;
use merganser_sort::{Budget, Error};
use parking_lot::Mutex;

use crate::ssdlet::SsdletError;

/// Bytes of one batch, but for a record that is longer.
pub(super) const BATCH_BYTES: usize = 64 << 10;
/// Batches that wait for the sort.
pub(super) const BATCHES: usize = 2;

/// Records on their way to the sort.
pub(super) struct SpillBatch {
    bytes: Vec<u8>,
    records: u64,
    key_bytes: u64,
    _memory: Reservation,
}

/// State of all spills of one map.
#[derive(Debug, Default)]
pub(super) struct Spills {
    /// Times that a table was spilled, and records that went.
    pub(super) count: AtomicU64,
    pub(super) records: AtomicU64,
    /// Workers have failed: what came so far is not all.
    broken: AtomicBool,
    /// The sort has been told so.
    told: AtomicBool,
}

impl Spills {
    /// Ends the sort with an error.
    pub(super) fn break_off(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    /// Whether the sort has failed because the workers have, and not for a reason of its own.
    pub(super) fn ended_sort(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }

    /// Whether there was one.
    pub(super) fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }
}

/// The way of one worker's records to the sort.
#[derive(Clone)]
pub(super) struct SpillWriter {
    spills: Arc<Spills>,
    sender: SyncSender<SpillBatch>,
    encoding: Encoding,
    /// The memory of usual batches: enough for all of them.
    batches: Budget,
    /// Of longer ones.
    budget: Budget,
}

/// A channel of spills; its writer is cloned for each worker. Batches are of `batch_bytes`, which the caller
/// holds, and those of long records of `budget`.
pub(super) fn channel(
    spills: &Arc<Spills>,
    encoding: Encoding,
    (batch_bytes, budget): (u64, &Budget),
) -> (SpillWriter, Receiver<SpillBatch>) {
    let (sender, receiver) = sync_channel(BATCHES);
    let (spills, budget) = (Arc::clone(spills), budget.clone());
    let batches = Budget::new(batch_bytes);
    (SpillWriter { spills, sender, encoding, batches, budget }, receiver)
}

/// One spill that is being written.
pub(super) struct Spilling<'a> {
    writer: &'a SpillWriter,
    batch: Option<SpillBatch>,
    records: u64,
}

impl SpillWriter {
    /// Begins a spill.
    pub(super) fn begin(&self) -> Spilling<'_> {
        self.spills.count.fetch_add(1, Ordering::Relaxed);
        Spilling { writer: self, batch: None, records: 0 }
    }

    fn batch(&self, bytes: usize) -> Result<SpillBatch, Error> {
        let budget = if bytes <= BATCH_BYTES { &self.batches } else { &self.budget };
        let bytes = bytes.max(BATCH_BYTES);
        let memory = budget.reserve(bytes as u64, "spilling")?;
        let bytes = Vec::with_capacity(bytes);
        Ok(SpillBatch { bytes, records: 0, key_bytes: 0, _memory: memory })
    }

    fn send(&self, batch: SpillBatch) -> Result<(), SsdletError> {
        // The sort has failed, and its error is the one to show.
        self.sender.send(batch).map_err(|_| Error::Cancelled.into())
    }
}

impl Spilling<'_> {
    /// One more row.
    ///
    /// # Errors
    /// Too little memory; [`Error::Cancelled`] when the sort has failed.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), SsdletError> {
        let encoding = self.writer.encoding;
        let Some(bytes) = encoding.record_bytes(key, value) else {
            let detail = "a key and its value are longer than a record can be";
            return Err(SsdletError::Failed(detail.to_owned()));
        };
        let has_room = |batch: &mut SpillBatch| batch.bytes.capacity() - batch.bytes.len() >= bytes;
        if self.batch.as_mut().is_some_and(|batch| !has_room(batch)) {
            self.flush()?;
        }
        let batch = match &mut self.batch {
            Some(batch) => batch,
            None => self.batch.insert(self.writer.batch(bytes)?),
        };
        encoding.push(key, value, &mut batch.bytes);
        batch.records += 1;
        batch.key_bytes += key.len() as u64;
        self.records += 1;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SsdletError> {
        self.batch.take().map_or(Ok(()), |batch| self.writer.send(batch))
    }

    /// After the last row.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when the sort has failed.
    pub(super) fn finish(mut self) -> Result<(), SsdletError> {
        self.writer.spills.records.fetch_add(self.records, Ordering::Relaxed);
        self.flush()
    }
}

/// All records of the spills, for one sort after another: each takes as many as its memory can index.
pub(super) struct SpillSource {
    spills: Arc<Spills>,
    receiver: Receiver<SpillBatch>,
    /// The batch that is taken next, and where.
    current: Option<SpillBatch>,
    at: usize,
    /// The input of the sort under way: bytes, records, bytes of keys.
    taken: (u64, u64, u64),
}

/// Mean lengths, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeanLengths {
    pub(super) record_bytes: f64,
    pub(super) key_bytes: f64,
}

/// How many bytes of records like these one sort takes.
pub(super) type Capacity = Box<dyn Fn(MeanLengths) -> u64 + Send>;

impl SpillSource {
    /// The batches of `receiver`, after the batch that came first.
    pub(super) fn new(
        spills: &Arc<Spills>,
        first: SpillBatch,
        receiver: Receiver<SpillBatch>,
    ) -> Self {
        SpillSource {
            spills: Arc::clone(spills),
            receiver,
            current: Some(first),
            at: 0,
            taken: (0, 0, 0),
        }
    }

    /// Whether there are records for another sort. Asked when a reader has ended.
    pub(super) fn has_more(&self) -> bool {
        self.current.is_some()
    }

    fn read(&mut self, out: &mut [u8], capacity: &Capacity) -> io::Result<usize> {
        while self.current.as_ref().is_some_and(|batch| self.at == batch.bytes.len()) {
            // Its memory goes back before more is waited for.
            self.current = None;
            self.current = self.receiver.recv().ok();
            self.at = 0;
        }
        if self.spills.broken.load(Ordering::Relaxed) {
            self.spills.told.store(true, Ordering::Relaxed);
            return Err(io::Error::other("the map has failed"));
        }
        let Some(batch) = &self.current else { return Ok(0) };
        if self.at == 0 {
            let (bytes, records, key_bytes) = self.taken;
            let mean = |sum: u64| sum as f64 / records.max(1) as f64;
            let mean = MeanLengths { record_bytes: mean(bytes), key_bytes: mean(key_bytes) };
            if bytes > 0 && bytes + batch.bytes.len() as u64 > capacity(mean) {
                return Ok(0);
            }
            self.taken = (
                bytes + batch.bytes.len() as u64,
                records + batch.records,
                key_bytes + batch.key_bytes,
            );
        }
        let n = out.len().min(batch.bytes.len() - self.at);
        out[..n].copy_from_slice(&batch.bytes[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

/// The input of one sort. It ends where the sort has enough.
pub(super) struct SpillReader {
    source: Arc<Mutex<SpillSource>>,
    capacity: Capacity,
}

impl SpillReader {
    /// The next records of `source`, as many as `capacity` says.
    pub(super) fn new(source: &Arc<Mutex<SpillSource>>, capacity: Capacity) -> Self {
        source.lock().taken = (0, 0, 0);
        SpillReader { source: Arc::clone(source), capacity }
    }
}

impl Read for SpillReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.source.lock().read(out, &self.capacity)
    }
}
