//! All sizes of a sort, decided once, from the memory given and a look at the data.
//!
//! ```text
//!   memory ├ chunk being read ┼ chunk being sorted ┼ tags ┼ tags' scratch ┼ encoded keys ┼ pieces ┼ fences ┤
//! ```
//!
//! While one chunk is sorted and written, the next one is read. Two chunks keep the disk busy all
//! the time, at the price of runs that are half as long. When all data fits into memory, there is
//! one chunk and no run. The fences of all runs stay in memory, so their memory is kept free from
//! the start.

mod sample;

pub use sample::RecordSample;
pub(crate) use sample::{sample, sample_bytes};

use crate::merge::sizes::runs_at_once;
use crate::run::chunk::{Chunk, SPAN_BYTES};
use crate::run::chunk_view::ENTRY_HEAD_BYTES;
use crate::run::extract::SLAB_TAGS;
use crate::run::form::TAG_BYTES;
use crate::run::format::{BLOCK_BYTES, FENCE_KEY_BYTES_MAX, PIECE_BYTES};
use crate::run::index::IndexMemory;
use crate::{Error, Result, shares};

/// The smallest chunk that is worth its run, in bytes read.
const CHUNK_BYTES_MIN: u64 = 64 << 10;
/// The largest block that random reads still like, in bytes.
const BLOCK_BYTES_LIKED: u64 = 8 << 10;

/// The sizes of run formation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunPlan {
    /// Bytes that are read into a chunk.
    pub chunk_bytes: u64,
    /// Chunks: 2 to read ahead, 1 when everything fits.
    pub chunks: u64,
    /// Bytes of one of the two tag arrays.
    pub tag_bytes: u64,
    /// Bytes for encoded keys.
    pub key_bytes: u64,
    /// Write buffers per thread.
    pub pieces: u64,
    /// Logical bytes per block.
    pub block_bytes: u32,
    /// Mean length of the fences' keys, in bytes.
    pub fence_key_bytes: f64,
}

/// Chunks that data are read in at least, where not all fits and reading, sorting and writing are to
/// overlap.
const OVERLAPPED_CHUNKS: u64 = 16;
/// Smaller chunks than this, or than `OVERLAPPED_RECORDS_MIN` records, are not made for it.
const OVERLAPPED_BYTES_MIN: u64 = 8 << 20;
const OVERLAPPED_RECORDS_MIN: u64 = 64;

/// For inputs of unknown length, the part of the memory that is left to fences.
const UNKNOWN_FENCES_SHARE: u64 = 16;
/// Memory of a chunk for each byte that it reads: a sixteenth more holds the record that the last chunk
/// broke off.
const CHUNK_WITH_CARRY: f64 = 1.0625;
/// Length of their fences' keys, in bytes, that the first block size reckons with: longer ones make
/// later blocks larger when there is more data than memory for fences.
const UNKNOWN_KEY_BYTES: f64 = 11.0;
/// Fences that would take more than this part of the memory make later runs' blocks larger.
pub(crate) const FENCES_SHARE_MAX: u64 = 4;
/// For inputs of known length, the part of the memory that fences of all blocks may take.
const FENCES_SHARE: u64 = 8;

/// Room for tags and keys, for each byte that the sample expects: a quarter more. Records that do not
/// fit are sorted in a second part.
const SIDE_ROOM: f64 = 1.25;
/// Bytes that an encoded key takes in addition to itself.
const ENTRY_HEAD: f64 = ENTRY_HEAD_BYTES as f64;
/// Write buffers take at most this part of the memory, and a thread has at most 32 of them.
const PIECES_SHARE: u64 = 8;
const PIECES_MAX: u64 = 32;
/// More threads than any machine has processors are a typing error.
const THREADS_MAX: usize = 4096;
/// Memory in addition to chunks, tags and keys: rounding of each of them, and small tables.
const REST_BYTES: u64 = 1 << 20;
/// The first input page and the added terminator of the last record, for each input.
const INPUT_ENDS_BYTES: u64 = 2 * 4096;
/// Sizes of tags and keys are rounded to this.
const SIDE_STEP_BYTES: u64 = 64 << 10;
/// The planned length of a stream whose length is unknown, in times of the memory.
const UNKNOWN_TIMES: u64 = 64;
/// Blocks of each run that a merge has in memory at once: the smallest window takes four of every run,
/// and about ten windows are in flight; the rest of the memory is for their output.
const MERGED_BLOCKS_PER_RUN: u64 = 96;
/// The same for a merge of four runs, the fewest that is planned for: forty blocks of each.
const BLOCKS_OF_FOUR_RUNS: u64 = 160;

