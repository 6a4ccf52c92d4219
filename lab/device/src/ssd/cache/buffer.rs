//! The write buffer: lists of units that are not on flash yet.
//!
//! ```text
//!   lru-page   one list; when the buffer is full, its oldest page goes to flash for each that waits
//!   lru        one list; when the buffer is full, its oldest pages go to flash together
//!   parallel   a list for each package; when the buffer is full, the oldest pages of every list
//!              go to flash together, so that all packages work (dissertation 5.3.3, Algorithm 1)
//!   behind     one list; a page's worth goes to flash as soon as it is there
//! ```
//!
//! `lru-page` is the classic LRU: with one write that waits, one package works at a time, whatever the buffer
//! holds. `lru` and `parallel` evict `cache_parallelism` pages per package. They differ in where those
//! pages go: those of one list, to the packages of their numbers or of their turn, so that some packages
//! get several and others none; those of a list per package, evenly.
//!
//! Space becomes free when flash has programmed a page, not when the page is sent.

use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;
use slab::Slab;

use crate::profile::{CachePolicy, SsdSettings};
use crate::ssd::ages::Ages;
use crate::ssd::nand::LogicalUnit;
use crate::ssd::nand::array::UnitBytes;

#[derive(Debug)]
struct BufferedUnit {
    unit: LogicalUnit,
    content: UnitBytes,
    list: u32,
}

/// Units that are programmed together.
#[derive(Debug)]
pub(crate) struct ProgramGroup {
    pub units: Vec<(LogicalUnit, UnitBytes)>,
    /// The die of their list.
    pub die: Option<u32>,
}

/// Units that the host has written and flash has not programmed.
#[derive(Debug)]
pub(crate) struct WriteBuffer {
    policy: CachePolicy,
    capacity: u64,
    a_page: usize,
    parallelism: u64,
    packages: u64,
    /// Whether a unit's die is fixed, so that only neighbours share a page.
    fixed: bool,
    entries: Slab<BufferedUnit>,
    /// The slot of each unit's entry.
    slots: HashMap<LogicalUnit, u32, FixedState>,
    /// The slots of each list.
    ages: Ages,
    /// Units that were sent to flash and are not programmed yet.
    leaving: u64,
    /// Scratch space.
    chosen: Vec<LogicalUnit>,
    /// Empty lists of groups that were sent.
    spare: Vec<Vec<(LogicalUnit, UnitBytes)>>,
}

