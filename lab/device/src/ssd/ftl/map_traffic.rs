//! The page map on flash: its pages are read and written like data.
//!
//! ```text
//!   a miss                 read a page of the map
//!   a dirty entry leaves   read its page of the map, write it elsewhere
//!   a unit moved           its entry in the cache gets dirty; without one, its page of the map is owed:
//!                          it is read and written after the collection
//! ```
//!
//! Pages of the map are units behind those of the host, and go to an open block of their own in each
//! plane. Where they are is DFTL's *global translation directory*; it stays in memory.
//!
//! The entries themselves are always known to the model, so a content never depends on the cache. Only
//! operations of flash do.

use merganser_random::Random;

use super::map_cache::MapOperation;
use super::{Ftl, PageWriter};
use crate::profile::DiePlacement;
use crate::ssd::event::Owner;
use crate::ssd::nand::LogicalUnit;
use crate::ssd::nand::timing::{Op, OpKind};

impl Ftl {
    /// Whether the map is on flash, and entries are cached.
    pub(crate) fn caches_map(&self) -> bool {
        self.cache.is_some()
    }

    /// Entries that were needed and cached, and those that were not.
    pub(crate) fn map_lookups(&self) -> (u64, u64) {
        self.cache.as_ref().map_or((0, 0), |cache| (cache.hits, cache.misses))
    }

    /// A request needs the entries of `units`, and changes them or not. Returns the operations that it
    /// waits for, one after the other; those that it does not wait for are added to `ops`.
    pub(crate) fn need_entries(
        &mut self,
        units: impl Iterator<Item = LogicalUnit>,
        changes: bool,
        now_ns: u64,
        random: &mut Random,
        ops: &mut Vec<Op>,
    ) -> Vec<Op> {
        let Some(cache) = &mut self.cache else { return Vec::new() };
        let mut steps = Vec::new();
        cache.need(units, changes, &mut steps);
        let mut awaited = Vec::new();
        for step in steps {
            match step {
                MapOperation::Load(page) => awaited.extend(self.read_of_map(page)),
                MapOperation::WriteBack(page) => {
                    awaited.extend(self.read_of_map(page));
                    if self.write_of_map(page, now_ns, random, ops) {
                        awaited.extend(ops.pop());
                    }
                }
            }
        }
        awaited
    }

    /// Collection has moved `unit`.
    pub(super) fn note_moved(&mut self, unit: LogicalUnit) {
        let Some(cache) = &mut self.cache else { return };
        if unit.0 < self.host_units && !cache.moved(unit) {
            self.owed.insert(cache.page_of(unit));
        }
    }

    /// Writes pages of the map that collection owes, at most a block of them: a collection that they make
    /// necessary may owe more, and the next write of the host continues.
    pub(crate) fn pay_map(&mut self, now_ns: u64, random: &mut Random, ops: &mut Vec<Op>) {
        for _ in 0..self.data_pages {
            let Some(page) = self.owed.pop_first() else { return };
            ops.extend(self.read_of_map(page));
            if !self.write_of_map(page, now_ns, random, ops) {
                // No room: the device wears out.
                self.owed.insert(page);
                return;
            }
        }
    }

    /// Writes the map of the first `units` units, as after long use.
    pub(crate) fn write_whole_map(
        &mut self,
        units: u32,
        now_ns: u64,
        random: &mut Random,
        ops: &mut Vec<Op>,
    ) {
        let Some(cache) = &self.cache else { return };
        let pages = if units == 0 { 0 } else { cache.page_of(LogicalUnit(units - 1)) + 1 };
        for page in 0..pages {
            self.write_of_map(page, now_ns, random, ops);
        }
        self.owed.clear();
    }

    /// The units that stand for a page of the map.
    fn units_of_map(&self, page: u32) -> std::ops::Range<u32> {
        let a_page = self.array.units_per_page;
        let first = self.host_units + page * a_page;
        first..first + a_page
    }

    /// The read of a page of the map; `None` if it was never written.
    fn read_of_map(&mut self, page: u32) -> Option<Op> {
        let place = self.find(LogicalUnit(self.units_of_map(page).start))?;
        self.counts.map_reads += 1;
        let block = self.array.block_of(place);
        let (die, plane) = self.array.die_and_plane(self.array.plane_of(block));
        Some(Op {
            kind: OpKind::Read,
            die,
            plane,
            block,
            page: self.array.page_of(place),
            bytes: self.carried_bytes(self.settings.page_bytes),
            owner: Owner::Nobody,
        })
    }

    /// Writes a page of the map elsewhere; the last of the operations is the one to wait for. Returns
    /// false if there is no room.
    fn write_of_map(
        &mut self,
        page: u32,
        now_ns: u64,
        random: &mut Random,
        ops: &mut Vec<Op>,
    ) -> bool {
        let Some(plane) = self.plane_for_map(page, now_ns, random, ops) else { return false };
        let mut units: Vec<_> =
            self.units_of_map(page).map(|unit| (LogicalUnit(unit), None)).collect();
        for (unit, _) in &units {
            self.forget(*unit);
        }
        self.program(plane, PageWriter::Map, &mut units, Owner::Nobody, now_ns, ops);
        self.counts.map_programs += 1;
        // A page that is written has all entries, also those that collection owed.
        self.owed.remove(&page);
        if let Some(cache) = &mut self.cache {
            cache.written(page);
        }
        true
    }

    fn plane_for_map(
        &mut self,
        page: u32,
        now_ns: u64,
        random: &mut Random,
        ops: &mut Vec<Op>,
    ) -> Option<u32> {
        if self.placement == DiePlacement::Fixed {
            let die = self.home(LogicalUnit(self.units_of_map(page).start));
            return self.ready_plane(die, PageWriter::Map, now_ns, random, ops);
        }
        for _ in 0..self.dies {
            let die = self.next_map_die;
            self.next_map_die = (die + 1) % self.dies;
            let plane = self.ready_plane(die, PageWriter::Map, now_ns, random, ops);
            if plane.is_some() {
                return plane;
            }
        }
        None
    }
}
