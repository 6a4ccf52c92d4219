//! The times of flash: dies work, and channels carry pages.
//!
//! ```text
//!   read      die: sense ─────► channel: page out ─► die is free
//!   program   channel: page in ─► die: program ────► die is free
//!   erase, move by copy-back      die: alone
//! ```
//!
//! A die does its operations in the order of their arrival and is held from the first step of an
//! operation to the last. While it senses, programs or erases, the channel serves its other dies
//! (interleaving). With multi-plane commands, an operation is joined by the operations of its kind
//! that follow it in the queue and are on other planes: they share the die's time and cross the
//! channel one after another. Without interleaving a die holds its channel for as long as it works.

use std::collections::VecDeque;

use crate::device::{Component, Use};
use crate::profile::SsdSettings;
use crate::request::SimTime;
use crate::sim::Engine;
use crate::ssd::event::{FlashEvent, Owner, SsdEvent};

/// The kind of an operation of a die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpKind {
    Read,
    Program,
    Erase,
    /// A move within a plane: sense, then program.
    CopyBack,
}

/// One operation of a die.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Op {
    pub kind: OpKind,
    pub die: u32,
    /// The plane within the die.
    pub plane: u32,
    /// The page within its block: planes program together only at the same page.
    pub page: u32,
    /// The number of bytes that cross the channel.
    pub bytes: u32,
    /// The owner, which waits for its end.
    pub owner: Owner,
}

#[derive(Debug, Default)]
struct Die {
    waiting: VecDeque<Op>,
    /// The operations in progress, at most one per plane.
    working: Vec<Op>,
    /// The number of those that have crossed the channel.
    carried: usize,
    since: SimTime,
    busy: SimTime,
    services: u64,
}

#[derive(Debug, Default)]
struct Channel {
    /// The dies that wait to carry a page.
    waiting: VecDeque<u32>,
    /// The die whose page crosses the channel.
    carrying: Option<u32>,
    /// Without interleaving: the die that works.
    held_by: Option<u32>,
    busy: SimTime,
    services: u64,
    /// Operations that have not ended.
    in_flight: u32,
}

/// All dies and channels.
#[derive(Debug)]
pub(crate) struct Flash {
    dies: Vec<Die>,
    channels: Vec<Channel>,
    read: SimTime,
    program: SimTime,
    erase: SimTime,
    overhead_ns: u64,
    bytes_per_second: u64,
    ways: u32,
    multi_plane: bool,
    interleaving: bool,
    /// Pages sensed and programmed, blocks erased.
    pub counts: [u64; 3],
}

/// The time that `bytes` take, rounded to the nearest nanosecond.
pub(crate) fn carry_ns(bytes: u64, bytes_per_second: u64) -> u64 {
    ((u128::from(bytes) * 1_000_000_000 + u128::from(bytes_per_second) / 2)
        / u128::from(bytes_per_second)) as u64
}

impl Flash {
    pub fn new(settings: &SsdSettings) -> Flash {
        let mut dies = Vec::new();
        dies.resize_with(settings.dies() as usize, Die::default);
        let mut channels = Vec::new();
        channels.resize_with(settings.channels as usize, Channel::default);
        Flash {
            dies,
            channels,
            read: SimTime(settings.read_ns),
            program: SimTime(settings.program_ns),
            erase: SimTime(settings.erase_ns),
            overhead_ns: settings.channel_overhead_ns,
            bytes_per_second: settings.channel_bytes_per_second,
            ways: settings.ways as u32,
            multi_plane: settings.multi_plane == 1,
            interleaving: settings.interleaving == 1,
            counts: [0; 3],
        }
    }

    /// Consecutive dies are on different channels.
    pub fn channel_of(&self, die: u32) -> u32 {
        die % self.channels.len() as u32
    }

    /// Counts an operation that will come to `die`, from the decision on.
    pub fn expect(&mut self, die: u32) {
        let channel = self.channel_of(die);
        self.channels[channel as usize].in_flight += 1;
    }

    /// Whether all dies of `channel` have work.
    pub fn is_busy(&self, channel: u32) -> bool {
        self.channels.get(channel as usize).is_some_and(|c| c.in_flight >= self.ways)
    }

    /// Queues an expected operation at its die.
    pub fn submit(&mut self, op: Op, engine: &mut Engine<SsdEvent>) {
        self.dies[op.die as usize].waiting.push_back(op);
        self.start(op.die, engine);
    }

