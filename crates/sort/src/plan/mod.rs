//! All sizes of a sort, decided once, from the memory given and a look at the data.
//!
//! ```text
//!   memory ├ chunk being read ┼ chunk being sorted ┼ tags ┼ tags' scratch ┼ encoded keys ┼ pieces ┤
//! ```
//!
//! While one chunk is sorted and written, the next one is read: two chunks keep the disk busy all
//! the time at the price of runs half as long. When everything fits, there is one chunk and no run.

mod sample;

pub use sample::Sample;
pub(crate) use sample::sample;

use crate::run::form::{SLAB_TAGS, TAG_BYTES};
use crate::run::format::{BLOCK_BYTES, PIECE_BYTES};
use crate::run::input::{Chunk, SPAN_BYTES};
use crate::{Error, Result};

/// The smallest chunk that is worth its run, in bytes read.
const CHUNK_BYTES_MIN: u64 = 64 << 10;
/// The largest block that random reads still like, in bytes.
const BLOCK_BYTES_LIKED: u64 = 32 << 10;

/// The sizes of run formation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPlan {
    /// Bytes that are read into a chunk.
    pub chunk_bytes: u64,
    /// Chunks: 2 to read ahead, 1 when everything fits.
    pub chunks: u64,
    /// Bytes of one of the two tag arrays.
    pub tag_bytes: u64,
    /// Bytes for encoded keys.
    pub key_bytes: u64,
    /// Write buffers a thread.
    pub pieces: u64,
    /// Logical bytes of a block.
    pub block_bytes: u32,
}

impl RunPlan {
    /// Sizes for `memory_bytes` and inputs of `total_bytes` (when known).
    ///
    /// # Errors
    /// [`Error::Memory`] with the least that works.
    pub fn new(
        memory_bytes: u64,
        total_bytes: Option<u64>,
        inputs: u64,
        sample: Sample,
        encoded: bool,
        threads: usize,
    ) -> Result<Self> {
        // A quarter more than the sample says: what does not fit is sorted in a second part.
        let slab = (TAG_BYTES * SLAB_TAGS) as f64 / SPAN_BYTES as f64;
        let tags = 1.25 * TAG_BYTES as f64 / sample.record_bytes + slab;
        let keys =
            if encoded { 1.25 * (12.0 + sample.key_bytes) / sample.record_bytes } else { 0.0 };
        let threads = threads as u64;
        let piece = PIECE_BYTES as u64;
        let pieces = (memory_bytes / 16 / piece / threads).clamp(1, 8);
        let fixed = pieces * threads * piece;
        let least = fixed + Self::chunk_memory(CHUNK_BYTES_MIN, 2, tags, keys) + (1 << 20);
        if memory_bytes < least {
            return Err(Error::Memory {
                owner: "sorting",
                least_bytes: least,
                limit_bytes: memory_bytes,
            });
        }
        let available = memory_bytes - fixed;
        // Each input begins at a page of its own, and its last record may need a terminator.
        let all = total_bytes.map(|total| (total + 8192 * inputs).next_multiple_of(4096));
        let fits = |bytes: &u64| Self::chunk_memory(*bytes, 1, tags, keys) <= available;
        let (chunk_bytes, chunks) = match all.map(|bytes| bytes.max(CHUNK_BYTES_MIN)).filter(fits) {
            Some(bytes) => (bytes, 1),
            None => {
                let factor = 2.0 * 1.0625 + 2.0 * tags + keys;
                let bytes = ((available - (1 << 20)) as f64 / factor) as u64;
                (bytes / 65536 * 65536, 2)
            }
        };
        let side = |ratio: f64| (chunk_bytes as f64 * ratio) as u64 / 4096 * 4096 + 65536;
        // Every run gives four blocks to the least window, of which a merge holds about ten; and
        // the fences of all blocks take at most an eighth of the memory.
        let total = total_bytes.unwrap_or(memory_bytes * 64).max(1);
        let runs = total.div_ceil(chunk_bytes);
        let for_windows = memory_bytes / (96 * runs);
        let for_fences = total * 56 * 8 / memory_bytes;
        let wanted = BLOCK_BYTES_LIKED.min(for_windows).max(for_fences).max(1);
        let floor = 1u64 << wanted.ilog2();
        let block_bytes = (floor as u32).clamp(*BLOCK_BYTES.start(), *BLOCK_BYTES.end());
        Ok(RunPlan {
            chunk_bytes: chunk_bytes.next_multiple_of(4096),
            chunks,
            tag_bytes: side(tags),
            key_bytes: if encoded { side(keys) } else { 0 },
            pieces,
            block_bytes,
        })
    }

    fn chunk_memory(bytes: u64, chunks: u64, tags: f64, keys: f64) -> u64 {
        let chunk = Chunk::memory_bytes(bytes.next_multiple_of(4096) as usize) as u64;
        chunks * chunk + (bytes as f64 * (2.0 * tags + keys)) as u64 + 3 * 65536
    }
}
