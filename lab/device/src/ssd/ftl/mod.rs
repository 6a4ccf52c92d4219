//! The flash translation layer: a page map over planes that are written like logs.
//!
//! [`collection`] wins space, [`full_blocks`] says which block gives it, and [`wear`] which block is used
//! next. The map may be larger than the memory for it: [`map_cache`] and [`map_traffic`].
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

mod collection;
mod full_blocks;
mod map_cache;
mod map_traffic;
mod page_map;
mod room;
mod wear;

use std::collections::{BTreeSet, VecDeque};
use std::io;

use merganser_random::Random;

use crate::profile::{DiePlacement, GcPolicy, SsdSettings};
use crate::ssd::event::Owner;
use crate::ssd::nand::array::{Array, UnitBytes};
use crate::ssd::nand::timing::{Op, OpKind};
use crate::ssd::nand::{FlashBlock, LogicalUnit, PhysicalUnit};
use full_blocks::FullBlocks;
use map_cache::MapCache;
use page_map::PageMap;
use room::PlaneRoom;
use wear::WearLevelling;

/// No block has room for another page: too many blocks were retired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WornOut;

/// The writer of a page. Each has an open block in each plane, or the first two share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageWriter {
    Host,
    Collection,
    Map,
}

#[derive(Debug)]
struct Plane {
    free: VecDeque<u32>,
    /// The open blocks of the host, of collection, and of the map.
    open: [Option<FlashBlock>; 3],
    full: FullBlocks,
    /// Blocks that were not retired.
    good: u32,
}

/// The counts of the layer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FtlCounts {
    /// Pages programmed with data of the host.
    pub host_pages: u64,
    /// Pages programmed by collection.
    pub moved_pages: u64,
    /// Pages of the map that were read.
    pub map_reads: u64,
    /// Pages of the map that were programmed.
    pub map_programs: u64,
}

/// Values that follow from the settings and are needed for each page.
#[derive(Debug, Clone, Copy)]
struct Derived {
    units_per_page: u64,
    /// Collecting a block wins a page if it has fewer valid units.
    movable_units: u64,
    /// A plane with at most this many free blocks collects.
    gc_free_blocks: u64,
    /// Blocks of a plane that are free or open.
    kept_blocks: u64,
    /// Bytes on the channel for a whole page, and for a mapped unit.
    page_carried: u32,
    unit_carried: u32,
}

impl Derived {
    fn of_settings(settings: &SsdSettings) -> Derived {
        Derived {
            units_per_page: settings.units_per_page(),
            movable_units: settings.movable_units(),
            gc_free_blocks: settings.gc_free_blocks(),
            kept_blocks: settings.gc_free_blocks() + settings.open_blocks(),
            page_carried: carried_bytes(settings, settings.page_bytes),
            unit_carried: carried_bytes(settings, settings.map_unit_bytes),
        }
    }

    /// The most valid units of a plane with this number of blocks.
    fn valid_max(&self, blocks: u32) -> u64 {
        u64::from(blocks).saturating_sub(self.kept_blocks) * self.movable_units
    }
}

/// The bytes that cross the channel for `bytes` of a page: whole transfer units, and their spare bytes.
fn carried_bytes(settings: &SsdSettings, bytes: u64) -> u32 {
    let whole = bytes.next_multiple_of(settings.transfer_unit_bytes).min(settings.page_bytes);
    (whole + whole * settings.page_spare_bytes / settings.page_bytes) as u32
}

/// The translation layer, with the flash that it writes.
#[derive(Debug)]
pub(crate) struct Ftl {
    map: PageMap,
    pub array: Array,
    planes: Vec<Plane>,
    /// The space of each plane.
    rooms: Vec<PlaneRoom>,
    /// The index of each full block among the full blocks.
    positions: Vec<u32>,
    /// By die, the plane at which the choice begins.
    next_plane: Vec<u32>,
    next_die: u32,
    /// Pages that the current die took in its turn.
    in_stripe: u64,
    /// The die for the next page of the map.
    next_map_die: u32,
    /// Units that the host can address; those of the map follow.
    host_units: u32,
    /// The entries of the map that are in memory; `None` if all are.
    cache: Option<MapCache>,
    /// Pages of the map with entries of moved units, which are to be written again.
    owed: BTreeSet<u32>,
    settings: SsdSettings,
    derived: Derived,
    policy: GcPolicy,
    placement: DiePlacement,
    wear: WearLevelling,
    data_pages: u32,
    dies: u32,
    pub counts: FtlCounts,
}

