//! A storage and a directory in memory, for tests and small data.
//!
//! They mean what their namesakes in [`crate::file`] mean: a handle stays good when its name is
//! removed, and unnamed storages vanish with their last handle. Bytes are kept in pages, and a page
//! that was never written, or was discarded, takes no memory and reads as zeros. Nothing is durable,
//! so a sync has nothing to do.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::numbers::{u64_of, usize_of};
use crate::{ALIGNMENT, Clock, Completion, Completions, Directory, Operation, RealClock, Storage};

/// A storage in memory.
pub struct MemoryStorage {
    name: String,
    content: Arc<RwLock<MemoryContent>>,
    clock: Arc<dyn Clock>,
    writable: bool,
}

/// Copies of a directory share a page until one of them changes it.
type MemoryPage = Arc<[u8; ALIGNMENT]>;

#[derive(Clone, Default)]
struct MemoryContent {
    size: u64,
    /// By page number; bytes beyond `size` are zero.
    pages: BTreeMap<u64, MemoryPage>,
}

/// The parts of `len` bytes at `offset`, one for each page: page number, where on it, and
/// where in the stretch.
fn parts(
    offset: u64,
    len: usize,
) -> impl Iterator<Item = (u64, std::ops::Range<usize>, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + u64_of(done);
        let from = usize_of(at % u64_of(ALIGNMENT));
        let count = (ALIGNMENT - from).min(len - done);
        let part = (at / u64_of(ALIGNMENT), from..from + count, done..done + count);
        done += count;
        Some(part)
    })
}

impl MemoryContent {
    fn read(&self, offset: u64, out: &mut [u8]) -> usize {
        let left = self.size.saturating_sub(offset);
        let len = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        for (number, on_page, here) in parts(offset, len) {
            match self.pages.get(&number) {
                Some(page) => out[here].copy_from_slice(&page[on_page]),
                None => out[here].fill(0),
            }
        }
        len
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (number, on_page, here) in parts(offset, bytes.len()) {
            let page = self.pages.entry(number).or_insert_with(|| Arc::new([0; ALIGNMENT]));
            Arc::make_mut(page)[on_page].copy_from_slice(&bytes[here]);
        }
        if !bytes.is_empty() {
            self.size = self.size.max(offset + u64_of(bytes.len()));
        }
    }

    fn discard(&mut self, offset: u64, len: u64) {
        let page = u64_of(ALIGNMENT);
        let end = offset + len;
        let (first, last) = (offset / page, end / page);
        let from = usize_of(offset % page);
        let to = usize_of(end % page);
        let mut zero = |number: u64, range: std::ops::Range<usize>| {
            if let Some(page) = self.pages.get_mut(&number) {
                Arc::make_mut(page)[range].fill(0);
            }
        };
        if first == last {
            zero(first, from..to);
            return;
        }
        zero(first, from..ALIGNMENT);
        zero(last, 0..to);
        // Not by splitting the map, which takes time for all pages that stay, too.
        let whole: Vec<u64> =
            self.pages.range(offset.div_ceil(page)..last).map(|(&number, _)| number).collect();
        for number in whole {
            self.pages.remove(&number);
        }
    }

    fn set_size(&mut self, size: u64) {
        if size < self.size {
            let old = self.size;
            self.discard(size, old.next_multiple_of(u64_of(ALIGNMENT)) - size);
        }
        self.size = size;
    }
}

impl MemoryStorage {
    /// An empty storage under the wall clock; `name` is for messages.
    #[must_use]
    pub fn new(name: &str) -> Arc<MemoryStorage> {
        Self::with_clock(name, Arc::new(RealClock::new()))
    }

    /// An empty storage under `clock`.
    #[must_use]
    pub fn with_clock(name: &str, clock: Arc<dyn Clock>) -> Arc<MemoryStorage> {
        let (name, content) = (name.to_owned(), Arc::default());
        Arc::new(MemoryStorage { name, content, clock, writable: true })
    }

    /// A storage that holds `bytes`.
    #[must_use]
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Arc<MemoryStorage> {
        let storage = Self::new(name);
        storage.content.write().write(0, bytes);
        storage
    }

    /// Bytes of memory that its pages take.
    #[must_use]
    pub fn allocated_bytes(&self) -> u64 {
        let content = self.content.read();
        u64_of(content.pages.len() * ALIGNMENT)
    }

