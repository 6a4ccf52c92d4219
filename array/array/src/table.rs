//! The tables of the maps: blocks of 4096 bytes on the data members, through a cache of bounded memory.
//!
//! ```text
//!   block 17 of a table   │ slot A: as of checkpoint 6 │ slot B: as of checkpoint 4 │
//!   state of the block    A counts
//!   changed               → cache → slot B (now, or when the cache is full)
//!   checkpoint 7          states say B, with its checksum; then the superblock names these states
//! ```
//!
//! The slot that counts is never written. So a cut at any point leaves all blocks as they were at the
//! last checkpoint, and a changed block may leave the cache at any time.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use merganser_storage::numbers::{u64_of, usize_of};
use merganser_storage::{Storage, StorageExt};

use crate::bulk::write_blocks;
use crate::bytes::{
    BLOCK, PAGE, PageBytes, is_sealed, put_u32, put_u64, seal, u32_at, u64_at, zeroed,
};
use crate::error::{Error, Result};
use crate::layout::{HEAD, VolumeLayout};
use crate::states::{self, BlockStates, states_of};

const MAGIC: u32 = u32::from_le_bytes(*b"MtbB");
const SEAL: usize = 4;
/// Memory that a cached block takes, in bytes, with its places in the maps.
const CACHED_BYTES: u64 = 4096 + 160;
const CACHED_MIN: usize = 64;
/// The fault of a block whose own checksum is right, but is not the one that its reference names.
pub(crate) const OLD_BLOCK: &str = "it is whole, but not the one that was written last: the disk lost a write, or an older copy was put back";
const CURRENT: u8 = 0b0011;
const PENDING: u8 = 0b1100;

/// Blocks of the tables.
pub(crate) struct Tables {
    array: Arc<dyn Storage>,
    layout: VolumeLayout,
    /// By table block: the slot that counts (0: none was written, 1: A, 2: B) and, in the next two bits,
    /// the slot that will count after the next checkpoint (0: the same).
    states: Vec<u8>,
    /// By table block: the checksum of the slot that counts, or that will count. Empty in a volume that has none.
    sums: Vec<u32>,
    /// Pages in use, by segment.
    pub(crate) used: Vec<u8>,
    cache: HashMap<u64, Cached>,
    /// Blocks by last use.
    order: BTreeMap<u64, u64>,
    stamp: u64,
    capacity: usize,
    /// Blocks of the capacity that others use.
    lent: usize,
    /// The checkpoint that counts.
    checkpoint: u64,
    pub(crate) bytes_written: u64,
}

struct Cached {
    block: Box<PageBytes>,
    dirty: bool,
    stamp: u64,
}

impl Tables {
    /// Tables without any block.
    pub(crate) fn new(array: Arc<dyn Storage>, layout: VolumeLayout, memory_bytes: u64) -> Tables {
        let capacity = usize::try_from(memory_bytes / CACHED_BYTES).unwrap_or(usize::MAX);
        Tables {
            array,
            layout,
            states: vec![0; usize_of(layout.table_blocks())],
            sums: vec![0; if layout.sums { usize_of(layout.table_blocks()) } else { 0 }],
            used: vec![0; usize_of(layout.segments)],
            cache: HashMap::new(),
            order: BTreeMap::new(),
            stamp: 0,
            capacity: capacity.max(CACHED_MIN),
            lent: 0,
            checkpoint: 0,
            bytes_written: 0,
        }
    }

    /// Tables as of checkpoint `checkpoint`, whose states are in copy `copy`, and have checksum `sum` if the superblock
    /// has one.
    pub(crate) fn open(
        array: Arc<dyn Storage>,
        layout: VolumeLayout,
        memory_bytes: u64,
        checkpoint: u64,
        copy: u8,
        sum: Option<u32>,
    ) -> Result<Tables> {
        let mut tables = Tables::new(array, layout, memory_bytes);
        tables.checkpoint = checkpoint;
        let BlockStates { slots, used, sums } =
            read_states(&*tables.array, &layout, checkpoint, copy, sum)?;
        tables.states = slots.into_iter().map(|slot| slot & CURRENT).collect();
        (tables.used, tables.sums) = (used, sums);
        Ok(tables)
    }

    /// Whether a block was ever written; else all of it is zero.
    pub(crate) fn is_written(&self, block: u64) -> bool {
        self.states[usize_of(block)] != 0 || self.cache.contains_key(&block)
    }

    /// The entries of a block, to read.
    pub(crate) fn read(&mut self, block: u64) -> Result<&[u8]> {
        self.load(block)?;
        Ok(&self.cache[&block].block[HEAD..])
    }

