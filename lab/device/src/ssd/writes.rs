//! Writes: pieces of at most one flash page, through the write buffer or directly to flash; and those of programs.

use std::io;

use merganser_storage::Buffer;

use crate::ssd::cache::ProgramGroup;
use crate::ssd::controller::{Controller, UnitStretch};
use crate::ssd::event::{Owner, SsdEvent};
use crate::ssd::ftl::WornOut;
use crate::ssd::inside_writes::InsideWrite;
use crate::ssd::lookups::AfterLookup;
use crate::ssd::nand::LogicalUnit;
use crate::ssd::nand::array::UnitBytes;

impl Controller {
    pub(super) fn page_bytes(&self) -> u64 {
        self.settings.page_bytes
    }

    /// The number of flash pages that a write spans.
    pub(super) fn pieces(&mut self, number: u32) -> u32 {
        let (job, by_page) = (self.jobs.get(number), self.by_page);
        (by_page.quotient_up(job.offset + job.len) - by_page.quotient(job.offset)) as u32
    }

    /// The bytes of one piece.
    pub(super) fn piece_range(&mut self, number: u32, piece: u32) -> std::ops::Range<u64> {
        let (page, by_page) = (self.page_bytes(), self.by_page);
        let job = self.jobs.get(number);
        let start = (by_page.quotient(job.offset) + u64::from(piece)) * page;
        job.offset.max(start)..(job.offset + job.len).min(start + page)
    }

    pub(super) fn piece_bytes(&mut self, number: u32, piece: u32) -> u64 {
        let range = self.piece_range(number, piece);
        range.end - range.start
    }

    pub(super) fn piece_units(&mut self, number: u32, piece: u32) -> std::ops::Range<u32> {
        let range = self.piece_range(number, piece);
        self.by_unit.quotient(range.start) as u32..self.by_unit.quotient_up(range.end) as u32
    }

    /// Continues with a piece: reads the rest of the units that it covers in part, from edge `edge`
    /// on, then stores it.
    pub(super) fn write_piece(&mut self, number: u32, piece: u32, edge: u8) {
        let range = self.piece_range(number, piece);
        let (unit_bytes, by_unit) = (self.settings.map_unit_bytes, self.by_unit);
        let (first_unit, last_unit) =
            (by_unit.quotient(range.start), by_unit.quotient(range.end - 1));
        let first_cut = by_unit.remainder(range.start) != 0;
        let last_cut = by_unit.remainder(range.end) != 0;
        let last_cut = last_cut && (first_unit != last_unit || !first_cut);
        let edges = [(edge == 0 && first_cut, first_unit), (edge <= 1 && last_cut, last_unit)];
        for (next_edge, (cut, unit)) in (1..).zip(edges) {
            let unit = LogicalUnit(unit as u32);
            if !cut || self.buffer.contains(unit) {
                continue;
            }
            if let Some(place) = self.ftl.find(unit) {
                let stretch =
                    UnitStretch { unit: unit.0, units: 1, place: None, bytes: unit_bytes };
                let mut after = AfterLookup::default();
                let owner = Owner::Rest { job: number, piece, next_edge };
                self.fetch(&stretch, place, owner, &mut after);
                self.look_up(after, false);
                return;
            }
        }
        if self.buffer.exists() {
            self.stalled.push_back((number, piece));
            self.fill_buffer();
        } else {
            self.write_through(number, piece);
        }
    }

    /// Puts the content of a piece's units after the write into `made`, which is empty.
    fn piece_content(&mut self, number: u32, piece: u32, made: &mut Vec<(LogicalUnit, UnitBytes)>) {
        let units = self.piece_units(number, piece);
        let unit_bytes = self.settings.map_unit_bytes;
        let job = self.jobs.get(number);
        let Some(buffer) = job.buffer.take() else {
            made.extend(units.map(|unit| (LogicalUnit(unit), None)));
            return;
        };
        let (offset, end) = (job.offset, job.offset + job.len);
        for unit in units {
            let start = u64::from(unit) * unit_bytes;
            let (from, to) = (start.max(offset), (start + unit_bytes).min(end));
            let given = &buffer[(from - offset) as usize..(to - offset) as usize];
            let content = if given.len() as u64 == unit_bytes {
                given.into()
            } else {
                let mut whole = vec![0; unit_bytes as usize];
                self.copy_out(start, &mut whole);
                whole[(from - start) as usize..(to - start) as usize].copy_from_slice(given);
                whole.into_boxed_slice()
            };
            made.push((LogicalUnit(unit), Some(content)));
        }
        self.jobs.get(number).buffer = Some(buffer);
    }