impl Ftl {
    /// # Errors
    /// When the system refuses the address space of the page map.
    pub(super) fn new(settings: &SsdSettings) -> io::Result<Ftl> {
        let array = Array::new(settings);
        let a_plane = array.blocks_per_plane;
        let planes = (settings.dies() * settings.planes) as u32;
        let policy = settings.gc_policy();
        let plane = |index: u32| Plane {
            free: (index * a_plane..(index + 1) * a_plane).collect(),
            open: [None; 3],
            full: FullBlocks::new(policy, array.units_per_block),
            good: a_plane,
        };
        let derived = Derived::of_settings(settings);
        let valid_max = derived.valid_max(a_plane);
        let room = PlaneRoom { free_blocks: a_plane, open_pages: [0; 3], valid: 0, valid_max };
        // The pages of a map that is on flash are units like those of the host, behind them.
        let units = settings.logical_units() + settings.map_pages() * settings.units_per_page();
        Ok(Ftl {
            map: PageMap::new(units)?,
            planes: (0..planes).map(plane).collect(),
            rooms: vec![room; planes as usize],
            positions: vec![0; (planes * a_plane) as usize],
            next_plane: vec![0; settings.dies() as usize],
            next_die: 0,
            in_stripe: 0,
            next_map_die: 0,
            host_units: settings.logical_units() as u32,
            cache: MapCache::new(settings),
            owed: BTreeSet::new(),
            policy,
            placement: settings.placement(),
            wear: WearLevelling {
                spread: settings.wear_spread as u32,
                endurance: settings.endurance_cycles as u32,
            },
            data_pages: settings.data_pages_per_block() as u32,
            dies: settings.dies() as u32,
            counts: FtlCounts::default(),
            settings: settings.clone(),
            derived,
            array,
        })
    }

    /// The latest copy of `unit`.
    pub(super) fn find(&self, unit: LogicalUnit) -> Option<PhysicalUnit> {
        self.map.get(unit)
    }

    /// Unit `number` is looked up soon, if there is one.
    pub(super) fn expect(&self, number: u64) {
        self.map.expect(number);
    }

    /// The die for `unit` by its number.
    pub(super) fn home(&self, unit: LogicalUnit) -> u32 {
        let page = u64::from(unit.0) / self.derived.units_per_page;
        (page / self.settings.stripe_pages % u64::from(self.dies)) as u32
    }

