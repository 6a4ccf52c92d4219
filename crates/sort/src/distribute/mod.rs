//! The distribution sort: records are split by key range first, and each range is sorted later.
//!
//! ```text
//!   inputs ──► chunks ──► batches ──► store ──► extents on disk   ──►   one bucket after the other:
//!     read      (spans)    part         pool      one writer a disk       read, sort, hand out
//! ```
//!
//! A merge sort sorts first and compares later. Here the first pass only looks for a bucket (a
//! search over a few thousand bytes), and the second one sorts buckets that fit into memory. So the
//! work per byte does not grow with the number of runs, and only a little when records get small.
//! The idea is TritonSort's; `store` (one pool for all disks) and `partition` (splitters are
//! sampled) say what is different.
//!
//! Equal keys keep input order: batches are split in parallel and appended in turn. A bucket that
//! does not fit into memory, whatever the sample promised, is split again by a sample of itself. A
//! bucket of one key needs no sort and is streamed as it is.

mod batch;
pub(crate) mod bucket;
mod fixed;
pub(crate) mod format;
pub(crate) mod one_pass;
mod partition;
mod plan;
mod sampling;
mod store;
pub(crate) mod stream;
#[cfg(any(test, feature = "trial"))]
pub mod trial;

use std::io::Read;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

use merganser_storage::{Buffer, Completions, Storage};
use parking_lot::Mutex;

use batch::Batch;
use bucket::{BucketPiece, BucketSet, StoredBucket, slice_bytes};
use partition::{Partition, SampleKey};
pub(crate) use plan::DistributePlan;
use store::{Received, Store, StorePlan, WritePolicy};
use stream::{PieceStream, StreamOptions, least_memory_bytes};

use crate::access::with_access;
use crate::activity::{self, WorkerState, wait};
use crate::budget::Reservation;
use crate::key::Order;
use crate::pipeline::{Crew, Stops};
use crate::plan::Sample;
use crate::record::Format;
use crate::run::Input;
use crate::run::chunk::Chunk;
use crate::run::chunk_reader::ChunkReader;
use crate::{Budget, Error, Progress, Result, shares};

/// How often a bucket may be split without getting smaller before the sort gives up.
const STUCK_MAX: u32 = 8;

/// The settings of a distribution.
pub(crate) struct Distributor<'a> {
    pub(crate) order: Arc<Order>,
    pub(crate) budget: Budget,
    pub(crate) threads: usize,
    pub(crate) sample: Sample,
    /// Trust the leading bits of keys.
    pub(crate) uniform: bool,
    pub(crate) limit_bytes: Option<u64>,
    /// Makes the files of one pass, one per disk.
    pub(crate) create: &'a (dyn Fn(usize) -> Result<Vec<Arc<dyn Storage>>> + Sync),
    pub(crate) progress: &'a dyn Progress,
}

/// Records in buckets that each fit into memory.
pub(crate) struct Distributed {
    set: Arc<BucketSet>,
    /// The header row of csv.
    pub(crate) header: Vec<u8>,
    pub(crate) input_bytes: u64,
    /// Bytes written; bytes of buckets that were split again count twice.
    pub(crate) written_bytes: u64,
    /// Buckets that were too large.
    pub(crate) split_again: u64,
    _lists: Vec<Reservation>,
}

/// A bucket in a file that is whole.
pub(crate) struct Sealed<'a> {
    pub(crate) bucket: &'a StoredBucket,
    /// Number of its file, and its own number there.
    pub(crate) file: usize,
    pub(crate) number: u32,
    /// Checksum of the file's index.
    pub(crate) index_crc: u32,
}

/// The result of one pass over some records.
struct Pass {
    received: Vec<Received>,
    lists: Reservation,
    partition: Partition,
    plan: DistributePlan,
    header: Vec<u8>,
    input_bytes: u64,
}

/// The reader's ends of the channels between it and the workers.
struct Chunks<'a> {
    empty: Receiver<Chunk>,
    jobs: Sender<Job>,
    /// Set with the first chunk at the latest.
    known: &'a OnceLock<Partition>,
    plan: &'a DistributePlan,
}

