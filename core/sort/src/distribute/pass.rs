//! One pass over some records: every record goes to its bucket.
//!
//! ```text
//!            chunk      spans        batches           blocks
//!   reader ────────► jobs ────► workers ────► store ────────► one writer per disk ──► extents
//!      ▲                           │
//!      └───── empty chunks ◄───────┘
//! ```
//!
//! Each byte is read once, copied once into a block, and written once. The chunks are few, so a
//! reader that is ahead waits for an empty one; the store's pool bounds the workers in the same way.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

use merganser_storage::Storage;
use parking_lot::Mutex;

use super::batch::BucketBatch;
use super::partition::Partition;
use super::plan::{self, DistributePlan};
use super::store::{self, BucketStore, Received, StorePlan, WritePolicy};
use super::{Distributor, sampling};
use crate::access::with_access;
use crate::activity::{self, WorkerState, wait};
use crate::budget::Reservation;
use crate::pipeline::{Crew, Stops};
use crate::run::chunk::Chunk;
use crate::run::chunk_reader::ChunkReader;
use crate::{Error, Result};

/// The settings of a pass.
pub(super) struct PassOptions<'a> {
    pub(super) plan: DistributePlan,
    /// The bounds of the buckets. Without them the first chunk is sampled.
    pub(super) partition: Option<Partition>,
    /// Bytes of all records, if they are known.
    pub(super) total_bytes: Option<u64>,
    /// Where the records go, one file per disk.
    pub(super) files: &'a [Arc<dyn Storage>],
    /// The most that may be written.
    pub(super) limit_bytes: Option<u64>,
}

/// The result of a pass.
pub(super) struct Pass {
    pub(super) received: Vec<Received>,
    pub(super) lists: Reservation,
    pub(super) partition: Partition,
    pub(super) plan: DistributePlan,
    /// The header row of csv.
    pub(super) header: Vec<u8>,
    pub(super) input_bytes: u64,
}

/// The state that all threads of a pass share.
struct PassShared<'a> {
    distributor: &'a Distributor<'a>,
    plan: DistributePlan,
    /// Number of buckets.
    buckets: usize,
    /// Set with the first chunk at the latest.
    partition: OnceLock<Partition>,
    store: BucketStore,
}

/// A span of a chunk, to be split and appended in turn.
struct SplitJob {
    chunk: Arc<Chunk>,
    span: usize,
    turn: u64,
}

impl Distributor<'_> {
    /// Reads all records of `reader` and writes them to the files by bucket.
    pub(super) fn pass(&self, mut reader: ChunkReader, options: PassOptions<'_>) -> Result<Pass> {
        let PassOptions { plan, partition, total_bytes, files, limit_bytes } = options;
        let _memory = self.budget.reserve(plan.memory_bytes(self.threads), "distributing")?;
        let buckets = partition.as_ref().map_or(plan.buckets as usize, Partition::buckets);
        let splitter_bytes = partition.as_ref().map_or(0, Partition::memory_bytes);
        let _splitters = self.budget.reserve(splitter_bytes, "the bounds of buckets")?;
        let store_plan = StorePlan {
            buckets,
            block_bytes: plan.block_bytes as usize,
            blocks: plan.blocks as usize,
            policy: WritePolicy::Demand,
            total_bytes: total_bytes.map(|total| total / files.len() as u64),
            limit_bytes,
        };
        let lists = self.budget.reserve(0, "the list of extents")?;
        let store = BucketStore::new(store_plan, files.to_vec(), lists)?;
        let partition = partition.map_or_else(OnceLock::new, OnceLock::from);
        let work = PassShared { distributor: self, plan, buckets, partition, store };
        let input_bytes = work.run(&mut reader, files.len())?;
        let PassShared { plan, partition, store, .. } = work;
        let header = reader.preamble().unwrap_or_default().to_vec();
        let (received, lists) = store.finish()?;
        let partition = partition.into_inner().expect("set with the first chunk");
        Ok(Pass { received, lists, partition, plan, header, input_bytes })
    }
}

