//! A whole modelled device as a storage.

use std::io;
use std::sync::Arc;

use merganser_storage::{Buffer, Clock, Completion, Completions, Geometry, Operation, Storage};
use parking_lot::Mutex;

use crate::device::CompletedCommand;
use crate::request::RequestKind;
use crate::simulated::world::World;

/// A device of a world, as one range of bytes of fixed size.
pub struct SimulatedStorage {
    world: Arc<World>,
    device: usize,
    name: String,
    size: u64,
    geometry: Geometry,
    trim_bytes: Option<u64>,
}

impl SimulatedStorage {
    /// The storage of the world's device number `device`.
    ///
    /// # Panics
    /// When there is no such device.
    #[must_use]
    pub fn new(world: &Arc<World>, device: usize) -> Arc<SimulatedStorage> {
        let (name, size, geometry, trim_bytes) = world.with_device(device, |d| {
            (d.name().to_owned(), d.capacity_bytes(), d.geometry(), d.trim_bytes())
        });
        Arc::new(SimulatedStorage {
            world: Arc::clone(world),
            device,
            name,
            size,
            geometry,
            trim_bytes,
        })
    }

    /// The unit of the device's trim.
    pub(super) fn trim_bytes(&self) -> Option<u64> {
        self.trim_bytes
    }

    /// The world of the device.
    #[must_use]
    pub fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// Runs `parts` concurrently and calls `end` when all have ended.
    pub(super) fn run(&self, parts: Vec<DeviceCommand>, end: OperationEnd) {
        if parts.is_empty() {
            end.finish(Vec::new());
            return;
        }
        let gathered = Arc::new(GatheredCommands {
            end: Mutex::new(Some(end)),
            done: Mutex::new(parts.iter().map(|_| None).collect()),
        });
        for (index, part) in parts.into_iter().enumerate() {
            let gathered = Arc::clone(&gathered);
            let then = Box::new(move |done: CompletedCommand| gathered.ended(index, done));
            let DeviceCommand { kind, offset, len, buffer } = part;
            self.world.submit(self.device, kind, offset, len, buffer, then);
        }
    }

    /// Adds the commands that make `len` bytes at `offset` read as zeros: trims of whole units, and
    /// writes of zeros to the rest.
    pub(super) fn discard(&self, offset: u64, len: u64, parts: &mut Vec<DeviceCommand>) {
        let end = offset + len;
        let (from, to) = match self.trim_bytes {
            Some(unit) => (offset.next_multiple_of(unit), end / unit * unit),
            None => (end, end),
        };
        let mut zero = |from: u64, to: u64| {
            for at in (from..to).step_by(1 << 20) {
                let len = (to - at).min(1 << 20);
                let buffer = Some(Buffer::new(len as usize));
                parts.push(DeviceCommand { kind: RequestKind::Write, offset: at, len, buffer });
            }
        };
        if from >= to {
            zero(offset, end);
            return;
        }
        zero(offset, from);
        zero(to, end);
        let kind = RequestKind::Trim;
        parts.push(DeviceCommand { kind, offset: from, len: to - from, buffer: None });
    }
}

/// One command of an operation on a storage.
pub(super) struct DeviceCommand {
    pub kind: RequestKind,
    pub offset: u64,
    pub len: u64,
    pub buffer: Option<Buffer>,
}

/// The end of an operation.
pub(super) struct OperationEnd {
    pub token: u64,
    pub completions: Completions,
    /// Makes the buffer and the result from the ends of the commands, in their order.
    pub finish: Finish,
}

/// Makes the buffer and the result of a completion from the ends of the commands.
pub(super) type Finish =
    Box<dyn FnOnce(Vec<CompletedCommand>) -> (Option<Buffer>, io::Result<usize>) + Send>;

impl OperationEnd {
    fn finish(self, done: Vec<CompletedCommand>) {
        let (buffer, result) = (self.finish)(done);
        self.completions.post(Completion { token: self.token, buffer, result });
    }
}

/// The commands that have ended, of an operation that has not ended.
struct GatheredCommands {
    end: Mutex<Option<OperationEnd>>,
    /// In the order of the commands.
    done: Mutex<Vec<Option<CompletedCommand>>>,
}