    fn perform(&self, operation: &mut Operation) -> io::Result<usize> {
        let refuse = |what: &str, kind, why: &str| {
            Err(io::Error::new(kind, format!("{}: {what}: {why}", self.name)))
        };
        let (what, end) = match operation {
            Operation::Read { offset, buffer } => {
                return Ok(self.content.read().read(*offset, buffer));
            }
            Operation::Sync => return Ok(0),
            Operation::Write { offset, buffer } => {
                ("write", offset.checked_add(u64_of(buffer.len())))
            }
            Operation::Discard { offset, len } => ("discard", offset.checked_add(*len)),
            Operation::Allocate { offset, len } => ("allocation", offset.checked_add(*len)),
            Operation::SetSize { size } => ("setting the size", Some(*size)),
        };
        if !self.writable {
            return refuse(what, io::ErrorKind::PermissionDenied, "opened for reading only");
        }
        if end.is_none_or(|end| end > i64::MAX.cast_unsigned()) {
            return refuse(what, io::ErrorKind::InvalidInput, "beyond any file's end");
        }
        let mut content = self.content.write();
        match operation {
            Operation::Read { .. } | Operation::Sync => unreachable!("done above"),
            Operation::Write { offset, buffer } => {
                content.write(*offset, buffer);
                return Ok(buffer.len());
            }
            Operation::Discard { offset, len } => content.discard(*offset, *len),
            Operation::Allocate { len: 0, .. } => {}
            Operation::Allocate { offset, len } => content.size = content.size.max(*offset + *len),
            Operation::SetSize { size } => content.set_size(*size),
        }
        Ok(0)
    }
}

impl Storage for MemoryStorage {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.content.read().size
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn submit(&self, token: u64, mut operation: Operation, completions: &Completions) {
        let result = self.perform(&mut operation);
        let buffer = match operation {
            Operation::Read { buffer, .. } | Operation::Write { buffer, .. } => Some(buffer),
            _ => None,
        };
        completions.post(Completion { token, buffer, result });
    }
}

/// A directory in memory.
pub struct MemoryDirectory {
    name: String,
    clock: Arc<dyn Clock>,
    entries: Mutex<BTreeMap<String, Arc<RwLock<MemoryContent>>>>,
}

impl MemoryDirectory {
    /// An empty directory under the wall clock.
    #[must_use]
    pub fn new() -> Arc<MemoryDirectory> {
        Self::with_clock(Arc::new(RealClock::new()))
    }

    /// An empty directory under `clock`, which its storages share.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Arc<MemoryDirectory> {
        let entries = Mutex::default();
        Arc::new(MemoryDirectory { name: "memory".to_owned(), clock, entries })
    }

    /// A directory with the same names and bytes, which changes by itself from now on. It shares the memory of pages that
    /// neither of the two has changed since.
    #[must_use]
    pub fn copy(&self) -> Arc<MemoryDirectory> {
        let apart = |content: &Arc<RwLock<MemoryContent>>| {
            Arc::new(RwLock::new(MemoryContent::clone(&content.read())))
        };
        let entries = self.entries.lock();
        let entries = entries.iter().map(|(name, content)| (name.clone(), apart(content)));
        let (name, clock) = (self.name.clone(), Arc::clone(&self.clock));
        Arc::new(MemoryDirectory { name, clock, entries: Mutex::new(entries.collect()) })
    }

    fn handle(
        &self,
        name: &str,
        content: Arc<RwLock<MemoryContent>>,
        writable: bool,
    ) -> Arc<dyn Storage> {
        let (name, clock) = (format!("{}/{name}", self.name), Arc::clone(&self.clock));
        Arc::new(MemoryStorage { name, content, clock, writable })
    }

    fn error(&self, kind: io::ErrorKind, name: &str, operation: &str) -> io::Error {
        io::Error::new(kind, format!("{}/{name}: {operation}: {kind}", self.name))
    }
}