    /// Writes `units`, at most one page, to `die` or to the die that the placement chooses. `last`
    /// waits for the last operation.
    ///
    /// # Errors
    /// When no block has room; nothing has changed for these units then.
    pub(super) fn write(
        &mut self,
        units: &mut Vec<(LogicalUnit, UnitBytes)>,
        die: Option<u32>,
        last: Owner,
        now_ns: u64,
        random: &mut Random,
        ops: &mut Vec<Op>,
    ) -> Result<(), WornOut> {
        let plane = match (die, self.placement) {
            (None, DiePlacement::Rotating) => self.next_in_turn(now_ns, random, ops),
            (die, _) => {
                let die = die.unwrap_or_else(|| self.home(units[0].0));
                self.ready_plane(die, PageWriter::Host, now_ns, random, ops)
            }
        };
        let plane = plane.ok_or(WornOut)?;
        for (unit, _) in units.iter() {
            self.forget(*unit);
        }
        self.program(plane, PageWriter::Host, units, last, now_ns, ops);
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
            let plane = self.ready_plane(self.next_die, PageWriter::Host, now_ns, random, ops);
            if let Some(plane) = plane {
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
        writer: PageWriter,
        now_ns: u64,
        random: &mut Random,
        ops: &mut Vec<Op>,
    ) -> Option<u32> {
        let count = self.array.planes_per_die;
        let start = self.next_plane[die as usize];
        let (frontier, units) = (self.frontier(writer), self.derived.units_per_page);
        let rooms = &self.rooms[(die * count) as usize..((die + 1) * count) as usize];
        let mut chosen = None;
        for at in (start..count).chain(0..start) {
            let room = &rooms[at as usize];
            // A plane that is full of valid units would be collected forever.
            let pages = room.pages(frontier, self.data_pages);
            if room.has_room(units) && chosen.is_none_or(|(most, _)| pages > most) {
                chosen = Some((pages, die * count + at));
            }
        }
        let (_, plane) = chosen?;
        if !self.make_room(plane, writer, now_ns, random, ops) {
            return None;
        }
        let next = plane - die * count + 1;
        self.next_plane[die as usize] = if next == count { 0 } else { next };
        Some(plane)
    }

    /// The pages of the free blocks and the free pages of the writer's open block.
    fn free_pages(&self, plane: u32, writer: PageWriter) -> u32 {
        self.rooms[plane as usize].pages(self.frontier(writer), self.data_pages)
    }

    fn open_pages(&self, plane: u32, writer: PageWriter) -> u32 {
        self.rooms[plane as usize].open_pages[self.frontier(writer)]
    }

    /// `block` of `plane` is erased: it is free, or worn out.
    fn free_erased(&mut self, plane: u32, block: FlashBlock) {
        let (state, room) = (&mut self.planes[plane as usize], &mut self.rooms[plane as usize]);
        if self.wear.endures(block, &self.array) {
            state.free.push_back(block.0);
            room.free_blocks += 1;
        } else {
            state.good -= 1;
            room.valid_max = self.derived.valid_max(state.good);
        }
    }

    /// The index of the writer's open block.
    fn frontier(&self, writer: PageWriter) -> usize {
        match writer {
            PageWriter::Collection if self.settings.gc_own_block == 1 => 1,
            PageWriter::Host | PageWriter::Collection => 0,
            PageWriter::Map => 2,
        }
    }

    /// Programs the next page of `plane` with `units`, which are not mapped.
    fn program(
        &mut self,
        plane: u32,
        writer: PageWriter,
        units: &mut Vec<(LogicalUnit, UnitBytes)>,
        last: Owner,
        now_ns: u64,
        ops: &mut Vec<Op>,
    ) {
        let (die, in_die) = self.array.die_and_plane(plane);
        let frontier = self.frontier(writer);
        let (state, room) = (&mut self.planes[plane as usize], &mut self.rooms[plane as usize]);
        let block = *state.open[frontier].get_or_insert_with(|| {
            let block = self.wear.next_free(&mut state.free, &self.array);
            room.free_blocks -= 1;
            room.open_pages[frontier] = self.data_pages;
            block.expect("room was made")
        });
        room.open_pages[frontier] -= 1;
        room.valid += units.len() as u64;
        let page = self.array.programmed(block);
        let first = self.array.place_of(block, page).0;
        for (place, &(unit, _)) in (first..).zip(units.iter()) {
            self.map.set(unit, Some(PhysicalUnit(place)));
            if writer == PageWriter::Collection {
                self.note_moved(unit);
            }
        }
        self.array.program(block, page, units.drain(..), now_ns);
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
    pub(super) fn forget(&mut self, unit: LogicalUnit) {
        let Some(place) = self.find(unit) else { return };
        self.map.set(unit, None);
        let block = self.array.block_of(place);
        let valid = self.array.valid(block);
        self.array.give_up(place, unit);
        let index = self.array.plane_of(block) as usize;
        self.rooms[index].valid -= 1;
        let plane = &mut self.planes[index];
        if !plane.open.contains(&Some(block)) {
            plane.full.lost_one(block, valid, &mut self.positions);
        }
    }

    /// The bytes that cross the channel for `bytes` of a page.
    pub(super) fn carried_bytes(&self, bytes: u64) -> u32 {
        if bytes == self.settings.page_bytes {
            self.derived.page_carried
        } else if bytes == self.settings.map_unit_bytes {
            self.derived.unit_carried
        } else {
            carried_bytes(&self.settings, bytes)
        }
    }
}
