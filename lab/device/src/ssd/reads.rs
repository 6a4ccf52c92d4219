//! Reads: which stretches are on which pages, which of them are in the buffers, and which flash
//! must read.

use crate::ssd::cache::AheadState;
use crate::ssd::controller::{Controller, UnitStretch};
use crate::ssd::event::{Owner, SsdEvent};
use crate::ssd::lookups::AfterLookup;
use crate::ssd::nand::timing::{Op, OpKind};
use crate::ssd::nand::{LogicalUnit, PhysicalUnit};

impl Controller {
    /// Puts `offset..offset + len` into `found` as stretches, each on one flash page or not on flash.
    pub(super) fn stretches(&self, offset: u64, len: u64, found: &mut Vec<UnitStretch>) {
        found.clear();
        let unit_bytes = self.settings.map_unit_bytes;
        let end = offset + len;
        for number in self.by_unit.quotient(offset)..self.by_unit.quotient_up(end) {
            let unit = LogicalUnit(number as u32);
            let start = number * unit_bytes;
            let bytes = end.min(start + unit_bytes) - offset.max(start);
            let place = if self.buffer.contains(unit) { None } else { self.ftl.find(unit) };
            let array = &self.ftl.array;
            match found.last_mut() {
                Some(last)
                    if last.place.zip(place).is_some_and(|(a, b)| array.share_page(a, b)) =>
                {
                    last.units += 1;
                    last.bytes += bytes;
                }
                _ => found.push(UnitStretch { unit: unit.0, units: 1, place, bytes }),
            }
        }
    }

    /// Copies the bytes stored from `offset` on into `out`, or zeros if no bytes are stored.
    pub(super) fn copy_out(&self, offset: u64, out: &mut [u8]) {
        let unit_bytes = self.settings.map_unit_bytes;
        let mut done = 0;
        while done < out.len() {
            let at = offset + done as u64;
            let from = (at % unit_bytes) as usize;
            let count = (unit_bytes as usize - from).min(out.len() - done);
            let unit = LogicalUnit((at / unit_bytes) as u32);
            let target = &mut out[done..done + count];
            match self.content(unit) {
                Some(content) => target.copy_from_slice(&content[from..from + count]),
                None => target.fill(0),
            }
            done += count;
        }
    }

    pub(super) fn content(&self, unit: LogicalUnit) -> Option<&[u8]> {
        if let Some(content) = self.buffer.content(unit) {
            return content;
        }
        self.ftl.find(unit).and_then(|place| self.ftl.array.content(place))
    }

    pub(super) fn read(&mut self, number: u32) {
        let job = self.jobs.get(number);
        let (offset, len) = (job.offset, job.len);
        if let Some(mut buffer) = job.buffer.take() {
            self.copy_out(offset, &mut buffer);
            self.jobs.get(number).buffer = Some(buffer);
        }
        let mut stretches = std::mem::take(&mut self.found);
        self.stretches(offset, len, &mut stretches);
        self.jobs.get(number).remaining = stretches.len() as u32;
        let mut after = AfterLookup::default();
        for stretch in &stretches {
            let bytes = stretch.bytes as u32;
            let Some(place) = stretch.place else {
                self.cached_pages += u64::from(self.buffer.contains(LogicalUnit(stretch.unit)));
                self.read_ready(number, bytes);
                continue;
            };
            for unit in stretch.unit + 1..stretch.unit + stretch.units {
                self.ahead.used(LogicalUnit(unit));
            }
            match self.ahead.want(LogicalUnit(stretch.unit), (number, bytes)) {
                AheadState::Coming => self.cached_pages += 1,
                AheadState::Here => {
                    self.cached_pages += 1;
                    self.read_ready(number, bytes);
                }
                AheadState::No => {
                    self.fetch(stretch, place, Owner::Read { job: number, bytes }, &mut after);
                }
            }
        }
        self.found = stretches;
        self.look_up(after, false);
        if self.ahead.follows(offset, offset + len) {
            self.read_ahead(offset + len);
        }
    }

    pub(super) fn read_ahead(&mut self, offset: u64) {
        let unit_bytes = self.settings.map_unit_bytes;
        let from = offset.next_multiple_of(unit_bytes);
        let end = (from + self.ahead.units() * unit_bytes).min(self.capacity_bytes);
        if from >= end {
            return;
        }
        let mut after = AfterLookup::default();
        let mut stretches = std::mem::take(&mut self.found);
        self.stretches(from, end - from, &mut stretches);
        for stretch in &stretches {
            let &UnitStretch { unit, units, place: Some(place), .. } = stretch else { continue };
            if !self.ahead.has(LogicalUnit(unit)) {
                (unit..unit + units).for_each(|unit| self.ahead.expect(LogicalUnit(unit)));
                self.fetch(stretch, place, Owner::Ahead { unit, units }, &mut after);
            }
        }
        self.found = stretches;
        self.look_up(after, false);
    }

    /// `bytes` of a read are in the device: sends them through memory and link.
    pub(super) fn read_ready(&mut self, number: u32, bytes: u32) {
        let mut bytes = u64::from(bytes);
        if self.settings.whole_transfers == 1 {
            let job = self.jobs.get(number);
            if job.remaining > 1 {
                return self.piece_done(number);
            }
            bytes = job.len;
        }
        let in_memory = self.memory.pass(self.engine.now(), bytes);
        let crossed = self.host.send(in_memory, bytes);
        let job = self.jobs.get(number);
        job.crossed = job.crossed.max(crossed);
        self.piece_done(number);
    }

    /// Starts to read the page at `place`, which holds `stretch`; or adds the read to those that begin
    /// `after` a lookup, if the map is on flash.
    pub(super) fn fetch(
        &mut self,
        stretch: &UnitStretch,
        place: PhysicalUnit,
        owner: Owner,
        after: &mut AfterLookup,
    ) {
        let array = &self.ftl.array;
        let block = array.block_of(place);
        let (die, plane) = array.die_and_plane(array.plane_of(block));
        let op = Op {
            kind: OpKind::Read,
            die,
            plane,
            block,
            page: array.page_of(place),
            bytes: self.ftl.carried_bytes(stretch.bytes),
            owner,
        };
        if self.ftl.caches_map() {
            after.units.extend(stretch.unit..stretch.unit + stretch.units);
            after.ops.push(op);
        } else {
            self.issue(op);
        }
    }

    /// Lets firmware prepare `op`; then its die performs it.
    pub(super) fn issue(&mut self, op: Op) {
        self.flash.expect(op.die);
        let cycles = match op.kind {
            OpKind::Read => self.settings.firmware_read_cycles,
            OpKind::Program | OpKind::CopyBack => self.settings.firmware_write_cycles,
            OpKind::Erase => 0,
        };
        if cycles == 0 {
            self.flash.submit(op, &mut self.engine);
            return;
        }
        let ready = self.processor.firmware(self.engine.now(), cycles).end;
        let op = self.preparing.insert(op) as u32;
        self.engine.at(ready, SsdEvent::Issue { op });
    }
}
