//! The flash translation layer: a page map over planes that are written like logs.
//!
//! ```text
//!   unit of the host ── map ──► place in flash
//!   plane:  free blocks ─► open block ─► full blocks ── collected, erased ─► free blocks
//! ```
//!
//! Every page that the host writes goes to the next page of the open block of a plane. If only a
//! small part of the plane's blocks are free, a full block is collected first: its valid units move
//! to an open block of the same plane, and the block is erased. With `gc_own_block` that is another
//! open block than the host's, so that old data, which the host rarely overwrites, do not mix with new
//! data. The layer returns the operations for this, in the order in which the dies have to do them.

use std::collections::VecDeque;

use merganser_random::Random;

use crate::profile::{GcPolicy, Placement, SsdSettings};
use crate::ssd::event::Owner;
use crate::ssd::gc::FullBlocks;
use crate::ssd::nand::array::{Array, Content};
use crate::ssd::nand::timing::{Op, OpKind};
use crate::ssd::nand::{Block, LogicalUnit, PhysicalUnit};
use crate::ssd::wear::WearLevelling;

/// Units of one chunk of the map; a chunk is allocated by the first write to it.
const CHUNK: usize = 1024;

/// Not mapped.
const NOWHERE: u32 = u32::MAX;

/// No block has room for another page: too many blocks were retired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WornOut;

/// Who writes a page; each has an open block in each plane, or they share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    Host,
    Collection,
}

#[derive(Debug)]
struct Plane {
    free: VecDeque<u32>,
    /// The open block of the host, and that of collection.
    open: [Option<Block>; 2],
    full: FullBlocks,
    /// Units whose latest copy is in this plane.
    valid: u64,
    /// Blocks that were not retired.
    good: u32,
}

/// The counts of the layer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Pages programmed with data of the host.
    pub host_pages: u64,
    /// Pages programmed by collection.
    pub moved_pages: u64,
}

/// The translation layer, with the flash that it writes.
#[derive(Debug)]
pub(crate) struct Ftl {
    map: Vec<Option<Box<[u32; CHUNK]>>>,
    pub array: Array,
    planes: Vec<Plane>,
    /// The index of each full block among the full blocks.
    positions: Vec<u32>,
    /// By die, the plane at which the choice begins.
    next_plane: Vec<u32>,
    next_die: u32,
    /// Pages that the current die took in its turn.
    in_stripe: u64,
    settings: SsdSettings,
    policy: GcPolicy,
    placement: Placement,
    wear: WearLevelling,
    data_pages: u32,
    dies: u32,
    pub counts: Counts,
}

impl Ftl {
    pub fn new(settings: &SsdSettings) -> Ftl {
        let array = Array::new(settings);
        let a_plane = array.blocks_per_plane;
        let planes = (settings.dies() * settings.planes) as u32;
        let policy = settings.gc_policy();
        let plane = |index: u32| Plane {
            free: (index * a_plane..(index + 1) * a_plane).collect(),
            open: [None; 2],
            full: FullBlocks::new(policy, array.units_per_block),
            valid: 0,
            good: a_plane,
        };
        let mut map = Vec::new();
        map.resize_with((settings.logical_units() as usize).div_ceil(CHUNK), || None);
        Ftl {
            map,
            planes: (0..planes).map(plane).collect(),
            positions: vec![0; (planes * a_plane) as usize],
            next_plane: vec![0; settings.dies() as usize],
            next_die: 0,
            in_stripe: 0,
            policy,
            placement: settings.placement(),
            wear: WearLevelling {
                spread: settings.wear_spread as u32,
                endurance: settings.endurance_cycles as u32,
            },
            data_pages: settings.data_pages_per_block() as u32,
            dies: settings.dies() as u32,
            counts: Counts::default(),
            settings: settings.clone(),
            array,
        }
    }

    /// The latest copy of `unit`.
    pub fn find(&self, unit: LogicalUnit) -> Option<PhysicalUnit> {
        let chunk = self.map[unit.0 as usize / CHUNK].as_ref()?;
        let place = chunk[unit.0 as usize % CHUNK];
        (place != NOWHERE).then_some(PhysicalUnit(place))
    }

