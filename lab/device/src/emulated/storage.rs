//! The storage that programs see.

use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread::JoinHandle;

use merganser_storage::thread::spawn;
use merganser_storage::{Clock, Collect, Completion, Completions, Geometry, Operation, Storage};
use parking_lot::{Condvar, Mutex};

use super::hasher::Hasher;
use super::observer::Observer;
use super::pacer::{self, EmulatedArrival, Finished};
use super::slow_clock::SlowClock;
use super::{EmulationLag, ServedRequest};
use crate::device::Device;
use crate::request::{ContentHash, DeviceRequest, RequestKind, SimTime};
use crate::results::{DevicePower, DeviceResults};

/// The emulated device, and the storage of its data.
pub struct EmulatedOptions {
    /// The model; its own data are not used.
    pub device: Box<dyn Device>,
    /// The data. Its size is the size of the emulated device, and does not change.
    pub backing: Arc<dyn Storage>,
    /// The time that the path from a program to [`Storage::submit`] and back takes on the wall clock: each request
    /// counts as having arrived that much earlier, though not before what the model has already done.
    pub path: PathTime,
    /// The thread that keeps the time does not sleep when the next event is nearer than this, in nanoseconds. A
    /// longer time takes more of a processor, and reduces the lag on a machine that wakes threads late.
    pub spin_ns: u64,
    /// The seconds of the wall clock for one second of the model; 1 is real time. All other times are then
    /// the model's: a program that runs for 40 s on a disk that is 4 times as slow would run for 10 s on the disk,
    /// with a machine that is 4 times as fast.
    pub slower: NonZeroU32,
    /// The power of the model's components.
    pub power: DevicePower,
    /// Gets every request that was answered.
    pub observer: Option<Observer>,
    /// Hashes the written pages, for the observer, in a thread of its own: it takes no time of the model
    /// or of the thread that submits. It delays the real writes.
    pub hash: Option<ContentHash>,
}

/// The time of the path that is no part of the emulated device: calls, wake-ups, and copies of the bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathTime {
    /// Nanoseconds of each request.
    pub fixed_ns: u64,
    /// Nanoseconds more of each MiB that is read.
    pub read_ns_per_mib: u64,
    /// Nanoseconds more of each MiB that is written.
    pub write_ns_per_mib: u64,
}

impl PathTime {
    fn of(self, request: &DeviceRequest) -> u64 {
        let ns_per_mib = match request.kind {
            RequestKind::Read => self.read_ns_per_mib,
            RequestKind::Write => self.write_ns_per_mib,
            RequestKind::Trim | RequestKind::Flush => 0,
        };
        let copying = (u128::from(request.len) * u128::from(ns_per_mib)) >> 20;
        self.fixed_ns.saturating_add(u64::try_from(copying).unwrap_or(u64::MAX))
    }
}

/// Enough for a machine that wakes threads soon, and little of a processor ([`EmulatedOptions::spin_ns`]).
pub const SPIN_NS: u64 = 20_000;

/// The end of an emulation.
#[derive(Debug, Clone)]
pub struct EmulationResults {
    /// The model's results: latencies are the model's own.
    pub results: DeviceResults,
    /// How late the answers were.
    pub lag: EmulationLag,
}

/// A modelled device in real time. See the module for what it does.
pub struct Emulated {
    name: String,
    size: u64,
    geometry: Geometry,
    backing: Arc<dyn Storage>,
    shared: Arc<EmulationShared>,
    pacer: Mutex<Option<JoinHandle<Finished>>>,
    power: DevicePower,
    hasher: Option<Hasher>,
}

/// What requests, the pacer and the backing storage's threads share.
pub(super) struct EmulationShared {
    pub state: Mutex<EmulationState>,
    /// An arrival, or the end.
    pub changed: Condvar,
    pub clock: SlowClock,
    /// In the time of the wall.
    path: PathTime,
    /// In the time of the wall.
    pub spin_ns: u64,
    pub observer: Option<Observer>,
}

#[derive(Default)]
pub(super) struct EmulationState {
    /// In the order of their times.
    pub arrivals: Vec<EmulatedArrival>,
    pub flights: slab::Slab<EmulatedRequest>,
    pub lag: EmulationLag,
    pub closed: bool,
    next_number: u64,
}