impl RunPlan {
    /// Sizes for `memory_bytes` and inputs of `total_bytes` (when known).
    ///
    /// # Errors
    /// [`Error::Memory`] with the least that works; [`Error::Threads`] with the most that do.
    pub fn new(
        memory_bytes: u64,
        total_bytes: Option<u64>,
        inputs: u64,
        sample: RecordSample,
        encoded: bool,
        threads: usize,
    ) -> Result<Self> {
        let (tags, keys) = Self::side_ratios(sample, encoded);
        let fence_key_bytes = sample.fence_key_bytes;
        let piece = PIECE_BYTES as u64;
        let least = Self::least_bytes(sample, encoded, threads);
        if memory_bytes < least || threads > THREADS_MAX {
            let least_of_one = Self::least_bytes(sample, encoded, 1);
            if memory_bytes >= least_of_one {
                let most = 1 + (memory_bytes - least_of_one) / piece;
                let most = most.min(THREADS_MAX as u64) as usize;
                return Err(Error::Threads { threads, most, limit_bytes: memory_bytes });
            }
            return Err(Error::Memory {
                owner: "sorting",
                least_bytes: least,
                limit_bytes: memory_bytes,
            });
        }
        let threads = threads as u64;
        let pieces = (memory_bytes / PIECES_SHARE / piece / threads).clamp(1, PIECES_MAX);
        let available = memory_bytes - pieces * threads * piece;
        // Each input begins at a page of its own, and its last record may need a terminator.
        let all =
            total_bytes.map(|total| (total + INPUT_ENDS_BYTES * inputs).next_multiple_of(4096));
        let total = total_bytes.unwrap_or(memory_bytes.saturating_mul(UNKNOWN_TIMES)).max(1);
        let key = if total_bytes.is_some() { fence_key_bytes } else { UNKNOWN_KEY_BYTES };
        let fence = IndexMemory::expected(1, 1, key).open;
        let share = if total_bytes.is_some() { FENCES_SHARE } else { UNKNOWN_FENCES_SHARE };
        let for_fences = total.saturating_mul(fence * share) / memory_bytes;
        let block_bytes_max = Self::block_bytes_max(memory_bytes);
        let block_bytes = |chunk_bytes: u64| {
            let for_windows = memory_bytes / (MERGED_BLOCKS_PER_RUN * total.div_ceil(chunk_bytes));
            let wanted = BLOCK_BYTES_LIKED.min(for_windows).max(for_fences).max(1);
            let floor = 1u64 << wanted.min(u64::from(block_bytes_max)).ilog2();
            (floor as u32).max(*BLOCK_BYTES.start())
        };
        let index = |bytes, block| IndexMemory::expected(bytes, block, fence_key_bytes);
        let fits = |bytes: &u64| {
            let index = index(*bytes, block_bytes(*bytes)).most();
            Self::chunk_memory(*bytes, 1, tags, keys) + index <= available
        };
        // The larger size of two chunks, in addition to `fences` bytes of fences.
        let largest = |fences: u64| {
            let factor = 2.0 * CHUNK_WITH_CARRY + 2.0 * tags + keys;
            let bytes = ((available - fences - REST_BYTES) as f64 / factor) as u64;
            bytes / SIDE_STEP_BYTES * SIDE_STEP_BYTES
        };
        let (chunk_bytes, chunks, block_bytes) =
            match all.map(|bytes| bytes.max(CHUNK_BYTES_MIN)).filter(fits) {
                Some(bytes) => (bytes, 1, block_bytes(bytes)),
                None => {
                    let alone = largest(0);
                    let block = block_bytes(alone);
                    let room = match total_bytes {
                        Some(all) => {
                            let expected = index(all, block).open + index(alone, block).writing;
                            shares::for_fences(expected)
                        }
                        None => memory_bytes / UNKNOWN_FENCES_SHARE,
                    };
                    let most = (memory_bytes / FENCES_SHARE_MAX).min(memory_bytes - least);
                    (largest(room.min(most)), 2, block)
                }
            };
        let side = |ratio: f64| (chunk_bytes as f64 * ratio) as u64 / 4096 * 4096 + SIDE_STEP_BYTES;
        Ok(RunPlan {
            chunk_bytes: chunk_bytes.next_multiple_of(4096),
            chunks,
            tag_bytes: side(tags),
            key_bytes: if encoded { side(keys) } else { 0 },
            pieces,
            block_bytes,
            fence_key_bytes,
        })
    }

    /// The least memory in which runs of records like those of `sample` are formed, in bytes.
    #[must_use]
    pub fn least_bytes(sample: RecordSample, encoded: bool, threads: usize) -> u64 {
        let (tags, keys) = Self::side_ratios(sample, encoded);
        let pieces = (threads as u64).saturating_mul(PIECE_BYTES as u64);
        pieces.saturating_add(Self::chunk_memory(CHUNK_BYTES_MIN, 2, tags, keys) + REST_BYTES)
    }

