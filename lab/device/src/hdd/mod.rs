//! A hard disk: arm, platters, zones, a buffer that reads ahead and may write behind, and a queue.
//!
//! ```text
//!   submit ─► command ─► buffer? ─yes──────────────────► link ─► completed
//!                          │ no                           ▲
//!                          ▼                              │
//!                        queue ─► seek ─► turn ─► transfer┘     one at a time: the arm
//! ```
//!
//! Times come from closed forms with few parameters, which are in docs/lab/device-model.md: the seek
//! curve through three figures of a data sheet (`seek`), the angle of each sector (`layout`), and
//! track and cylinder switches that a skew hides. The model leaves out thermal recalibration,
//! remapped sectors, vibration, and errors.

mod arm_queue;
mod buffer;
mod layout;
mod platters;
mod profile;
mod seek;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;

use merganser_storage::Geometry;
use slab::Slab;

use crate::device::{CompletedCommand, Component, Device, DeviceStatistics, IoCommand, Use};
use crate::request::{RequestKind, SimTime};
use crate::sim::{EventQueue, SimEvent};
use arm_queue::{ArmJob, ArmQueue};
use buffer::{BufferSegments, HeadStream};
use layout::{DiskLayout, SECTOR, TrackPosition};
use platters::Platters;
pub use profile::{ArmPolicy, HddParameter, HddProfile, HddSettings, hdd_parameters};
use seek::SeekCurve;

/// The events of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Happening {
    /// The firmware has decoded a command.
    Understood(usize),
    /// The arm has read or written a job's last sector.
    Transferred(usize),
    /// A command has ended.
    Ended(usize),
}

impl SimEvent for Happening {
    fn fingerprint(&self) -> u64 {
        let (kind, slot) = match *self {
            Happening::Understood(slot) => (1, slot),
            Happening::Transferred(slot) => (2, slot),
            Happening::Ended(slot) => (3, slot),
        };
        kind << 56 | slot as u64
    }
}

/// A command of the host, or a write from the buffer whose command has ended.
#[derive(Debug)]
struct Job {
    command: IoCommand,
    submitted: SimTime,
    /// The time at which it came into the queue.
    queued: SimTime,
    /// Whether the host has its answer.
    answered: bool,
    /// Its first sector, from then on.
    target: TrackPosition,
}

impl Job {
    fn new(command: IoCommand, submitted: SimTime) -> Job {
        Job {
            command,
            submitted,
            queued: submitted,
            answered: false,
            target: TrackPosition::default(),
        }
    }
}

/// A modelled hard disk.
pub struct Hdd {
    name: String,
    settings: HddSettings,
    layout: DiskLayout,
    read_seek: SeekCurve,
    write_seek: SeekCurve,
    engine: EventQueue<Happening>,
    /// All jobs that have not ended, by slot.
    jobs: Slab<Job>,
    /// Decoded commands that wait because the queue is full.
    outside: VecDeque<usize>,
    /// The jobs that wait for the arm.
    queue: ArmQueue,
    /// Host commands in the queue that have not ended.
    taken: u64,
    /// The job of the arm, and when its first sector began under the heads.
    working: Option<(usize, SimTime)>,
    /// The track under the arm.
    cylinder: u64,
    head: u64,
    link_free: SimTime,
    segments: BufferSegments,
    dirty_bytes: u64,
    /// Flushes that wait for the write buffer.
    flushes: Vec<usize>,
    platters: Platters,
    completed: VecDeque<CompletedCommand>,
    counts: DeviceStatistics,
    arm_busy_ns: u64,
    arm_services: u64,
    link_busy_ns: u64,
    link_services: u64,
}

