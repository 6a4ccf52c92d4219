//! How full a volume is, from its members alone: nothing is written, and the volume may be open elsewhere.

use merganser_storage::numbers::{u64_of, usize_of};
use merganser_storage::{Storage, StorageExt};

use super::members::{Members, arrays};
use crate::bytes::{BLOCK, PAGE, u64_at};
use crate::error::Result;
use crate::layout::{HEAD, VolumeLayout};
use crate::log::record::{RecordHeader, chain_of};
use crate::log::{LogRing, Resident, RingPlace};
use crate::states::BlockStates;
use crate::store::layout_of;
use crate::superblock::Superblock;
use crate::table::{check_block, read_states, sum_of};

/// How often it is read again when a checkpoint came meanwhile.
const TRIES: u32 = 5;
/// Map blocks that are read at once, with both slots of each: 512 KiB.
const MAPS_AT_ONCE: u64 = 64;
/// Blocks of the log that are read at once.
const LOG_AT_ONCE: u64 = 64;

/// The contents of a volume, in numbers. Those of the data members are from the last checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VolumeUsage {
    /// Pages of the data members that hold data.
    pub pages_used: u64,
    /// Pages of the volume that have content there, shared or not. Pages of a damaged map block aren't counted, nor
    /// are pages that are only in the buffer.
    pub pages_mapped: u64,
    /// Bytes of the buffer whose records have not moved.
    pub buffer_bytes_used: u64,
}

pub(super) fn usage(name: &str, members: &Members) -> Result<VolumeUsage> {
    let arrays = arrays(name, members)?;
    let mut superblock = Superblock::read(&*arrays.data, false)?;
    for left in (0..TRIES).rev() {
        let layout = layout_of(&superblock, &*arrays.data, arrays.stripe)?;
        let used = on_data(&*arrays.data, &layout, &superblock);
        let again = Superblock::read(&*arrays.data, false)?;
        if again.checkpoint != superblock.checkpoint && left > 0 {
            // The bytes that were read may have been half old and half new.
            superblock = again;
            continue;
        }
        let (pages_used, pages_mapped) = used?;
        let blocks = match &arrays.buffer {
            Some(buffer) => in_log(&**buffer, superblock.volume, superblock.log_tail)?,
            None => 0,
        };
        return Ok(VolumeUsage { pages_used, pages_mapped, buffer_bytes_used: blocks * BLOCK });
    }
    unreachable!("the last try returns")
}

/// Pages in use, and volume pages with content.
fn on_data(
    array: &dyn Storage,
    layout: &VolumeLayout,
    superblock: &Superblock,
) -> Result<(u64, u64)> {
    let BlockStates { slots: states, used, sums } = read_states(
        array,
        layout,
        superblock.checkpoint,
        superblock.states_copy,
        superblock.sum_of_states(),
    )?;
    let used = used.iter().map(|&pages| u64::from(pages)).sum();
    let mut mapped = 0;
    for first in (0..layout.map_blocks).step_by(usize_of(MAPS_AT_ONCE)) {
        let count = MAPS_AT_ONCE.min(layout.map_blocks - first);
        let slots = &states[usize_of(first)..usize_of(first + count)];
        if slots.iter().all(|&slot| slot == 0) {
            continue;
        }
        let bytes = array.read_vec(layout.slot_at(first, 0), 2 * usize_of(count) * PAGE)?;
        for (i, slot) in slots.iter().enumerate().filter(|(_, slot)| matches!(slot, 1 | 2)) {
            let at = (2 * i + usize::from(slot - 1)) * PAGE;
            let (number, checkpoint) = (first + u64_of(i), superblock.checkpoint);
            let sum = sums.get(usize_of(number)).copied();
            mapped += mapped_in(&bytes[at..at + PAGE], number, checkpoint, sum);
        }
    }
    Ok((used, mapped))
}

/// Entries of a map block that name a page; none if it is damaged.
fn mapped_in(block: &[u8], number: u64, checkpoint: u64, sum: Option<u32>) -> u64 {
    let page = block.try_into().expect("a block");
    let is_old = sum.is_some_and(|sum| sum != sum_of(page));
    if is_old || check_block(page, number, checkpoint).is_err() {
        return 0;
    }
    let entries = block[HEAD..].chunks_exact(8).map(|entry| u64_at(entry, 0));
    u64_of(entries.filter(|&entry| entry != 0 && entry != u64::MAX).count())
}

