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
//!
//! With `reads_first`, reads of the host overtake other work that waits at their die, as long as none of
//! that work is on the block that they read, and for a limited number of reads in a row. With `suspend_ns`,
//! they interrupt a program or an erase, too, which then continues for the time that it had left:
//!
//! ```text
//!   program ───┐ suspend │ read │ read │ resume ┌─── the rest of the program
//! ```

use std::collections::VecDeque;

use crate::device::{Component, Use};
use crate::profile::SsdSettings;
use crate::request::SimTime;
use crate::sim::EventQueue;
use crate::ssd::event::{FlashEvent, Owner, SsdEvent};
use crate::ssd::nand::FlashBlock;
use crate::ssd::nand::divisor::Divisor;

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
    /// The block: a read waits for work on its own.
    pub block: FlashBlock,
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
    /// The end of the program or erase in progress. An event at another time is of one that was
    /// suspended.
    ends_at: Option<SimTime>,
    /// Work that was suspended, and the time that it has left.
    suspended: Option<(Vec<Op>, SimTime)>,
    /// The next read waits for the suspension.
    interrupted: bool,
    /// Reads of the host that were served in a row before other work.
    overtaken: u64,
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
    by_channel: Divisor,
    /// Sensing and programming, by the bit of a page's cells.
    read: [SimTime; 3],
    program: [SimTime; 3],
    cell_bits: u32,
    erase: SimTime,
    reads_first: u64,
    suspend: SimTime,
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
    // A division of 128 bits takes several times as long, and this one is done for each page.
    let nanobytes = bytes.checked_mul(1_000_000_000);
    if let Some(rounded) = nanobytes.and_then(|n| n.checked_add(bytes_per_second / 2)) {
        return rounded / bytes_per_second;
    }
    ((u128::from(bytes) * 1_000_000_000 + u128::from(bytes_per_second) / 2)
        / u128::from(bytes_per_second)) as u64
}

impl Flash {
    pub(crate) fn new(settings: &SsdSettings) -> Flash {
        let mut dies = Vec::new();
        dies.resize_with(settings.dies() as usize, Die::default);
        let mut channels = Vec::new();
        channels.resize_with(settings.channels as usize, Channel::default);
        Flash {
            dies,
            channels,
            by_channel: Divisor::new(settings.channels),
            read: [settings.read_ns, settings.read_2_ns, settings.read_3_ns].map(SimTime),
            program: [settings.program_ns, settings.program_2_ns, settings.program_3_ns]
                .map(SimTime),
            cell_bits: settings.cell_bits as u32,
            erase: SimTime(settings.erase_ns),
            reads_first: settings.reads_first,
            suspend: SimTime(settings.suspend_ns),
            overhead_ns: settings.channel_overhead_ns,
            bytes_per_second: settings.channel_bytes_per_second,
            ways: settings.ways as u32,
            multi_plane: settings.multi_plane == 1,
            interleaving: settings.interleaving == 1,
            counts: [0; 3],
        }
    }

    /// Consecutive dies are on different channels.
    pub(crate) fn channel_of(&self, die: u32) -> u32 {
        self.by_channel.remainder(die.into()) as u32
    }

    /// The channel of the die or of the page whose step ends.
    pub(crate) fn channel_of_step(&self, step: FlashEvent) -> u32 {
        match step {
            FlashEvent::Sensed { die } | FlashEvent::Settled { die } => self.channel_of(die),
            FlashEvent::Carried { channel } => channel,
        }
    }

    /// Counts an operation that will come to `die`, from the decision on.
    pub(crate) fn expect(&mut self, die: u32) {
        let channel = self.channel_of(die);
        self.channels[channel as usize].in_flight += 1;
    }

    /// Whether all dies of `channel` have work.
    pub(crate) fn is_busy(&self, channel: u32) -> bool {
        self.channels.get(channel as usize).is_some_and(|c| c.in_flight >= self.ways)
    }

    /// Queues an expected operation at its die.
    pub(crate) fn submit(&mut self, op: Op, engine: &mut EventQueue<SsdEvent>) {
        self.dies[op.die as usize].waiting.push_back(op);
        self.suspend(op.die, engine);
        self.start(op.die, engine);
    }

    /// The place in the queue of the read of the host that `die` serves before other work, if it does.
    fn first_read(&self, die: &Die) -> Option<usize> {
        if die.overtaken >= self.reads_first {
            return None;
        }
        let waiting = &die.waiting;
        let at = waiting
            .iter()
            .position(|op| op.kind == OpKind::Read && matches!(op.owner, Owner::Read { .. }))?;
        let block = waiting[at].block;
        let busy = die.working.iter().chain(die.suspended.iter().flat_map(|(ops, _)| ops));
        let mut others = waiting.iter().take(at).chain(busy);
        // Its page may be among those that are still to be programmed.
        others.all(|op| op.kind == OpKind::Read || op.block != block).then_some(at)
    }