    /// The entries of a block, to change.
    pub(crate) fn write(&mut self, block: u64) -> Result<&mut [u8]> {
        self.load(block)?;
        let cached = self.cache.get_mut(&block).expect("loaded");
        cached.dirty = true;
        Ok(&mut cached.block[HEAD..])
    }

    /// Gives up a map block that is damaged: all its entries are `entry` now.
    pub(crate) fn replace(&mut self, block: u64, entry: u64) -> Result<()> {
        self.make_room()?;
        self.stamp += 1;
        let stamp = self.stamp;
        let mut content = zeroed();
        content[HEAD..].chunks_mut(8).for_each(|own| put_u64(own, 0, entry));
        self.cache.insert(block, Cached { block: content, dirty: true, stamp });
        self.order.insert(stamp, block);
        Ok(())
    }

    fn make_room(&mut self) -> Result<()> {
        while self.cache.len() >= self.capacity {
            self.evict()?;
        }
        Ok(())
    }

    fn load(&mut self, block: u64) -> Result<()> {
        self.stamp += 1;
        let stamp = self.stamp;
        if let Some(cached) = self.cache.get_mut(&block) {
            self.order.remove(&cached.stamp);
            cached.stamp = stamp;
            self.order.insert(stamp, block);
            return Ok(());
        }
        self.make_room()?;
        let content = self.fetch(block)?;
        self.cache.insert(block, Cached { block: content, dirty: false, stamp });
        self.order.insert(stamp, block);
        Ok(())
    }

    fn fetch(&self, block: u64) -> Result<Box<PageBytes>> {
        let state = self.states[usize_of(block)];
        let (slot, pending) = match state >> 2 {
            0 => (state & CURRENT, false),
            pending => (pending, true),
        };
        if slot == 0 {
            return Ok(zeroed());
        }
        let at = self.layout.slot_at(block, slot - 1);
        let newest = self.checkpoint + u64::from(pending);
        // Many pages depend on it, so that a failure which may pass gets a second chance.
        self.fetch_from(at, block, newest).or_else(|_| self.fetch_from(at, block, newest))
    }

    fn fetch_from(&self, at: u64, block: u64, newest: u64) -> Result<Box<PageBytes>> {
        let maps = self.layout.map_blocks;
        let (what, number) = match block < maps {
            true => ("map block", block),
            false => ("segment block", block - maps),
        };
        let volume = self.array.name();
        let mut content = zeroed();
        let count = self.array.read_at(at, &mut content[..]).map_err(|error| {
            let text = format!("{volume}: {what} {number} can't be read: {error}");
            Error::of_read(io::Error::new(error.kind(), text))
        })?;
        let detail = if count < PAGE {
            "the member ends before it".to_owned()
        } else if let Err(detail) = check_block(&content, block, newest) {
            detail
        } else if self.sums.get(usize_of(block)).is_some_and(|&sum| sum_of(&content) != sum) {
            OLD_BLOCK.to_owned()
        } else {
            return Ok(content);
        };
        Err(Error::Damaged { volume: volume.to_owned(), what, number, detail })
    }

    fn evict(&mut self) -> Result<()> {
        let (&stamp, &block) = self.order.first_key_value().expect("the cache isn't empty");
        if self.cache[&block].dirty {
            self.write_out(&[block])?;
        }
        self.order.remove(&stamp);
        self.cache.remove(&block);
        Ok(())
    }

    /// Writes dirty blocks to the slots that will count.
    fn write_out(&mut self, blocks: &[u64]) -> Result<()> {
        let generation = self.checkpoint + 1;
        let mut writes = Vec::with_capacity(blocks.len());
        for &block in blocks {
            let cached = self.cache.get_mut(&block).expect("cached");
            seal_block(&mut cached.block, block, generation);
            let state = &mut self.states[usize_of(block)];
            let next = if *state & CURRENT == 1 { 2 } else { 1 };
            *state = *state & CURRENT | next << 2;
            if let Some(sum) = self.sums.get_mut(usize_of(block)) {
                *sum = sum_of(&cached.block);
            }
            writes.push((self.layout.slot_at(block, next - 1), block));
        }
        let cache = &self.cache;
        write_blocks(&*self.array, writes.iter().map(|&(at, block)| (at, &*cache[&block].block)))?;
        self.bytes_written += u64_of(writes.len() * PAGE);
        for block in blocks {
            self.cache.get_mut(block).expect("cached").dirty = false;
        }
        Ok(())
    }

