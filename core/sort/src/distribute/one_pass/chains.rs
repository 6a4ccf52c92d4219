//! Tags in buckets: blocks of one pool, which workers take as they need them.
//!
//! ```text
//!   pool   │ block │ block │ block │ ...      BLOCK_TAGS tags each, of one worker and one bucket
//!   bucket ──► a chain a worker ──► numbers of its blocks, in input order
//! ```

use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;

use crate::run::chunk_view::ChunkView;
use crate::run::tag::Tag;
use crate::run::ties::Tagged;

/// Tags of a block.
pub(super) const BLOCK_TAGS: usize = 64;

/// Memory for tags and encoded keys that workers take from.
pub(super) struct TagRoom<'p> {
    blocks: Mutex<std::iter::Enumerate<std::slice::ChunksExactMut<'p, Tag>>>,
    pub(super) arena: Mutex<(usize, &'p mut [u8])>,
    /// It did not do.
    pub(super) full: AtomicBool,
}

impl<'p> TagRoom<'p> {
    pub(super) fn new(pool: &'p mut [Tag], keys: &'p mut [u8]) -> Self {
        TagRoom {
            blocks: Mutex::new(pool.chunks_exact_mut(BLOCK_TAGS).enumerate()),
            arena: Mutex::new((0, keys)),
            full: AtomicBool::new(false),
        }
    }
}

/// A chain that grows.
pub(super) struct OpenChain<'p> {
    /// The unused rest of its last block.
    room: std::slice::IterMut<'p, Tag>,
    bytes: u64,
    blocks: Vec<u32>,
}

impl<'p> OpenChain<'p> {
    pub(super) fn new() -> Self {
        OpenChain { room: [].iter_mut(), blocks: Vec::new(), bytes: 0 }
    }

    /// Appends the tag of a record of `len` bytes; false when there is no block left for it.
    #[inline]
    pub(super) fn push(&mut self, tag: Tag, len: usize, room: &TagRoom<'p>) -> bool {
        let slot = match self.room.next() {
            Some(slot) => slot,
            None => {
                let next = room.blocks.lock().next();
                let Some((number, block)) = next else { return false };
                self.blocks.push(number as u32);
                self.room = block.iter_mut();
                self.room.next().expect("a block holds some")
            }
        };
        *slot = tag;
        self.bytes += len as u64;
        true
    }

    /// The chain, and the bytes of its records.
    pub(super) fn close(self) -> (Chain, u64) {
        let tags = self.blocks.len() * BLOCK_TAGS - self.room.len();
        (Chain { blocks: self.blocks, tags }, self.bytes)
    }
}

/// Tags that one worker made for one bucket, in input order.
pub(super) struct Chain {
    /// Numbers of blocks of the pool.
    blocks: Vec<u32>,
    pub(super) tags: usize,
}

impl Chain {
    /// The tags of a block, from tag `from` on.
    fn block<'t>(&self, from: usize, pool: &'t [Tag]) -> &'t [Tag] {
        if from == self.tags {
            return &[];
        }
        let at = self.blocks[from / BLOCK_TAGS] as usize * BLOCK_TAGS;
        let end = (self.tags - from / BLOCK_TAGS * BLOCK_TAGS).min(BLOCK_TAGS);
        &pool[at + from % BLOCK_TAGS..at + end]
    }
}

/// Records of a key range.
pub(super) struct TagBucket {
    /// One a worker.
    pub(super) chains: Vec<Chain>,
    pub(super) one_key: bool,
    pub(super) tags: usize,
    /// Number of its first record, and where that begins, in the output.
    pub(super) first_record: u64,
    pub(super) start: u64,
}

impl TagBucket {
    /// Copies as many tags as fit to the front of `out`, from position `taken` of each chain on.
    /// Returns how many. The tags of a bucket of one key come in input order.
    pub(super) fn copy(
        &self,
        taken: &mut [usize],
        view: &ChunkView<'_>,
        pool: &[Tag],
        out: &mut [Tag],
    ) -> usize {
        let mut filled = 0;
        if !self.one_key {
            for (chain, taken) in self.chains.iter().zip(taken) {
                while *taken < chain.tags {
                    let block = chain.block(*taken, pool);
                    out[filled..filled + block.len()].copy_from_slice(block);
                    filled += block.len();
                    *taken += block.len();
                }
            }
            return filled;
        }
        while filled < out.len() {
            let next = self.chains.iter().enumerate().filter_map(|(number, chain)| {
                let tag = *chain.block(taken[number], pool).first()?;
                Some((view.position(tag), number, tag))
            });
            let Some((_, number, tag)) = next.min_by_key(|(position, ..)| *position) else { break };
            out[filled] = tag;
            filled += 1;
            taken[number] += 1;
        }
        filled
    }
}