impl Hdd {
    /// An idle disk with this profile.
    ///
    /// # Errors
    /// When its values do not fit together.
    pub fn new(profile: &HddProfile) -> Result<Self, crate::profile::ProfileError> {
        let settings = profile.settings.clone();
        settings.check()?;
        let layout = DiskLayout::new(&settings);
        let stroke = layout.cylinders().saturating_sub(1).max(1);
        let curve = |track, mean, full| SeekCurve::new(stroke, track, mean, full);
        let segments = BufferSegments::new(
            settings.buffer_segments as usize,
            settings.buffer_bytes / settings.buffer_segments / SECTOR,
        );
        Ok(Hdd {
            name: profile.name.to_owned(),
            read_seek: curve(
                settings.seek_track_read_ns,
                settings.seek_mean_read_ns,
                settings.seek_full_read_ns,
            ),
            write_seek: curve(
                settings.seek_track_write_ns,
                settings.seek_mean_write_ns,
                settings.seek_full_write_ns,
            ),
            layout,
            engine: EventQueue::new(0),
            jobs: Slab::new(),
            outside: VecDeque::new(),
            queue: ArmQueue::default(),
            taken: 0,
            working: None,
            cylinder: 0,
            head: 0,
            link_free: SimTime(0),
            segments,
            dirty_bytes: 0,
            flushes: Vec::new(),
            platters: Platters::new(),
            completed: VecDeque::new(),
            counts: DeviceStatistics::default(),
            arm_busy_ns: 0,
            arm_services: 0,
            link_busy_ns: 0,
            link_services: 0,
            settings,
        })
    }

    /// The sectors of a job: the first, and the end.
    fn sectors(&self, slot: usize) -> (u64, u64) {
        let IoCommand { offset, len, .. } = self.jobs[slot].command;
        (offset / SECTOR, (offset + len).div_ceil(SECTOR))
    }

    /// Takes commands while the queue has room.
    fn take(&mut self) {
        while self.taken < self.settings.queue_depth
            && let Some(slot) = self.outside.pop_front()
        {
            self.taken += 1;
            self.begin(slot);
        }
    }

    fn begin(&mut self, slot: usize) {
        let now = self.engine.now();
        let IoCommand { kind, len, .. } = self.jobs[slot].command;
        match kind {
            RequestKind::Trim => self.engine.at(now, Happening::Ended(slot)),
            RequestKind::Flush if self.dirty_bytes == 0 => {
                self.engine.at(now, Happening::Ended(slot));
            }
            RequestKind::Flush => self.flushes.push(slot),
            RequestKind::Read => {
                let (first, end) = self.sectors(slot);
                if self.segments.holds(first, end, now, &self.layout) || self.is_dirty(first, end) {
                    let done = self.cross_link(now, len);
                    self.engine.at(done, Happening::Ended(slot));
                } else {
                    self.wait(slot);
                }
            }
            RequestKind::Write => {
                let (first, end) = self.sectors(slot);
                self.segments.forget(first, end);
                // Writes get room in the buffer in the order of their arrival.
                if self.queue.oldest_write().is_none() {
                    self.cache(slot);
                }
                self.wait(slot);
            }
        }
    }

    /// Takes a write into the buffer, if there is room: the host gets its answer, and the job stays
    /// for the arm.
    fn cache(&mut self, slot: usize) -> bool {
        let len = self.jobs[slot].command.len;
        let fits = self.dirty_bytes + len <= self.settings.buffer_bytes;
        if self.settings.write_cache == 0 || !fits {
            return false;
        }
        self.dirty_bytes += len;
        let done = self.cross_link(self.engine.now(), len);
        self.answer_early(slot, done);
        true
    }

    /// Takes the writes that wait for room in the buffer, oldest first.
    fn cache_waiting(&mut self) {
        while let Some(slot) = self.queue.oldest_write()
            && self.cache(slot)
        {
            self.queue.answer(slot);
        }
    }