    /// Suspends the program or erase of a die, if a read of the host may interrupt it.
    fn suspend(&mut self, index: u32, engine: &mut EventQueue<SsdEvent>) {
        let die = &self.dies[index as usize];
        let Some(ends_at) = die.ends_at else { return };
        let left = ends_at.0 - engine.now().0;
        // A suspension isn't worth it if the work ends sooner than it could be suspended and resumed.
        if self.suspend.0 == 0 || left <= 2 * self.suspend.0 || self.first_read(die).is_none() {
            return;
        }
        let die = &mut self.dies[index as usize];
        let ops = std::mem::take(&mut die.working);
        die.ends_at = None;
        die.suspended = Some((ops, SimTime(left)));
        die.interrupted = true;
        die.busy.0 += engine.now().0 - die.since.0;
    }

    /// The time to sense or program a page.
    fn of_page(&self, times: &[SimTime; 3], page: u32) -> SimTime {
        if self.cell_bits == 1 { times[0] } else { times[(page % self.cell_bits) as usize] }
    }

    /// Lets `die` work until `span` from now.
    fn end_after(&mut self, index: u32, span: SimTime, engine: &mut EventQueue<SsdEvent>) {
        self.dies[index as usize].ends_at = Some(SimTime(engine.now().0 + span.0));
        engine.after(span, SsdEvent::Flash(FlashEvent::Settled { die: index }));
    }

    /// Resumes the suspended work of `die`.
    fn resume(&mut self, index: u32, engine: &mut EventQueue<SsdEvent>) {
        let die = &mut self.dies[index as usize];
        let (ops, left) = die.suspended.take().expect("something is suspended");
        die.working = ops;
        die.since = engine.now();
        self.end_after(index, SimTime(self.suspend.0 + left.0), engine);
    }

    /// Starts the next operation of `die`, if possible.
    fn start(&mut self, index: u32, engine: &mut EventQueue<SsdEvent>) {
        let channel = self.channel_of(index) as usize;
        let die = &self.dies[index as usize];
        if !die.working.is_empty() || (die.waiting.is_empty() && die.suspended.is_none()) {
            return;
        }
        let read = self.first_read(die);
        if read.is_none() && die.suspended.is_some() {
            return self.resume(index, engine);
        }
        let die = &mut self.dies[index as usize];
        let interrupts = std::mem::take(&mut die.interrupted);
        if !self.interleaving {
            match self.channels[channel].held_by {
                Some(_) => return,
                None => self.channels[channel].held_by = Some(index),
            }
        }
        let at = read.unwrap_or(0);
        let before = at > 0 || die.suspended.is_some();
        die.overtaken = if before { die.overtaken + 1 } else { 0 };
        let first = die.waiting.remove(at).expect("something waits");
        die.working.push(first);
        if self.multi_plane && at == 0 {
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
        match first.kind {
            OpKind::Read => {
                self.counts[0] += count;
                let slowest = self.slowest_read(index);
                let wait = if interrupts { self.suspend.0 } else { 0 };
                let sensed = SsdEvent::Flash(FlashEvent::Sensed { die: index });
                engine.after(SimTime(wait + slowest.0), sensed);
            }
            OpKind::Program => {
                self.counts[1] += count;
                self.carry(index, engine);
            }
            OpKind::Erase => {
                self.counts[2] += count;
                self.end_after(index, self.erase, engine);
            }
            OpKind::CopyBack => {
                self.counts[0] += count;
                self.counts[1] += count;
                let program = self.of_page(&self.program, first.page);
                self.end_after(index, SimTime(self.slowest_read(index).0 + program.0), engine);
            }
        }
    }

    /// The time to sense the pages on which `die` works.
    fn slowest_read(&self, index: u32) -> SimTime {
        let ops = &self.dies[index as usize].working;
        let slowest = ops.iter().map(|op| self.of_page(&self.read, op.page)).max();
        slowest.expect("something works")
    }

    /// Lets the next page of `die` cross its channel, if the channel is free.
    fn carry(&mut self, index: u32, engine: &mut EventQueue<SsdEvent>) {
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
    pub(crate) fn event(
        &mut self,
        event: FlashEvent,
        engine: &mut EventQueue<SsdEvent>,
        done: &mut Vec<Owner>,
    ) {
        match event {
            FlashEvent::Sensed { die } => self.carry(die, engine),
            FlashEvent::Carried { channel } => self.carried(channel, engine, done),
            FlashEvent::Settled { die }
                if self.dies[die as usize].ends_at != Some(engine.now()) => {}
            FlashEvent::Settled { die } => {
                self.dies[die as usize].ends_at = None;
                done.extend(self.dies[die as usize].working.iter().map(|op| op.owner));
                self.finish(die, engine);
            }
        }
    }

    fn carried(&mut self, channel: u32, engine: &mut EventQueue<SsdEvent>, done: &mut Vec<Owner>) {
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
            self.end_after(index, self.of_page(&self.program, op.page), engine);
            // A read may have come while the page crossed the channel.
            self.suspend(index, engine);
            self.start(index, engine);
        }
    }

    /// `die` has completed its operations.
    fn finish(&mut self, index: u32, engine: &mut EventQueue<SsdEvent>) {
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
    pub(crate) fn uses(&self) -> impl Iterator<Item = Use> + '_ {
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