    /// The most bytes of a stream of unknown length that surely are sorted in `memory_bytes`, if keys have
    /// `key_bytes` in the mean: the fences of all runs have to be in memory.
    #[must_use]
    pub fn stream_bytes_max(memory_bytes: u64, key_bytes: f64) -> u64 {
        const STREAM_BYTES: u64 = 1 << 40;
        let fence = IndexMemory::expected(1, 1, UNKNOWN_KEY_BYTES).open;
        let wanted = UNKNOWN_TIMES * fence * UNKNOWN_FENCES_SHARE;
        let block = wanted.min(u64::from(Self::block_bytes_max(memory_bytes)));
        let block = (1u32 << block.ilog2()).max(*BLOCK_BYTES.start());
        let key_bytes = key_bytes.min(FENCE_KEY_BYTES_MAX as f64);
        let index = IndexMemory::expected(STREAM_BYTES, block, key_bytes).open;
        // The last blocks of runs are short. Where that is too little, there still is some of `REST_BYTES`.
        let room = shares::of_stream(memory_bytes / UNKNOWN_FENCES_SHARE);
        (u128::from(STREAM_BYTES) * u128::from(room) / u128::from(index)) as u64
    }

    /// The most bytes of a stream of unknown length, of records like those of `sample`, whose runs are all merged
    /// at once in `memory_bytes`: with more of them, all are read and written once more.
    #[must_use]
    pub fn stream_bytes_at_once(memory_bytes: u64, sample: RecordSample, threads: usize) -> u64 {
        let Ok(plan) = Self::new(memory_bytes, None, 1, sample, false, threads) else { return 0 };
        let room = shares::of_stream(memory_bytes - memory_bytes / UNKNOWN_FENCES_SHARE);
        // The first and the last run are shorter, and runs may turn out to be compressed.
        let runs = runs_at_once(u64::from(plan.block_bytes), true, room).saturating_sub(1);
        plan.chunk_bytes * runs.max(1)
    }

    /// Bytes of one array of tags, and of encoded keys, for each byte of a chunk.
    fn side_ratios(sample: RecordSample, encoded: bool) -> (f64, f64) {
        let slab = (TAG_BYTES * SLAB_TAGS) as f64 / SPAN_BYTES as f64;
        let tags = SIDE_ROOM * TAG_BYTES as f64 / sample.record_bytes + slab;
        let keys = if encoded {
            SIDE_ROOM * (ENTRY_HEAD + sample.key_bytes) / sample.record_bytes
        } else {
            0.0
        };
        (tags, keys)
    }

    /// Smaller chunks, so that reading the first one and writing the last one are a small part of
    /// the whole: nothing else can happen during these two. They give more runs than the memory
    /// requires, which costs little when all of them are merged at once. They are not for views,
    /// because a read at random looks at every run. A record may have half a chunk at most, so this
    /// is only for sorts whose records all have `record_bytes`.
    pub(crate) fn overlapped(self, total_bytes: u64, record_bytes: u64) -> Self {
        let least = OVERLAPPED_BYTES_MIN.max(OVERLAPPED_RECORDS_MIN * record_bytes);
        let wanted = (total_bytes / OVERLAPPED_CHUNKS).max(least).next_multiple_of(SIDE_STEP_BYTES);
        if self.chunks == 1 || wanted >= self.chunk_bytes {
            return self;
        }
        self.with_chunk_bytes(wanted)
    }

    /// Chunks of at most `wanted` bytes, for a sort that gives its input back chunk by chunk: the run
    /// of a chunk is written before the chunk is given back, so long chunks cost space.
    pub(crate) fn with_chunks_of(self, wanted: u64) -> Self {
        let wanted = wanted.next_multiple_of(SIDE_STEP_BYTES);
        if wanted * 2 > self.chunk_bytes * self.chunks {
            return self;
        }
        RunPlan { chunks: 2, ..self.with_chunk_bytes(wanted) }
    }

    /// The same plan for shorter chunks, with less memory for their tags and keys.
    fn with_chunk_bytes(self, wanted: u64) -> Self {
        let share = wanted as f64 / self.chunk_bytes as f64;
        let side =
            |bytes: u64| ((bytes as f64 * share) as u64).next_multiple_of(4096) + SIDE_STEP_BYTES;
        RunPlan {
            chunk_bytes: wanted,
            tag_bytes: side(self.tag_bytes).min(self.tag_bytes),
            key_bytes: side(self.key_bytes).min(self.key_bytes),
            ..self
        }
    }

