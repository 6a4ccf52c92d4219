//! The order of events: commands on their way through the components of the device.

use std::io;

use merganser_storage::near::{NearProgram, Wake};
use merganser_storage::{Buffer, Geometry};
use slab::Slab;

use crate::device::{FlashBytes, IoCommand};
use crate::profile::SsdSettings;
use crate::request::{RequestKind, SimTime};
use crate::sim::EventQueue;
use crate::ssd::cache::{ReadAhead, WriteBuffer};
use crate::ssd::event::{Owner, ProgramCall, ProgramCalls, SsdEvent, whole};
use crate::ssd::ftl::Ftl;
use crate::ssd::host::{CommandLink, HostCommands};
use crate::ssd::inside_reads::InsideReads;
use crate::ssd::inside_writes::InsideWrites;
use crate::ssd::lookups::Lookups;
use crate::ssd::memory::Memory;
use crate::ssd::nand::array::UnitBytes;
use crate::ssd::nand::divisor::Divisor;
use crate::ssd::nand::timing::{Flash, Op};
use crate::ssd::nand::{LogicalUnit, PhysicalUnit};
use crate::ssd::processor::CycleProcessor;

/// Consecutive units of a request that one operation of flash reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnitStretch {
    pub unit: u32,
    pub units: u32,
    /// The physical unit of the first; `None` if they are not on flash.
    pub place: Option<PhysicalUnit>,
    /// The number of the request's bytes that they hold.
    pub bytes: u64,
}

/// All components of a device except its programs.
pub(crate) struct Controller {
    pub(super) settings: SsdSettings,
    /// Bytes that the host can address; each request is compared with it.
    pub(super) capacity_bytes: u64,
    /// Bytes of a page of flash, and of a mapped unit.
    pub(super) by_page: Divisor,
    pub(super) by_unit: Divisor,
    pub(super) engine: EventQueue<SsdEvent>,
    pub(super) host: CommandLink,
    pub(super) jobs: HostCommands,
    pub(super) buffer: WriteBuffer,
    pub(super) ahead: ReadAhead,
    pub(super) ftl: Ftl,
    pub(super) flash: Flash,
    pub(super) processor: CycleProcessor,
    pub(super) memory: Memory,
    pub(super) inside_reads: InsideReads,
    pub(super) inside_writes: InsideWrites,
    pub(super) calls: ProgramCalls,
    /// Whether programs are attached, which are notified of idle channels.
    pub(super) has_programs: bool,
    pub(super) lookups: Lookups,
    /// Operations that firmware is preparing.
    pub(super) preparing: Slab<Op>,
    /// Pieces of writes that wait for space in the buffer.
    pub(super) stalled: std::collections::VecDeque<(u32, u32)>,
    /// Flushes that wait for earlier writes.
    pub(super) flushes: Vec<u32>,
    /// Page programs of the host's data that have not ended.
    pub(super) programming: u64,
    pub(super) worn_out: bool,
    pub(super) buffered_pages: u64,
    pub(super) cached_pages: u64,
    /// Scratch space.
    pub(super) ops: Vec<Op>,
    pub(super) owners: Vec<Owner>,
    pub(super) found: Vec<UnitStretch>,
    pub(super) units: Vec<(LogicalUnit, UnitBytes)>,
}

