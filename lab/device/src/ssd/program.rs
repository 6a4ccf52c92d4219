//! The interface of a program inside an SSD: pages, channels, processor, memory and link.

use std::io;

use merganser_storage::near::{HostRequest, Inside, NearProgram, RequestId};
use merganser_storage::{Buffer, Geometry, Work};

use crate::request::RequestKind;
use crate::ssd::controller::Controller;
use crate::ssd::event::{Owner, ProgramCall, SsdEvent, halves};
use crate::ssd::inside_reads::InsideRead;
use crate::ssd::lookups::AfterLookup;
use crate::ssd::nand::LogicalUnit;

/// Calls a program.
pub(crate) fn run(
    controller: &mut Controller,
    programs: &mut [Box<dyn NearProgram>],
    call: ProgramCall,
) {
    match call {
        ProgramCall::Wake { program, wake } => {
            programs[program as usize].wake(wake, &mut Seat { controller, program });
        }
        ProgramCall::ChannelIdle { channel } => {
            for (program, called) in (0..).zip(programs) {
                called.channel_idle(channel, &mut Seat { controller, program });
            }
        }
        ProgramCall::Request { program, job } => {
            let state = controller.jobs.get(job);
            let (id, offset, len) = (RequestId(u64::from(job)), state.offset, state.len as usize);
            let kind = state.kind;
            // The program borrows the bytes of a write; the buffer returns to its job afterwards.
            let buffer = if kind == RequestKind::Write { state.buffer.take() } else { None };
            let bytes = buffer.as_deref().unwrap_or(&[]);
            let request = match kind {
                RequestKind::Write => HostRequest::Write { offset, bytes },
                _ => HostRequest::Read { offset, len },
            };
            programs[program as usize].request(id, request, &mut Seat { controller, program });
            if buffer.is_some() {
                controller.jobs.get(job).buffer = buffer;
            }
        }
    }
}

/// The device as one program sees it.
struct Seat<'a> {
    controller: &'a mut Controller,
    program: u32,
}

impl Inside for Seat<'_> {
    fn now_ns(&self) -> u64 {
        self.controller.engine.now().0
    }

    fn geometry(&self) -> Geometry {
        self.controller.geometry()
    }

    fn channel_of(&self, offset: u64) -> u32 {
        let controller = &self.controller;
        if offset >= controller.capacity_bytes {
            return 0;
        }
        let unit = LogicalUnit((offset / controller.settings.map_unit_bytes) as u32);
        controller.ftl.find(unit).map_or(0, |place| {
            controller
                .flash
                .channel_of(controller.ftl.array.die_of(controller.ftl.array.block_of(place)))
        })
    }

    fn is_busy(&self, channel: u32) -> bool {
        self.controller.flash.is_busy(channel)
    }

    fn read(&mut self, token: u64, offset: u64, mut buffer: Buffer) {
        let len = buffer.len() as u64;
        let inside = self.controller.check_range(offset, len);
        let error = inside.err();
        if error.is_none() {
            self.controller.copy_out(offset, &mut buffer);
        }
        let mut stretches = Vec::new();
        if error.is_none() {
            self.controller.stretches(offset, len, &mut stretches);
        }
        let on_flash = stretches.iter().filter(|stretch| stretch.place.is_some()).count() as u32;
        let read = self.controller.inside_reads.add(InsideRead {
            program: self.program,
            token,
            buffer: Some(buffer),
            remaining: on_flash,
            error,
        });
        if on_flash == 0 {
            let now = self.controller.engine.now();
            self.controller.engine.at(now, SsdEvent::InsideDone { read });
        }
        let mut after = AfterLookup::default();
        for stretch in stretches {
            if let Some(place) = stretch.place {
                let bytes = stretch.bytes as u32;
                let owner = Owner::Inside { read, bytes };
                self.controller.fetch(&stretch, place, owner, &mut after);
            }
        }
        self.controller.look_up(after, false);
    }

    fn write(&mut self, token: u64, offset: u64, buffer: Buffer) {
        self.controller.inside_write(self.program, token, offset, buffer);
    }

    fn work(&mut self, token: u64, work: &[Work]) {
        let Controller { engine, processor, memory, .. } = &mut *self.controller;
        let end = processor.work(engine.now(), work, memory).end;
        engine.at(end, SsdEvent::Worked { program: self.program, token: halves(token) });
    }

    fn copy_unit_bytes(&self) -> u32 {
        self.controller.settings.copy_unit_bytes as u32
    }

    fn claim_memory(&mut self, bytes: u64) -> io::Result<()> {
        self.controller.memory.claim(bytes)
    }

    fn release_memory(&mut self, bytes: u64) {
        self.controller.memory.release(bytes);
    }

    fn answer(&mut self, request: RequestId, result: io::Result<Buffer>) {
        self.controller.answer(request.0 as u32, result);
    }
}
