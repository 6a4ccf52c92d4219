//! What happens when: commands on their way through the parts of the device.

use std::io;

use storage::near::{Program, Wake};
use storage::{Buffer, Geometry};

use crate::device::Command;
use crate::profile::SsdSettings;
use crate::request::{RequestKind, SimTime};
use crate::sim::Engine;
use crate::ssd::cache::{Found, Group, ReadAhead, WriteBuffer};
use crate::ssd::ftl::Ftl;
use crate::ssd::host::{Host, Jobs};
use crate::ssd::memory::Memory;
use crate::ssd::nand::array::Content;
use crate::ssd::nand::timing::{Flash, Op, OpKind};
use crate::ssd::nand::{Place, Unit};
use crate::ssd::processor::Processor;
use crate::ssd::program::InsideReads;
use crate::ssd::{Call, Calls, Owner, SsdEvent};

/// Neighbouring units of a request that one operation of flash gives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub unit: u32,
    pub units: u32,
    /// Of the first; nowhere where they are not on flash.
    pub place: Option<Place>,
    /// How many of the request's bytes they hold.
    pub bytes: u64,
}

/// All parts of a device but its programs.
pub(crate) struct Controller {
    pub settings: SsdSettings,
    pub engine: Engine<SsdEvent>,
    pub host: Host,
    pub jobs: Jobs,
    pub buffer: WriteBuffer,
    ahead: ReadAhead,
    pub ftl: Ftl,
    pub flash: Flash,
    pub processor: Processor,
    pub memory: Memory,
    pub inside_reads: InsideReads,
    pub calls: Calls,
    /// Operations that firmware prepares.
    preparing: Vec<Option<Op>>,
    preparing_free: Vec<u32>,
    /// Pieces of writes for which the buffer has no space.
    stalled: std::collections::VecDeque<(u32, u32)>,
    /// Flushes that wait for what was written before them.
    flushes: Vec<u32>,
    /// Programs of what the host wrote that have not ended.
    programming: u64,
    worn_out: bool,
    pub buffered_pages: u64,
    pub cached_pages: u64,
    /// Scratch space.
    ops: Vec<Op>,
    owners: Vec<Owner>,
}

impl Controller {
    pub fn new(settings: &SsdSettings, seed: u64) -> Controller {
        Controller {
            engine: Engine::new(seed),
            host: Host::new(settings),
            jobs: Jobs::default(),
            buffer: WriteBuffer::new(settings),
            ahead: ReadAhead::new(settings.read_ahead_pages * settings.units_a_page()),
            ftl: Ftl::new(settings),
            flash: Flash::new(settings),
            processor: Processor::new(settings),
            memory: Memory::new(settings),
            inside_reads: InsideReads::default(),
            calls: Calls::new(),
            preparing: Vec::new(),
            preparing_free: Vec::new(),
            stalled: std::collections::VecDeque::new(),
            flushes: Vec::new(),
            programming: 0,
            worn_out: false,
            buffered_pages: 0,
            cached_pages: 0,
            ops: Vec::new(),
            owners: Vec::new(),
            settings: settings.clone(),
        }
    }

    pub fn geometry(&self) -> Geometry {
        let s = &self.settings;
        let page_bytes = s.map_unit_bytes.max(512) as u32;
        Geometry {
            page_bytes,
            best_io_bytes: (s.page_bytes * s.dies()).clamp(s.page_bytes, 1 << 20) as u32,
            queue_depth: s.queue_depth.min(64) as u32,
            channels: s.channels as u32,
            stripe_bytes: (s.page_bytes * s.stripe_pages) as u32,
        }
    }