/// A request that has not been answered.
pub(super) struct EmulatedRequest {
    token: u64,
    completions: Completions,
    number: u64,
    pub request: DeviceRequest,
    depth: u32,
    /// The end of the real operation.
    real: Option<Completion>,
    /// The end of the modelled one, in nanoseconds of the clock.
    modelled_ns: Option<u64>,
}

/// A request that may be answered.
pub(super) struct DueAnswer {
    flight: EmulatedRequest,
    completion: Completion,
}

impl Emulated {
    /// Starts the emulation: its time begins now.
    ///
    /// # Errors
    /// A backing storage that is larger than the device, or no thread.
    pub fn start(options: EmulatedOptions) -> io::Result<Arc<Emulated>> {
        let EmulatedOptions { device, backing, path, spin_ns, slower, power, observer, hash } =
            options;
        let (size, capacity) = (backing.size(), device.capacity_bytes());
        let name = format!("emulated {}", device.name());
        if size > capacity {
            let why = format!("{}: {size} bytes, but {name} has {capacity}", backing.name());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let geometry = device.geometry();
        let shared = Arc::new(EmulationShared {
            state: Mutex::default(),
            changed: Condvar::new(),
            clock: SlowClock::new(slower),
            path,
            spin_ns,
            observer,
        });
        // Before the pacer, which would run forever if this failed. A hasher that is dropped ends.
        let hasher = match hash {
            Some(hash) => Some(Hasher::start(hash, &shared, &backing)?),
            None => None,
        };
        let theirs = Arc::clone(&shared);
        let pacer = spawn("pacer", move || pacer::run(device, &theirs))?;
        let pacer = Mutex::new(Some(pacer));
        Ok(Arc::new(Emulated { name, size, geometry, backing, shared, pacer, power, hasher }))
    }

    /// Ends the emulation and returns its results. Requests in flight are still answered when their
    /// real operations have ended, whatever the model says; later requests fail.
    ///
    /// # Panics
    /// When called twice.
    pub fn end(&self) -> EmulationResults {
        let pacer = self.pacer.lock().take().expect("an emulation ends once");
        self.shared.state.lock().closed = true;
        self.shared.changed.notify_all();
        let Finished { device, collector, played } =
            pacer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let results = collector.finish(&*device, played, &self.power);
        let lag = self.shared.state.lock().lag.clone();
        EmulationResults { results, lag }
    }

    /// The request of an operation, or why it cannot be.
    fn request(&self, operation: &Operation) -> io::Result<DeviceRequest> {
        let (kind, offset, len) = match operation {
            Operation::Read { offset, buffer } => {
                // A read ends where the storage ends.
                let rest = self.size.saturating_sub(*offset);
                (RequestKind::Read, *offset, rest.min(buffer.len() as u64))
            }
            Operation::Write { offset, buffer } => {
                (RequestKind::Write, *offset, buffer.len() as u64)
            }
            Operation::Discard { offset, len } => (RequestKind::Trim, *offset, *len),
            Operation::Sync => (RequestKind::Flush, 0, 0),
            Operation::Allocate { .. } | Operation::SetSize { .. } => {
                let why = format!("{}: a device keeps its size", self.name);
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
        };
        if offset.checked_add(len).is_none_or(|end| end > self.size) && len > 0 {
            let why = format!(
                "{}: {len} bytes at byte {offset}, but it has {} bytes",
                self.name, self.size
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(DeviceRequest { arrival: SimTime(0), kind, offset, len, content: None })
    }
}

impl Storage for Emulated {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.backing.clock()
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        let refuse = |error, operation| {
            let buffer = match operation {
                Operation::Read { buffer, .. } | Operation::Write { buffer, .. } => Some(buffer),
                _ => None,
            };
            completions.post(Completion { token, buffer, result: Err(error) });
        };
        let request = match self.request(&operation) {
            Ok(request) => request,
            Err(error) => return refuse(error, operation),
        };
        if request.len == 0 && request.kind != RequestKind::Flush {
            // A device gets no request for no bytes.
            return self.backing.submit(token, operation, completions);
        }
        match self.shared.arrive(token, request, completions) {
            Some(slot) => {
                // The request has arrived already. Its flight is there until the real operation ends.
                match &self.hasher {
                    Some(hasher) if matches!(operation, Operation::Write { .. }) => {
                        hasher.write(slot, operation);
                    }
                    _ => self.shared.begin(&*self.backing, slot, operation),
                }
            }
            None => refuse(io::Error::other(format!("{}: has ended", self.name)), operation),
        }
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        if self.pacer.lock().is_some() {
            let _ = self.end();
        }
    }
}

/// The end of a real operation, to be matched with the modelled end.
struct Real {
    shared: Arc<EmulationShared>,
    slot: usize,
}

impl Collect for Real {
    fn arrived(&self, completion: Completion) {
        let mut state = self.shared.state.lock();
        state.flights[self.slot].real = Some(completion);
        let answer = state.answerable(self.slot);
        drop(state);
        if let Some(answer) = answer {
            self.shared.answer(answer, true);
        }
    }
}

impl EmulationState {
    /// Says that the model got a request at `from_ns` and ended it at `at_ns`; the request, if its
    /// real operation has ended, too.
    pub fn modelled(&mut self, slot: usize, from_ns: u64, at_ns: u64) -> Option<DueAnswer> {
        let flight = &mut self.flights[slot];
        flight.request.arrival = SimTime(from_ns);
        flight.modelled_ns = Some(at_ns);
        self.answerable(slot)
    }

    fn answerable(&mut self, slot: usize) -> Option<DueAnswer> {
        let flight = &mut self.flights[slot];
        flight.modelled_ns?;
        let completion = flight.real.take()?;
        Some(DueAnswer { flight: self.flights.remove(slot), completion })
    }
}

impl EmulationShared {
    /// Begins the real operation of a request.
    pub fn begin(self: &Arc<Self>, backing: &dyn Storage, slot: usize, operation: Operation) {
        let real = Arc::new(Real { shared: Arc::clone(self), slot });
        backing.submit(0, operation, &Completions::collected(real));
    }

    /// Stamps a request and gives it to the pacer; `None` when the emulation has ended.
    fn arrive(
        &self,
        token: u64,
        request: DeviceRequest,
        completions: &Completions,
    ) -> Option<usize> {
        let mut state = self.state.lock();
        if state.closed {
            return None;
        }
        // Under the lock, so that arrivals are in the order of their times, and none comes later
        // than an event that the pacer has let happen.
        let path_ns = self.clock.shown_for(self.path.of(&request));
        let arrival = SimTime(self.clock.now_ns().saturating_sub(path_ns));
        let number = state.next_number;
        state.next_number += 1;
        let request = DeviceRequest { arrival, ..request };
        let flight = EmulatedRequest {
            token,
            completions: completions.clone(),
            number,
            request: request.clone(),
            depth: u32::try_from(state.flights.len() + 1).unwrap_or(u32::MAX),
            real: None,
            modelled_ns: None,
        };
        let slot = state.flights.insert(flight);
        state.arrivals.push(EmulatedArrival { slot, request });
        drop(state);
        self.changed.notify_one();
        Some(slot)
    }

    /// Answers a request. `overtaken` says that the modelled operation ended first.
    pub fn answer(&self, answer: DueAnswer, overtaken: bool) {
        let DueAnswer { flight, completion } = answer;
        let EmulatedRequest { token, completions, number, request, depth, modelled_ns, .. } =
            flight;
        // Counted before the caller knows, who may end the emulation then.
        let now_ns = self.clock.now_ns();
        let modelled_ns = modelled_ns.unwrap_or(now_ns);
        let since = |at_ns: u64| at_ns.saturating_sub(request.arrival.0);
        let delay_ns = now_ns.saturating_sub(modelled_ns);
        self.state.lock().lag.answered(since(modelled_ns), delay_ns, overtaken);
        if let Some(observer) = &self.observer {
            let (modelled_ns, real_ns) = (since(modelled_ns), since(now_ns));
            observer(ServedRequest { number, request, modelled_ns, real_ns, depth });
        }
        completions.post(Completion { token, ..completion });
    }
}
