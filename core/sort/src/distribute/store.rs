//! Where distributed records wait until they are on disk (TritonSort 5.1).
//!
//! ```text
//!   batches ──in turn──► tail of each bucket ──full──► pending blocks ──► writer of a disk ──► extent
//!                            ▲   one block a bucket       │ the fullest bucket, all it has
//!                            └──── free blocks ◄──────────┘ once joined into one write
//! ```
//!
//! Memory is one pool of blocks that buckets take when they fill and give back when they are
//! written: a bucket that gets much holds much. A writer, whenever it is free, takes the bucket that
//! has most and writes that at one place: with `b` buckets and `m` bytes of pool, extents of about
//! `2m/b`. Receivers wait only when every block of the pool is full.
//!
//! Blocks of an extent are anywhere in the pool. If they were written one by one, each would be a
//! request, and a disk with a limit on requests (most rented disks have one) would not profit from
//! long extents. So the blocks are copied into one buffer when they are written, while the
//! checksums have them in a cache.
//!
//! TritonSort has a pool per disk, each with its own buckets. Here the disks share the pool and any
//! disk takes any bucket, so a slow disk gets fewer extents and does not delay the others. A bucket
//! is then spread over disks, and is read back from all of them at once.

pub(super) mod writer;

use std::collections::VecDeque;
use std::sync::Arc;

use merganser_storage::{Buffer, Storage};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::bucket::BucketExtent;
use super::partition::SampleKey;
use crate::activity::{self, wait};
use crate::budget::Reservation;
use crate::pipeline::{FirstError, Stops, Turn, Turns};
use crate::{Error, Result, shares};

/// The most that is written at one place.
const EXTENT_BYTES_MAX: usize = 8 << 20;
/// Bytes in flight to one disk, at most or one block.
const FLIGHT_BYTES: usize = 8 << 20;
/// The longest write of joined blocks.
const JOINED_BYTES_MAX: usize = 1 << 20;
/// Joined writes in flight to a disk, at least.
const JOINED_MIN: usize = 4;
/// Joined writes take at most one part in `JOINED_SHARE` of the pool.
const JOINED_SHARE: usize = 8;
/// Space on disk is reserved in steps of at most this.
const ALLOCATE_BYTES_MAX: u64 = 64 << 20;
/// Memory for extents and checksums is reserved in steps of this.
const INDEX_STEP_BYTES: u64 = 64 << 10;
/// Keys of the sample that buckets keep of themselves; then every second one goes.
const SAMPLE_KEYS_MAX: usize = 16 << 10;
/// Bytes of all of them.
const SAMPLE_BYTES_MAX: usize = 1 << 20;

/// Which bucket a free writer takes, and which buckets may hold memory. The engine uses one policy;
/// the feature `trial` adds the others, to be compared with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(not(feature = "trial"), allow(unreachable_pub, reason = "it is named by `trial` alone"))]
pub enum WritePolicy {
    /// The bucket with most pending blocks; any bucket may hold any share of the memory.
    #[default]
    Demand,
    /// The next bucket, in turn, that has pending blocks; memory as with `Demand`.
    #[cfg(any(test, feature = "trial"))]
    RoundRobin,
    /// Two buffers per bucket, of one size for all: one fills while the other waits or is written.
    /// Each is written in one piece and in turn. An append to a bucket whose buffers are both full
    /// waits.
    #[cfg(any(test, feature = "trial"))]
    Double,
}

impl WritePolicy {
    /// Whether each bucket has two buffers instead of a share of the pool.
    pub(super) fn is_double(self) -> bool {
        match self {
            WritePolicy::Demand => false,
            #[cfg(any(test, feature = "trial"))]
            WritePolicy::RoundRobin => false,
            #[cfg(any(test, feature = "trial"))]
            WritePolicy::Double => true,
        }
    }

    /// Whether buckets are written in turn, whatever they hold.
    fn in_turn(self) -> bool {
        self != WritePolicy::Demand
    }
}

