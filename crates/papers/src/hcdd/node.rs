//! A node: requests to an array or a volume on modelled devices, in virtual time.
//!
//! Foreground and migration overlap, as in a controller that has a processor for the migration. Reads
//! don't wait for writes that are held back.

use std::collections::VecDeque;

use merganser_array::outline::{Outline, Room, Step, Write};
use merganser_array::{Migration, Role, Striping};
use merganser_device::device::Statistics;
use merganser_device::request::{Request, RequestKind, SimTime};
use merganser_device::workload::ARRIVAL_NS_MAX;
pub use merganser_device::workload::Pace;

use super::jobs::{JobId, Jobs, Part};
use super::measured::Measured;
use super::setup::{Made, Setup};

/// How long no request must have come before pages move, for [`Migration::Idle`].
const IDLE_NS: u64 = 200_000_000;

/// Why requests were not served.
#[derive(Debug, thiserror::Error)]
pub enum NodeError<E> {
    /// The requests could not be read.
    #[error(transparent)]
    Requests(E),
    /// A request is beyond the end of the volume, or comes too late to be modelled.
    #[error("request {number} ({len} bytes at byte {offset}): {why}")]
    Request {
        /// Counted from 1.
        number: u64,
        /// Its first byte.
        offset: u64,
        /// Its bytes.
        len: u64,
        /// The reason.
        why: String,
    },
    /// The node has no room, or a device refused a command.
    #[error("{0}")]
    Model(String),
}

/// Pages that go into the log together at most, of requests that came while it was busy.
const TOGETHER_PAGES: u64 = 1024;

/// The subject of a job.
#[derive(Debug, Clone)]
enum Flying {
    /// One request.
    Request(RequestKind, SimTime),
    /// Requests that go into the log together.
    Log(Vec<(RequestKind, SimTime)>),
    Move,
}

/// A node with its devices.
pub struct Node {
    jobs: Jobs,
    outline: Option<Outline>,
    plain: Striping,
    volume_bytes: u64,
    migration: Migration,
    /// By job.
    flying: Vec<Option<Flying>>,
    requests_flying: usize,
    is_moving: bool,
    /// Writes and trims that wait for the log, in order.
    queue: VecDeque<Request>,
    /// The first record of the log that is being written.
    writing: Option<u64>,
    last_arrival: SimTime,
    steps: Vec<Step>,
    ended: Vec<JobId>,
    measured: Measured,
    given: u64,
    before: Vec<Statistics>,
}

impl Node {
    /// The node of `setup`; its volume was written before.
    ///
    /// # Errors
    /// A sentence about devices that can't be, or are too small.
    pub fn new(setup: &Setup) -> Result<Node, String> {
        let Made { devices, outline, striping, volume_bytes } = setup.make()?;
        let before = devices.iter().map(|device| device.statistics()).collect();
        let (data, stripings) = match &outline {
            None => (devices.len(), [striping; 2]),
            Some(outline) => {
                let both = [Role::Data, Role::Buffer].map(|role| outline.striping(role));
                (setup.members.0, both)
            }
        };
        Ok(Node {
            jobs: Jobs::new(devices, data, stripings, setup.hash_ns),
            outline,
            plain: striping,
            volume_bytes,
            migration: setup.migration,
            flying: Vec::new(),
            requests_flying: 0,
            is_moving: false,
            queue: VecDeque::new(),
            writing: None,
            last_arrival: SimTime(0),
            steps: Vec::new(),
            ended: Vec::new(),
            measured: Measured::default(),
            given: 0,
            before,
        })
    }

    /// Bytes that requests can address.
    #[must_use]
    pub fn volume_bytes(&self) -> u64 {
        self.volume_bytes
    }

    /// Plays `requests`, and moves all pages to the SSDs afterwards, unless pages move only above the
    /// high-water mark.
    ///
    /// # Errors
    /// When a request can't be read or served.
    pub fn play<E>(
        mut self,
        requests: impl IntoIterator<Item = Result<Request, E>>,
        pace: Pace,
    ) -> Result<Measured, NodeError<E>> {
        for request in requests {
            let request = request.map_err(NodeError::Requests)?;
            self.given += 1;
            self.check(&request)?;
            match pace {
                Pace::Open => self.pass_until(request.arrival)?,
                Pace::Closed(depth) => {
                    while self.requests_flying + self.queue.len() >= depth.max(1) as usize {
                        self.step()?;
                    }
                }
            }
            self.arrive(request)?;
        }
        while self.requests_flying > 0 || !self.queue.is_empty() {
            self.step()?;
        }
        self.measured.elapsed = self.jobs.now;
        let drains = self.migration != Migration::HighWater;
        while self.is_moving || (drains && self.outline.as_ref().is_some_and(Outline::has_records))
        {
            if !self.is_moving && !self.begin_move()? {
                break;
            }
            self.step()?;
        }
        Ok(self.finish())
    }

