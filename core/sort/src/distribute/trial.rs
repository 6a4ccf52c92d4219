//! The store of the distribution sort by itself, to be measured: bytes go into random buckets,
//! extents are written to disks, buckets are read back (TritonSort 6.2).
//!
//! ```text
//!   StoreTrial { buckets, bytes, pool, policy } ── run(disks) ──► StoreTimes { write, read, extents }
//! ```
//!
//! It is the store that [`Strategy::Distribute`](crate::Strategy) writes with and the reader of its
//! second half, under any of the policies that they could have: for experiments that hold them against
//! one another. Nothing is sorted.

use std::sync::Arc;
use std::time::Instant;

use merganser_storage::thread::spawn_scoped;
use merganser_storage::{Buffer, Storage, StorageExt};

use super::bucket::{BucketSet, StoredBucket};
use super::store::{Appended, BucketStore, Received, StorePlan};
use crate::key::OrderSpec;
use crate::pipeline::Stops;
use crate::record::Format;
use crate::{Budget, Error, Progress, Result};

pub use super::store::WritePolicy;

/// The largest block of a shared pool, in bytes, as the engine has it.
const BLOCK_BYTES_MAX: usize = 256 << 10;
/// The smallest block, in bytes.
const BLOCK_BYTES_MIN: usize = 4096;
/// Blocks of a shared pool for each bucket, as the engine has them.
const BLOCKS_PER_BUCKET: usize = 4;
/// Bytes that are appended between two checks whether to continue.
const STEP_BYTES: u64 = 4 << 20;
/// A bucket is read in slices of this many bytes, two at a time.
const SLICE_BYTES: u64 = 16 << 20;
/// Memory for lists of extents.
const LISTS_BYTES: u64 = 1 << 30;

/// The bytes to write, and how to write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreTrial {
    /// Buckets, at least 1.
    pub buckets: usize,
    /// Bytes to write, spread evenly over all buckets; a multiple of [`StoreTrial::append_bytes`]
    /// is written.
    pub bytes: u64,
    /// Memory for bytes that wait to be written: at least 16 KiB per bucket.
    pub pool_bytes: usize,
    /// Bytes of one append, which goes to a bucket drawn at random; at least 1.
    pub append_bytes: usize,
    /// Which bucket is written next, and which buckets may hold memory.
    pub policy: WritePolicy,
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoreTimes {
    /// Bytes that were written, and read.
    pub bytes: u64,
    /// Seconds until all was written and synced.
    pub write_seconds: f64,
    /// Seconds to read all buckets, one after the other; the next one is read ahead.
    pub read_seconds: f64,
    /// Stretches that were written at one place, on all disks.
    pub extents: usize,
}

impl StoreTrial {
    /// Writes to `disks`, which are empty, and reads everything back. The checksums of both must
    /// agree. `progress` gets every byte twice and may cancel.
    ///
    /// # Errors
    /// [`Error::Memory`] for a pool that is too small, [`Error::Cancelled`], the storage's own.
    pub fn run(&self, disks: &[Arc<dyn Storage>], progress: &dyn Progress) -> Result<StoreTimes> {
        let plan = self.plan(disks.len())?;
        let block_bytes = plan.block_bytes;
        let lists = Budget::new(LISTS_BYTES).reserve(0, "the list of extents")?;
        let store = BucketStore::new(plan, disks.to_vec(), lists)?;
        let started = Instant::now();
        std::thread::scope(|scope| {
            let started = (0..disks.len()).try_for_each(|disk| {
                let store = &store;
                let write = move || {
                    super::store::writer::write(store, disk).map_err(|error| store.fail(error))
                };
                spawn_scoped(scope, "write", write).map(|_| ())
            });
            let started = started.map_err(Error::from);
            if let Err(error) = started.and_then(|()| self.append(&store, progress)) {
                store.fail(error);
            }
            store.close();
        });
        let (received, _lists) = store.finish()?;
        disks.iter().try_for_each(|disk| disk.sync())?;
        let write_seconds = started.elapsed().as_secs_f64();
        let extents = received.iter().map(|received| received.extents.len()).sum();
        let started = Instant::now();
        let bytes = read(received, block_bytes, disks, progress)?;
        let read_seconds = started.elapsed().as_secs_f64();
        Ok(StoreTimes { bytes, write_seconds, read_seconds, extents })
    }