/// The sizes and the policy of a store.
pub(super) struct StorePlan {
    /// Buckets at most.
    pub(super) buckets: usize,
    /// Bytes of a block, a multiple of 4096; for views a power of two.
    pub(super) block_bytes: usize,
    /// Blocks of the pool; more than buckets. A block is a buffer where each bucket has two.
    pub(super) blocks: usize,
    pub(super) policy: WritePolicy,
    /// Bytes that will be written, when known.
    pub(super) total_bytes: Option<u64>,
    /// The most that may be written, in bytes.
    pub(super) limit_bytes: Option<u64>,
}

impl StorePlan {
    /// Joined writes: the bytes of one, and how many a disk has. `None` where blocks are written
    /// one by one, because the pool is too small to join two of them, or because a block is a whole
    /// buffer.
    fn joined(&self, disks: usize) -> Option<(usize, usize)> {
        let share = self.blocks * self.block_bytes / JOINED_SHARE / disks;
        let bytes =
            (share / JOINED_MIN).min(JOINED_BYTES_MAX) / self.block_bytes * self.block_bytes;
        if bytes < 2 * self.block_bytes || self.policy.is_double() {
            return None;
        }
        let writes = (share / bytes).min(FLIGHT_BYTES / JOINED_BYTES_MAX);
        let left = self.blocks - disks * writes * (bytes / self.block_bytes);
        (left > shares::blocks_for(self.buckets)).then_some((bytes, writes))
    }

    /// Space on disk is reserved in steps of this: few of them, and little too much at the end.
    fn step_bytes(&self) -> u64 {
        let step = self.total_bytes.map_or(ALLOCATE_BYTES_MAX, |total| total / 16);
        step.next_multiple_of(4096).clamp(256 << 10, ALLOCATE_BYTES_MAX)
    }
}

/// The data that one bucket has received.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) bytes: u64,
    pub(super) records: u64,
    /// Bytes of encoded keys with their heads.
    pub(super) key_bytes: u64,
    /// In order of the records.
    pub(super) extents: Vec<BucketExtent>,
    /// Checksums of each block of `block_bytes`, and of the shorter last one.
    pub(super) crcs: Vec<u32>,
    /// Keys of it, drawn at even distances of bytes.
    pub(super) sample: Vec<SampleKey>,
}

/// Counts of one bucket's part of a batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Appended {
    pub(super) bytes: u32,
    pub(super) records: u32,
    pub(super) key_bytes: u32,
}

pub(super) struct BucketStore {
    plan: StorePlan,
    /// Blocks that buckets share; the others of the pool are for joined writes.
    shared: usize,
    disks: Vec<Arc<dyn Storage>>,
    /// Memory of each disk's joined writes.
    joined: Vec<Mutex<Vec<Buffer>>>,
    tails: Turns<Tails>,
    failed: FirstError,
    pool: Mutex<BlockPool>,
    /// A block came free, or everything failed.
    freed: Condvar,
    /// Blocks are pending, the last batch was appended, or everything failed.
    filled: Condvar,
}

/// The state that the holder of the turn owns; no writer looks at it.
struct Tails {
    tails: Vec<BucketTail>,
    sampled: usize,
    sampled_bytes: usize,
    /// Every `sample_every`-th key that is offered is kept.
    sample_every: u64,
    offered: u64,
}

#[derive(Default)]
struct BucketTail {
    block: Option<Buffer>,
    filled: usize,
    bytes: u64,
    records: u64,
    key_bytes: u64,
    sample: Vec<SampleKey>,
}

struct BlockPool {
    free: Vec<Buffer>,
    pending: Vec<VecDeque<(Buffer, usize)>>,
    pending_blocks: usize,
    /// Blocks of each bucket that are pending or being written.
    held: Vec<usize>,
    /// Where round-robin continues.
    next_bucket: usize,
    extents: Vec<Vec<BucketExtent>>,
    crcs: Vec<Vec<u32>>,
    written_bytes: u64,
    index_bytes: u64,
    lists: Reservation,
    closed: bool,
    stopped: bool,
}