    /// Starts the next operation of `die`, if possible.
    fn start(&mut self, index: u32, engine: &mut Engine<SsdEvent>) {
        let channel = self.channel_of(index) as usize;
        let die = &mut self.dies[index as usize];
        if !die.working.is_empty() || die.waiting.is_empty() {
            return;
        }
        if !self.interleaving {
            match self.channels[channel].held_by {
                Some(_) => return,
                None => self.channels[channel].held_by = Some(index),
            }
        }
        let first = die.waiting.pop_front().expect("something waits");
        die.working.push(first);
        if self.multi_plane {
            while let Some(next) = die.waiting.front() {
                let together = next.kind == first.kind
                    && die.working.iter().all(|op| op.plane != next.plane)
                    && (first.kind != OpKind::Program || next.page == first.page);
                if !together {
                    break;
                }
                die.working.extend(die.waiting.pop_front());
            }
        }
        die.carried = 0;
        die.since = engine.now();
        die.services += 1;
        let count = die.working.len() as u64;
        let event = |engine: &mut Engine<SsdEvent>, span, event| {
            engine.after(span, SsdEvent::Flash(event));
        };
        match first.kind {
            OpKind::Read => {
                self.counts[0] += count;
                event(engine, self.read, FlashEvent::Sensed { die: index });
            }
            OpKind::Program => {
                self.counts[1] += count;
                self.carry(index, engine);
            }
            OpKind::Erase => {
                self.counts[2] += count;
                event(engine, self.erase, FlashEvent::Settled { die: index });
            }
            OpKind::CopyBack => {
                self.counts[0] += count;
                self.counts[1] += count;
                let span = SimTime(self.read.0 + self.program.0);
                event(engine, span, FlashEvent::Settled { die: index });
            }
        }
    }

    /// Lets the next page of `die` cross its channel, if the channel is free.
    fn carry(&mut self, index: u32, engine: &mut Engine<SsdEvent>) {
        let channel = self.channel_of(index);
        let state = &mut self.channels[channel as usize];
        if state.carrying.is_some() {
            state.waiting.push_back(index);
            return;
        }
        let die = &self.dies[index as usize];
        let bytes = u64::from(die.working[die.carried].bytes);
        let span = SimTime(self.overhead_ns + carry_ns(bytes, self.bytes_per_second));
        state.carrying = Some(index);
        state.busy.0 += span.0;
        state.services += 1;
        engine.after(span, SsdEvent::Flash(FlashEvent::Carried { channel }));
    }

    /// A step has ended: continues with the next one, and adds the owners of completed operations
    /// to `done`.
    pub fn event(
        &mut self,
        event: FlashEvent,
        engine: &mut Engine<SsdEvent>,
        done: &mut Vec<Owner>,
    ) {
        match event {
            FlashEvent::Sensed { die } => self.carry(die, engine),
            FlashEvent::Carried { channel } => self.carried(channel, engine, done),
            FlashEvent::Settled { die } => {
                done.extend(self.dies[die as usize].working.iter().map(|op| op.owner));
                self.finish(die, engine);
            }
        }
    }

    fn carried(&mut self, channel: u32, engine: &mut Engine<SsdEvent>, done: &mut Vec<Owner>) {
        let index = self.channels[channel as usize].carrying.take().expect("it carried a page");
        let die = &mut self.dies[index as usize];
        let op = die.working[die.carried];
        die.carried += 1;
        let more = die.carried < die.working.len();
        if more {
            self.channels[channel as usize].waiting.push_back(index);
        }
        // Others that waited for the channel go first.
        if let Some(next) = self.channels[channel as usize].waiting.pop_front() {
            self.carry(next, engine);
        }
        if op.kind == OpKind::Read {
            done.push(op.owner);
            if !more {
                self.finish(index, engine);
            }
        } else if !more {
            engine.after(self.program, SsdEvent::Flash(FlashEvent::Settled { die: index }));
        }
    }

    /// `die` has completed its operations.
    fn finish(&mut self, index: u32, engine: &mut Engine<SsdEvent>) {
        let channel = self.channel_of(index) as usize;
        let die = &mut self.dies[index as usize];
        die.busy.0 += engine.now().0 - die.since.0;
        self.channels[channel].in_flight -= die.working.len() as u32;
        die.working.clear();
        if self.interleaving {
            self.start(index, engine);
            return;
        }
        // The channel's dies take turns.
        self.channels[channel].held_by = None;
        let count = self.channels.len() as u32;
        for turn in 1..=self.ways {
            let next = (index / count + turn) % self.ways * count + channel as u32;
            self.start(next, engine);
        }
    }

    /// The work of each component.
    pub fn uses(&self) -> impl Iterator<Item = Use> + '_ {
        let channels = (0..).zip(&self.channels).map(|(index, channel)| Use {
            part: Component::Channel,
            index,
            busy: channel.busy,
            services: channel.services,
        });
        let dies = (0..).zip(&self.dies).map(|(index, die)| Use {
            part: Component::Die,
            index,
            busy: die.busy,
            services: die.services,
        });
        channels.chain(dies)
    }
}
