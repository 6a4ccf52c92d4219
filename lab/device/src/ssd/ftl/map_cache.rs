//! The entries of the page map that are in memory, when the map itself is on flash: DFTL's *cached
//! mapping table* (Gupta, Kim and Urgaonkar, "DFTL: a flash translation layer employing demand-based
//! selective caching of page-level address mappings", ASPLOS 2009).
//!
//! ```text
//!   map on flash     page 0: units 0 … n-1 │ page 1: units n … 2n-1 │ …
//!   in memory        single entries, the one used longest ago leaves first
//!                    dirty entries, by the page of the map that does not know them yet
//! ```
//!
//! As in DFTL, an entry is loaded when it is needed, and a dirty one that leaves takes all dirty entries
//! of its page of the map with it, in one program (its *batch update*). Unlike DFTL, entries leave in the
//! plain order of their last use, not in that of a segmented list, and one load serves all units of a
//! request that are in the same page of the map.

use std::collections::HashMap;

use crate::profile::SsdSettings;
use crate::ssd::ages::Ages;
use crate::ssd::nand::LogicalUnit;

/// The bytes of an entry in memory: the number of a unit and its place.
const ENTRY_BYTES: u64 = 8;

/// The work of flash for entries that are needed, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MapOperation {
    /// Read a page of the map.
    Load(u32),
    /// Write a page of the map again, with its dirty entries.
    WriteBack(u32),
}

#[derive(Debug, Clone, Copy)]
struct CachedMapping {
    unit: u32,
    dirty: bool,
}

/// The cached entries.
#[derive(Debug)]
pub(super) struct MapCache {
    capacity: usize,
    entries_per_page: u32,
    entries: Vec<CachedMapping>,
    /// The index of each cached unit in `entries`.
    slots: HashMap<u32, u32>,
    /// One list, by the time of the last use.
    ages: Ages,
    /// The dirty units of each page of the map.
    dirty: HashMap<u32, Vec<u32>>,
    /// Entries that were needed and cached.
    pub hits: u64,
    /// Entries that were needed and not cached.
    pub misses: u64,
}

impl MapCache {
    /// The cache of a device whose map is on flash.
    pub(super) fn new(settings: &SsdSettings) -> Option<MapCache> {
        (settings.map_cache_bytes > 0).then(|| MapCache {
            capacity: (settings.map_cache_bytes / ENTRY_BYTES).max(1) as usize,
            entries_per_page: settings.entries_per_map_page() as u32,
            entries: Vec::new(),
            slots: HashMap::new(),
            ages: Ages::new(1),
            dirty: HashMap::new(),
            hits: 0,
            misses: 0,
        })
    }

    /// The page of the map that has the entry of `unit`.
    pub(super) fn page_of(&self, unit: LogicalUnit) -> u32 {
        unit.0 / self.entries_per_page
    }

    /// A request needs the entries of `units`, and makes them dirty if it changes them. Adds to `steps`
    /// what flash has to do first.
    pub(super) fn need(
        &mut self,
        units: impl Iterator<Item = LogicalUnit>,
        changes: bool,
        steps: &mut Vec<MapOperation>,
    ) {
        let mut loaded = None;
        for unit in units {
            let page = self.page_of(unit);
            let slot = match self.slots.get(&unit.0) {
                Some(&slot) => {
                    self.hits += 1;
                    self.ages.remove(0, slot);
                    self.ages.push(0, slot);
                    slot
                }
                None => {
                    self.misses += 1;
                    let slot = self.insert(unit, steps);
                    if loaded != Some(page) {
                        steps.push(MapOperation::Load(page));
                        loaded = Some(page);
                    }
                    slot
                }
            };
            if changes {
                self.soil(slot);
            }
        }
    }

    /// Collection has moved `unit`. Returns whether its entry is cached, and so takes the change.
    pub(super) fn moved(&mut self, unit: LogicalUnit) -> bool {
        let slot = self.slots.get(&unit.0).copied();
        if let Some(slot) = slot {
            self.soil(slot);
        }
        slot.is_some()
    }

    /// `page` of the map is written: its entries are clean.
    pub(super) fn written(&mut self, page: u32) {
        for unit in self.dirty.remove(&page).unwrap_or_default() {
            let slot = self.slots[&unit];
            self.entries[slot as usize].dirty = false;
        }
    }

    fn soil(&mut self, slot: u32) {
        let CachedMapping { unit, dirty } = self.entries[slot as usize];
        if !dirty {
            self.entries[slot as usize].dirty = true;
            self.dirty.entry(unit / self.entries_per_page).or_default().push(unit);
        }
    }