    /// Ends the host's command at `done`, while its job stays in the queue.
    fn answer_early(&mut self, slot: usize, done: SimTime) {
        let job = &mut self.jobs[slot];
        job.answered = true;
        let IoCommand { id, kind, offset, len, .. } = job.command;
        let buffer = job.command.buffer.take();
        let submitted = job.submitted;
        let command = IoCommand { id, kind, offset, len, buffer };
        let slot = self.jobs.insert(Job::new(command, submitted));
        self.engine.at(done, Happening::Ended(slot));
    }

    fn wait(&mut self, slot: usize) {
        let now = self.engine.now();
        let target = self.layout.target(self.sectors(slot).0);
        let job = &mut self.jobs[slot];
        (job.queued, job.target) = (now, target);
        let (kind, answered) = (job.command.kind, job.answered);
        if self.working.is_none() && self.queue.is_empty() {
            // There is nothing to choose from.
            return self.start(slot);
        }
        self.queue.push(slot, target, kind == RequestKind::Write, answered);
        self.work();
    }

    /// Whether one write that waits in the buffer covers a read.
    fn is_dirty(&self, first: u64, end: u64) -> bool {
        let covers = |slot: &usize| {
            let (from, to) = self.sectors(*slot);
            self.jobs[*slot].answered && from <= first && end <= to
        };
        let working = self.working.map(|(slot, _)| slot);
        self.dirty_bytes > 0
            && (self.queue.answered().any(|slot| covers(&slot)) || working.iter().any(covers))
    }

    /// The time at which `len` bytes that are ready at `ready` have crossed the link.
    fn cross_link(&mut self, ready: SimTime, len: u64) -> SimTime {
        let span = self.link_ns(len);
        let end = SimTime(ready.max(self.link_free).0 + span);
        self.link_free = end;
        self.link_busy_ns += span;
        self.link_services += 1;
        end
    }

    fn link_ns(&self, len: u64) -> u64 {
        let rate = u128::from(self.settings.link_bytes_per_second);
        (u128::from(len) * 1_000_000_000).div_ceil(rate) as u64
    }

    /// Starts the next job of the arm.
    fn work(&mut self) {
        if self.working.is_some() || self.queue.is_empty() {
            return;
        }
        let slot = self.choose();
        self.queue.remove(slot);
        self.start(slot);
    }

    /// Starts a job of the arm, which is idle.
    fn start(&mut self, slot: usize) {
        let now = self.engine.now();
        let (first, end) = self.sectors(slot);
        let IoCommand { kind, len, .. } = self.jobs[slot].command;
        let answered = self.jobs[slot].answered;
        let stream = self.segments.stream(now, &self.layout);
        let (media_first, media_end) = match stream.filter(|stream| stream.reaches(first, end)) {
            // The heads are reading toward it.
            Some(stream) if kind == RequestKind::Read => {
                (now, stream.end(end, &self.layout).max(now))
            }
            _ => {
                self.segments.interrupt(now, &self.layout);
                let ready = if kind == RequestKind::Write && !answered {
                    // A sector must have arrived before it is written; later sectors arrive in the
                    // meantime.
                    SimTime(self.jobs[slot].queued.0 + self.link_ns(SECTOR)).max(now)
                } else {
                    now
                };
                let start = self.arrival(now, ready, slot);
                (start, SimTime(start.0 + self.layout.transfer_ns(first, end)))
            }
        };
        self.working = Some((slot, media_first));
        self.arm_busy_ns += media_end.0 - now.0;
        self.arm_services += 1;
        let place = self.layout.place(end - 1);
        (self.cylinder, self.head) = (place.cylinder, place.head);
        if kind == RequestKind::Read {
            self.segments.read(first, end, media_end, self.settings.read_ahead == 1);
        } else if !answered {
            self.link_busy_ns += self.link_ns(len);
            self.link_services += 1;
        }
        self.engine.at(media_end, Happening::Transferred(slot));
    }