impl BucketStore {
    /// A store that writes to `disks`, which are empty. The caller reserves the pool; the memory of
    /// the list of extents is added to `lists` as it grows.
    ///
    /// # Errors
    /// When the system has no memory for the pool.
    pub(super) fn new(
        plan: StorePlan,
        disks: Vec<Arc<dyn Storage>>,
        lists: Reservation,
    ) -> Result<Self> {
        assert!(plan.blocks > plan.buckets, "a block for each tail and one to write");
        let mut pool = Buffer::try_new(plan.blocks * plan.block_bytes)?;
        let (join_bytes, joins) = plan.joined(disks.len()).unwrap_or_default();
        let of_a_disk = |_| {
            let cut = |_| {
                let at = pool.len() - join_bytes;
                pool.split_off(at)
            };
            Mutex::new((0..joins).map(cut).collect())
        };
        let joined: Vec<_> = disks.iter().map(of_a_disk).collect();
        let mut free = Vec::with_capacity(plan.blocks);
        while pool.len() > plan.block_bytes {
            free.push(pool.split_off(pool.len() - plan.block_bytes));
        }
        free.push(pool);
        let (buckets, shared) = (plan.buckets, free.len());
        assert!(shared > buckets, "joining takes a small share");
        let state = BlockPool {
            free,
            pending: (0..buckets).map(|_| VecDeque::new()).collect(),
            pending_blocks: 0,
            held: vec![0; buckets],
            next_bucket: 0,
            extents: vec![Vec::new(); buckets],
            crcs: vec![Vec::new(); buckets],
            written_bytes: 0,
            index_bytes: 0,
            lists,
            closed: false,
            stopped: false,
        };
        let tails = Tails {
            tails: (0..buckets).map(|_| BucketTail::default()).collect(),
            sampled: 0,
            sampled_bytes: 0,
            sample_every: 1,
            offered: 0,
        };
        Ok(BucketStore {
            plan,
            shared,
            disks,
            joined,
            tails: Turns::new(tails),
            failed: FirstError::default(),
            pool: Mutex::new(state),
            freed: Condvar::new(),
            filled: Condvar::new(),
        })
    }

    fn pool(&self) -> MutexGuard<'_, BlockPool> {
        self.pool.lock()
    }

    /// Waits for turn number `number`; each number is taken once.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when something failed meanwhile.
    pub(super) fn turn(&self, number: u64) -> Result<Appender<'_>> {
        let tails = self.tails.wait(number).ok_or(Error::Cancelled)?;
        Ok(Appender { store: self, tails })
    }

    /// Everything was appended: the rest in the tails goes to the writers.
    pub(super) fn close(&self) {
        self.tails.with(|tails| {
            let mut state = self.pool();
            for (bucket, tail) in tails.tails.iter_mut().enumerate() {
                if let Some(block) = tail.block.take() {
                    state.pending[bucket].push_back((block, tail.filled));
                    state.pending_blocks += 1;
                }
            }
            state.closed = true;
        });
        self.filled.notify_all();
    }

    /// Returns what each bucket received. All writers have returned.
    ///
    /// # Errors
    /// What failed first ([`Stops::fail`]).
    pub(super) fn finish(self) -> Result<(Vec<Received>, Reservation)> {
        self.failed.into_result()?;
        let state = self.pool.into_inner();
        assert!(state.closed && state.pending_blocks == 0, "writers end when all is written");
        let tails = self.tails.into_inner();
        let lists = state.extents.into_iter().zip(state.crcs);
        let received = tails.tails.into_iter().zip(lists).map(|(tail, (extents, crcs))| Received {
            bytes: tail.bytes,
            records: tail.records,
            key_bytes: tail.key_bytes,
            extents,
            crcs,
            sample: tail.sample,
        });
        Ok((received.collect(), state.lists))
    }
}

/// The right to append: batches are appended in input order.
pub(super) struct Appender<'a> {
    store: &'a BucketStore,
    tails: Turn<'a, Tails>,
}

impl Stops for BucketStore {
    /// Must not be called while an [`Appender`] is held.
    fn fail(&self, error: Error) {
        self.failed.note(error);
        self.pool().stopped = true;
        self.freed.notify_all();
        self.filled.notify_all();
        self.tails.stop();
    }
}