impl GatheredCommands {
    fn ended(&self, index: usize, part: CompletedCommand) {
        let mut done = self.done.lock();
        done[index] = Some(part);
        if done.iter().any(Option::is_none) {
            return;
        }
        let parts = std::mem::take(&mut *done).into_iter().flatten().collect();
        drop(done);
        let end = self.end.lock().take();
        end.expect("all end once").finish(parts);
    }
}

/// The first error in `done`, if any.
pub(super) fn outcome(done: &mut [CompletedCommand]) -> io::Result<()> {
    for part in done {
        std::mem::replace(&mut part.result, Ok(0))?;
    }
    Ok(())
}

/// Joins the buffers of `done`, which are contiguous.
pub(super) fn joined(done: &mut [CompletedCommand]) -> Option<Buffer> {
    let mut buffers = done.iter_mut().filter_map(|part| part.buffer.take());
    let mut whole = buffers.next()?;
    for next in buffers {
        whole.unsplit(next).expect("parts are neighbours");
    }
    Some(whole)
}

impl Storage for SimulatedStorage {
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
        Arc::clone(&self.world) as Arc<dyn Clock>
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        let completions = completions.clone();
        let refuse = |buffer, why: &str| {
            let error =
                io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {why}", self.name));
            completions.post(Completion { token, buffer, result: Err(error) });
        };
        let beyond = "a device does not grow";
        let mut parts = Vec::new();
        let fits =
            |offset: u64, len: u64| offset.checked_add(len).is_some_and(|end| end <= self.size);
        match operation {
            Operation::Read { offset, mut buffer } => {
                let len = (buffer.len() as u64).min(self.size.saturating_sub(offset));
                let tail = buffer.split_off(len as usize);
                if len > 0 {
                    let kind = RequestKind::Read;
                    parts.push(DeviceCommand { kind, offset, len, buffer: Some(buffer) });
                    let finish = Box::new(move |mut done: Vec<CompletedCommand>| {
                        let result = outcome(&mut done).map(|()| len as usize);
                        let mut whole = joined(&mut done).expect("a read returns its buffer");
                        whole.unsplit(tail).expect("cut off above");
                        (Some(whole), result)
                    });
                    self.run(parts, OperationEnd { token, completions, finish });
                } else {
                    buffer.unsplit(tail).expect("cut off above");
                    completions.post(Completion { token, buffer: Some(buffer), result: Ok(0) });
                }
            }
            Operation::Write { offset, buffer } => {
                let len = buffer.len() as u64;
                if !fits(offset, len) {
                    return refuse(Some(buffer), beyond);
                }
                let kind = RequestKind::Write;
                parts.push(DeviceCommand { kind, offset, len, buffer: Some(buffer) });
                let finish = Box::new(move |mut done: Vec<CompletedCommand>| {
                    let result = outcome(&mut done).map(|()| len as usize);
                    (joined(&mut done), result)
                });
                self.run(parts, OperationEnd { token, completions, finish });
            }
            Operation::Sync => {
                parts.push(DeviceCommand {
                    kind: RequestKind::Flush,
                    offset: 0,
                    len: 0,
                    buffer: None,
                });
                self.run(parts, OperationEnd::plain(token, completions));
            }
            Operation::Discard { offset, len } if fits(offset, len) => {
                self.discard(offset, len, &mut parts);
                self.run(parts, OperationEnd::plain(token, completions));
            }
            Operation::Allocate { offset, len } if fits(offset, len) => {
                self.run(parts, OperationEnd::plain(token, completions));
            }
            Operation::SetSize { size } if size == self.size => {
                self.run(parts, OperationEnd::plain(token, completions));
            }
            Operation::Discard { .. } | Operation::Allocate { .. } | Operation::SetSize { .. } => {
                refuse(None, beyond);
            }
        }
    }
}

impl OperationEnd {
    /// The end of an operation that transfers nothing.
    pub(super) fn plain(token: u64, completions: Completions) -> OperationEnd {
        let finish =
            Box::new(|mut done: Vec<CompletedCommand>| (None, outcome(&mut done).map(|()| 0)));
        OperationEnd { token, completions, finish }
    }
}