impl Controller {
    /// # Errors
    /// When the system refuses the memory of the page map.
    pub(super) fn new(settings: &SsdSettings, seed: u64) -> io::Result<Controller> {
        Ok(Controller {
            engine: EventQueue::new(seed),
            host: CommandLink::new(settings),
            jobs: HostCommands::default(),
            buffer: WriteBuffer::new(settings),
            ahead: ReadAhead::new(settings.read_ahead_pages * settings.units_per_page()),
            ftl: Ftl::new(settings)?,
            flash: Flash::new(settings),
            processor: CycleProcessor::new(settings),
            memory: Memory::new(settings),
            inside_reads: InsideReads::default(),
            inside_writes: InsideWrites::default(),
            calls: ProgramCalls::new(),
            has_programs: false,
            lookups: Lookups::default(),
            preparing: Slab::new(),
            stalled: std::collections::VecDeque::new(),
            flushes: Vec::new(),
            programming: 0,
            worn_out: false,
            buffered_pages: 0,
            cached_pages: 0,
            ops: Vec::new(),
            owners: Vec::new(),
            found: Vec::new(),
            units: Vec::new(),
            capacity_bytes: settings.capacity_bytes(),
            by_page: Divisor::new(settings.page_bytes),
            by_unit: Divisor::new(settings.map_unit_bytes),
            settings: settings.clone(),
        })
    }