impl Appender<'_> {
    /// Appends whole records to a bucket; waits when the pool is empty.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when something failed meanwhile.
    pub(super) fn append(&mut self, bucket: usize, mut bytes: &[u8], part: Appended) -> Result<()> {
        let block_bytes = self.store.plan.block_bytes;
        let tail = &mut self.tails.tails[bucket];
        tail.bytes += bytes.len() as u64;
        tail.records += u64::from(part.records);
        tail.key_bytes += u64::from(part.key_bytes);
        while !bytes.is_empty() {
            let full = match tail.block.take() {
                Some(block) if tail.filled < block_bytes => {
                    tail.block = Some(block);
                    None
                }
                full => full,
            };
            if tail.block.is_none() {
                tail.block = Some(self.store.exchange(bucket, full, block_bytes)?);
                tail.filled = 0;
            }
            let block = tail.block.as_mut().expect("just taken");
            let n = bytes.len().min(block_bytes - tail.filled);
            block[tail.filled..tail.filled + n].copy_from_slice(&bytes[..n]);
            tail.filled += n;
            bytes = &bytes[n..];
        }
        Ok(())
    }

    /// Offers a key of `bucket` for the sample that it keeps of itself.
    pub(super) fn sample(&mut self, bucket: usize, key: SampleKey) {
        let tails = &mut *self.tails;
        tails.offered += 1;
        if !tails.offered.is_multiple_of(tails.sample_every) {
            return;
        }
        tails.sampled += 1;
        tails.sampled_bytes += key.key.len();
        tails.tails[bucket].sample.push(key);
        while tails.sampled > SAMPLE_KEYS_MAX || tails.sampled_bytes > SAMPLE_BYTES_MAX {
            tails.sample_every *= 2;
            (tails.sampled, tails.sampled_bytes) = (0, 0);
            for tail in &mut tails.tails {
                let mut odd = false;
                tail.sample.retain(|_| {
                    odd = !odd;
                    odd && tails.sample_every < 1 << 40
                });
                tails.sampled += tail.sample.len();
                tails.sampled_bytes += tail.sample.iter().map(|key| key.key.len()).sum::<usize>();
            }
            if tails.sampled <= tails.tails.len() {
                // One key a bucket, and they are long.
                tails.tails.iter_mut().for_each(|tail| tail.sample.clear());
                (tails.sampled, tails.sampled_bytes) = (0, 0);
            }
        }
    }
}

impl BucketStore {
    /// Hands a full block over and takes an empty one.
    fn exchange(&self, bucket: usize, full: Option<Buffer>, len: usize) -> Result<Buffer> {
        let mut state = self.pool();
        if let Some(block) = full {
            state.pending[bucket].push_back((block, len));
            state.pending_blocks += 1;
            state.held[bucket] += 1;
            self.filled.notify_one();
        }
        let own = if self.plan.policy.is_double() { 2 } else { usize::MAX };
        loop {
            if state.stopped {
                return Err(Error::Cancelled);
            }
            if state.held[bucket] < own
                && let Some(block) = state.free.pop()
            {
                return Ok(block);
            }
            let _waiting = wait(activity::WorkerState::Memory);
            // With so few free blocks, there may be something to write, although no block has become full.
            self.filled.notify_one();
            self.freed.wait(&mut state);
        }
    }
}

impl BucketStore {
    /// Blocks of the pool that were written, or copied to be.
    fn give_back(&self, blocks: Vec<Buffer>) {
        let mut state = self.pool();
        let whole = |block: &Buffer| block.len() == self.plan.block_bytes;
        state.free.extend(blocks.into_iter().filter(whole));
        drop(state);
        // One appends at a time.
        self.freed.notify_one();
    }
}

impl BlockPool {
    /// The bucket to write next, of `shared` blocks in all.
    fn choose(&mut self, plan: &StorePlan, shared: usize) -> Option<usize> {
        if self.pending_blocks == 0 {
            return None;
        }
        if plan.policy.in_turn() {
            let all = self.pending.len();
            let mut next = (0..all).map(|i| (self.next_bucket + i) % all);
            let bucket = next.find(|b| !self.pending[*b].is_empty())?;
            self.next_bucket = bucket + 1;
            return Some(bucket);
        }
        let fullest = (0..self.pending.len()).max_by_key(|b| self.pending[*b].len())?;
        // A short extent only when memory is needed or nothing more comes.
        let enough = self.pending[fullest].len() * plan.block_bytes >= EXTENT_BYTES_MAX;
        let short = self.free.len() < shared / 2;
        (enough || short || self.closed).then_some(fullest)
    }
}