    /// The die for `unit` by its number.
    pub fn home(&self, unit: LogicalUnit) -> u32 {
        let page = u64::from(unit.0) / self.settings.units_per_page();
        (page / self.settings.stripe_pages % u64::from(self.dies)) as u32
    }

    /// Writes `units`, at most one page, to `die` or to the die that the placement chooses. `last`
    /// waits for the last operation.
    ///
    /// # Errors
    /// When no block has room; nothing has changed for these units then.
    pub fn write(
        &mut self,
        units: &mut Vec<(LogicalUnit, Content)>,
        die: Option<u32>,
        last: Owner,
        now_ns: u64,
        random: &mut Random,
        ops: &mut Vec<Op>,
    ) -> Result<(), WornOut> {
        let plane = match (die, self.placement) {
            (Some(die), _) => self.ready_plane(die, now_ns, random, ops).ok_or(WornOut)?,
            (None, Placement::Fixed) => {
                let die = self.home(units[0].0);
                self.ready_plane(die, now_ns, random, ops).ok_or(WornOut)?
            }
            (None, Placement::Rotating) => self.next_in_turn(now_ns, random, ops).ok_or(WornOut)?,
        };
        for (unit, _) in units.iter() {
            self.forget(*unit);
        }
        self.program(plane, Writer::Host, units, last, now_ns, ops);
        self.counts.host_pages += 1;
        Ok(())
    }

    /// A plane with room, of the next die in turn.
    fn next_in_turn(&mut self, now_ns: u64, random: &mut Random, ops: &mut Vec<Op>) -> Option<u32> {
        for _ in 0..=self.dies {
            if self.in_stripe == self.settings.stripe_pages {
                self.next_die = (self.next_die + 1) % self.dies;
                self.in_stripe = 0;
            }
            if let Some(plane) = self.ready_plane(self.next_die, now_ns, random, ops) {
                self.in_stripe += 1;
                return Some(plane);
            }
            self.in_stripe = self.settings.stripe_pages;
        }
        None
    }

    /// The plane of `die` with the most free pages; it is collected if it has no free page.
    fn ready_plane(
        &mut self,
        die: u32,
        now_ns: u64,
        random: &mut Random,
        ops: &mut Vec<Op>,
    ) -> Option<u32> {
        let count = self.array.planes_per_die;
        let start = self.next_plane[die as usize];
        let mut chosen = None;
        for turn in 0..count {
            let plane = die * count + (start + turn) % count;
            // A plane that is full of valid units would be collected forever.
            let room = self.free_pages(plane, Writer::Host);
            if self.has_room(plane) && chosen.is_none_or(|(most, _)| room > most) {
                chosen = Some((room, plane));
            }
        }
        let (_, plane) = chosen?;
        if !self.make_room(plane, now_ns, random, ops) {
            return None;
        }
        self.next_plane[die as usize] = (plane % count + 1) % count;
        Some(plane)
    }

    /// Whether the valid units of `plane` leave room for another page and for collection.
    /// Collection wins a page only from a block that has at least a page of invalid units.
    fn has_room(&self, plane: u32) -> bool {
        let state = &self.planes[plane as usize];
        let kept = self.settings.gc_free_blocks() + self.settings.open_blocks();
        let blocks = u64::from(state.good).saturating_sub(kept);
        state.valid + self.settings.units_per_page() <= blocks * self.settings.movable_units()
    }

    /// The pages of the free blocks and the free pages of the writer's open block.
    fn free_pages(&self, plane: u32, writer: Writer) -> u32 {
        let state = &self.planes[plane as usize];
        state.free.len() as u32 * self.data_pages + self.open_pages(plane, writer)
    }

    fn open_pages(&self, plane: u32, writer: Writer) -> u32 {
        let open = self.planes[plane as usize].open[self.frontier(writer)];
        open.map_or(0, |block| self.data_pages - self.array.programmed(block))
    }

    /// The index of the writer's open block.
    fn frontier(&self, writer: Writer) -> usize {
        usize::from(writer == Writer::Collection && self.settings.gc_own_block == 1)
    }

