//! A volume on a modelled device: named files of extents.
//!
//! Space is allocated in units, consecutive if possible, so that a file written in order is in
//! order on the device. The host keeps the tables, which cost no I/O. A sync of the directory is a
//! flush of the device. The volume ends with its world.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use merganser_storage::{
    Buffer, Clock, Completion, Completions, Directory, Geometry, Operation, Storage,
};
use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::device::CompletedCommand;
use crate::request::RequestKind;
use crate::simulated::storage::SimulatedStorage;
use crate::simulated::storage::{DeviceCommand, OperationEnd, joined, outcome};
use crate::simulated::world::World;

/// Space is allocated in units of this many bytes.
const UNIT: u64 = 1 << 20;

/// The units that are in use.
struct DirectorySpace {
    taken: Vec<bool>,
    /// The number of free units.
    free: u64,
    /// The unit at which the search for a new file begins.
    next: usize,
}

impl DirectorySpace {
    /// A free unit: the unit behind `after`, or the next free one.
    fn take(&mut self, after: Option<u32>) -> Option<u32> {
        if self.free == 0 {
            return None;
        }
        let count = self.taken.len();
        let start = after.map_or(self.next, |unit| unit as usize + 1);
        let unit = (0..count).map(|i| (start + i) % count).find(|&i| !self.taken[i])?;
        self.taken[unit] = true;
        self.free -= 1;
        self.next = unit + 1;
        Some(unit as u32)
    }

    fn give_back(&mut self, unit: u32) {
        self.taken[unit as usize] = false;
        self.free += 1;
    }
}

/// The contents of a file.
#[derive(Default)]
struct Extents {
    size: u64,
    /// The device's unit for each unit of the file; `None` is a hole, which reads as zeros.
    units: Vec<Option<u32>>,
}

/// A volume on a device of a world.
pub struct SimulatedDirectory {
    volume: Arc<DirectoryVolume>,
    entries: Mutex<BTreeMap<String, Arc<FileExtents>>>,
}

struct DirectoryVolume {
    name: String,
    device: Arc<SimulatedStorage>,
    space: Mutex<DirectorySpace>,
}

/// The extents of a file; its space becomes free when the last handle is dropped.
struct FileExtents {
    volume: Arc<DirectoryVolume>,
    extents: RwLock<Extents>,
}

impl Drop for FileExtents {
    fn drop(&mut self) {
        let extents = std::mem::take(self.extents.get_mut());
        let units: Vec<u32> = extents.units.into_iter().flatten().collect();
        self.volume.give_back(&units);
    }
}

impl DirectoryVolume {
    fn lock(&self) -> MutexGuard<'_, DirectorySpace> {
        self.space.lock()
    }

    /// Frees units and trims them on the device. No caller waits for the trim.
    fn give_back(&self, units: &[u32]) {
        if units.is_empty() {
            return;
        }
        let mut parts = Vec::new();
        for run in units.chunk_by(|a, b| a + 1 == *b) {
            let (offset, len) = (u64::from(run[0]) * UNIT, run.len() as u64 * UNIT);
            parts.push(DeviceCommand { kind: RequestKind::Trim, offset, len, buffer: None });
        }
        // A trim that is submitted now is served before any later write to these units.
        self.device.run(parts, OperationEnd::plain(0, Completions::new()));
        let mut space = self.lock();
        for &unit in units {
            space.give_back(unit);
        }
    }
}

impl SimulatedDirectory {
    /// An empty volume that covers the world's device number `device`.
    ///
    /// # Panics
    /// When there is no such device.
    #[must_use]
    pub fn new(world: &Arc<World>, device: usize) -> Arc<SimulatedDirectory> {
        let device = SimulatedStorage::new(world, device);
        let units = (device.size() / UNIT) as usize;
        let space = DirectorySpace { taken: vec![false; units], free: units as u64, next: 0 };
        let name = device.name().to_owned();
        let volume = Arc::new(DirectoryVolume { name, device, space: Mutex::new(space) });
        Arc::new(SimulatedDirectory { volume, entries: Mutex::default() })
    }