impl Directory for MemoryDirectory {
    fn name(&self) -> &str {
        &self.name
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>> {
        if name.is_empty() || name.contains('/') {
            return Err(self.error(io::ErrorKind::InvalidInput, name, "create"));
        }
        let mut entries = self.entries.lock();
        if entries.contains_key(name) {
            return Err(self.error(io::ErrorKind::AlreadyExists, name, "create"));
        }
        let content = Arc::default();
        entries.insert(name.to_owned(), Arc::clone(&content));
        Ok(self.handle(name, content, true))
    }

    fn create_unnamed(&self) -> io::Result<Arc<dyn Storage>> {
        Ok(self.handle("(unnamed)", Arc::default(), true))
    }

    fn open(&self, name: &str, writable: bool) -> io::Result<Arc<dyn Storage>> {
        let entries = self.entries.lock();
        match entries.get(name) {
            Some(content) => Ok(self.handle(name, Arc::clone(content), writable)),
            None => Err(self.error(io::ErrorKind::NotFound, name, "open")),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        if to.is_empty() || to.contains('/') {
            return Err(self.error(io::ErrorKind::InvalidInput, to, "rename"));
        }
        let mut entries = self.entries.lock();
        match entries.remove(from) {
            Some(content) => {
                entries.insert(to.to_owned(), content);
                Ok(())
            }
            None => Err(self.error(io::ErrorKind::NotFound, from, "rename")),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut entries = self.entries.lock();
        match entries.remove(name) {
            Some(_) => Ok(()),
            None => Err(self.error(io::ErrorKind::NotFound, name, "remove")),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.entries.lock().keys().cloned().collect())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StorageExt;

    #[test]
    fn names_come_and_go_and_handles_stay_good() {
        let directory = MemoryDirectory::new();
        let run = directory.create("b").expect("create");
        run.write_at(0, b"run").expect("write");
        directory.create("a").expect("create");
        directory.create_unnamed().expect("create");
        assert_eq!(directory.list().expect("list"), ["a", "b"]);
        directory.rename("b", "a").expect("rename over");
        assert_eq!(directory.list().expect("list"), ["a"]);
        let again = directory.open("a", false).expect("open");
        assert_eq!(again.read_vec(0, 3).expect("read"), b"run");
        directory.remove("a").expect("remove");
        assert_eq!(run.read_vec(0, 3).expect("read"), b"run");

        let kind = |result: io::Result<()>| result.expect_err("refused").kind();
        assert_eq!(kind(directory.remove("a")), io::ErrorKind::NotFound);
        assert_eq!(kind(directory.rename("a", "c")), io::ErrorKind::NotFound);
        assert_eq!(kind(directory.open("a", true).map(|_| ())), io::ErrorKind::NotFound);
        assert_eq!(kind(directory.create("a/b").map(|_| ())), io::ErrorKind::InvalidInput);
        directory.create("a").expect("create");
        assert_eq!(kind(directory.create("a").map(|_| ())), io::ErrorKind::AlreadyExists);
        assert_eq!(kind(again.write_at(0, b"x")), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_copy_changes_by_itself() {
        let directory = MemoryDirectory::new();
        let one = directory.create("a").expect("create");
        one.write_at(0, &[1; 2 * ALIGNMENT]).expect("write");
        let copy = directory.copy();
        let other = copy.open("a", true).expect("open");
        one.write_at(0, &[2]).expect("write");
        other.write_at(4096, &[3]).expect("write");
        other.run(Operation::Discard { offset: 4097, len: 1 }).expect("discard");
        copy.create("b").expect("create");
        let bytes = |storage: &dyn Storage| {
            let read = storage.read_vec(0, 2 * ALIGNMENT).expect("read");
            (read[..2].to_vec(), read[ALIGNMENT..ALIGNMENT + 3].to_vec())
        };
        assert_eq!(bytes(&*one), (vec![2, 1], vec![1, 1, 1]));
        assert_eq!(bytes(&*other), (vec![1, 1], vec![3, 0, 1]));
        assert_eq!(directory.list().expect("list"), ["a"]);
    }

    #[test]
    fn discarded_and_untouched_pages_take_no_memory() {
        let storage = MemoryStorage::from_bytes("m", &[1; 10 * ALIGNMENT]);
        storage.run(Operation::Allocate { offset: 1 << 40, len: 5 }).expect("allocate");
        assert_eq!((storage.size(), storage.allocated_bytes()), ((1 << 40) + 5, 40_960));
        storage.run(Operation::Discard { offset: 1, len: 8 * 4096 }).expect("discard");
        assert_eq!(storage.allocated_bytes(), 3 * 4096, "both edges and the last page");
        assert_eq!(storage.read_vec(0, 2).expect("read"), [1, 0]);
        assert_eq!(storage.read_vec(8 * 4096, 2).expect("read"), [0, 1]);
    }
}
