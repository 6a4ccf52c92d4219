//! Collection: blocks with many invalid units give their space.

use merganser_random::Random;

use super::{Ftl, PageWriter};
use crate::ssd::event::Owner;
use crate::ssd::nand::timing::{Op, OpKind};
use crate::ssd::nand::{LogicalUnit, PhysicalUnit};

impl Ftl {
    /// Collects until a page can be written; at most one block per page while there are free
    /// blocks.
    pub(super) fn make_room(
        &mut self,
        plane: u32,
        writer: PageWriter,
        now_ns: u64,
        random: &mut Random,
        ops: &mut Vec<Op>,
    ) -> bool {
        // Changes of the map by a collection must not start collections again and again; see `map_traffic`.
        let free_blocks = self.rooms[plane as usize].free_blocks;
        if writer != PageWriter::Map && u64::from(free_blocks) <= self.derived.gc_free_blocks {
            let together = self.settings.multi_plane == 1
                && self.settings.copy_back == 0
                && self.array.planes_per_die > 1
                && self.collect_together(plane / self.array.planes_per_die, now_ns, random, ops);
            if !together {
                self.collect(plane, now_ns, random, ops);
            }
        }
        // The last free block is reserved for collection.
        while self.open_pages(plane, writer) == 0 && self.rooms[plane as usize].free_blocks < 2 {
            if !self.collect(plane, now_ns, random, ops) {
                return false;
            }
        }
        true
    }

    /// Collects a block in every plane of `die`, and spreads the valid units evenly over the planes.
    /// So the planes stay at the same page of their open blocks, which programs of several planes
    /// need, and the erases share their time. Returns false, and changes nothing, if a plane has no
    /// block to collect or too little room.
    fn collect_together(
        &mut self,
        die: u32,
        now_ns: u64,
        random: &mut Random,
        ops: &mut Vec<Op>,
    ) -> bool {
        let a_page = self.array.units_per_page;
        let most = self.derived.movable_units as u32;
        let count = self.array.planes_per_die;
        let planes = die * count..(die + 1) * count;
        let mut victims = Vec::with_capacity(count as usize);
        for plane in planes.clone() {
            let state = &mut self.planes[plane as usize];
            let victim = self.wear.cold(&state.full, &state.free, &self.array).or_else(|| {
                let choices = self.settings.gc_choices;
                state.full.victim(self.policy, choices, most, &self.array, now_ns, random)
            });
            let Some(victim) = victim else { return false };
            victims.push((plane, victim));
        }
        let pages: u32 =
            victims.iter().map(|(_, victim)| self.array.valid(*victim).div_ceil(a_page)).sum();
        // A plane may lag behind the others by a page, and takes that much more.
        let share = pages.div_ceil(count) + 1;
        if planes.clone().any(|plane| self.free_pages(plane, PageWriter::Collection) < share) {
            return false;
        }
        let mut reads = Vec::new();
        let mut units = Vec::new();
        for &(plane, victim) in &victims {
            let valid = self.array.valid(victim);
            self.planes[plane as usize].full.remove(victim, valid, &mut self.positions);
            let copies: Vec<(PhysicalUnit, LogicalUnit)> = self.array.owners(victim).collect();
            let same =
                |a: &(PhysicalUnit, _), b: &(PhysicalUnit, _)| self.array.share_page(a.0, b.0);
            for (turn, page) in copies.chunk_by(same).enumerate() {
                let bytes = self.carried_bytes(page.len() as u64 * self.settings.map_unit_bytes);
                let (kind, page) = (OpKind::Read, self.array.page_of(page[0].0));
                let (plane, owner) = (plane % count, Owner::Nobody);
                reads.push((turn, Op { kind, die, plane, block: victim, page, bytes, owner }));
            }
            for (place, unit) in copies {
                units.push((unit, self.array.take(place, unit)));
            }
            self.rooms[plane as usize].valid -= u64::from(valid);
        }
        // One page of each plane in turn, so that the planes sense together.
        reads.sort_by_key(|(turn, op)| (*turn, op.plane));
        ops.extend(reads.into_iter().map(|(_, op)| op));
        let mut units = units.into_iter().peekable();
        while units.peek().is_some() {
            let mut page: Vec<_> = units.by_ref().take(a_page as usize).collect();
            // The first of the planes with the most free pages: they take turns.
            let room = |plane: &u32| self.free_pages(*plane, PageWriter::Collection);
            let target = planes.clone().rev().max_by_key(room);
            let target = target.expect("a die has planes");
            self.program(target, PageWriter::Collection, &mut page, Owner::Nobody, now_ns, ops);
            self.counts.moved_pages += 1;
        }
        for (plane, victim) in victims {
            self.array.erase(victim);
            let (kind, plane_in_die) = (OpKind::Erase, plane % count);
            let owner = Owner::Nobody;
            let (page, bytes) = (0, 0);
            ops.push(Op { kind, die, plane: plane_in_die, block: victim, page, bytes, owner });
            self.free_erased(plane, victim);
        }
        true
    }

    /// Moves the valid units of a block of `plane` and erases the block. Returns false if this wins
    /// no page.
    fn collect(&mut self, plane: u32, now_ns: u64, random: &mut Random, ops: &mut Vec<Op>) -> bool {
        let a_page = self.array.units_per_page;
        let most = self.derived.movable_units as u32;
        let state = &mut self.planes[plane as usize];
        let cold = self.wear.cold(&state.full, &state.free, &self.array);
        let victim = cold.or_else(|| {
            let choices = self.settings.gc_choices;
            state.full.victim(self.policy, choices, most, &self.array, now_ns, random)
        });
        let Some(victim) = victim else { return false };
        let valid = self.array.valid(victim);
        if valid.div_ceil(a_page) > self.free_pages(plane, PageWriter::Collection) {
            return false;
        }
        self.planes[plane as usize].full.remove(victim, valid, &mut self.positions);
        let copies: Vec<(PhysicalUnit, LogicalUnit)> = self.array.owners(victim).collect();
        let (die, in_die) = self.array.die_and_plane(plane);
        let copy_back = self.settings.copy_back == 1 && a_page == 1;
        if !copy_back {
            for page in copies.chunk_by(|a, b| self.array.share_page(a.0, b.0)) {
                let bytes = self.carried_bytes(page.len() as u64 * self.settings.map_unit_bytes);
                let page = self.array.page_of(page[0].0);
                let (kind, plane, owner) = (OpKind::Read, in_die, Owner::Nobody);
                ops.push(Op { kind, die, plane, block: victim, page, bytes, owner });
            }
        }
        let mut units = Vec::with_capacity(a_page as usize);
        for group in copies.chunks(a_page as usize) {
            units.extend(group.iter().map(|&(place, unit)| (unit, self.array.take(place, unit))));
            self.rooms[plane as usize].valid -= units.len() as u64;
            let first = ops.len();
            self.program(plane, PageWriter::Collection, &mut units, Owner::Nobody, now_ns, ops);
            if copy_back {
                ops[first].kind = OpKind::CopyBack;
            }
            self.counts.moved_pages += 1;
        }
        self.array.erase(victim);
        ops.push(Op {
            kind: OpKind::Erase,
            die,
            plane: in_die,
            block: victim,
            page: 0,
            bytes: 0,
            owner: Owner::Nobody,
        });
        self.free_erased(plane, victim);
        true
    }
}