    pub(super) fn geometry(&self) -> Geometry {
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

    pub(super) fn precondition(&mut self, bytes: u64) {
        let units =
            (bytes / self.settings.map_unit_bytes).min(self.settings.logical_units()) as u32;
        let a_page = self.settings.units_per_page() as usize;
        let now_ns = self.engine.now().0;
        let counts = self.ftl.counts;
        let mut page: Vec<(LogicalUnit, UnitBytes)> = Vec::new();
        for first in (0..units).step_by(a_page) {
            page.extend(
                (first..units.min(first + a_page as u32)).map(|unit| (LogicalUnit(unit), None)),
            );
            let random = self.engine.random();
            let owner = Owner::Nobody;
            let written = self.ftl.write(&mut page, None, owner, now_ns, random, &mut self.ops);
            written.expect("a fresh device has room for all that the host can address");
            self.ops.clear();
        }
        self.ftl.write_whole_map(units, now_ns, self.engine.random(), &mut self.ops);
        self.ops.clear();
        self.ftl.counts = counts;
    }

    pub(super) fn flash_bytes(&self) -> FlashBytes {
        let programmed = self.flash.counts[1] * self.settings.page_bytes;
        FlashBytes { host: self.host.written_bytes, programmed }
    }

    pub(super) fn submit(&mut self, at: SimTime, command: IoCommand) {
        if matches!(command.kind, RequestKind::Read | RequestKind::Write) {
            self.ftl.expect(self.by_unit.quotient(command.offset));
        }
        let job = self.jobs.add(at, command);
        self.engine.at(at, SsdEvent::Arrive { job });
    }

    /// Marks a request that a program claims.
    pub(super) fn claim(&mut self, number: u32, programs: &[Box<dyn NearProgram>]) {
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

    pub(super) fn happen(&mut self, event: SsdEvent) {
        let now = self.engine.now();
        match event {
            SsdEvent::Arrive { job } => self.arrive(job),
            SsdEvent::Begin { job } => {
                let cycles = self.settings.firmware_request_cycles;
                let ready = self.processor_ready(now, cycles);
                self.engine.at(ready, SsdEvent::Start { job });
            }
            SsdEvent::Start { job } => match self.transfers_until(now) {
                Some(free) => self.engine.at(free, SsdEvent::Start { job }),
                None => self.start(job),
            },
            SsdEvent::Landed { job, piece } => {
                let bytes = self.piece_bytes(job, piece);
                let stored = self.memory.pass(now, bytes);
                self.engine.at(stored, SsdEvent::Stored { job, piece });
            }
            SsdEvent::Stored { job, piece } => self.write_piece(job, piece, 0),
            SsdEvent::Claimed { job } => {
                let program = self.jobs.get(job).program.expect("a program claimed it");
                self.calls.push_back(ProgramCall::Request { program, job });
            }
            SsdEvent::Issue { op } => {
                let op = self.preparing.remove(op as usize);
                self.flash.submit(op, &mut self.engine);
            }
            SsdEvent::Flash(step) => {
                let channel = self.flash.channel_of_step(step);
                let was_busy = self.has_programs && self.flash.is_busy(channel);
                let mut owners = std::mem::take(&mut self.owners);
                self.flash.event(step, &mut self.engine, &mut owners);
                for owner in owners.drain(..) {
                    self.flash_done(owner);
                }
                self.owners = owners;
                if was_busy && !self.flash.is_busy(channel) {
                    self.calls.push_back(ProgramCall::ChannelIdle { channel });
                }
            }
            SsdEvent::InsideDone { read } => self.calls.extend(self.inside_reads.ended(read)),
            SsdEvent::InsideWritten { write } => self.calls.extend(self.inside_writes.ended(write)),
            SsdEvent::Worked { program, token } => {
                let token = whole(token);
                self.calls.push_back(ProgramCall::Wake { program, wake: Wake::Worked { token } });
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

    /// If requests wait for transfers of others: the end of those under way, through link and memory.
    /// A request that began earlier would be served before the one whose bytes are still coming.
    fn transfers_until(&self, now: SimTime) -> Option<SimTime> {
        let free = self.host.links_free_at().max(self.memory.free_at());
        (self.settings.whole_transfers == 1 && free > now).then_some(free)
    }

    /// The time at which firmware has done `cycles`; `ready` if there are no cycles.
    fn processor_ready(&mut self, ready: SimTime, cycles: u64) -> SimTime {
        if cycles == 0 { ready } else { self.processor.firmware(ready, cycles).end }
    }

    /// Whether the host can address `len` bytes at `offset`.
    pub(super) fn check_range(&self, offset: u64, len: u64) -> io::Result<()> {
        let capacity = self.capacity_bytes;
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
                self.calls.push_back(ProgramCall::Request { program, job: number });
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
                let whole = self.settings.whole_transfers == 1;
                let all = if whole { self.host.take(now, len) } else { now };
                for piece in 0..pieces {
                    let bytes = self.piece_bytes(number, piece);
                    let at = if whole { all } else { self.host.take(now, bytes) };
                    self.engine.at(at, SsdEvent::Landed { job: number, piece });
                }
            }
        }
    }

    /// Notifies the host that the job has ended: at `at`, or when all bytes have crossed.
    pub(super) fn tell(&mut self, number: u32, at: SimTime) {
        let crossed = self.jobs.get(number).crossed.max(at);
        self.engine.at(self.host.told(crossed), SsdEvent::Complete { job: number });
    }

    /// One piece of the job has ended.
    pub(super) fn piece_done(&mut self, number: u32) {
        let job = self.jobs.get(number);
        job.remaining -= 1;
        if job.remaining == 0 {
            self.tell(number, self.engine.now());
        }
    }

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
                    for (job, bytes) in self.ahead.came(LogicalUnit(unit)) {
                        self.read_ready(job, bytes);
                    }
                }
            }
            Owner::Map { lookup } => self.entry_came(lookup),
            Owner::Inside { read, bytes } => {
                if self.settings.programs_use_memory == 1 {
                    let there = self.memory.carry(self.engine.now(), u64::from(bytes));
                    self.engine.at(there, SsdEvent::InsideDone { read });
                } else {
                    self.calls.extend(self.inside_reads.ended(read));
                }
            }
            Owner::InsideWrite { write } => {
                self.programming -= 1;
                self.calls.extend(self.inside_writes.ended(write));
                self.drain();
            }
        }
    }

    /// A program ends the request that it claimed.
    pub(super) fn answer(&mut self, number: u32, result: io::Result<Buffer>) {
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
                // Data that a program made are in the memory already, and only leave it.
                let left = if self.settings.programs_use_memory == 1 {
                    self.memory.carry(now, len)
                } else {
                    self.memory.pass(now, len)
                };
                self.jobs.get(number).crossed = self.host.send(left, len);
            }
            Ok(_) => {}
            Err(error) => job.error = Some(error),
        }
        self.tell(number, now);
    }
}