    fn finish(mut self) -> Measured {
        self.measured.drained = self.jobs.now;
        self.measured.hashed_ns = self.jobs.hashed_ns;
        self.measured.counters = self.outline.as_ref().map(Outline::counters);
        for (device, before) in self.jobs.devices.iter().zip(&self.before) {
            let after = device.statistics();
            match after.flash {
                Some(_) => self.measured.add_ssd(before, &after),
                None => self.measured.hdd_bytes += after.written_bytes - before.written_bytes,
            }
        }
        self.measured
    }

    fn check<E>(&self, request: &Request) -> Result<(), NodeError<E>> {
        let Request { arrival, offset, len, .. } = *request;
        let refuse = |why| Err(NodeError::Request { number: self.given, offset, len, why });
        if arrival.0 > ARRIVAL_NS_MAX {
            return refuse(format!("it arrives {} ns after the start", arrival.0));
        }
        match offset.checked_add(len) {
            Some(end) if end <= self.volume_bytes => Ok(()),
            _ => refuse(format!("the volume has {} bytes", self.volume_bytes)),
        }
    }

    /// Lets time pass until `at`.
    fn pass_until<E>(&mut self, at: SimTime) -> Result<(), NodeError<E>> {
        while let Some((next, _)) = self.next_at()
            && next <= at
        {
            self.step()?;
        }
        self.jobs.now = self.jobs.now.max(at);
        Ok(())
    }

    /// The next event of a device or the processor, or the end of a time without requests.
    fn next_at(&self) -> Option<(SimTime, Option<usize>)> {
        let next = self.jobs.next_at().map(|(at, who)| (at, Some(who)));
        if self.migration != Migration::Idle || self.is_moving || !self.can_move() {
            return next;
        }
        let idle = SimTime(self.last_arrival.0 + IDLE_NS).max(self.jobs.now);
        match next {
            Some((at, _)) if at <= idle => next,
            _ => Some((idle, None)),
        }
    }

    fn step<E>(&mut self) -> Result<(), NodeError<E>> {
        match self.next_at() {
            Some((at, Some(who))) => {
                let mut ended = std::mem::take(&mut self.ended);
                self.jobs.advance((at, who), &mut ended).map_err(NodeError::Model)?;
                for job in ended.drain(..) {
                    self.job_ended(job)?;
                }
                self.ended = ended;
                Ok(())
            }
            Some((at, None)) => {
                self.jobs.now = at;
                self.begin_move()?;
                Ok(())
            }
            None => Err(NodeError::Model("the devices have lost a request".to_owned())),
        }
    }

    fn arrive<E>(&mut self, request: Request) -> Result<(), NodeError<E>> {
        let arrival = self.jobs.now;
        self.last_arrival = arrival;
        let Request { kind, offset, len, .. } = request;
        let job = match (&mut self.outline, kind) {
            (Some(_), RequestKind::Write | RequestKind::Trim) => {
                self.queue.push_back(Request { arrival, ..request });
                return self.pump();
            }
            (Some(outline), RequestKind::Read) => {
                outline.read(offset, len, &mut self.steps);
                self.jobs.begin(&mut self.steps)
            }
            // Writes are durable when they end.
            (Some(_), RequestKind::Flush) => None,
            (None, RequestKind::Flush) => {
                let flush = |device| Part { device, kind, offset: 0, len: 0 };
                self.jobs.begin_parts((0..self.plain.members).map(flush))
            }
            (None, _) => {
                let parts = self.plain.parts(offset, len);
                let part = |part: merganser_array::Part| Part {
                    device: part.member,
                    kind,
                    offset: part.offset,
                    len: part.len,
                };
                self.jobs.begin_parts(parts.map(part))
            }
        };
        match job {
            Some(job) => {
                self.requests_flying += 1;
                self.fly(job, Flying::Request(kind, arrival));
            }
            None => self.answered(kind, arrival),
        }
        Ok(())
    }

