//! The distribution sort: records are split by key range first, and each range is sorted later.
//!
//! ```text
//!   inputs ──► chunks ──► batches ──► store ──► extents on disk   ──►   one bucket after the other:
//!     read      (spans)    split        pool      one writer per disk      read, sort, hand out
//! ```
//!
//! A merge sort sorts first and compares later. Here the first pass only looks for a bucket (a
//! search over a few thousand bytes), and the second one sorts buckets that fit into memory. So the
//! work per byte does not grow with the number of runs, and only a little when records get small.
//! The idea is TritonSort's; `store` (one pool for all disks) and `partition` (splitters are
//! sampled) say what is different. `pass` has the threads of one pass.
//!
//! Equal keys keep input order: batches are split in parallel and appended in turn. A bucket that
//! does not fit into memory, whatever the sample promised, is split again by a sample of itself. A
//! bucket of one key needs no sort and is streamed as it is.
//!
//! Records that vary in length are merged unless the user asks for buckets: a distribution takes no record longer
//! than about a fortieth of the memory (docs/core/guide.md).
//!
//! A distribution does not consume its inputs. A run is whole, synced and named in the journal before the chunk
//! that it came from is given back. A bucket is whole only at the end: until then its last records are in memory,
//! and its file has no index. If all buckets were closed from time to time, each would become several short
//! segments, which no reader takes. So `--consume` with `--strategy distribute` is refused. A finished view of
//! buckets is consumed like one of runs: from bucket to bucket, and from block to block in a bucket of one key.

mod batch;
pub(crate) mod bucket;
mod fixed;
pub(crate) mod format;
pub(crate) mod one_pass;
mod partition;
mod pass;
mod plan;
mod sampling;
mod store;
pub(crate) mod stream;
#[cfg(any(test, feature = "trial"))]
#[cfg_attr(not(feature = "trial"), allow(unreachable_pub, reason = "the tests alone name it"))]
pub mod trial;

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use merganser_storage::{Buffer, Completions, Storage};

use bucket::{BucketPiece, BucketSet, StoredBucket, slice_bytes};
use partition::{Partition, SampleKey};
use pass::{Pass, PassOptions};
pub(crate) use plan::DistributePlan;
use stream::{PieceStream, StreamOptions, least_memory_bytes};

use crate::budget::Reservation;
use crate::key::Order;
use crate::plan::RecordSample;
use crate::run::SortInput;
use crate::run::chunk_reader::ChunkReader;
use crate::run::header_lines::HeaderRule;
use crate::{Budget, Error, Progress, Result, shares};

/// How often a bucket may be split without getting smaller before the sort gives up.
const STUCK_MAX: u32 = 8;

/// The settings of a distribution.
pub(crate) struct Distributor<'a> {
    pub(crate) order: Arc<Order>,
    pub(crate) budget: Budget,
    pub(crate) threads: usize,
    pub(crate) sample: RecordSample,
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

impl Distributor<'_> {
    /// Splits all records of `inputs` into buckets, and splits buckets again that do not fit into
    /// memory, until all of them fit.
    ///
    /// # Errors
    /// Bad input, a full disk, too little memory, cancellation, the storage's own.
    pub(crate) fn distribute(&self, inputs: Vec<SortInput>) -> Result<Distributed> {
        let total =
            inputs.iter().map(SortInput::size).try_fold(0u64, |sum, size| Some(sum + size?));
        let plan = DistributePlan::new(self.budget.free_bytes(), total, self.sample, self.threads)?;
        let partition = if self.uniform {
            Some(Partition::uniform(&self.order, plan.buckets as usize)?)
        } else {
            let (record_bytes, buckets) = (self.sample.record_bytes, plan.buckets);
            sampling::at_random_places(&inputs, &self.order, record_bytes, buckets)?
                .map(|mut sample| Partition::choose(&mut sample, plan.buckets as usize))
        };
        let files = (self.create)(0)?;
        let reader = ChunkReader::new(inputs, self.order.format(), plan.chunk_bytes as usize)
            .with_header(HeaderRule::of_order(self.order.spec()));
        let options = PassOptions {
            plan,
            partition,
            total_bytes: total,
            files: &files,
            limit_bytes: self.limit_bytes,
        };
        let pass = self.pass(reader, options)?;
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
                self.split_again(done, bucket, received.sample, stuck)?;
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

    fn split_again(
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
        let reader = Box::new(BucketReader::new(Arc::clone(&alone)));
        let input = SortInput::Stream { name: "a bucket".to_owned(), reader };
        // The header and the byte order mark were taken off already.
        let reader =
            ChunkReader::of_records(vec![input], self.order.format(), plan.chunk_bytes as usize);
        let options = PassOptions {
            plan,
            partition,
            total_bytes: Some(bytes),
            files: &files,
            limit_bytes: self.limit_bytes.map(|limit| limit.saturating_sub(done.written_bytes)),
        };
        let pass = self.pass(reader, options)?;
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