/// Blocks of the log from `tail` to the last record that continues it.
fn in_log(array: &dyn Storage, volume: [u8; 16], tail: RingPlace) -> Result<u64> {
    let blocks = array.size() / BLOCK;
    if tail.at >= blocks {
        return Ok(0);
    }
    let mut ring = LogRing::new(blocks, tail);
    let mut window = BlockWindow { from: 0, bytes: Vec::new() };
    loop {
        let head = ring.head;
        let mut next: Option<(Resident, u64, u32)> = None;
        let starts = if head.at == 0 { [Some(0), None] } else { [Some(head.at), Some(0)] };
        for start in starts.into_iter().flatten() {
            let block = window.block(array, start, blocks)?;
            let Some(header) = RecordHeader::decode(block) else { continue };
            if (header.volume, header.seq, header.facts.chain) != (volume, head.seq, head.chain) {
                continue;
            }
            let count = 1 + u64_of(header.facts.pages());
            let skipped = if start == head.at { 0 } else { blocks - head.at };
            let fits = start + count <= blocks && ring.used + count + skipped <= blocks;
            if fits && next.is_none_or(|(_, session, _)| header.facts.session > session) {
                let place = RingPlace { at: start, ..head };
                let resident = Resident { place, blocks: count, skipped };
                next = Some((resident, header.facts.session, chain_of(block)));
            }
        }
        match next {
            Some((resident, _, chain)) => ring.advance(&resident, chain),
            None => return Ok(ring.used),
        }
    }
}

/// Blocks that were read at once.
struct BlockWindow {
    from: u64,
    bytes: Vec<u8>,
}

impl BlockWindow {
    fn block(&mut self, array: &dyn Storage, block: u64, blocks: u64) -> Result<&[u8]> {
        let held = u64_of(self.bytes.len()) / BLOCK;
        if !(self.from..self.from + held).contains(&block) {
            let count = usize_of(LOG_AT_ONCE.min(blocks - block));
            self.bytes = array.read_vec(block * BLOCK, count * PAGE)?;
            self.from = block;
        }
        let at = usize_of(block - self.from) * PAGE;
        Ok(&self.bytes[at..at + PAGE])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use merganser_storage::Operation;
    use merganser_storage::memory::MemoryStorage;

    use super::*;
    use crate::{OpenOptions, Volume, VolumeSettings};

    fn members(buffered: bool) -> Members {
        let disk = |name: &str| {
            let disk = MemoryStorage::new(name);
            disk.run(Operation::SetSize { size: 24 << 20 }).expect("sized");
            disk as Arc<dyn Storage>
        };
        let buffer = if buffered { vec![disk("hdd0"), disk("hdd1")] } else { Vec::new() };
        Members { data: vec![disk("ssd0"), disk("ssd1")], buffer }
    }

    /// The same numbers as the open volume has, before and after pages moved, and while it is open.
    #[test]
    fn the_members_tell_what_the_volume_tells() {
        for buffered in [true, false] {
            let members = members(buffered);
            Volume::create("vol", &members, &VolumeSettings::new(8 << 20), false).expect("made");
            let told = || Volume::usage("vol", &members).expect("read");
            assert_eq!(told(), VolumeUsage::default());
            let volume = Volume::open("vol", &members, OpenOptions::default()).expect("opens");
            for page in 0..600_u64 {
                // Every second page shares, and every fifth is zeros.
                let byte = if page % 5 == 0 { 0 } else { (page / 2 % 100) as u8 + 1 };
                volume.write_at(page * PAGE as u64, &[byte; PAGE]).expect("written");
            }
            volume.sync().expect("flushed");
            if buffered {
                let space = volume.space();
                assert!(space.buffer_bytes_used > 600 * PAGE as u64);
                assert_eq!(told().buffer_bytes_used, space.buffer_bytes_used, "while it is open");
                while volume.migrate().expect("moves") {}
            }
            let space = volume.space();
            volume.close().expect("closed");
            let usage = told();
            assert_eq!(usage.buffer_bytes_used, space.buffer_bytes_used);
            assert_eq!((usage.pages_used, usage.pages_mapped), (space.pages_used, 480));
            assert!((1..=100).contains(&usage.pages_used), "{usage:?}");
        }
    }
}