    fn plan(&self, disks: usize) -> Result<StorePlan> {
        let StoreTrial { buckets, bytes, pool_bytes, append_bytes, policy } = *self;
        assert!(buckets > 0 && append_bytes > 0, "something to append to, and something to append");
        let least_bytes = BLOCKS_PER_BUCKET * BLOCK_BYTES_MIN * buckets;
        if pool_bytes < least_bytes {
            return Err(Error::Memory {
                owner: "a pool of blocks",
                least_bytes: least_bytes as u64,
                limit_bytes: pool_bytes as u64,
            });
        }
        let (block_bytes, blocks) = match policy {
            WritePolicy::Double => (pool_bytes / (2 * buckets) / 4096 * 4096, 2 * buckets),
            WritePolicy::Demand | WritePolicy::RoundRobin => {
                let block_bytes = pool_bytes / (BLOCKS_PER_BUCKET * buckets);
                let block_bytes = (1usize << block_bytes.ilog2()).min(BLOCK_BYTES_MAX);
                (block_bytes, pool_bytes / block_bytes)
            }
        };
        Ok(StorePlan {
            buckets,
            block_bytes,
            blocks,
            policy,
            total_bytes: Some(bytes / disks as u64),
            limit_bytes: None,
        })
    }

    fn append(&self, store: &BucketStore, progress: &dyn Progress) -> Result<()> {
        let mut turn = store.turn(0)?;
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        // Bytes that are irregular, so that a disk cannot compress them away.
        let part: Vec<u8> = (0..self.append_bytes).map(|i| ((i * 193) >> 3) as u8).collect();
        let mut since = 0;
        for _ in 0..self.bytes / self.append_bytes as u64 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let bucket = (random >> 11) as usize % self.buckets;
            turn.append(bucket, &part, Appended::default())?;
            since += part.len() as u64;
            if since >= STEP_BYTES {
                if progress.cancelled() {
                    return Err(Error::Cancelled);
                }
                progress.advance(std::mem::take(&mut since));
            }
        }
        progress.advance(since);
        Ok(())
    }
}

