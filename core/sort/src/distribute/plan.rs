//! All sizes of a distribution, decided once.
//!
//! ```text
//!   memory ├ 3 chunks being read and split ┼ batches ┼ pool of blocks ────────────┼ lists ┤
//!   later  ├ pieces being read ┼ pieces being sorted, with tags ┼ pieces in order ────┤
//! ```
//!
//! With more buckets, extents are shorter (about twice the pool divided by the number of buckets),
//! and disks read short extents slowly. So a bucket is as small as possible while its extents have
//! [`EXTENT_BYTES_LIKED`], but not smaller than [`BUCKET_BYTES_LIKED`]. A small bucket sorts
//! faster, because it and its buffers stay in caches, and a random read waits for one bucket. A
//! bucket is never so large that a thread could not sort one while it reads the next.

use super::bucket::PieceMemory;
use super::partition::BUCKETS_MAX;
use super::sampling::{SamplePlaces, places};
use crate::plan::RecordSample;
use crate::record::Format;
use crate::run::SortInput;
use crate::run::chunk::{Chunk, SPAN_BYTES};
use crate::{Error, Result, shares};

/// Chunks: one is being read, and others are being split.
pub(super) const CHUNKS: usize = 3;
/// The largest chunk, in bytes read.
const CHUNK_BYTES_MAX: u64 = 16 << 20;
const CHUNK_BYTES_MIN: u64 = 64 << 10;
/// Bytes that a thread groups at a time: a span and one more record.
const BATCH_BYTES_MAX: u64 = SPAN_BYTES as u64 + (64 << 10);
const BATCH_BYTES_MIN: u64 = 32 << 10;
/// The largest bucket that is aimed at, in bytes.
const BUCKET_BYTES_MAX: u64 = 16 << 20;
/// The smallest bucket that is worth shorter extents, in bytes.
const BUCKET_BYTES_LIKED: u64 = 4 << 20;
/// Extents from this length on are read at a disk's full speed, in bytes.
const EXTENT_BYTES_LIKED: u64 = 768 << 10;
const BUCKET_BYTES_MIN: u64 = 64 << 10;
const BLOCK_BYTES_MAX: u64 = 256 << 10;
const BLOCK_BYTES_MIN: u64 = 4096;
/// Blocks of the pool for each bucket: one is its tail, the others wait to be written.
const BLOCKS_PER_BUCKET: u64 = 4;
/// How much of the largest bucket that fits is aimed at: buckets differ by a third where splitters come
/// from a sample.
const BUCKET_SHARE: f64 = 0.7;
/// Inputs of unknown size are assumed to be this many times the memory.
const UNKNOWN_TIMES: u64 = 16;

/// The sizes of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DistributePlan {
    /// Bytes that are read into a chunk.
    pub(crate) chunk_bytes: u64,
    /// Bytes that a thread parts at a time.
    pub(crate) batch_bytes: u64,
    /// Buckets at most.
    pub(crate) buckets: u64,
    /// Bytes of a block of the pool, and of a bucket on disk.
    pub(crate) block_bytes: u64,
    /// Blocks of the pool.
    pub(crate) blocks: u64,
}

impl DistributePlan {
    /// Sizes for `memory_bytes` and `total_bytes` of input (when known).
    ///
    /// # Errors
    /// [`Error::Memory`] with the least that works.
    pub(crate) fn new(
        memory_bytes: u64,
        total_bytes: Option<u64>,
        sample: RecordSample,
        threads: usize,
    ) -> Result<Self> {
        let room = shares::of_distribution(memory_bytes);
        // Half a chunk holds a record, so long ones need longer chunks.
        let long = (2.0 * sample.record_bytes) as u64 + 8192;
        let chunk_bytes = (room / 20).max(long.min(room / 8));
        let chunk_bytes = chunk_bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX) / 4096 * 4096;
        let batch_bytes =
            (room / 64 / threads as u64).clamp(BATCH_BYTES_MIN, BATCH_BYTES_MAX) / 4096 * 4096;
        let fixed = Self::fixed_bytes(chunk_bytes, batch_bytes, threads);
        let least = fixed + 4 * BLOCKS_PER_BUCKET * BLOCK_BYTES_MIN;
        if room < least {
            return Err(Error::Memory {
                owner: "distributing",
                least_bytes: shares::for_distribution(least),
                limit_bytes: memory_bytes,
            });
        }
        let pool = room - fixed;
        let total = total_bytes.unwrap_or(memory_bytes.saturating_mul(UNKNOWN_TIMES));
        let liked = (total as f64 * EXTENT_BYTES_LIKED as f64 / (2.0 * pool as f64)) as u64;
        let target =
            Self::bucket_bytes(memory_bytes, sample, threads).min(liked.max(BUCKET_BYTES_LIKED));
        let most = (pool / (BLOCKS_PER_BUCKET * BLOCK_BYTES_MIN)).min(BUCKETS_MAX as u64);
        let buckets = total.div_ceil(target).clamp(4, most);
        let block_bytes = (pool / (BLOCKS_PER_BUCKET * buckets)).max(1);
        let block_bytes = (1 << block_bytes.ilog2()).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX);
        Ok(DistributePlan {
            chunk_bytes,
            batch_bytes,
            buckets,
            block_bytes,
            blocks: pool / block_bytes,
        })
    }

    /// The longest record that it takes.
    pub(crate) fn record_bytes_max(&self) -> u64 {
        Chunk::record_bytes_max(self.chunk_bytes as usize) as u64
    }

    /// Bytes that a distribution of `inputs` reads to choose splitters by, before it reads them all.
    pub(crate) fn sample_bytes(
        &self,
        inputs: &[SortInput],
        format: Format,
        sample: RecordSample,
    ) -> u64 {
        let places = places(inputs, format, sample.record_bytes, self.buckets);
        places.map_or(0, SamplePlaces::bytes)
    }

    /// Chunks, and for each thread a batch and the list of its records.
    fn fixed_bytes(chunk_bytes: u64, batch_bytes: u64, threads: usize) -> u64 {
        let chunks = CHUNKS as u64 * Chunk::memory_bytes(chunk_bytes as usize) as u64;
        chunks + threads as u64 * 2 * batch_bytes
    }

    /// The largest bucket that is aimed at, in bytes.
    fn bucket_bytes(memory_bytes: u64, sample: RecordSample, threads: usize) -> u64 {
        // A bucket of a million bytes, as a yardstick.
        const YARD: u64 = 1 << 20;
        let records = (YARD as f64 / sample.record_bytes) as u64;
        let keys =
            if sample.key_bytes > 0.0 { records as f64 * (12.0 + sample.key_bytes) } else { 0.0 };
        let one = PieceMemory::of_piece(YARD, records, keys as u64, 1);
        let held = 2 * threads as u64 * one.total() + 3 * one.output;
        let most =
            shares::of_stream(memory_bytes) as f64 / (held as f64 / YARD as f64) * BUCKET_SHARE;
        (most as u64).clamp(BUCKET_BYTES_MIN, BUCKET_BYTES_MAX)
    }

    /// All memory that it takes, in bytes.
    pub(crate) fn memory_bytes(&self, threads: usize) -> u64 {
        Self::fixed_bytes(self.chunk_bytes, self.batch_bytes, threads)
            + self.blocks * self.block_bytes
    }
}