    /// Collects until a page can be written; at most one block per page while there are free
    /// blocks.
    fn make_room(
        &mut self,
        plane: u32,
        now_ns: u64,
        random: &mut Random,
        ops: &mut Vec<Op>,
    ) -> bool {
        let threshold = self.settings.gc_free_blocks() as usize;
        if self.planes[plane as usize].free.len() <= threshold {
            let together = self.settings.multi_plane == 1
                && self.settings.copy_back == 0
                && self.array.planes_per_die > 1
                && self.collect_together(plane / self.array.planes_per_die, now_ns, random, ops);
            if !together {
                self.collect(plane, now_ns, random, ops);
            }
        }
        // The last free block is reserved for collection.
        while self.open_pages(plane, Writer::Host) == 0
            && self.planes[plane as usize].free.len() < 2
        {
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
        let most = self.settings.movable_units() as u32;
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
        if planes.clone().any(|plane| self.free_pages(plane, Writer::Collection) < share) {
            return false;
        }
        let mut reads = Vec::new();
        let mut units = Vec::new();
        for &(plane, victim) in &victims {
            let valid = self.array.valid(victim);
            self.planes[plane as usize].full.remove(victim, valid, &mut self.positions);
            let copies: Vec<(PhysicalUnit, LogicalUnit)> = self.array.owners(victim).collect();
            let same = |a: &(PhysicalUnit, _), b: &(PhysicalUnit, _)| {
                self.array.page_of(a.0) == self.array.page_of(b.0)
            };
            for (turn, page) in copies.chunk_by(same).enumerate() {
                let bytes = self.carried_bytes(page.len() as u64 * self.settings.map_unit_bytes);
                let (kind, page) = (OpKind::Read, self.array.page_of(page[0].0));
                let (plane, owner) = (plane % count, Owner::Nobody);
                reads.push((turn, Op { kind, die, plane, block: victim, page, bytes, owner }));
            }
            for (place, unit) in copies {
                units.push((unit, self.array.take(place, unit)));
            }
            self.planes[plane as usize].valid -= u64::from(valid);
        }
        // One page of each plane in turn, so that the planes sense together.
        reads.sort_by_key(|(turn, op)| (*turn, op.plane));
        ops.extend(reads.into_iter().map(|(_, op)| op));
        let mut units = units.into_iter().peekable();
        while units.peek().is_some() {
            let mut page: Vec<_> = units.by_ref().take(a_page as usize).collect();
            // The first of the planes with the most free pages: they take turns.
            let room = |plane: &u32| self.free_pages(*plane, Writer::Collection);
            let target = planes.clone().rev().max_by_key(room);
            let target = target.expect("a die has planes");
            self.program(target, Writer::Collection, &mut page, Owner::Nobody, now_ns, ops);
            self.counts.moved_pages += 1;
        }
        for (plane, victim) in victims {
            self.array.erase(victim);
            let (kind, plane_in_die) = (OpKind::Erase, plane % count);
            let owner = Owner::Nobody;
            let (page, bytes) = (0, 0);
            ops.push(Op { kind, die, plane: plane_in_die, block: victim, page, bytes, owner });
            let state = &mut self.planes[plane as usize];
            if self.wear.endures(victim, &self.array) {
                state.free.push_back(victim.0);
            } else {
                state.good -= 1;
            }
        }
        true
    }

    /// Moves the valid units of a block of `plane` and erases the block. Returns false if this wins
    /// no page.
    fn collect(&mut self, plane: u32, now_ns: u64, random: &mut Random, ops: &mut Vec<Op>) -> bool {
        let a_page = self.array.units_per_page;
        let most = self.settings.movable_units() as u32;
        let state = &mut self.planes[plane as usize];
        let cold = self.wear.cold(&state.full, &state.free, &self.array);
        let victim = cold.or_else(|| {
            let choices = self.settings.gc_choices;
            state.full.victim(self.policy, choices, most, &self.array, now_ns, random)
        });
        let Some(victim) = victim else { return false };
        let valid = self.array.valid(victim);
        if valid.div_ceil(a_page) > self.free_pages(plane, Writer::Collection) {
            return false;
        }
        self.planes[plane as usize].full.remove(victim, valid, &mut self.positions);
        let copies: Vec<(PhysicalUnit, LogicalUnit)> = self.array.owners(victim).collect();
        let (die, in_die) = self.die_and_plane(plane);
        let copy_back = self.settings.copy_back == 1 && a_page == 1;
        if !copy_back {
            for page in copies.chunk_by(|a, b| self.array.page_of(a.0) == self.array.page_of(b.0)) {
                let bytes = self.carried_bytes(page.len() as u64 * self.settings.map_unit_bytes);
                let page = self.array.page_of(page[0].0);
                let (kind, plane, owner) = (OpKind::Read, in_die, Owner::Nobody);
                ops.push(Op { kind, die, plane, block: victim, page, bytes, owner });
            }
        }
        for group in copies.chunks(a_page as usize) {
            let mut units: Vec<_> =
                group.iter().map(|&(place, unit)| (unit, self.array.take(place, unit))).collect();
            self.planes[plane as usize].valid -= units.len() as u64;
            let first = ops.len();
            self.program(plane, Writer::Collection, &mut units, Owner::Nobody, now_ns, ops);
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
        let state = &mut self.planes[plane as usize];
        if self.wear.endures(victim, &self.array) {
            state.free.push_back(victim.0);
        } else {
            state.good -= 1;
        }
        true
    }

    /// Programs the next page of `plane` with `units`, which are not mapped.
    fn program(
        &mut self,
        plane: u32,
        writer: Writer,
        units: &mut Vec<(LogicalUnit, Content)>,
        last: Owner,
        now_ns: u64,
        ops: &mut Vec<Op>,
    ) {
        let (die, in_die) = self.die_and_plane(plane);
        let frontier = self.frontier(writer);
        let state = &mut self.planes[plane as usize];
        let block = *state.open[frontier].get_or_insert_with(|| {
            let block = self.wear.next_free(&mut state.free, &self.array);
            block.expect("room was made")
        });
        state.valid += units.len() as u64;
        let page = self.array.programmed(block);
        let count = units.len() as u32;
        let numbers: Vec<u32> = units.iter().map(|(unit, _)| unit.0).collect();
        let first = self.array.program(block, page, units.drain(..), now_ns);
        for (place, unit) in (first.0..first.0 + count).zip(numbers) {
            let chunk = &mut self.map[unit as usize / CHUNK];
            chunk.get_or_insert_with(|| Box::new([NOWHERE; CHUNK]))[unit as usize % CHUNK] = place;
        }
        let bytes = self.carried_bytes(self.settings.page_bytes);
        let kind = OpKind::Program;
        let op = Op { kind, die, plane: in_die, block, page, bytes, owner: last };
        ops.push(op);
        if page + 1 == self.data_pages {
            if self.settings.block_summary_bytes > 0 {
                self.array.program_summary(block, now_ns);
                ops.last_mut().expect("pushed above").owner = Owner::Nobody;
                let bytes = self.settings.block_summary_bytes as u32;
                ops.push(Op { page: page + 1, bytes, ..op });
            }
            let state = &mut self.planes[plane as usize];
            state.open[frontier] = None;
            state.full.insert(block, self.array.valid(block), &mut self.positions);
        }
    }

    /// Removes the latest copy of `unit` from the map.
    pub fn forget(&mut self, unit: LogicalUnit) {
        let Some(place) = self.find(unit) else { return };
        let chunk = self.map[unit.0 as usize / CHUNK].as_mut().expect("found above");
        chunk[unit.0 as usize % CHUNK] = NOWHERE;
        let block = self.array.block_of(place);
        let valid = self.array.valid(block);
        self.array.give_up(place, unit);
        let plane = &mut self.planes[self.array.plane_of(block) as usize];
        plane.valid -= 1;
        if !plane.open.contains(&Some(block)) {
            plane.full.lost_one(block, valid, &mut self.positions);
        }
    }

    fn die_and_plane(&self, plane: u32) -> (u32, u32) {
        (plane / self.array.planes_per_die, plane % self.array.planes_per_die)
    }

    /// The bytes that cross the channel for `bytes` of a page: whole transfer units, and their
    /// spare bytes.
    pub fn carried_bytes(&self, bytes: u64) -> u32 {
        let whole = bytes.next_multiple_of(self.settings.transfer_unit_bytes);
        let whole = whole.min(self.settings.page_bytes);
        (whole + whole * self.settings.page_spare_bytes / self.settings.page_bytes) as u32
    }
}