/// Reads all that was received, and gives its bytes.
fn read(
    received: Vec<Received>,
    block_bytes: usize,
    disks: &[Arc<dyn Storage>],
    progress: &dyn Progress,
) -> Result<u64> {
    let order = OrderSpec::new(Format::Fixed { bytes: 1 }).compile(None)?;
    let buckets = received.into_iter().map(|received| StoredBucket {
        lower: Vec::new(),
        // Is read in slices.
        one_key: true,
        bytes: received.bytes,
        records: received.bytes,
        key_bytes: 0,
        block_bytes: block_bytes as u32,
        extents: received.extents,
        crcs: received.crcs,
    });
    let set = Arc::new(BucketSet {
        files: disks.to_vec(),
        buckets: buckets.collect(),
        order: Arc::new(order),
        unique: false,
        record_bytes_max: 0,
        slice_bytes: SLICE_BYTES,
    });
    let pieces = set.pieces();
    let most = pieces.iter().map(|piece| piece.bytes as usize).max().unwrap_or(0);
    let memory = || Buffer::try_new(most.next_multiple_of(4096));
    let (mut spare, mut loading) = (vec![memory()?, memory()?], None);
    let mut bytes = 0;
    for piece in pieces.into_iter().map(Some).chain([None]) {
        if progress.cancelled() {
            return Err(Error::Cancelled);
        }
        let next = piece.map(|piece| set.load(piece, spare.pop().expect("one of two")));
        if let Some(loaded) = std::mem::replace(&mut loading, next) {
            let len = loaded.piece.bytes;
            spare.push(loaded.finish()?);
            progress.advance(len);
            bytes += len;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use merganser_storage::Directory;
    use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
    use merganser_testkit::faulty::{Fault, FaultPlan, Faulty};

    use super::*;
    use crate::Silent;

    const POLICIES: [WritePolicy; 3] =
        [WritePolicy::Demand, WritePolicy::RoundRobin, WritePolicy::Double];

    fn trial(buckets: usize, bytes: u64, policy: WritePolicy) -> StoreTrial {
        StoreTrial { buckets, bytes, pool_bytes: 16 << 20, append_bytes: 1000, policy }
    }

    fn disks(count: usize) -> Vec<Arc<dyn Storage>> {
        (0..count).map(|_| MemoryStorage::new("disk") as Arc<dyn Storage>).collect()
    }

    #[test]
    fn every_policy_writes_and_reads_all_bytes() {
        for policy in POLICIES {
            for buckets in [1, 2, 7, 64, 512] {
                for bytes in [0, 999, 1000, 5_000_000, 30_000_000] {
                    for disks in [disks(1), disks(3)] {
                        let times = trial(buckets, bytes, policy).run(&disks, &Silent);
                        let times = times.expect("works");
                        assert_eq!(times.bytes, bytes / 1000 * 1000, "{policy:?}, {buckets}");
                        assert!(times.extents as u64 <= buckets as u64 + bytes / 4096);
                    }
                }
            }
        }
    }

    #[test]
    fn a_shared_pool_writes_longer_stretches_than_two_buffers_per_bucket() {
        // A disk that is slower than the appends, so the pool is full.
        let slow = || vec![Arc::new(Slow(MemoryStorage::new("slow"))) as Arc<dyn Storage>];
        let extents = |policy| {
            let trial = StoreTrial { pool_bytes: 4 << 20, ..trial(64, 40_000_000, policy) };
            trial.run(&slow(), &Silent).expect("works").extents
        };
        let (demand, double) = (extents(WritePolicy::Demand), extents(WritePolicy::Double));
        assert!(demand * 3 < double * 2, "{demand} and {double}");
    }

    #[test]
    fn a_pool_that_is_too_small_is_refused() {
        let small = StoreTrial { pool_bytes: 1 << 20, ..trial(512, 1000, WritePolicy::Demand) };
        match small.run(&disks(1), &Silent) {
            Err(Error::Memory { least_bytes, .. }) => assert_eq!(least_bytes, 8 << 20),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_failing_disk_ends_the_trial_under_any_policy() {
        for policy in POLICIES {
            for nth in [1, 2, 5] {
                let faults = vec![Fault::FailWrite { nth }];
                let folder = Faulty::new(MemoryDirectory::new(), FaultPlan { seed: 7, faults });
                let bad = folder.create_unnamed().expect("made");
                // The other disk is slow, so that this one gets its turns.
                let disks = [Arc::new(Slow(MemoryStorage::new("slow"))) as Arc<dyn Storage>, bad];
                let failed = trial(64, 60_000_000, policy).run(&disks, &Silent);
                assert!(matches!(failed, Err(Error::Io(_))), "{policy:?}, {nth}: {failed:?}");
            }
        }
    }

    #[test]
    fn progress_gets_all_bytes_and_can_cancel() {
        struct Watch(AtomicU64, u64);
        impl Progress for Watch {
            fn advance(&self, bytes: u64) {
                self.0.fetch_add(bytes, Ordering::Relaxed);
            }
            fn cancelled(&self) -> bool {
                self.0.load(Ordering::Relaxed) >= self.1
            }
        }
        let watch = Watch(AtomicU64::new(0), u64::MAX);
        trial(8, 9_000_000, WritePolicy::Demand).run(&disks(1), &watch).expect("works");
        assert_eq!(watch.0.into_inner(), 18_000_000);
        for most in [4_000_000, 35_000_000] {
            let watch = Watch(AtomicU64::new(0), most);
            let ended = trial(8, 30_000_000, WritePolicy::Demand).run(&disks(1), &watch);
            assert!(matches!(ended, Err(Error::Cancelled)), "{most}: {ended:?}");
        }
    }

    /// A disk whose writes take a while.
    struct Slow(Arc<MemoryStorage>);

    impl Storage for Slow {
        fn name(&self) -> &str {
            self.0.name()
        }

        fn size(&self) -> u64 {
            self.0.size()
        }

        fn clock(&self) -> Arc<dyn merganser_storage::Clock> {
            self.0.clock()
        }

        fn submit(
            &self,
            token: u64,
            operation: merganser_storage::Operation,
            completions: &merganser_storage::Completions,
        ) {
            if let merganser_storage::Operation::Write { .. } = operation {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            self.0.submit(token, operation, completions);
        }
    }
}
