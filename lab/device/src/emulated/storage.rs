//! The storage that programs see.

use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread::JoinHandle;

use merganser_storage::thread::spawn;
use merganser_storage::{Clock, Completion, Completions, Geometry, Operation, Storage};
use parking_lot::{Condvar, Mutex};

use super::EmulationLag;
use super::hasher::Hasher;
use super::observer::Observer;
use super::pacer::{self, Finished};
use super::shared::{EmulationShared, PathTime};
use super::slow_clock::SlowClock;
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