impl PassShared<'_> {
    /// Runs the pass: this thread reads, others split and write. Returns the bytes read. Errors of
    /// reading, splitting and writing are kept by the store.
    fn run(&self, reader: &mut ChunkReader, disks: usize) -> Result<u64> {
        let (empty_to, empty) = channel::<Chunk>();
        let (jobs_to, jobs) = channel::<SplitJob>();
        for _ in 0..plan::CHUNKS {
            empty_to.send(Chunk::new(self.plan.chunk_bytes as usize)?).expect("not closed");
        }
        let jobs = Arc::new(Mutex::new(jobs));
        std::thread::scope(|scope| {
            let store = &self.store;
            let crew = Crew::new(scope, store);
            let started = || -> Result<_> {
                for disk in 0..disks {
                    crew.spawn("write", move || store::writer::write(store, disk))?;
                }
                let worker = |_| {
                    let (jobs, empty_to) = (Arc::clone(&jobs), empty_to.clone());
                    Ok(crew.spawn("split", move || self.split(&jobs, &empty_to))?)
                };
                (0..self.distributor.threads).map(worker).collect::<Result<Vec<_>>>()
            };
            let workers = started().inspect_err(|_| store.fail(Error::Cancelled))?;
            // The reader ends when the workers have dropped their clones.
            drop((empty_to, jobs));
            let read = {
                let _worker = activity::enter("read");
                self.read(reader, &empty, &jobs_to).map_err(|error| store.fail(error))
            };
            // The workers end when all jobs are done.
            drop(jobs_to);
            for worker in workers {
                // A worker that panicked has stopped the others, and the scope passes the panic on.
                let _ = worker.join();
            }
            store.close();
            Ok(read.unwrap_or(0))
        })
    }

    /// Reads chunk after chunk, and hands out their spans as jobs. Returns the bytes read.
    fn read(
        &self,
        reader: &mut ChunkReader,
        empty: &Receiver<Chunk>,
        jobs: &Sender<SplitJob>,
    ) -> Result<u64> {
        let (mut turn, mut input_bytes) = (0, 0);
        let mut spare = None;
        // Workers hang up when they fail, and say why themselves.
        let next = || {
            let _waiting = wait(WorkerState::Memory);
            empty.recv().ok()
        };
        while let Some(mut chunk) = spare.take().or_else(next) {
            reader.fill(&mut chunk, self.distributor.progress)?;
            input_bytes += chunk.data_bytes() as u64;
            self.partition.get_or_init(|| {
                let buckets = self.plan.buckets;
                let mut sample = sampling::of_chunk(&chunk, &self.distributor.order, buckets);
                Partition::choose(&mut sample, buckets as usize)
            });
            let chunk = Arc::new(chunk);
            for span in 0..chunk.spans.len() {
                let job = SplitJob { chunk: Arc::clone(&chunk), span, turn };
                turn += 1;
                if jobs.send(job).is_err() {
                    return Ok(input_bytes);
                }
            }
            // The last thread that drops the chunk gets it back.
            spare = Arc::into_inner(chunk);
            if reader.finished() {
                break;
            }
        }
        Ok(input_bytes)
    }

    /// Splits jobs by bucket until there are no more.
    fn split(&self, jobs: &Mutex<Receiver<SplitJob>>, empty_to: &Sender<Chunk>) -> Result<()> {
        let order = &self.distributor.order;
        let mut batch = BucketBatch::new(self.plan.batch_bytes as usize, self.buckets);
        loop {
            let next = {
                let _waiting = wait(WorkerState::Input);
                jobs.lock().recv()
            };
            let Ok(SplitJob { chunk, span, turn: number }) = next else { return Ok(()) };
            if self.distributor.progress.cancelled() {
                return Err(Error::Cancelled);
            }
            let partition = self.partition.get().expect("set before the first job");
            let mut rest = &chunk.bytes()[chunk.spans[span].clone()];
            let mut turn = None;
            with_access!(&**order, framing, access => {
                while !rest.is_empty() {
                    let n = batch.fill(framing, access, order, partition, rest);
                    let turn = match &mut turn {
                        Some(turn) => turn,
                        none => none.insert(self.store.turn(number)?),
                    };
                    batch.append(turn, rest)?;
                    rest = &rest[n..];
                }
            });
            drop(turn);
            if let Some(chunk) = Arc::into_inner(chunk) {
                // The reader may have read its last chunk already.
                let _ = empty_to.send(chunk);
            }
        }
    }
}