    pub(super) fn write_through(&mut self, number: u32, piece: u32) {
        let mut units = std::mem::take(&mut self.units);
        self.piece_content(number, piece, &mut units);
        for (unit, _) in &units {
            self.ahead.used(*unit);
        }
        let room = self.program(&mut units, None, Owner::Write { job: number });
        units.clear();
        self.units = units;
        if !room {
            self.fail_write(number);
        }
    }

    /// Writes a page to flash. Returns false if there is no room.
    pub(super) fn program(
        &mut self,
        units: &mut Vec<(LogicalUnit, UnitBytes)>,
        die: Option<u32>,
        owner: Owner,
    ) -> bool {
        if self.ftl.caches_map() {
            return self.program_after_lookup(units, die, owner);
        }
        let mut ops = std::mem::take(&mut self.ops);
        let now_ns = self.engine.now().0;
        let random = self.engine.random();
        let written = self.ftl.write(units, die, owner, now_ns, random, &mut ops);
        for op in ops.drain(..) {
            self.issue(op);
        }
        self.ops = ops;
        self.has_programmed(written)
    }

    /// Counts a page that was written to flash, or that found no room.
    pub(super) fn has_programmed(&mut self, written: Result<(), WornOut>) -> bool {
        self.programming += u64::from(written.is_ok());
        self.worn_out |= written.is_err();
        written.is_ok()
    }

    pub(super) fn fail_write(&mut self, number: u32) {
        let why = "the device is worn out: no block takes another page";
        let job = self.jobs.get(number);
        job.error.get_or_insert_with(|| io::Error::new(io::ErrorKind::StorageFull, why));
        self.piece_done(number);
    }

    /// Takes as many of the waiting pieces into the buffer as it has space for, and makes space.
    pub(super) fn fill_buffer(&mut self) {
        while let Some(&(number, piece)) = self.stalled.front() {
            let units = self.piece_units(number, piece);
            let count = units.len() as u64;
            if !self.buffer.fits(units.map(LogicalUnit)) {
                // As much leaves as waits: what is on its way makes space for the first of them.
                while self.stalled.len() as u64 * count > self.buffer.leaving() && self.evict() {}
                if self.buffer.leaving() == 0 && self.worn_out {
                    self.stalled.pop_front();
                    self.fail_write(number);
                    continue;
                }
                break;
            }
            self.stalled.pop_front();
            let mut units = std::mem::take(&mut self.units);
            self.piece_content(number, piece, &mut units);
            for (unit, content) in units.drain(..) {
                self.ahead.used(unit);
                let home = self.ftl.home(unit);
                self.buffered_pages += u64::from(self.buffer.put(unit, content, home));
            }
            self.units = units;
            self.piece_done(number);
            while let Some(group) = self.buffer.leave_behind() {
                if !self.send_to_flash(group) {
                    break;
                }
            }
        }
    }

    /// Sends the pages that a full buffer evicts to flash. Returns false if it evicted none.
    pub(super) fn evict(&mut self) -> bool {
        let mut went = false;
        for group in self.buffer.make_space() {
            went |= self.send_to_flash(group);
        }
        went
    }

    /// Programs a group of the buffer; a group that flash refuses stays in the buffer.
    pub(super) fn send_to_flash(&mut self, mut group: ProgramGroup) -> bool {
        let units = group.units.len() as u32;
        let owner = Owner::Buffer { units };
        let sent = self.program(&mut group.units, group.die, owner);
        if sent {
            self.buffer.sent(group.units);
        } else {
            self.buffer.keep(group);
        }
        sent
    }