    fn answered(&mut self, kind: RequestKind, arrival: SimTime) {
        let response_ns = self.jobs.now.0 - arrival.0;
        let class = match kind {
            RequestKind::Read => &mut self.measured.reads,
            RequestKind::Write => &mut self.measured.writes,
            RequestKind::Trim | RequestKind::Flush => &mut self.measured.others,
        };
        class.record(response_ns);
    }

    /// Passes the requests that wait to the log, if it isn't busy and has room, and moves pages if it is
    /// time to.
    fn pump<E>(&mut self) -> Result<(), NodeError<E>> {
        while self.writing.is_none() && !self.queue.is_empty() {
            let Some(outline) = &mut self.outline else { return Ok(()) };
            let count = together(&self.queue, outline);
            if count == 0 {
                self.measured.held += 1;
                if !self.is_moving && !self.begin_move()? {
                    let text = "a request is larger than the buffer of the node has room for";
                    return Err(NodeError::Model(text.to_owned()));
                }
                return Ok(());
            }
            let first = outline.next_record();
            let requests: Vec<Request> = self.queue.drain(..count).collect();
            if requests[0].kind == RequestKind::Trim {
                outline.trim(requests[0].offset, requests[0].len, &mut self.steps);
            } else {
                let of = |&Request { offset, len, content, .. }: &Request| Write {
                    offset,
                    len,
                    content,
                };
                let writes: Vec<Write> = requests.iter().map(of).collect();
                outline.write(&writes, &mut self.steps);
            }
            let requests: Vec<_> =
                requests.iter().map(|request| (request.kind, request.arrival)).collect();
            if let Some(job) = self.jobs.begin(&mut self.steps) {
                self.writing = Some(first);
                self.requests_flying += count;
                self.fly(job, Flying::Log(requests));
            } else {
                // A trim of less than a page.
                for (kind, arrival) in requests {
                    self.answered(kind, arrival);
                }
            }
        }
        self.moves_at_once()
    }

    fn moves_at_once<E>(&mut self) -> Result<(), NodeError<E>> {
        if self.migration == Migration::Immediate && !self.is_moving {
            self.begin_move()?;
        }
        Ok(())
    }

    fn fly(&mut self, job: JobId, flying: Flying) {
        if self.flying.len() <= job {
            self.flying.resize(job + 1, None);
        }
        self.flying[job] = Some(flying);
    }

    fn job_ended<E>(&mut self, job: JobId) -> Result<(), NodeError<E>> {
        match self.flying[job].take().expect("it began") {
            Flying::Request(kind, arrival) => {
                self.requests_flying -= 1;
                self.answered(kind, arrival);
                Ok(())
            }
            Flying::Log(requests) => {
                self.requests_flying -= requests.len();
                for (kind, arrival) in requests {
                    self.answered(kind, arrival);
                }
                self.writing = None;
                self.pump()
            }
            Flying::Move => {
                self.is_moving = false;
                self.outline.as_mut().expect("it moved").end_move();
                self.pump()
            }
        }
    }

    /// The record before which all are written.
    fn end_of_written(&self) -> u64 {
        let next = || self.outline.as_ref().map_or(0, Outline::next_record);
        self.writing.unwrap_or_else(next)
    }

    /// Whether records are written and have not moved.
    fn can_move(&self) -> bool {
        self.outline.as_ref().is_some_and(|it| it.first_record() < self.end_of_written())
    }

    /// Begins to move pages. False if none can move now.
    fn begin_move<E>(&mut self) -> Result<bool, NodeError<E>> {
        let end = self.end_of_written();
        let Some(outline) = &mut self.outline else { return Ok(false) };
        let moved = outline.begin_move(end);
        match moved.map_err(|error| NodeError::Model(error.to_string()))? {
            None => Ok(false),
            Some(mut steps) => {
                let job = self.jobs.begin(&mut steps).expect("it reads the log");
                self.is_moving = true;
                self.fly(job, Flying::Move);
                Ok(true)
            }
        }
    }
}

/// How many of the first requests go into the log together; 0 if there is no room.
fn together(queue: &VecDeque<Request>, outline: &Outline) -> usize {
    let (mut count, mut pages) = (0, 0);
    for request in queue {
        let is_trim = request.kind == RequestKind::Trim;
        let own = if is_trim { 0 } else { request.len.div_ceil(4096) + 1 };
        let has_room = outline.room(count as u64 + 1, pages + own) == Room::Enough;
        if !has_room || (count > 0 && (is_trim || pages + own > TOGETHER_PAGES)) {
            break;
        }
        (count, pages) = (count + 1, pages + own);
        if is_trim {
            break;
        }
    }
    count
}