    /// Writes all that has changed, and the states to copy `copy`, and returns their checksum. They count when the
    /// superblock of the next checkpoint is durable; then call [`Tables::committed`].
    pub(crate) fn prepare(&mut self, copy: u8) -> Result<u32> {
        let dirty = self.cache.iter().filter(|(_, cached)| cached.dirty);
        let mut dirty: Vec<u64> = dirty.map(|(&block, _)| block).collect();
        dirty.sort_unstable();
        self.write_out(&dirty)?;
        let effective = |&state: &u8| if state >> 2 == 0 { state & CURRENT } else { state >> 2 };
        let states = BlockStates {
            slots: self.states.iter().map(effective).collect(),
            used: self.used.clone(),
            sums: self.sums.clone(),
        };
        let blocks = states.encode(self.checkpoint + 1);
        let at = states::copy_at(&self.layout, copy);
        let places = (0..).map(|number| at + number * BLOCK);
        write_blocks(&*self.array, places.zip(blocks.iter().map(|block| &**block)))?;
        self.bytes_written += u64_of(blocks.len() * PAGE);
        Ok(states::sum_of(blocks.iter().map(|block| &block[..])))
    }

    /// The checkpoint that [`Tables::prepare`] prepared counts now.
    pub(crate) fn committed(&mut self) {
        self.checkpoint += 1;
        for state in &mut self.states {
            if *state & PENDING != 0 {
                *state >>= 2;
            }
        }
    }

    /// Gives up half of the cache for other use, until [`Tables::take_back`]. Returns its bytes.
    pub(crate) fn lend(&mut self) -> Result<u64> {
        let lent = (self.capacity / 2).min(self.capacity - CACHED_MIN);
        self.capacity -= lent;
        self.lent += lent;
        while self.cache.len() > self.capacity {
            self.evict()?;
        }
        Ok(u64_of(lent) * CACHED_BYTES)
    }

    /// Ends what [`Tables::lend`] began.
    pub(crate) fn take_back(&mut self) {
        self.capacity += std::mem::take(&mut self.lent);
    }

    /// Forgets clean blocks, so that they are read from the members again.
    pub(crate) fn forget_clean(&mut self) {
        self.cache.retain(|_, cached| cached.dirty);
        let kept: std::collections::HashSet<u64> = self.cache.keys().copied().collect();
        self.order.retain(|_, block| kept.contains(block));
    }
}

/// The states of checkpoint `checkpoint` in copy `copy`, whose checksum is `sum` if the superblock has one.
pub(crate) fn read_states(
    array: &dyn Storage,
    layout: &VolumeLayout,
    checkpoint: u64,
    copy: u8,
    sum: Option<u32>,
) -> Result<BlockStates> {
    let damaged = |number, detail| Error::Damaged {
        volume: array.name().to_owned(),
        what: "block of states",
        number,
        detail,
    };
    let at = states::copy_at(layout, copy);
    let bytes = array.read_vec(at, usize_of(layout.state_blocks) * PAGE)?;
    let mut payload = Vec::with_capacity(bytes.len());
    for (block, number) in bytes.chunks(PAGE).zip(0..) {
        let own = states_of(block, number, checkpoint);
        payload.extend_from_slice(own.map_err(|detail| damaged(number, detail))?);
    }
    if sum.is_some_and(|sum| sum != states::sum_of(bytes.chunks(PAGE))) {
        return Err(damaged(0, OLD_BLOCK.to_owned()));
    }
    Ok(BlockStates::decode(layout, &payload))
}

/// Puts head and checksum on a table block.
pub(crate) fn seal_block(block: &mut PageBytes, number: u64, generation: u64) {
    put_u32(block, 0, MAGIC);
    put_u64(block, 8, number);
    put_u64(block, 16, generation);
    seal(block, SEAL);
}

/// The checksum of a table block that has one.
pub(crate) fn sum_of(block: &PageBytes) -> u32 {
    u32_at(block, SEAL)
}

/// Whether a block is table block `number`, not newer than checkpoint `newest`.
pub(crate) fn check_block(
    block: &PageBytes,
    number: u64,
    newest: u64,
) -> std::result::Result<(), String> {
    if u32_at(block, 0) != MAGIC {
        Err("it has not the magic of one".to_owned())
    } else if !is_sealed(block, SEAL) {
        Err("its checksum is wrong".to_owned())
    } else if u64_at(block, 8) != number {
        Err(format!("it is block {}, which belongs elsewhere", u64_at(block, 8)))
    } else if u64_at(block, 16) > newest {
        let found = u64_at(block, 16);
        Err(format!("it is of checkpoint {found}, newer than checkpoint {newest}, which counts"))
    } else {
        Ok(())
    }
}