    /// The time at which the first sector of a job begins under the heads, after a seek and a turn.
    fn arrival(&self, now: SimTime, ready: SimTime, slot: usize) -> SimTime {
        let Job { target, ref command, .. } = self.jobs[slot];
        let way = self.position_ns(&target, command.kind == RequestKind::Write);
        let positioned = SimTime(now.0 + way).max(ready);
        let angle = self.layout.angle_ns(positioned);
        SimTime(positioned.0 + self.layout.wait_ns(&target, angle))
    }

    /// The time that the arm takes to the track of a sector.
    fn position_ns(&self, target: &TrackPosition, write: bool) -> u64 {
        let distance = target.cylinder.abs_diff(self.cylinder);
        let curve = if write { &self.write_seek } else { &self.read_seek };
        let switch = if target.head == self.head { 0 } else { self.settings.head_switch_ns };
        curve.seek_ns(distance).max(switch)
    }

    /// The next job of the arm.
    fn choose(&self) -> usize {
        let now = self.engine.now();
        // Patience is for commands whose host waits, not for writes in the buffer.
        let oldest = self.queue.oldest_unanswered();
        if let Some(slot) = oldest
            && now.0 - self.jobs[slot].queued.0 > self.settings.queue_patience_ns
        {
            return slot;
        }
        match self.settings.policy() {
            ArmPolicy::Fifo => self.queue.oldest().expect("not empty"),
            ArmPolicy::Seek => self.queue.nearest(
                self.cylinder,
                |distance| distance,
                |job| job.target.cylinder.abs_diff(self.cylinder),
            ),
            ArmPolicy::Position => {
                let [read, write] = [&self.read_seek, &self.write_seek];
                let least = |distance| read.seek_ns(distance).min(write.seek_ns(distance));
                let stream = self.segments.stream(now, &self.layout);
                if let Some(slot) = stream.and_then(|stream| self.next_of(&stream)) {
                    return slot;
                }
                let angle = self.layout.angle_ns(now);
                let cost = |job: &ArmJob| {
                    let way = self.position_ns(&job.target, job.write);
                    way + self.layout.wait_ns(&job.target, angle + way)
                };
                self.queue.nearest(self.cylinder, least, cost)
            }
        }
    }

    /// The oldest of the reads whose sectors the heads will reach soon.
    fn next_of(&self, stream: &HeadStream) -> Option<usize> {
        let last = stream.near.min(self.layout.sectors() - 1);
        let [from, to] = [stream.first, last].map(|sector| self.layout.place(sector).cylinder);
        self.queue.oldest_read(from, to, |slot| {
            let (first, end) = self.sectors(slot);
            stream.reaches(first, end)
        })
    }

    fn transferred(&mut self, slot: usize) {
        let (_, media_first) = self.working.take().expect("the arm worked");
        let IoCommand { kind, len, .. } = self.jobs[slot].command;
        if kind == RequestKind::Read {
            // Bytes cross the link while later sectors are read; the last sector crosses at the
            // end. The link is reserved only now, so that other transfers used it meanwhile.
            let now = self.engine.now();
            let whole = self.cross_link(media_first, len);
            let done = whole.max(SimTime(now.0 + self.link_ns(len.min(SECTOR))));
            self.link_free = done;
            self.engine.at(done, Happening::Ended(slot));
        }
        if kind == RequestKind::Write {
            if self.jobs[slot].answered {
                let job = self.jobs.remove(slot);
                self.dirty_bytes -= job.command.len;
                self.cache_waiting();
                if self.dirty_bytes == 0 {
                    let now = self.engine.now();
                    for flush in std::mem::take(&mut self.flushes) {
                        self.engine.at(now, Happening::Ended(flush));
                    }
                }
            } else {
                let now = self.engine.now();
                self.engine.at(now, Happening::Ended(slot));
            }
        }
        self.work();
    }

