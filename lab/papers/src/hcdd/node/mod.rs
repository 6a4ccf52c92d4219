//! A node: requests to an array or a volume on modelled devices, in virtual time.
//!
//! Foreground and migration overlap, as in a controller that has a processor for the migration. Reads
//! don't wait for writes that are held back.

mod buffer;

use std::collections::VecDeque;

use merganser_array::outline::{Outline, Step};
use merganser_array::{Migration, Role, Striping};
use merganser_device::device::DeviceStatistics;
use merganser_device::request::{DeviceRequest, RequestKind, SimTime};
use merganser_device::workload::ARRIVAL_NS_MAX;
pub use merganser_device::workload::SubmissionPace;

use super::jobs::{DeviceJobs, IssuedCommand, JobId};
use super::measured::ResponseTimes;
use super::setup::{NodeDevices, NodeSetup};

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

/// The subject of a job.
#[derive(Debug, Clone)]
enum JobSubject {
    /// One request.
    Request(RequestKind, SimTime),
    /// Requests that go into the log together.
    Log(Vec<(RequestKind, SimTime)>),
    Move,
}

/// A node with its devices.
pub struct HybridNode {
    jobs: DeviceJobs,
    outline: Option<Outline>,
    plain: Striping,
    volume_bytes: u64,
    migration: Migration,
    /// By job.
    flying: Vec<Option<JobSubject>>,
    requests_flying: usize,
    is_moving: bool,
    /// Writes and trims that wait for the log, in order.
    queue: VecDeque<DeviceRequest>,
    /// The first record of the log that is being written.
    writing: Option<u64>,
    last_arrival: SimTime,
    steps: Vec<Step>,
    ended: Vec<JobId>,
    measured: ResponseTimes,
    given: u64,
    before: Vec<DeviceStatistics>,
}

impl HybridNode {
    /// The node of `setup`; its volume was written before.
    ///
    /// # Errors
    /// A sentence about devices that can't be, or are too small.
    pub fn new(setup: &NodeSetup) -> Result<HybridNode, String> {
        let NodeDevices { devices, outline, striping, volume_bytes } = setup.make()?;
        let before = devices.iter().map(|device| device.statistics()).collect();
        let (data, stripings) = match &outline {
            None => (devices.len(), [striping; 2]),
            Some(outline) => {
                let both = [Role::Data, Role::Buffer].map(|role| outline.striping(role));
                (setup.members.0, both)
            }
        };
        Ok(HybridNode {
            jobs: DeviceJobs::new(devices, data, stripings, setup.hash_ns),
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
            measured: ResponseTimes::default(),
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
        requests: impl IntoIterator<Item = Result<DeviceRequest, E>>,
        pace: SubmissionPace,
    ) -> Result<ResponseTimes, NodeError<E>> {
        for request in requests {
            let request = request.map_err(NodeError::Requests)?;
            self.given += 1;
            self.check(&request)?;
            match pace {
                SubmissionPace::Open => self.pass_until(request.arrival)?,
                SubmissionPace::Closed(depth) => {
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

    fn finish(mut self) -> ResponseTimes {
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

    fn check<E>(&self, request: &DeviceRequest) -> Result<(), NodeError<E>> {
        let DeviceRequest { arrival, offset, len, .. } = *request;
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

    fn arrive<E>(&mut self, request: DeviceRequest) -> Result<(), NodeError<E>> {
        let arrival = self.jobs.now;
        self.last_arrival = arrival;
        let DeviceRequest { kind, offset, len, .. } = request;
        let job = match (&mut self.outline, kind) {
            (Some(_), RequestKind::Write | RequestKind::Trim) => {
                self.queue.push_back(DeviceRequest { arrival, ..request });
                return self.pump();
            }
            (Some(outline), RequestKind::Read) => {
                outline.read(offset, len, &mut self.steps);
                self.jobs.begin(&mut self.steps)
            }
            // Writes are durable when they end.
            (Some(_), RequestKind::Flush) => None,
            (None, RequestKind::Flush) => {
                let flush = |device| IssuedCommand { device, kind, offset: 0, len: 0 };
                self.jobs.begin_parts((0..self.plain.members).map(flush))
            }
            (None, _) => {
                let parts = self.plain.parts(offset, len);
                let part = |part: merganser_array::MemberPart| IssuedCommand {
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
                self.fly(job, JobSubject::Request(kind, arrival));
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

    fn fly(&mut self, job: JobId, flying: JobSubject) {
        if self.flying.len() <= job {
            self.flying.resize(job + 1, None);
        }
        self.flying[job] = Some(flying);
    }

    fn job_ended<E>(&mut self, job: JobId) -> Result<(), NodeError<E>> {
        match self.flying[job].take().expect("it began") {
            JobSubject::Request(kind, arrival) => {
                self.requests_flying -= 1;
                self.answered(kind, arrival);
                Ok(())
            }
            JobSubject::Log(requests) => {
                self.requests_flying -= requests.len();
                for (kind, arrival) in requests {
                    self.answered(kind, arrival);
                }
                self.writing = None;
                self.pump()
            }
            JobSubject::Move => {
                self.is_moving = false;
                self.outline.as_mut().expect("it moved").end_move();
                self.pump()
            }
        }
    }
}