impl WriteBuffer {
    pub(crate) fn new(settings: &SsdSettings) -> WriteBuffer {
        let policy = settings.cache_policy();
        let lists = if policy == CachePolicy::Parallel { settings.dies() } else { 1 };
        WriteBuffer {
            policy,
            capacity: settings.cache_bytes / settings.map_unit_bytes,
            a_page: settings.units_per_page() as usize,
            parallelism: settings.cache_parallelism,
            packages: settings.dies(),
            fixed: settings.placement() == crate::profile::DiePlacement::Fixed,
            entries: Slab::new(),
            slots: HashMap::default(),
            ages: Ages::new(lists as usize),
            leaving: 0,
            chosen: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Whether there is a buffer.
    pub(crate) fn exists(&self) -> bool {
        self.policy != CachePolicy::None
    }

    pub(crate) fn contains(&self, unit: LogicalUnit) -> bool {
        self.slots.contains_key(&unit)
    }

    /// The bytes of `unit`, if it is in the buffer.
    pub(crate) fn content(&self, unit: LogicalUnit) -> Option<Option<&[u8]>> {
        self.slots.get(&unit).map(|&slot| self.entries[slot as usize].content.as_deref())
    }

    /// Whether all `units` fit; units that are already in the buffer take no additional space.
    pub(crate) fn fits(&self, units: impl Iterator<Item = LogicalUnit>) -> bool {
        let new = units.filter(|&unit| !self.contains(unit)).count() as u64;
        self.entries.len() as u64 + self.leaving + new <= self.capacity
    }

    /// Adds `unit` as the youngest of its list; `home` is the die for its number. Returns whether it was
    /// there before.
    pub(crate) fn put(&mut self, unit: LogicalUnit, content: UnitBytes, home: u32) -> bool {
        let list = if self.policy == CachePolicy::Parallel { home } else { 0 };
        let entry = BufferedUnit { unit, content, list };
        match self.slots.entry(unit) {
            Occupied(slot) => {
                let slot = *slot.get();
                let before = std::mem::replace(&mut self.entries[slot as usize], entry);
                self.ages.remove(before.list, slot);
                self.ages.push(list, slot);
                true
            }
            Vacant(place) => {
                let slot = self.entries.insert(entry) as u32;
                place.insert(slot);
                self.ages.push(list, slot);
                false
            }
        }
    }

    /// Drops `unit`.
    pub(crate) fn drop_unit(&mut self, unit: LogicalUnit) -> Option<UnitBytes> {
        let slot = self.slots.remove(&unit)?;
        let entry = self.entries.remove(slot as usize);
        self.ages.remove(entry.list, slot);
        Some(entry.content)
    }

    /// Whether no unit is in the buffer or on its way to flash.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.leaving == 0
    }

    /// The number of units on their way to flash.
    pub(crate) fn leaving(&self) -> u64 {
        self.leaving
    }

    /// The groups that a full buffer evicts.
    pub(crate) fn make_space(&mut self) -> VecDeque<ProgramGroup> {
        match self.policy {
            CachePolicy::Parallel => {
                let mut groups = VecDeque::new();
                for _ in 0..self.parallelism {
                    for list in 0..self.ages.lists() {
                        groups.extend(self.oldest(list));
                    }
                }
                groups
            }
            CachePolicy::LruPage => self.oldest(0).into_iter().collect(),
            _ => {
                let pages = self.parallelism * self.packages;
                (0..pages).map_while(|_| self.oldest(0)).collect()
            }
        }
    }

    /// The groups that leave although there is space.
    pub(crate) fn leave_behind(&mut self) -> Option<ProgramGroup> {
        let full_page = self.policy == CachePolicy::Behind && self.entries.len() >= self.a_page;
        if full_page { self.oldest(0) } else { None }
    }

    /// A group of the remaining units, until the buffer is empty.
    pub(crate) fn drain(&mut self) -> Option<ProgramGroup> {
        (0..self.ages.lists()).find_map(|list| self.oldest(list))
    }

    /// The oldest units of `list` that fill a page.
    fn oldest(&mut self, list: u32) -> Option<ProgramGroup> {
        let first = self.entries[self.ages.oldest(list)? as usize].unit;
        let mut chosen = std::mem::take(&mut self.chosen);
        if self.fixed {
            let page = first.0 / self.a_page as u32 * self.a_page as u32;
            let page = (page..page + self.a_page as u32).map(LogicalUnit);
            chosen.extend(page.filter(|&unit| self.contains(unit)));
        } else {
            let slots = self.ages.iter(list).take(self.a_page);
            chosen.extend(slots.map(|slot| self.entries[slot as usize].unit));
        }
        self.leaving += chosen.len() as u64;
        let mut units = self.spare.pop().unwrap_or_default();
        let take = |unit: LogicalUnit| (unit, self.drop_unit(unit).expect("it is here"));
        units.extend(chosen.drain(..).map(take));
        self.chosen = chosen;
        let die = (self.policy == CachePolicy::Parallel).then_some(list);
        Some(ProgramGroup { units, die })
    }

    /// Flash has programmed `units` units.
    pub(crate) fn left(&mut self, units: u64) {
        self.leaving = self.leaving.checked_sub(units).expect("they were leaving");
    }

    /// Flash has taken the units of a group. Another group uses its empty list.
    pub(crate) fn sent(&mut self, list: Vec<(LogicalUnit, UnitBytes)>) {
        debug_assert!(list.is_empty());
        self.spare.push(list);
    }

    /// Flash refused `group`: it stays in the buffer.
    pub(crate) fn keep(&mut self, group: ProgramGroup) {
        self.left(group.units.len() as u64);
        let list = group.die.unwrap_or(0);
        for (unit, content) in group.units {
            self.put(unit, content, list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(policy: u64, units: u64) -> WriteBuffer {
        let settings = SsdSettings {
            cache_policy: policy,
            cache_bytes: units * 4096,
            cache_parallelism: 2,
            channels: 2,
            ..SsdSettings::default()
        };
        WriteBuffer::new(&settings)
    }

    fn fill(buffer: &mut WriteBuffer, units: &[u32]) {
        for &unit in units {
            buffer.put(LogicalUnit(unit), None, unit % 2);
        }
    }

    fn numbers(groups: impl IntoIterator<Item = ProgramGroup>) -> Vec<u32> {
        groups.into_iter().flat_map(|g| g.units).map(|(unit, _)| unit.0).collect()
    }

    #[test]
    fn lru_gives_what_was_written_longest_ago() {
        let mut lru = buffer(1, 6);
        fill(&mut lru, &[1, 2, 3, 1, 4, 5, 6]);
        assert!(!lru.fits([LogicalUnit(9)].into_iter()) && lru.fits([LogicalUnit(4)].into_iter()));
        // Two for each of two packages, whichever these are.
        assert_eq!(numbers(lru.make_space()), [2, 3, 1, 4]);
        assert!(!lru.fits([LogicalUnit(9)].into_iter()), "its space comes back when flash has it");
        lru.left(1);
        assert!(lru.fits([LogicalUnit(9)].into_iter()));
    }

    #[test]
    fn the_classic_lru_gives_one_page() {
        let mut lru = buffer(4, 6);
        fill(&mut lru, &[1, 2, 3, 1, 4, 5, 6]);
        assert_eq!(numbers(lru.make_space()), [2]);
        assert_eq!((numbers(lru.make_space()), lru.leaving()), (vec![3], 2));
        lru.left(2);
        assert!(lru.fits([LogicalUnit(9), LogicalUnit(10)].into_iter()));
        assert_eq!(numbers(std::iter::from_fn(|| lru.drain())), [1, 4, 5, 6]);
        lru.left(4);
        assert!(lru.is_empty() && lru.make_space().is_empty());
    }

    #[test]
    fn parallel_gives_every_package_its_share() {
        let mut parallel = buffer(2, 4);
        fill(&mut parallel, &[1, 3, 5, 2]);
        let groups = parallel.make_space();
        assert_eq!(groups.iter().map(|g| g.die).collect::<Vec<_>>(), [Some(0), Some(1), Some(1)]);
        assert_eq!(numbers(groups), [2, 1, 3]);
        assert_eq!(numbers(parallel.drain()), [5]);
        parallel.left(4);
        assert!(parallel.is_empty());
    }
}