    /// A clean entry for `unit`, as the newest. If the cache is full, the oldest one leaves.
    fn insert(&mut self, unit: LogicalUnit, steps: &mut Vec<MapOperation>) -> u32 {
        let entry = CachedMapping { unit: unit.0, dirty: false };
        let slot = if self.entries.len() < self.capacity {
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        } else {
            let slot = self.ages.oldest(0).expect("a full cache has entries");
            let leaving = self.entries[slot as usize];
            if leaving.dirty {
                let page = leaving.unit / self.entries_per_page;
                steps.push(MapOperation::WriteBack(page));
                self.written(page);
            }
            self.ages.remove(0, slot);
            self.slots.remove(&leaving.unit);
            self.entries[slot as usize] = entry;
            slot
        };
        self.slots.insert(unit.0, slot);
        self.ages.push(0, slot);
        slot
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pages of the map of 4 entries.
    fn cache(entries: u64) -> MapCache {
        let page_bytes = 16;
        let map_cache_bytes = entries * ENTRY_BYTES;
        let settings = SsdSettings { page_bytes, map_cache_bytes, ..SsdSettings::default() };
        MapCache::new(&settings).expect("there is a cache")
    }

    fn need(cache: &mut MapCache, units: &[u32], changes: bool) -> Vec<MapOperation> {
        let mut steps = Vec::new();
        cache.need(units.iter().map(|&unit| LogicalUnit(unit)), changes, &mut steps);
        steps
    }

    #[test]
    fn the_oldest_leaves_and_takes_the_dirty_entries_of_its_page_along() {
        use MapOperation::{Load, WriteBack};
        let mut cache = cache(4);
        // One load for the entries of one page.
        assert_eq!(need(&mut cache, &[0, 1, 5], true), [Load(0), Load(1)]);
        assert_eq!(need(&mut cache, &[9], false), [Load(2)]);
        assert_eq!(need(&mut cache, &[0], false), []);
        assert_eq!((cache.hits, cache.misses), (1, 4));
        // Unit 1 leaves; page 0 is written with 0 and 1.
        assert_eq!(need(&mut cache, &[13], false), [WriteBack(0), Load(3)]);
        // Unit 5 is dirty, 9 and 0 are clean.
        assert_eq!(need(&mut cache, &[14], false), [WriteBack(1), Load(3)]);
        assert_eq!(need(&mut cache, &[2, 3], false), [Load(0)]);
        assert!(!cache.moved(LogicalUnit(1)) && cache.moved(LogicalUnit(14)));
        assert_eq!(need(&mut cache, &[20], false), [Load(5)], "13 is clean");
        assert_eq!(need(&mut cache, &[21], false), [WriteBack(3), Load(5)]);
    }

    #[test]
    fn a_cache_of_one_entry_serves_a_request_of_many() {
        let mut cache = cache(1);
        let steps = need(&mut cache, &[0, 1, 2, 3], true);
        let back = MapOperation::WriteBack(0);
        assert_eq!(steps, [MapOperation::Load(0), back, back, back]);
    }

    proptest! {
        /// Against a list of entries, oldest first.
        #[test]
        fn a_cache_is_a_list_by_last_use(
            acts in prop::collection::vec((0..40_u32, 1..4_u32, 0..4_u8), 1..200),
            capacity in 1..12_usize,
        ) {
            let mut cache = cache(capacity as u64);
            let mut list: Vec<(u32, bool)> = Vec::new();
            for (unit, count, what) in acts {
                if what == 3 {
                    let at = list.iter().position(|entry| entry.0 == unit);
                    if let Some(at) = at {
                        list[at].1 = true;
                    }
                    prop_assert_eq!(cache.moved(LogicalUnit(unit)), at.is_some());
                    continue;
                }
                let units: Vec<u32> = (unit..unit + count).collect();
                let (mut steps, mut loaded) = (Vec::new(), None);
                for &unit in &units {
                    let page = unit / 4;
                    let at = list.iter().position(|entry| entry.0 == unit);
                    let dirty = match at {
                        Some(at) => list.remove(at).1,
                        None => {
                            if list.len() == capacity {
                                let (old, dirty) = list.remove(0);
                                if dirty {
                                    steps.push(MapOperation::WriteBack(old / 4));
                                    for entry in list.iter_mut().filter(|e| e.0 / 4 == old / 4) {
                                        entry.1 = false;
                                    }
                                }
                            }
                            if loaded != Some(page) {
                                steps.push(MapOperation::Load(page));
                                loaded = Some(page);
                            }
                            false
                        }
                    };
                    list.push((unit, dirty || what == 2));
                }
                prop_assert_eq!(need(&mut cache, &units, what == 2), steps);
            }
        }
    }
}