    pub fn precondition(&mut self, bytes: u64) {
        let units =
            (bytes / self.settings.map_unit_bytes).min(self.settings.logical_units()) as u32;
        let a_page = self.settings.units_a_page() as usize;
        let now_ns = self.engine.now().0;
        let counts = self.ftl.counts;
        let mut page: Vec<(Unit, Content)> = Vec::new();
        for first in (0..units).step_by(a_page) {
            page.extend((first..units.min(first + a_page as u32)).map(|unit| (Unit(unit), None)));
            let random = self.engine.random();
            let owner = Owner::Nobody;
            let written = self.ftl.write(&mut page, None, owner, now_ns, random, &mut self.ops);
            written.expect("a fresh device has room for all that the host can address");
            self.ops.clear();
        }
        self.ftl.counts = counts;
    }

    pub fn submit(&mut self, at: SimTime, command: Command) {
        let job = self.jobs.add(at, command);
        self.engine.at(at, SsdEvent::Arrive { job });
    }

    /// Marks what a program claims.
    pub fn claim(&mut self, number: u32, programs: &[Box<dyn Program>]) {
        let job = self.jobs.get(number);
        let write = match job.kind {
            RequestKind::Read => false,
            RequestKind::Write => true,
            RequestKind::Trim | RequestKind::Flush => return,
        };
        let (offset, len) = (job.offset, job.len as usize);
        let found = programs.iter().position(|program| program.claims(write, offset, len));
        job.program = found.map(|at| at as u32);
    }

    pub fn happen(&mut self, event: SsdEvent) {
        let now = self.engine.now();
        match event {
            SsdEvent::Arrive { job } => self.arrive(job),
            SsdEvent::Begin { job } => {
                let cycles = self.settings.firmware_request_cycles;
                let ready = self.processor_ready(now, cycles);
                self.engine.at(ready, SsdEvent::Start { job });
            }
            SsdEvent::Start { job } => self.start(job),
            SsdEvent::Landed { job, piece } => {
                let bytes = self.piece_bytes(job, piece);
                let stored = self.memory.pass(now, bytes);
                self.engine.at(stored, SsdEvent::Stored { job, piece });
            }
            SsdEvent::Stored { job, piece } => self.write_piece(job, piece, 0),
            SsdEvent::Claimed { job } => {
                let program = self.jobs.get(job).program.expect("a program claimed it");
                self.calls.push_back(Call::Request { program, job });
            }
            SsdEvent::Issue { op } => {
                self.preparing_free.push(op);
                let op = self.preparing[op as usize].take().expect("it was being prepared");
                self.flash.submit(op, &mut self.engine);
            }
            SsdEvent::Flash(step) => {
                let mut owners = std::mem::take(&mut self.owners);
                self.flash.event(step, &mut self.engine, &mut owners);
                for owner in owners.drain(..) {
                    self.flash_done(owner);
                }
                self.owners = owners;
            }
            SsdEvent::InsideDone { read } => self.calls.extend(self.inside_reads.ended(read)),
            SsdEvent::Worked { program, token } => {
                self.calls.push_back(Call::Wake { program, wake: Wake::Worked { token } });
            }
            SsdEvent::Complete { job } => {
                let job = self.jobs.end(job);
                self.host.finish(now, job);
                if let Some(next) = self.host.leave() {
                    self.arrive(next);
                }
            }
        }
    }

    fn arrive(&mut self, job: u32) {
        if let Some(at) = self.host.arrive(self.engine.now(), job) {
            self.engine.at(at, SsdEvent::Begin { job });
        }
    }

    /// When firmware has done `cycles`; at once when there are none.
    fn processor_ready(&mut self, ready: SimTime, cycles: u64) -> SimTime {
        if cycles == 0 { ready } else { self.processor.firmware(ready, cycles).end }
    }