    /// Sends all data that a flush waits for to flash.
    pub(super) fn drain(&mut self) {
        if self.flushes.is_empty() {
            return;
        }
        while !self.worn_out {
            let Some(group) = self.buffer.drain() else { break };
            self.send_to_flash(group);
        }
        let stuck = self.worn_out && self.buffer.leaving() == 0;
        let at_rest = self.programming == 0 && self.stalled.is_empty();
        if at_rest && (self.buffer.is_empty() || stuck) {
            for number in std::mem::take(&mut self.flushes) {
                if !self.buffer.is_empty() {
                    let why = "the device is worn out: its buffer cannot be written";
                    let error = io::Error::new(io::ErrorKind::StorageFull, why);
                    self.jobs.get(number).error = Some(error);
                }
                self.tell(number, self.engine.now());
            }
        }
    }
    /// Unmaps the whole units in the range.
    pub(super) fn trim(&mut self, offset: u64, len: u64) {
        if self.settings.trim == 0 {
            return;
        }
        let unit = self.settings.map_unit_bytes;
        let mut changed = AfterLookup::default();
        for number in offset.div_ceil(unit)..(offset + len) / unit {
            let unit = LogicalUnit(number as u32);
            self.buffer.drop_unit(unit);
            self.ahead.used(unit);
            if self.ftl.caches_map() && self.ftl.find(unit).is_some() {
                changed.units.push(unit.0);
            }
            self.ftl.forget(unit);
        }
        self.look_up(changed, true);
    }

    /// A program writes `buffer` at `offset`: whole mapped units, from the memory to flash. The write buffer is passed by; units in it that are
    /// written here are dropped from it.
    pub(super) fn inside_write(&mut self, program: u32, token: u64, offset: u64, buffer: Buffer) {
        let len = buffer.len() as u64;
        let unit_bytes = self.settings.map_unit_bytes;
        let mut checked = self.check_range(offset, len);
        if !offset.is_multiple_of(unit_bytes) || !len.is_multiple_of(unit_bytes) {
            let why = format!(
                "a program writes whole units of {unit_bytes} bytes, not {len} bytes at {offset}"
            );
            checked = Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut pages = Vec::new();
        if checked.is_ok() {
            pages = self.whole_pages(offset, &buffer);
        }
        let number = self.inside_writes.add(InsideWrite {
            program,
            token,
            buffer,
            remaining: 0,
            error: checked.err(),
        });
        let mut issued = 0;
        for mut units in pages {
            for (unit, _) in &units {
                self.buffer.drop_unit(*unit);
                self.ahead.used(*unit);
            }
            let bytes = units.len() as u64 * unit_bytes;
            if self.program(&mut units, None, Owner::InsideWrite { write: number }) {
                issued += 1;
                if self.settings.programs_use_memory == 1 {
                    // The page leaves the memory while it crosses the slower channel.
                    self.memory.carry(self.engine.now(), bytes);
                }
            } else {
                let why = "the device is worn out: no block takes another page";
                let write = self.inside_writes.get(number);
                write.error = Some(io::Error::new(io::ErrorKind::StorageFull, why));
                break;
            }
        }
        self.inside_writes.get(number).remaining = issued;
        if issued == 0 {
            self.engine.at(self.engine.now(), SsdEvent::InsideWritten { write: number });
        }
    }

    /// `buffer`, to be stored at `offset`, as units of the page map, those of one flash page
    /// together.
    fn whole_pages(&self, offset: u64, buffer: &[u8]) -> Vec<Vec<(LogicalUnit, UnitBytes)>> {
        let unit_bytes = self.settings.map_unit_bytes;
        let first = offset / unit_bytes;
        let mut pages: Vec<Vec<(LogicalUnit, UnitBytes)>> = Vec::new();
        for (number, bytes) in (first..).zip(buffer.chunks(unit_bytes as usize)) {
            if pages.is_empty() || number.is_multiple_of(self.settings.units_per_page()) {
                pages.push(Vec::new());
            }
            let page = pages.last_mut().expect("one was pushed");
            page.push((LogicalUnit(number as u32), Some(bytes.into())));
        }
        pages
    }
}