/// A span of a chunk, to be split and appended in turn.
struct Job {
    chunk: Arc<Chunk>,
    span: usize,
    turn: u64,
}

impl Distributor<'_> {
    /// Splits all records of `inputs` into buckets, and splits buckets again that do not fit into
    /// memory, until all of them fit.
    ///
    /// # Errors
    /// Bad input, a full disk, too little memory, cancellation, the storage's own.
    pub(crate) fn distribute(&self, inputs: Vec<Input>) -> Result<Distributed> {
        let total = inputs.iter().map(Input::size).try_fold(0u64, |sum, size| Some(sum + size?));
        let plan = DistributePlan::new(self.budget.free_bytes(), total, self.sample, self.threads)?;
        let partition = if self.uniform {
            Some(Partition::uniform(&self.order, plan.buckets as usize)?)
        } else {
            let (record_bytes, buckets) = (self.sample.record_bytes, plan.buckets);
            sampling::at_random_places(&inputs, &self.order, record_bytes, buckets)?
                .map(|mut sample| Partition::choose(&mut sample, plan.buckets as usize))
        };
        let files = (self.create)(0)?;
        let reader = ChunkReader::new(inputs, self.order.format(), plan.chunk_bytes as usize);
        let pass = self.pass(reader, plan, partition, total, &files, self.limit_bytes)?;
        let mut done = Distributed {
            set: Arc::new(BucketSet {
                files,
                buckets: Vec::new(),
                order: Arc::clone(&self.order),
                unique: self.order.unique(),
                record_bytes_max: plan.chunk_bytes,
                slice_bytes: slice_bytes(&self.budget),
            }),
            header: pass.header.clone(),
            input_bytes: pass.input_bytes,
            written_bytes: 0,
            split_again: 0,
            _lists: Vec::new(),
        };
        self.keep(&mut done, pass, 0, 0)?;
        Ok(done)
    }

    /// Appends the buckets of a pass to `done`, and splits those that are too large again. The
    /// files of the pass are those from number `first` on.
    fn keep(&self, done: &mut Distributed, pass: Pass, first: usize, stuck: u32) -> Result<()> {
        let Pass { received, lists, partition, plan, .. } = pass;
        // From here on the memory of each bucket is known.
        drop(lists);
        done.written_bytes += received.iter().map(|r| r.bytes).sum::<u64>();
        for (number, mut received) in received.into_iter().enumerate() {
            if received.bytes == 0 {
                continue;
            }
            let (lower, one_key) = partition.lower(number);
            received.extents.iter_mut().for_each(|extent| extent.file += first as u32);
            let bucket = StoredBucket {
                lower: lower.to_vec(),
                one_key,
                bytes: received.bytes,
                records: received.records,
                key_bytes: received.key_bytes,
                block_bytes: plan.block_bytes as u32,
                extents: received.extents,
                crcs: received.crcs,
            };
            if self.fits(&done.set, &bucket) {
                let list = self.budget.reserve(bucket.memory_bytes(), "the list of buckets")?;
                done._lists.push(list);
                Arc::get_mut(&mut done.set).expect("not shared yet").buckets.push(bucket);
            } else {
                self.part_again(done, bucket, received.sample, stuck)?;
            }
        }
        Ok(())
    }

    /// Whether one bucket can be sorted in memory.
    fn fits(&self, set: &BucketSet, bucket: &StoredBucket) -> bool {
        let alone = BucketSet {
            files: set.files.clone(),
            buckets: vec![bucket.clone()],
            order: Arc::clone(&set.order),
            unique: set.unique,
            record_bytes_max: set.record_bytes_max,
            slice_bytes: set.slice_bytes,
        };
        least_memory_bytes(&alone, &alone.pieces()) <= stream_room(&self.budget)
    }

    fn part_again(
        &self,
        done: &mut Distributed,
        bucket: StoredBucket,
        mut sample: Vec<SampleKey>,
        stuck: u32,
    ) -> Result<()> {
        let (bytes, lower) = (bucket.bytes, bucket.lower.clone());
        if stuck > STUCK_MAX {
            return Err(Error::Indivisible);
        }
        done.split_again += 1;
        let plan =
            DistributePlan::new(self.budget.free_bytes(), Some(bytes), self.sample, self.threads)?;
        // Samples of itself that are too small are worse than those of the records' first chunk.
        let buckets = ((plan.buckets as usize) << stuck).min(plan.blocks as usize / 2);
        let partition = (sample.len() >= 2).then(|| Partition::choose(&mut sample, buckets));
        let files = (self.create)(done.set.files.len())?;
        let alone = Arc::new(BucketSet {
            files: done.set.files.clone(),
            buckets: vec![bucket],
            order: Arc::clone(&self.order),
            unique: false,
            record_bytes_max: plan.chunk_bytes,
            slice_bytes: slice_bytes(&self.budget),
        });
        // The header row was taken off already.
        let format = match self.order.format() {
            Format::Csv { separator, .. } => Format::Csv { separator, header: false },
            other => other,
        };
        let reader = Box::new(BucketReader::new(Arc::clone(&alone)));
        let input = Input::Stream { name: "a bucket".to_owned(), reader };
        let reader = ChunkReader::new(vec![input], format, plan.chunk_bytes as usize);
        let left = self.limit_bytes.map(|limit| limit.saturating_sub(done.written_bytes));
        let pass = self.pass(reader, plan, partition, Some(bytes), &files, left)?;
        let completions = Completions::new();
        for _ in 0..alone.discard(0, &completions) {
            // If a file system can't give space back, the sort takes more space but is correct.
            let _ = completions.wait(&*alone.files[0].clock());
        }
        drop(alone);
        let first = done.set.files.len();
        Arc::get_mut(&mut done.set).expect("not shared yet").files.extend(files);
        let smaller = pass.received.iter().all(|received| received.bytes < bytes);
        let at = done.set.buckets.len();
        self.keep(done, pass, first, if smaller { 0 } else { stuck + 1 })?;
        // The bound of the bucket that was split is lower than its first splitter's.
        let set = Arc::get_mut(&mut done.set).expect("not shared yet");
        if let Some(bucket) = set.buckets.get_mut(at).filter(|bucket| bucket.lower < lower) {
            bucket.lower = lower;
        }
        Ok(())
    }

    /// Reads all records of `reader` and writes them to `files` by bucket.
    fn pass(
        &self,
        mut reader: ChunkReader,
        plan: DistributePlan,
        partition: Option<Partition>,
        total_bytes: Option<u64>,
        files: &[Arc<dyn Storage>],
        limit_bytes: Option<u64>,
    ) -> Result<Pass> {
        let _memory = self.budget.reserve(plan.memory_bytes(self.threads), "distributing")?;
        let known = OnceLock::new();
        if let Some(partition) = partition {
            let _ = known.set(partition);
        }
        let buckets = known.get().map_or(plan.buckets as usize, Partition::buckets);
        let splitters = known.get().map_or(0, Partition::memory_bytes);
        let _splitters = self.budget.reserve(splitters, "the bounds of buckets")?;
        let store_plan = StorePlan {
            buckets,
            block_bytes: plan.block_bytes as usize,
            blocks: plan.blocks as usize,
            policy: WritePolicy::Demand,
            total_bytes: total_bytes.map(|total| total / files.len() as u64),
            limit_bytes,
        };
        let lists = self.budget.reserve(0, "the list of extents")?;
        let store = Store::new(store_plan, files.to_vec(), lists)?;
        let (empty_to, empty_from) = channel::<Chunk>();
        let (job_to, job_from) = channel::<Job>();
        for _ in 0..plan::CHUNKS {
            empty_to.send(Chunk::new(plan.chunk_bytes as usize)?).expect("not closed");
        }
        let jobs = Arc::new(Mutex::new(job_from));
        let chunks = Chunks { empty: empty_from, jobs: job_to, known: &known, plan: &plan };
        let input_bytes = std::thread::scope(|scope| {
            let (store, known) = (&store, &known);
            let crew = Crew::new(scope, store);
            let started = || -> Result<_> {
                let mut workers = Vec::new();
                for disk in 0..files.len() {
                    crew.spawn("write", move || store::writer::write(store, disk))?;
                }
                for _ in 0..self.threads {
                    let (jobs, empty_to) = (Arc::clone(&jobs), empty_to.clone());
                    let work = move || self.part(&jobs, &empty_to, known, &plan, buckets, store);
                    workers.push(crew.spawn("part", work)?);
                }
                Ok(workers)
            };
            let workers = started().inspect_err(|_| store.fail(Error::Cancelled))?;
            // The workers' own are the last.
            drop((empty_to, jobs));
            let read = {
                let _worker = activity::enter("read");
                self.read(&mut reader, chunks).map_err(|error| store.fail(error))
            };
            for worker in workers {
                // A worker that panicked has stopped the others, and the scope passes the panic on.
                let _ = worker.join();
            }
            store.close();
            Ok::<u64, Error>(read.unwrap_or(0))
        })?;
        let header = reader.header().unwrap_or_default().to_vec();
        let (received, lists) = store.finish()?;
        let partition = known.into_inner().expect("set with the first chunk");
        Ok(Pass { received, lists, partition, plan, header, input_bytes })
    }

    /// Reads chunk after chunk, and hands out their spans as jobs. Returns the bytes read.
    fn read(&self, reader: &mut ChunkReader, chunks: Chunks<'_>) -> Result<u64> {
        let Chunks { empty, jobs, known, plan } = chunks;
        let (mut turn, mut input_bytes) = (0, 0);
        let mut spare = None;
        // Workers hang up when they fail, and say why themselves.
        let next = || {
            let _waiting = wait(WorkerState::Memory);
            empty.recv().ok()
        };
        while let Some(mut chunk) = spare.take().or_else(next) {
            reader.fill(&mut chunk, self.progress)?;
            input_bytes += chunk.data_bytes() as u64;
            known.get_or_init(|| {
                let mut sample = sampling::of_chunk(&chunk, &self.order, plan.buckets);
                Partition::choose(&mut sample, plan.buckets as usize)
            });
            let chunk = Arc::new(chunk);
            for span in 0..chunk.spans.len() {
                let job = Job { chunk: Arc::clone(&chunk), span, turn };
                turn += 1;
                if jobs.send(job).is_err() {
                    return Ok(input_bytes);
                }
            }
            // The last one that lets go of it has it.
            spare = Arc::into_inner(chunk);
            if reader.finished() {
                break;
            }
        }
        Ok(input_bytes)
    }

    /// Parts jobs until there are no more.
    fn part(
        &self,
        jobs: &Mutex<Receiver<Job>>,
        empty_to: &Sender<Chunk>,
        known: &OnceLock<Partition>,
        plan: &DistributePlan,
        buckets: usize,
        store: &Store,
    ) -> Result<()> {
        let mut batch = Batch::new(plan.batch_bytes as usize, buckets);
        loop {
            let next = {
                let _waiting = wait(WorkerState::Input);
                jobs.lock().recv()
            };
            let Ok(Job { chunk, span, turn: number }) = next else { return Ok(()) };
            if self.progress.cancelled() {
                return Err(Error::Cancelled);
            }
            let partition = known.get().expect("set before the first job");
            let mut rest = &chunk.bytes()[chunk.spans[span].clone()];
            let mut turn = None;
            with_access!(&*self.order, framing, access => {
                while !rest.is_empty() {
                    let n = batch.fill(framing, access, &self.order, partition, rest);
                    let turn = match &mut turn {
                        Some(turn) => turn,
                        none => none.insert(store.turn(number)?),
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

/// The memory that sorted buckets may take of a budget.
pub(crate) fn stream_room(budget: &Budget) -> u64 {
    shares::of_stream(budget.free_bytes())
}

/// A bucket's records, in input order, as a stream.
struct BucketReader {
    set: Arc<BucketSet>,
    at: u64,
    slice: Buffer,
    rest: Range<usize>,
}

/// Bytes that a [`BucketReader`] reads at a time, at least.
const SLICE_BYTES: u64 = 1 << 20;

impl BucketReader {
    /// Reads the only bucket of `set`.
    fn new(set: Arc<BucketSet>) -> Self {
        BucketReader { set, at: 0, slice: Buffer::empty(), rest: 0..0 }
    }
}

impl Read for BucketReader {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let bucket = &self.set.buckets[0];
        if self.rest.is_empty() && self.at < bucket.bytes {
            let len = SLICE_BYTES.max(u64::from(bucket.block_bytes)).min(bucket.bytes - self.at);
            let piece =
                BucketPiece { bucket: 0, from: self.at, bytes: len, output: 0, slice: true };
            let mut memory = std::mem::replace(&mut self.slice, Buffer::empty());
            if memory.is_empty() {
                memory = Buffer::try_new(len.next_multiple_of(4096) as usize)?;
            }
            let loaded = self.set.load(piece, memory).finish();
            self.slice = loaded.map_err(std::io::Error::from)?;
            self.at += len;
            self.rest = 0..len as usize;
        }
        let n = out.len().min(self.rest.len());
        out[..n].copy_from_slice(&self.slice[self.rest.start..self.rest.start + n]);
        self.rest.start += n;
        Ok(n)
    }
}

impl Distributed {
    /// Number of files.
    pub(crate) fn files(&self) -> usize {
        self.set.files.len()
    }

    /// Number of buckets.
    pub(crate) fn buckets(&self) -> usize {
        self.set.buckets.len()
    }

    /// The order of the records.
    pub(crate) fn order(&self) -> &Order {
        &self.set.order
    }

    /// Whether duplicates are removed while buckets are sorted.
    pub(crate) fn is_unique(&self) -> bool {
        self.set.unique
    }

    /// All records in order. Space on the disks is given back behind the stream.
    ///
    /// # Errors
    /// [`Error::Memory`] with the least that works.
    pub(crate) fn portions(
        &self,
        align: Option<u64>,
        budget: &Budget,
        threads: usize,
    ) -> Result<PieceStream> {
        let options = StreamOptions { threads, align, discard: true };
        let (set, pieces) = (Arc::clone(&self.set), self.set.pieces());
        PieceStream::new(set, pieces, stream_room(budget), options, budget)
    }

    /// Ends the files durably, and says where each bucket is. Files without a bucket are not ended.
    ///
    /// # Errors
    /// The storage's own.
    pub(crate) fn seal(&self, spec: &str) -> Result<Vec<Sealed<'_>>> {
        let mut listed = vec![(0, 0); self.set.buckets.len()];
        for (file, storage) in self.set.files.iter().enumerate() {
            let is_here = |bucket: &StoredBucket| bucket.extents[0].file as usize == file;
            let here: Vec<usize> =
                (0..listed.len()).filter(|i| is_here(&self.set.buckets[*i])).collect();
            let buckets: Vec<&StoredBucket> = here.iter().map(|i| &self.set.buckets[*i]).collect();
            let Some(first) = buckets.first() else { continue };
            let crc = format::seal(&**storage, spec, first.block_bytes, &buckets)?;
            for (number, i) in here.into_iter().enumerate() {
                listed[i] = (number as u32, crc);
            }
        }
        let sealed = self.set.buckets.iter().zip(listed);
        let sealed = sealed.map(|(bucket, (number, index_crc))| Sealed {
            bucket,
            file: bucket.extents[0].file as usize,
            number,
            index_crc,
        });
        Ok(sealed.collect())
    }

    /// Bytes of all records.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.set.buckets.iter().map(|bucket| bucket.bytes).sum()
    }

    /// Number of all records.
    pub(crate) fn records(&self) -> u64 {
        self.set.buckets.iter().map(|bucket| bucket.records).sum()
    }
}