    /// Whether the host can address `len` bytes at `offset`.
    pub fn check_range(&self, offset: u64, len: u64) -> io::Result<()> {
        let capacity = self.settings.capacity_bytes();
        if offset.checked_add(len).is_some_and(|end| end <= capacity) {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{len} bytes at {offset} lie beyond the device's {capacity}"),
        ))
    }

    fn start(&mut self, number: u32) {
        let now = self.engine.now();
        let job = self.jobs.get(number);
        let (kind, offset, len, program) = (job.kind, job.offset, job.len, job.program);
        let short = job.buffer.as_ref().is_some_and(|buffer| buffer.len() as u64 != len);
        let checked = match kind {
            RequestKind::Flush => Ok(()),
            _ if short => {
                let why = "a command's buffer has the length of the command";
                Err(io::Error::new(io::ErrorKind::InvalidInput, why))
            }
            _ => self.check_range(offset, len),
        };
        if let Err(error) = checked {
            self.jobs.get(number).error = Some(error);
            self.tell(number, now);
            return;
        }
        match (kind, program) {
            (RequestKind::Read, Some(program)) => {
                self.calls.push_back(Call::Request { program, job: number });
            }
            (RequestKind::Write, Some(_)) => {
                let at = self.host.take(now, len);
                self.engine.at(at, SsdEvent::Claimed { job: number });
            }
            (RequestKind::Flush, _) => {
                self.flushes.push(number);
                self.drain();
            }
            (RequestKind::Trim, _) => {
                self.trim(offset, len);
                self.tell(number, now);
            }
            _ if len == 0 => self.tell(number, now),
            (RequestKind::Read, None) => self.read(number),
            (RequestKind::Write, None) => {
                let pieces = self.pieces(number);
                self.jobs.get(number).remaining = pieces;
                for piece in 0..pieces {
                    let bytes = self.piece_bytes(number, piece);
                    let at = self.host.take(now, bytes);
                    self.engine.at(at, SsdEvent::Landed { job: number, piece });
                }
            }
        }
    }

    /// The host will know at `at`, or when all bytes have crossed, that the job has ended.
    fn tell(&mut self, number: u32, at: SimTime) {
        let crossed = self.jobs.get(number).crossed.max(at);
        self.engine.at(self.host.told(crossed), SsdEvent::Complete { job: number });
    }

    /// One piece of the job has ended.
    fn piece_done(&mut self, number: u32) {
        let job = self.jobs.get(number);
        job.remaining -= 1;
        if job.remaining == 0 {
            self.tell(number, self.engine.now());
        }
    }

    // Reads.

    /// `offset..offset + len` as stretches that lie on one flash page each, or on none.
    pub fn stretches(&self, offset: u64, len: u64) -> Vec<Stretch> {
        let unit_bytes = self.settings.map_unit_bytes;
        let end = offset + len;
        let mut found: Vec<Stretch> = Vec::new();
        for number in offset / unit_bytes..end.div_ceil(unit_bytes) {
            let unit = Unit(number as u32);
            let start = number * unit_bytes;
            let bytes = end.min(start + unit_bytes) - offset.max(start);
            let place = if self.buffer.contains(unit) { None } else { self.ftl.find(unit) };
            let page = |place: Place| place.0 / self.ftl.array.units_a_page;
            match found.last_mut() {
                Some(last) if last.place.zip(place).is_some_and(|(a, b)| page(a) == page(b)) => {
                    last.units += 1;
                    last.bytes += bytes;
                }
                _ => found.push(Stretch { unit: unit.0, units: 1, place, bytes }),
            }
        }
        found
    }

    /// Copies what is stored at `offset` on into `out`; zeros where nothing is.
    pub fn copy_out(&self, offset: u64, out: &mut [u8]) {
        let unit_bytes = self.settings.map_unit_bytes;
        let mut done = 0;
        while done < out.len() {
            let at = offset + done as u64;
            let from = (at % unit_bytes) as usize;
            let count = (unit_bytes as usize - from).min(out.len() - done);
            let unit = Unit((at / unit_bytes) as u32);
            let target = &mut out[done..done + count];
            match self.content(unit) {
                Some(content) => target.copy_from_slice(&content[from..from + count]),
                None => target.fill(0),
            }
            done += count;
        }
    }

    fn content(&self, unit: Unit) -> Option<&[u8]> {
        if let Some(content) = self.buffer.content(unit) {
            return content;
        }
        self.ftl.find(unit).and_then(|place| self.ftl.array.content(place))
    }

    fn read(&mut self, number: u32) {
        let job = self.jobs.get(number);
        let (offset, len) = (job.offset, job.len);
        if let Some(mut buffer) = job.buffer.take() {
            self.copy_out(offset, &mut buffer);
            self.jobs.get(number).buffer = Some(buffer);
        }
        let stretches = self.stretches(offset, len);
        self.jobs.get(number).remaining = stretches.len() as u32;
        for stretch in &stretches {
            let bytes = stretch.bytes as u32;
            let Some(place) = stretch.place else {
                self.cached_pages += u64::from(self.buffer.contains(Unit(stretch.unit)));
                self.read_ready(number, bytes);
                continue;
            };
            for unit in stretch.unit + 1..stretch.unit + stretch.units {
                self.ahead.used(Unit(unit));
            }
            match self.ahead.want(Unit(stretch.unit), (number, bytes)) {
                Found::Coming => self.cached_pages += 1,
                Found::Here => {
                    self.cached_pages += 1;
                    self.read_ready(number, bytes);
                }
                Found::No => self.fetch(place, stretch.bytes, Owner::Read { job: number, bytes }),
            }
        }
        if self.ahead.follows(offset, offset + len) {
            self.read_ahead(offset + len);
        }
    }

    fn read_ahead(&mut self, offset: u64) {
        let unit_bytes = self.settings.map_unit_bytes;
        let from = offset.next_multiple_of(unit_bytes);
        let end = (from + self.ahead.units() * unit_bytes).min(self.settings.capacity_bytes());
        if from >= end {
            return;
        }
        for Stretch { unit, units, place, bytes } in self.stretches(from, end - from) {
            let Some(place) = place else { continue };
            if !self.ahead.has(Unit(unit)) {
                (unit..unit + units).for_each(|unit| self.ahead.expect(Unit(unit)));
                self.fetch(place, bytes, Owner::Ahead { unit, units });
            }
        }
    }

    /// `bytes` of a read are in the device: they cross memory and link.
    fn read_ready(&mut self, number: u32, bytes: u32) {
        let in_memory = self.memory.pass(self.engine.now(), u64::from(bytes));
        let crossed = self.host.send(in_memory, u64::from(bytes));
        let job = self.jobs.get(number);
        job.crossed = job.crossed.max(crossed);
        self.piece_done(number);
    }

    /// Starts to read `bytes` of the page at `place`.
    pub fn fetch(&mut self, place: Place, bytes: u64, owner: Owner) {
        let array = &self.ftl.array;
        let block = array.block_of(place);
        let op = Op {
            kind: OpKind::Read,
            die: array.die_of(block),
            plane: array.plane_of(block) % array.planes_a_die,
            page: array.page_of(place),
            bytes: self.ftl.carried_bytes(bytes),
            owner,
        };
        self.issue(op);
    }

    /// Lets firmware prepare `op`, and then its die do it.
    fn issue(&mut self, op: Op) {
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
        let number = self.preparing_free.pop().unwrap_or_else(|| {
            self.preparing.push(None);
            self.preparing.len() as u32 - 1
        });
        self.preparing[number as usize] = Some(op);
        self.engine.at(ready, SsdEvent::Issue { op: number });
    }

    // Writes.

    fn page_bytes(&self) -> u64 {
        self.settings.page_bytes
    }

    /// How many flash pages' worth of neighbours a write spans.
    fn pieces(&mut self, number: u32) -> u32 {
        let page = self.page_bytes();
        let job = self.jobs.get(number);
        ((job.offset + job.len).div_ceil(page) - job.offset / page) as u32
    }

    /// The bytes of one piece.
    fn piece_range(&mut self, number: u32, piece: u32) -> std::ops::Range<u64> {
        let page = self.page_bytes();
        let job = self.jobs.get(number);
        let start = (job.offset / page + u64::from(piece)) * page;
        job.offset.max(start)..(job.offset + job.len).min(start + page)
    }

    fn piece_bytes(&mut self, number: u32, piece: u32) -> u64 {
        let range = self.piece_range(number, piece);
        range.end - range.start
    }

    fn piece_units(&mut self, number: u32, piece: u32) -> std::ops::Range<u32> {
        let range = self.piece_range(number, piece);
        let unit = self.settings.map_unit_bytes;
        (range.start / unit) as u32..range.end.div_ceil(unit) as u32
    }

    /// Goes on with a piece: reads the rest of units that it covers in part, from edge `edge` on,
    /// then stores it.
    fn write_piece(&mut self, number: u32, piece: u32, edge: u8) {
        let range = self.piece_range(number, piece);
        let unit_bytes = self.settings.map_unit_bytes;
        let first = (edge == 0 && !range.start.is_multiple_of(unit_bytes), range.start);
        let last_is_other = range.start / unit_bytes != (range.end - 1) / unit_bytes;
        let last_cut = !range.end.is_multiple_of(unit_bytes);
        let last_cut = last_cut && (last_is_other || range.start.is_multiple_of(unit_bytes));
        let last = (edge <= 1 && last_cut, range.end - 1);
        for (next_edge, (cut, at)) in (1..).zip([first, last]) {
            let unit = Unit((at / unit_bytes) as u32);
            if !cut || self.buffer.contains(unit) {
                continue;
            }
            if let Some(place) = self.ftl.find(unit) {
                self.fetch(place, unit_bytes, Owner::Rest { job: number, piece, next_edge });
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

    /// What the units of a piece hold once it is written.
    fn piece_content(&mut self, number: u32, piece: u32) -> Vec<(Unit, Content)> {
        let units = self.piece_units(number, piece);
        let unit_bytes = self.settings.map_unit_bytes;
        let job = self.jobs.get(number);
        let Some(buffer) = job.buffer.take() else {
            return units.map(|unit| (Unit(unit), None)).collect();
        };
        let (offset, end) = (job.offset, job.offset + job.len);
        let mut made = Vec::with_capacity(units.len());
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
            made.push((Unit(unit), Some(content)));
        }
        self.jobs.get(number).buffer = Some(buffer);
        made
    }

    fn write_through(&mut self, number: u32, piece: u32) {
        let mut units = self.piece_content(number, piece);
        for (unit, _) in &units {
            self.ahead.used(*unit);
        }
        if self.program(&mut units, None, Owner::Write { job: number }) {
            return;
        }
        self.fail_write(number);
    }

    /// Writes a page to flash; false when there is no room.
    fn program(
        &mut self,
        units: &mut Vec<(Unit, Content)>,
        die: Option<u32>,
        owner: Owner,
    ) -> bool {
        let mut ops = std::mem::take(&mut self.ops);
        let now_ns = self.engine.now().0;
        let random = self.engine.random();
        let written = self.ftl.write(units, die, owner, now_ns, random, &mut ops);
        for op in ops.drain(..) {
            self.issue(op);
        }
        self.ops = ops;
        self.programming += u64::from(written.is_ok());
        self.worn_out |= written.is_err();
        written.is_ok()
    }

    fn fail_write(&mut self, number: u32) {
        let why = "the device is worn out: no block takes another page";
        let job = self.jobs.get(number);
        job.error.get_or_insert_with(|| io::Error::new(io::ErrorKind::StorageFull, why));
        self.piece_done(number);
    }

    /// Takes as many of the waiting pieces into the buffer as it has space for, and makes space.
    fn fill_buffer(&mut self) {
        while let Some(&(number, piece)) = self.stalled.front() {
            let units = self.piece_units(number, piece);
            let count = units.len() as u64;
            if !self.buffer.fits(units.map(Unit)) {
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
            for (unit, content) in self.piece_content(number, piece) {
                self.ahead.used(unit);
                self.buffered_pages += u64::from(self.buffer.contains(unit));
                let home = self.ftl.home(unit);
                self.buffer.put(unit, content, home);
            }
            self.piece_done(number);
            while let Some(group) = self.buffer.leave_behind() {
                if !self.send_to_flash(group) {
                    break;
                }
            }
        }
    }

    /// Sends to flash what a full buffer gives; false when nothing went.
    fn evict(&mut self) -> bool {
        let mut went = false;
        for group in self.buffer.make_space() {
            went |= self.send_to_flash(group);
        }
        went
    }

    /// Programs a group of the buffer; one that flash does not take stays.
    fn send_to_flash(&mut self, mut group: Group) -> bool {
        let units = group.units.len() as u32;
        let owner = Owner::Buffer { units };
        let sent = self.program(&mut group.units, group.die, owner);
        if !sent {
            self.buffer.keep(group);
        }
        sent
    }

    /// Sends all that a flush waits for to flash.
    fn drain(&mut self) {
        if self.flushes.is_empty() {
            return;
        }
        while !self.worn_out {
            let Some(group) = self.buffer.drain() else { break };
            self.send_to_flash(group);
        }
        let stuck = self.worn_out && self.buffer.leaving() == 0;
        let settled = self.programming == 0 && self.stalled.is_empty();
        if settled && (self.buffer.is_empty() || stuck) {
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

    /// Gives up whole units in the range.
    fn trim(&mut self, offset: u64, len: u64) {
        if self.settings.trim == 0 {
            return;
        }
        let unit = self.settings.map_unit_bytes;
        for number in offset.div_ceil(unit)..(offset + len) / unit {
            let unit = Unit(number as u32);
            self.buffer.drop_unit(unit);
            self.ahead.used(unit);
            self.ftl.forget(unit);
        }
    }

    // Ends.

    fn flash_done(&mut self, owner: Owner) {
        match owner {
            Owner::Nobody => {}
            Owner::Read { job, bytes } => self.read_ready(job, bytes),
            Owner::Write { job } => {
                self.programming -= 1;
                self.piece_done(job);
                self.drain();
            }
            Owner::Rest { job, piece, next_edge } => self.write_piece(job, piece, next_edge),
            Owner::Buffer { units } => {
                self.programming -= 1;
                self.buffer.left(u64::from(units));
                self.fill_buffer();
                self.drain();
            }
            Owner::Ahead { unit, units } => {
                for unit in unit..unit + units {
                    for (job, bytes) in self.ahead.came(Unit(unit)) {
                        self.read_ready(job, bytes);
                    }
                }
            }
            Owner::Inside { read } => {
                self.calls.extend(self.inside_reads.ended(read));
            }
        }
    }

    /// A program ends the request that it claimed.
    pub fn answer(&mut self, number: u32, result: io::Result<Buffer>) {
        let now = self.engine.now();
        let job = self.jobs.get(number);
        assert!(job.program.take().is_some(), "a program answers each of its requests once");
        let len = job.len;
        let read = job.kind == RequestKind::Read;
        match result {
            Ok(bytes) if read && bytes.len() as u64 != len => {
                let why = format!("{} bytes were answered to a read of {len}", bytes.len());
                job.error = Some(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            Ok(bytes) if read => {
                if let Some(target) = &mut job.buffer {
                    target.copy_from_slice(&bytes);
                }
                let in_memory = self.memory.pass(now, len);
                let crossed = self.host.send(in_memory, len);
                self.jobs.get(number).crossed = crossed;
            }
            Ok(_) => {}
            Err(error) => job.error = Some(error),
        }
        self.tell(number, now);
    }
}
