//! What a program inside an SSD has: its pages, channels, processor, memory and link.

use std::io;

use storage::near::{HostRequest, Inside, Program, RequestId, Wake};
use storage::{Buffer, Geometry, Work};

use crate::request::RequestKind;
use crate::ssd::controller::Controller;
use crate::ssd::nand::Unit;
use crate::ssd::{Call, Owner, SsdEvent};

/// A read that a program started.
#[derive(Debug)]
pub(crate) struct InsideRead {
    program: u32,
    token: u64,
    buffer: Option<Buffer>,
    remaining: u32,
    error: Option<io::Error>,
}

/// Reads of programs by number; numbers are used again.
#[derive(Debug, Default)]
pub(crate) struct InsideReads {
    slots: Vec<Option<InsideRead>>,
    free: Vec<u32>,
}

impl InsideReads {
    fn add(&mut self, read: InsideRead) -> u32 {
        let number = self.free.pop().unwrap_or(self.slots.len() as u32);
        if number as usize == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[number as usize] = Some(read);
        number
    }

    /// A piece of a read has ended; gives what to call when it was the last.
    pub fn ended(&mut self, number: u32) -> Option<Call> {
        let slot = &mut self.slots[number as usize];
        let read = slot.as_mut().expect("a read that has not ended");
        read.remaining = read.remaining.saturating_sub(1);
        if read.remaining > 0 {
            return None;
        }
        let InsideRead { program, token, buffer, error, .. } = slot.take().expect("it is there");
        self.free.push(number);
        let buffer = buffer.expect("kept until the end");
        let result = error.map_or(Ok(buffer.len()), Err);
        Some(Call::Wake { program, wake: Wake::Read { token, buffer, result } })
    }
}

/// Calls a program.
pub(crate) fn run(controller: &mut Controller, programs: &mut [Box<dyn Program>], call: Call) {
    match call {
        Call::Wake { program, wake } => {
            programs[program as usize].wake(wake, &mut Seat { controller, program });
        }
        Call::Request { program, job } => {
            let state = controller.jobs.get(job);
            let (id, offset, len) = (RequestId(u64::from(job)), state.offset, state.len as usize);
            let kind = state.kind;
            // A write's bytes are lent; the buffer goes back to its job afterwards.
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

/// A program's place in the device.
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
        if offset >= controller.settings.capacity_bytes() {
            return 0;
        }
        let unit = Unit((offset / controller.settings.map_unit_bytes) as u32);
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
        let stretches = match &error {
            None => self.controller.stretches(offset, len),
            Some(_) => Vec::new(),
        };
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
        for stretch in stretches {
            if let Some(place) = stretch.place {
                self.controller.fetch(place, stretch.bytes, Owner::Inside { read });
            }
        }
    }

    fn work(&mut self, token: u64, work: &[Work]) {
        let now = self.controller.engine.now();
        let end = self.controller.processor.work(now, work).end;
        self.controller.engine.at(end, SsdEvent::Worked { program: self.program, token });
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