    fn ended(&mut self, slot: usize) {
        let job = self.jobs.remove(slot);
        let Job { command: IoCommand { id, kind, offset, len, mut buffer }, submitted, .. } = job;
        if let (RequestKind::Read, Some(buffer)) = (kind, &mut buffer) {
            self.platters.read(offset, buffer);
        }
        let moved = match kind {
            RequestKind::Read => {
                self.counts.reads += 1;
                self.counts.read_bytes += len;
                len
            }
            RequestKind::Write => {
                self.counts.writes += 1;
                self.counts.written_bytes += len;
                len
            }
            RequestKind::Trim | RequestKind::Flush => {
                self.counts.others += 1;
                0
            }
        };
        let at = self.engine.now();
        self.completed.push_back(CompletedCommand { id, submitted, at, buffer, result: Ok(moved) });
        self.taken -= 1;
        self.take();
    }

    /// Why a command can't be served.
    fn refusal(&self, command: &IoCommand) -> Option<io::Error> {
        let IoCommand { kind, offset, len, buffer, .. } = command;
        if *kind == RequestKind::Flush {
            return None;
        }
        let capacity = self.capacity_bytes();
        let why = if *len == 0 {
            "no bytes are asked for".to_owned()
        } else if offset.checked_add(*len).is_none_or(|end| end > capacity) {
            format!("{len} bytes at byte {offset}, but the device has {capacity}")
        } else if buffer.as_ref().is_some_and(|buffer| buffer.len() as u64 != *len) {
            "the buffer's length is not the request's".to_owned()
        } else {
            return None;
        };
        Some(io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {why}", self.name)))
    }
}

impl Device for Hdd {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity_bytes(&self) -> u64 {
        self.layout.sectors() * SECTOR
    }

    fn geometry(&self) -> Geometry {
        Geometry {
            page_bytes: 4096,
            best_io_bytes: 1 << 20,
            queue_depth: u32::try_from(self.settings.queue_depth).unwrap_or(u32::MAX),
            channels: 1,
            stripe_bytes: 0,
        }
    }

    fn trim_bytes(&self) -> Option<u64> {
        // No bytes move, so a trim takes no time; its effect is that of an SSD's trim.
        Some(platters::PAGE as u64)
    }

    fn now(&self) -> SimTime {
        self.engine.now()
    }

    fn submit(&mut self, at: SimTime, command: IoCommand) {
        if let Some(error) = self.refusal(&command) {
            let IoCommand { id, buffer, .. } = command;
            self.completed.push_back(CompletedCommand {
                id,
                submitted: at,
                at,
                buffer,
                result: Err(error),
            });
            return;
        }
        match (command.kind, &command.buffer) {
            (RequestKind::Write, Some(buffer)) => self.platters.write(command.offset, buffer),
            (RequestKind::Trim, _) => self.platters.forget(command.offset, command.len),
            _ => {}
        }
        let slot = self.jobs.insert(Job::new(command, at));
        let understood = SimTime(at.0 + self.settings.command_ns);
        self.engine.at(understood, Happening::Understood(slot));
    }

    fn next_at(&self) -> Option<SimTime> {
        self.engine.next_at()
    }

    fn advance(&mut self) -> bool {
        let Some(happening) = self.engine.next() else { return false };
        match happening {
            Happening::Understood(slot) => {
                self.outside.push_back(slot);
                self.take();
            }
            Happening::Transferred(slot) => self.transferred(slot),
            Happening::Ended(slot) => self.ended(slot),
        }
        true
    }

    fn completed(&mut self) -> Option<CompletedCommand> {
        self.completed.pop_front()
    }

    fn statistics(&self) -> DeviceStatistics {
        let part = |part, busy, services| Use { part, index: 0, busy: SimTime(busy), services };
        DeviceStatistics {
            uses: vec![
                part(Component::Link, self.link_busy_ns, self.link_services),
                part(Component::Spindle, self.arm_busy_ns, self.arm_services),
            ],
            digest: self.engine.digest(),
            events: self.engine.passed(),
            ..self.counts.clone()
        }
    }
}