    fn handle(&self, name: &str, file: Arc<FileExtents>, writable: bool) -> Arc<dyn Storage> {
        Arc::new(SimulatedFile { name: format!("{}/{name}", self.volume.name), file, writable })
    }

    fn fresh(&self) -> Arc<FileExtents> {
        Arc::new(FileExtents { volume: Arc::clone(&self.volume), extents: RwLock::default() })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<FileExtents>>> {
        self.entries.lock()
    }

    fn error(&self, kind: io::ErrorKind, name: &str, operation: &str) -> io::Error {
        io::Error::new(kind, format!("{}/{name}: {operation}: {kind}", self.volume.name))
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('/')
}

impl Directory for SimulatedDirectory {
    fn name(&self) -> &str {
        &self.volume.name
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.volume.device.clock()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>> {
        if !is_name(name) {
            return Err(self.error(io::ErrorKind::InvalidInput, name, "create"));
        }
        let mut entries = self.lock();
        if entries.contains_key(name) {
            return Err(self.error(io::ErrorKind::AlreadyExists, name, "create"));
        }
        let file = self.fresh();
        entries.insert(name.to_owned(), Arc::clone(&file));
        Ok(self.handle(name, file, true))
    }

    fn create_unnamed(&self) -> io::Result<Arc<dyn Storage>> {
        Ok(self.handle("(unnamed)", self.fresh(), true))
    }

    fn open(&self, name: &str, writable: bool) -> io::Result<Arc<dyn Storage>> {
        match self.lock().get(name) {
            Some(file) => Ok(self.handle(name, Arc::clone(file), writable)),
            None => Err(self.error(io::ErrorKind::NotFound, name, "open")),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        if !is_name(to) {
            return Err(self.error(io::ErrorKind::InvalidInput, to, "rename"));
        }
        let mut entries = self.lock();
        let Some(file) = entries.remove(from) else {
            return Err(self.error(io::ErrorKind::NotFound, from, "rename"));
        };
        let replaced = entries.insert(to.to_owned(), file);
        drop(entries);
        drop(replaced);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let removed = self.lock().remove(name);
        match removed {
            Some(_) => Ok(()),
            None => Err(self.error(io::ErrorKind::NotFound, name, "remove")),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.lock().keys().cloned().collect())
    }

    fn sync(&self) -> io::Result<()> {
        merganser_storage::StorageExt::sync(&*self.volume.device)
    }
}

/// A file of a volume.
struct SimulatedFile {
    name: String,
    file: Arc<FileExtents>,
    writable: bool,
}

/// A piece of a request: its start in the file, its length, and its place on the device.
struct FileSpan {
    len: u64,
    place: Option<u64>,
}

impl Extents {
    /// `len` bytes at `offset`, cut into pieces that are contiguous on the device.
    fn spans(&self, offset: u64, len: u64) -> Vec<FileSpan> {
        let mut spans: Vec<FileSpan> = Vec::new();
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let count = (UNIT - at % UNIT).min(end - at);
            let unit = self.units.get((at / UNIT) as usize).copied().flatten();
            let place = unit.map(|unit| u64::from(unit) * UNIT + at % UNIT);
            match spans.last_mut() {
                Some(last) if place.is_some() && last.place.map(|p| p + last.len) == place => {
                    last.len += count;
                }
                Some(last) if place.is_none() && last.place.is_none() => last.len += count,
                _ => spans.push(FileSpan { len: count, place }),
            }
            at += count;
        }
        spans
    }

    /// Removes the whole units in the range.
    fn punch(&mut self, offset: u64, len: u64) -> Vec<u32> {
        let end = ((offset + len) / UNIT).min(self.units.len() as u64);
        let range = offset.div_ceil(UNIT).min(end)..end;
        range.filter_map(|unit| self.units[unit as usize].take()).collect()
    }
}

impl SimulatedFile {
    fn device(&self) -> &SimulatedStorage {
        &self.file.volume.device
    }

    /// Allocates every unit of the range. New units read as zeros: their old content was trimmed,
    /// or the commands added to `zeros` overwrite it.
    fn allocate(&self, offset: u64, len: u64, zeros: &mut Vec<DeviceCommand>) -> io::Result<()> {
        let mut extents = self.file.extents.write();
        let mut space = self.file.volume.lock();
        let end = (offset + len).div_ceil(UNIT) as usize;
        if extents.units.len() < end {
            extents.units.resize(end, None);
        }
        for index in (offset / UNIT) as usize..end {
            if extents.units[index].is_some() {
                continue;
            }
            let before = if index == 0 { None } else { extents.units[index - 1] };
            let Some(unit) = space.take(before) else {
                let why = format!("{}: the volume is full", self.name);
                return Err(io::Error::new(io::ErrorKind::StorageFull, why));
            };
            extents.units[index] = Some(unit);
            if self.device().trim_bytes().is_none_or(|bytes| !UNIT.is_multiple_of(bytes)) {
                self.device().discard(u64::from(unit) * UNIT, UNIT, zeros);
            }
        }
        extents.size = extents.size.max(offset + len);
        Ok(())
    }

    fn read(&self, token: u64, offset: u64, mut buffer: Buffer, completions: Completions) {
        let extents = self.file.extents.read();
        let len = (buffer.len() as u64).min(extents.size.saturating_sub(offset));
        let spans = extents.spans(offset, len);
        drop(extents);
        let tail = buffer.split_off(len as usize);
        let mut parts = Vec::new();
        // Holes are filled here; the other pieces are read from the device. `pieces` has the order
        // in which they are joined.
        let mut pieces: Vec<Option<Buffer>> = Vec::new();
        for FileSpan { len, place } in spans {
            let rest = buffer.split_off(len as usize);
            let mut piece = std::mem::replace(&mut buffer, rest);
            match place {
                Some(offset) => {
                    parts.push(DeviceCommand {
                        kind: RequestKind::Read,
                        offset,
                        len,
                        buffer: Some(piece),
                    });
                    pieces.push(None);
                }
                None => {
                    piece.fill(0);
                    pieces.push(Some(piece));
                }
            }
        }
        let (empty, file) = (buffer, Arc::clone(&self.file));
        let finish = Box::new(move |mut done: Vec<CompletedCommand>| {
            // Its space must not be used again until the requests in flight have ended.
            drop(file);
            let result = outcome(&mut done).map(|()| len as usize);
            let mut came =
                done.into_iter().map(|part| part.buffer.expect("a read returns its buffer"));
            let mut all = pieces.into_iter().map(|piece| piece.or_else(|| came.next()));
            let mut whole = all.next().flatten();
            for next in all.flatten() {
                whole.as_mut().expect("the first").unsplit(next).expect("neighbours");
            }
            let mut whole = whole.unwrap_or(empty);
            // If everything before it was cut off, an empty rest has no neighbour.
            if !tail.is_empty() {
                whole = match whole.unsplit(tail) {
                    Ok(()) => whole,
                    Err(tail) => tail,
                };
            }
            (Some(whole), result)
        });
        self.device().run(parts, OperationEnd { token, completions, finish });
    }

    fn write(&self, token: u64, offset: u64, mut buffer: Buffer, completions: Completions) {
        let len = buffer.len() as u64;
        let mut parts = Vec::new();
        if let Err(error) = self.allocate(offset, len, &mut parts) {
            completions.post(Completion { token, buffer: Some(buffer), result: Err(error) });
            return;
        }
        let zeroing = parts.len();
        let spans = self.file.extents.read().spans(offset, len);
        for FileSpan { len, place } in spans {
            let rest = buffer.split_off(len as usize);
            let piece = std::mem::replace(&mut buffer, rest);
            let offset = place.expect("allocated above");
            parts.push(DeviceCommand {
                kind: RequestKind::Write,
                offset,
                len,
                buffer: Some(piece),
            });
        }
        let (empty, file) = (buffer, Arc::clone(&self.file));
        let finish = Box::new(move |mut done: Vec<CompletedCommand>| {
            drop(file);
            let result = outcome(&mut done).map(|()| len as usize);
            (Some(joined(&mut done[zeroing..]).unwrap_or(empty)), result)
        });
        self.device().run(parts, OperationEnd { token, completions, finish });
    }

    fn discard(&self, token: u64, offset: u64, len: u64, completions: Completions) {
        let mut extents = self.file.extents.write();
        let len = len.min(extents.size.saturating_sub(offset));
        let units = extents.punch(offset, len);
        let rest = extents.spans(offset, len);
        drop(extents);
        self.file.volume.give_back(&units);
        let mut parts = Vec::new();
        for FileSpan { len, place } in rest {
            if let Some(place) = place {
                self.device().discard(place, len, &mut parts);
            }
        }
        self.device().run(parts, OperationEnd::plain(token, completions));
    }

    fn set_size(&self, token: u64, size: u64, completions: Completions) {
        let mut extents = self.file.extents.write();
        let old = extents.size;
        extents.size = size;
        let keep = size.div_ceil(UNIT) as usize;
        let cut =
            if extents.units.len() > keep { extents.units.split_off(keep) } else { Vec::new() };
        // The rest of the last unit must read as zeros when the file grows again.
        let end = size.next_multiple_of(UNIT).min(old);
        let rest = if end > size { extents.spans(size, end - size) } else { Vec::new() };
        drop(extents);
        self.file.volume.give_back(&cut.into_iter().flatten().collect::<Vec<_>>());
        let mut parts = Vec::new();
        for FileSpan { len, place } in rest {
            if let Some(place) = place {
                self.device().discard(place, len, &mut parts);
            }
        }
        self.device().run(parts, OperationEnd::plain(token, completions));
    }
}

impl Storage for SimulatedFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.file.extents.read().size
    }

    fn geometry(&self) -> Geometry {
        self.device().geometry()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.device().clock()
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        let completions = completions.clone();
        let reads = matches!(operation, Operation::Read { .. } | Operation::Sync);
        let end = match &operation {
            Operation::Write { offset, buffer } => offset.checked_add(buffer.len() as u64),
            Operation::Discard { offset, len } | Operation::Allocate { offset, len } => {
                offset.checked_add(*len)
            }
            Operation::SetSize { size } => Some(*size),
            Operation::Read { .. } | Operation::Sync => Some(0),
        };
        let refused = if !reads && !self.writable {
            Some((io::ErrorKind::PermissionDenied, "opened for reading only"))
        } else if end.is_none_or(|end| end > i64::MAX as u64) {
            Some((io::ErrorKind::InvalidInput, "beyond any file's end"))
        } else {
            None
        };
        if let Some((kind, why)) = refused {
            let buffer = match operation {
                Operation::Read { buffer, .. } | Operation::Write { buffer, .. } => Some(buffer),
                _ => None,
            };
            let error = io::Error::new(kind, format!("{}: {why}", self.name));
            completions.post(Completion { token, buffer, result: Err(error) });
            return;
        }
        match operation {
            Operation::Read { offset, buffer } => self.read(token, offset, buffer, completions),
            Operation::Write { buffer, .. } if buffer.is_empty() => {
                completions.post(Completion { token, buffer: Some(buffer), result: Ok(0) });
            }
            Operation::Write { offset, buffer } => self.write(token, offset, buffer, completions),
            Operation::Sync => self.device().submit(token, Operation::Sync, &completions),
            Operation::Discard { offset, len } => self.discard(token, offset, len, completions),
            Operation::Allocate { len: 0, .. } => {
                self.device().run(Vec::new(), OperationEnd::plain(token, completions));
            }
            Operation::Allocate { offset, len } => {
                let mut parts = Vec::new();
                match self.allocate(offset, len, &mut parts) {
                    Ok(()) => self.device().run(parts, OperationEnd::plain(token, completions)),
                    Err(error) => {
                        let result = Err(error);
                        completions.post(Completion { token, buffer: None, result });
                    }
                }
            }
            Operation::SetSize { size } => self.set_size(token, size, completions),
        }
    }
}
