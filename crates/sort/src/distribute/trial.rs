//! The store alone, to be measured: appends in, extents on disk, buckets read back.

use std::sync::Arc;
use std::time::Instant;

use storage::{Buffer, Storage};

use super::bucket::{Bucket, BucketSet};
use super::store::{Part, Store, StorePlan, WritePolicy};
use crate::key::OrderSpec;
use crate::record::Format;
use crate::{Budget, Error, Result};

/// What to write.
#[derive(Debug, Clone, Copy)]
pub struct StoreTrial {
    /// Buckets.
    pub buckets: usize,
    /// Bytes, to all buckets alike.
    pub bytes: u64,
    /// Bytes of the pool.
    pub pool_bytes: usize,
    /// Bytes of one append.
    pub append_bytes: usize,
    /// Who is written next.
    pub policy: WritePolicy,
}

/// How it went.
#[derive(Debug, Clone, Copy)]
pub struct StoreTimes {
    /// Seconds until all was written.
    pub write_seconds: f64,
    /// Seconds to read all buckets, one after the other.
    pub read_seconds: f64,
    /// Extents on all disks.
    pub extents: usize,
}

impl StoreTrial {
    /// Writes to `disks`, which are empty, and reads back.
    ///
    /// # Errors
    /// The storage's own.
    pub fn run(&self, disks: &[Arc<dyn Storage>]) -> Result<StoreTimes> {
        let block_bytes = (self.pool_bytes / (4 * self.buckets)).max(4096);
        let block_bytes = (1usize << block_bytes.ilog2()).min(256 << 10);
        let plan = StorePlan {
            buckets: self.buckets,
            block_bytes,
            blocks: self.pool_bytes / block_bytes,
            policy: self.policy,
            total_bytes: Some(self.bytes / disks.len() as u64),
            limit_bytes: None,
        };
        let lists = Budget::new(1 << 30).reserve(0, "the list of extents")?;
        let store = Store::new(plan, disks.to_vec(), lists);
        let part = vec![7; self.append_bytes];
        let started = Instant::now();
        std::thread::scope(|scope| {
            for disk in 0..disks.len() {
                let store = &store;
                scope.spawn(move || store.write(disk).map_err(|error| store.fail(error)));
            }
            let mut x = 1u64;
            let appended = store.turn(0).and_then(|mut turn| {
                for _ in 0..self.bytes / self.append_bytes as u64 {
                    x ^= x << 13;
                    x ^= x >> 7;
                    x ^= x << 17;
                    let bucket = (x >> 11) as usize % self.buckets;
                    turn.append(bucket, &part, Part::default())?;
                }
                Ok(())
            });
            if let Err(error) = appended {
                store.fail(error);
            }
            store.close();
        });
        let (received, _lists) = store.finish()?;
        let write_seconds = started.elapsed().as_secs_f64();
        let extents = received.iter().map(|received| received.extents.len()).sum();
        let order = OrderSpec::new(Format::Fixed { bytes: 1 }).compile(None);
        let order = order.map_err(|error| Error::Unsupported(error.to_string()))?;
        let buckets = received.into_iter().map(|received| Bucket {
            lower: Vec::new(),
            one_key: false,
            bytes: received.bytes,
            records: received.bytes,
            key_bytes: 0,
            block_bytes: block_bytes as u32,
            extents: received.extents,
            crcs: received.crcs,
        });
        let set = BucketSet {
            files: disks.to_vec(),
            buckets: buckets.collect(),
            order: Arc::new(order),
            unique: false,
            record_bytes_max: 0,
            slice_bytes: 1 << 20,
        };
        let pieces = set.pieces();
        let most = pieces.iter().map(|piece| piece.bytes as usize).max().unwrap_or(0);
        let memory = || Buffer::new(most.next_multiple_of(4096));
        let (mut spare, mut loading) = (vec![memory(), memory()], None);
        let started = Instant::now();
        for piece in pieces.into_iter().map(Some).chain([None]) {
            let next = piece.map(|piece| set.load(piece, spare.pop().expect("one of two")));
            if let Some(loaded) = std::mem::replace(&mut loading, next) {
                spare.push(loaded.finish()?);
            }
        }
        Ok(StoreTimes { write_seconds, read_seconds: started.elapsed().as_secs_f64(), extents })
    }
}