    /// The largest blocks that let a merge in `memory_bytes` take four runs at once.
    pub(crate) fn block_bytes_max(memory_bytes: u64) -> u32 {
        let most = (memory_bytes / BLOCKS_OF_FOUR_RUNS).clamp(4096, u64::from(*BLOCK_BYTES.end()));
        1 << most.ilog2()
    }

    fn chunk_memory(bytes: u64, chunks: u64, tags: f64, keys: f64) -> u64 {
        let chunk = Chunk::memory_bytes(bytes.next_multiple_of(4096) as usize) as u64;
        chunks * chunk + (bytes as f64 * (2.0 * tags + keys)) as u64 + 3 * SIDE_STEP_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: RecordSample = RecordSample {
        record_bytes: 100.0,
        key_bytes: 0.0,
        fence_key_bytes: 10.0,
        in_order: false,
    };

    /// All that formation holds at its end, fences included.
    fn formation_bytes(plan: &RunPlan, total: u64, threads: u64) -> u64 {
        let chunks = plan.chunks * Chunk::memory_bytes(plan.chunk_bytes as usize) as u64;
        let index = |bytes| IndexMemory::expected(bytes, plan.block_bytes, plan.fence_key_bytes);
        let fences = index(total).open + index(plan.chunk_bytes).writing;
        let pieces = plan.pieces * threads * PIECE_BYTES as u64;
        chunks + 2 * plan.tag_bytes + plan.key_bytes + pieces + fences
    }

    #[test]
    fn fences_of_much_data_fit_next_to_the_chunks() {
        for (memory, total) in [
            (16_000_000_000, 500_000_000_000),
            (256 << 20, 2_000_000_000),
            (1 << 30, 10_000_000_000),
            (1 << 30, 100_000_000_000),
            (64 << 20, 4_000_000_000),
            (6 << 20, 100_000_000),
        ] {
            for fence_key_bytes in [10.0, 256.0] {
                let sample = RecordSample { fence_key_bytes, ..SAMPLE };
                let plan = RunPlan::new(memory, Some(total), 1, sample, false, 2).expect("fits");
                let held = formation_bytes(&plan, total, 2);
                assert!(held <= memory, "{held} of {memory} for {total}: {plan:?}");
                // Room for fences costs chunks little.
                let enough = memory < 64 << 20 || 2 * plan.chunk_bytes > memory / 4;
                assert!(enough, "{memory} for {total}: {plan:?}");
            }
        }
    }

    #[test]
    fn files_are_formed_in_many_chunks_where_few_would_do() {
        let plan =
            |memory, total| RunPlan::new(memory, Some(total), 1, SAMPLE, false, 2).expect("fits");
        let few = plan(1_000_000_000, 2_000_000_000);
        assert!(few.chunks == 2 && few.chunk_bytes > 300_000_000, "{few:?}");
        let many = few.overlapped(2_000_000_000, 100);
        assert_eq!(many.chunk_bytes, (2_000_000_000_u64 / 16).next_multiple_of(65536));
        let tags = |plan: RunPlan| plan.tag_bytes as f64 / plan.chunk_bytes as f64;
        assert!((1.0..1.01).contains(&(tags(many) / tags(few))), "{few:?} {many:?}");
        let held = formation_bytes(&many, 2_000_000_000, 2);
        assert!(held < formation_bytes(&few, 2_000_000_000, 2), "{held} {many:?}");
        // A record may have half a chunk, so long ones keep theirs.
        assert_eq!(few.overlapped(2_000_000_000, 10_000_000), few);
        // A sort that fits is one chunk, and many chunks stay as they are.
        for (memory, total) in [(1_000_000_000, 500_000_000), (64 << 20, 2_000_000_000)] {
            let plan = plan(memory, total);
            assert_eq!(plan.overlapped(total, 100), plan);
        }
    }

    #[test]
    fn a_stream_of_unknown_length_leaves_a_share() {
        let plan = RunPlan::new(1 << 30, None, 1, SAMPLE, false, 2).expect("fits");
        assert!(formation_bytes(&plan, 20 << 30, 2) <= 1 << 30, "{plan:?}");
    }

    #[test]
    fn the_least_memory_in_errors_is_enough() {
        let Err(Error::Memory { least_bytes, .. }) =
            RunPlan::new(1 << 20, Some(1 << 40), 1, SAMPLE, true, 2)
        else {
            panic!("one MiB is not enough for two threads' pieces and two chunks")
        };
        RunPlan::new(least_bytes, Some(1 << 40), 1, SAMPLE, true, 2).expect("fits");
        RunPlan::new(least_bytes, None, 1, SAMPLE, true, 2).expect("fits");
    }
}
