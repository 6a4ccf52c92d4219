//! Storages that are open only while they are in use, so that there can be more of them than a
//! process may have open.
//!
//! ```text
//!   submit ──► Closable ── open? ──────────────► the storage
//!                 │ no: opened again                ▲
//!                 └──► OpenSet: [ oldest … newest ] ┘   the oldest is closed when there are too many
//! ```
//!
//! Operations in flight keep their storage open: one that is closed here ends with the last of them.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use crate::file::descriptors;
use crate::wrapped::{StorageOrigin, Wrapped, Wrapper};
use crate::{Clock, Completion, Completions, Directory, Geometry, Operation, Storage};

/// How often a storage that can't be opened for want of descriptors is tried again, and how long it
/// waits before each try: what operations in flight keep open is closed when they complete.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// The storages that are open, at most a given number.
pub struct OpenSet {
    most: usize,
    open: Mutex<VecDeque<Weak<ClosableSlot>>>,
}

/// A storage while it is open.
#[derive(Default)]
struct ClosableSlot {
    state: Mutex<ClosableState>,
}

#[derive(Default)]
struct ClosableState {
    open: Option<Arc<dyn Storage>>,
    /// The size when it was closed.
    size: u64,
}

impl OpenSet {
    /// A set of at most `most` open storages, at least one.
    #[must_use]
    pub fn new(most: usize) -> Arc<OpenSet> {
        Arc::new(OpenSet { most: most.max(1), open: Mutex::default() })
    }

    /// Whether one more can be open without another being closed.
    fn has_room(&self) -> bool {
        self.open.lock().len() < self.most
    }

    /// Counts `slot`, which was just opened, and closes the oldest ones that are too many.
    fn admit(&self, slot: &Arc<ClosableSlot>) {
        let mut open = self.open.lock();
        open.push_back(Arc::downgrade(slot));
        let too_many = open.len().saturating_sub(self.most);
        let oldest: Vec<_> = open.drain(..too_many).collect();
        drop(open);
        oldest.iter().filter_map(Weak::upgrade).for_each(|slot| slot.close());
    }

    /// Closes all.
    fn close_all(&self) {
        let all = std::mem::take(&mut *self.open.lock());
        all.iter().filter_map(Weak::upgrade).for_each(|slot| slot.close());
    }
}

impl ClosableSlot {
    fn state(&self) -> parking_lot::MutexGuard<'_, ClosableState> {
        self.state.lock()
    }

    fn close(&self) {
        let mut state = self.state();
        if let Some(open) = state.open.take() {
            state.size = open.size();
        }
    }
}

type StorageOpener = dyn Fn() -> io::Result<Arc<dyn Storage>> + Send + Sync;

/// A storage that is closed while others are in use, and opened again.
pub struct Closable {
    name: String,
    clock: Arc<dyn Clock>,
    geometry: Geometry,
    /// The size that counts, whatever becomes of the storage.
    size: Option<u64>,
    set: Option<Arc<OpenSet>>,
    open: Box<StorageOpener>,
    slot: Arc<ClosableSlot>,
}

impl Closable {
    /// `storage`, which `open` opens again when it was closed to keep within `set`. When `set` is
    /// full, it is closed at once.
    #[must_use]
    pub fn new(
        storage: Arc<dyn Storage>,
        set: &Arc<OpenSet>,
        open: impl Fn() -> io::Result<Arc<dyn Storage>> + Send + Sync + 'static,
    ) -> Closable {
        let closable = Closable {
            name: storage.name().to_owned(),
            clock: storage.clock(),
            geometry: storage.geometry(),
            size: None,
            set: Some(Arc::clone(set)),
            open: Box::new(open),
            slot: Arc::default(),
        };
        closable.slot.state().open = Some(storage);
        if set.has_room() {
            set.admit(&closable.slot);
        } else {
            closable.slot.close();
        }
        closable
    }

    /// `storage`, which stays open.
    #[must_use]
    pub fn pinned(storage: Arc<dyn Storage>) -> Closable {
        let set = OpenSet::new(1);
        let kept = Arc::clone(&storage);
        Closable { set: None, ..Closable::new(storage, &set, move || Ok(Arc::clone(&kept))) }
    }

    /// The same, whose size stays what it is now: bytes that are appended later are not part of it,
    /// and bytes that are cut off later are missing.
    #[must_use]
    pub fn of_this_size(self) -> Closable {
        let size = Some(Storage::size(&self));
        Closable { size, ..self }
    }

    fn opened(&self) -> io::Result<Arc<dyn Storage>> {
        let mut state = self.slot.state();
        if let Some(open) = &state.open {
            return Ok(Arc::clone(open));
        }
        let mut opened = (self.open)();
        for _ in 0..TRIES {
            match &opened {
                Err(error) if descriptors::are_used_up(error) => {}
                _ => break,
            }
            // This one's lock is held, and it is not in the set while it is closed.
            if let Some(set) = &self.set {
                set.close_all();
            }
            std::thread::sleep(PAUSE);
            opened = (self.open)();
        }
        let opened = opened?;
        state.open = Some(Arc::clone(&opened));
        drop(state);
        if let Some(set) = &self.set {
            set.admit(&self.slot);
        }
        Ok(opened)
    }
}

impl Storage for Closable {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size.unwrap_or_else(|| {
            let state = self.slot.state();
            state.open.as_ref().map_or(state.size, |open| open.size())
        })
    }

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        match self.opened() {
            Ok(open) => open.submit(token, operation, completions),
            Err(error) => {
                let buffer = match operation {
                    Operation::Read { buffer, .. } | Operation::Write { buffer, .. } => {
                        Some(buffer)
                    }
                    _ => None,
                };
                completions.post(Completion { token, buffer, result: Err(error) });
            }
        }
    }

    fn read_now(&self, offset: u64, out: &mut [u8]) -> Option<io::Result<usize>> {
        match self.opened() {
            Ok(open) => open.read_now(offset, out),
            Err(error) => Some(Err(error)),
        }
    }

    fn read_ahead(&self, offset: u64, len: u64) {
        // If it can't be opened, the read says so.
        if let Ok(open) = self.opened() {
            open.read_ahead(offset, len);
        }
    }
}

/// A directory whose named storages are [`Closable`].
pub type ClosableDirectory = Wrapped<Closing>;

/// Makes the named storages of a directory [`Closable`].
pub struct Closing {
    set: Arc<OpenSet>,
}

impl ClosableDirectory {
    /// `inner`, of whose named storages at most `most` are open at a time.
    #[must_use]
    pub fn closing(inner: Arc<dyn Directory>, most: usize) -> Arc<Self> {
        Wrapped::new(inner, Closing { set: OpenSet::new(most) })
    }
}

impl Wrapper for Closing {
    fn wrap(
        &self,
        storage: Arc<dyn Storage>,
        origin: StorageOrigin<'_>,
        inner: &Arc<dyn Directory>,
    ) -> Arc<dyn Storage> {
        let (name, writable) = match origin {
            StorageOrigin::Created(name) => (name, true),
            StorageOrigin::Opened { name, writable } => (name, writable),
            StorageOrigin::Unnamed => return storage,
        };
        let (folder, name) = (Arc::clone(inner), name.to_owned());
        Arc::new(Closable::new(storage, &self.set, move || folder.open(&name, writable)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StorageExt;
    use crate::file::{Direct, FileDirectory, FileOptions, FileStorage};
    use crate::memory::MemoryDirectory;

    #[test]
    fn what_is_closed_is_opened_again_and_keeps_its_size() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = FileDirectory::open(place.path()).expect("a folder");
        let folder = ClosableDirectory::closing(folder, 2);
        let files: Vec<_> = (0..10u8)
            .map(|n| {
                let file = folder.create(&format!("file{n}")).expect("made");
                file.write_at(0, &[n; 5000][..usize::from(n) * 500]).expect("written");
                file
            })
            .collect();
        let open = |file: &str| {
            let fds = std::fs::read_dir("/proc/self/fd").expect("listed");
            let links = fds.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
            links.filter(|link| *link == place.path().join(file)).count()
        };
        assert_eq!((0..8).map(|n| open(&format!("file{n}"))).sum::<usize>(), 0);
        assert!(open("file9") > 0);
        for round in 0..2 {
            for (n, file) in files.iter().enumerate() {
                assert_eq!(file.size(), n as u64 * 500, "round {round}");
                assert_eq!(file.read_vec(0, n * 500).expect("read"), vec![n as u8; n * 500]);
            }
        }
    }

    #[test]
    fn a_closed_storage_is_opened_again_to_be_read_at_once() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("file");
        std::fs::write(&path, b"0123456789").expect("written");
        let options = FileOptions { direct: Direct::Never, ..FileOptions::default() };
        let open = move || -> io::Result<Arc<dyn Storage>> {
            Ok(FileStorage::open_path_with(&path, false, options)?)
        };
        let set = OpenSet::new(1);
        let closable = Closable::new(open().expect("opens"), &set, open);
        set.close_all();
        closable.read_ahead(0, 10);
        let mut out = [0; 4];
        set.close_all();
        let read = closable.read_now(3, &mut out).expect("at once").expect("reads");
        assert_eq!((read, &out), (4, b"3456"));
        set.close_all();
        std::fs::remove_file(place.path().join("file")).expect("removed");
        let failed = closable.read_now(3, &mut out).expect("at once");
        assert_eq!(failed.expect_err("gone").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_fixed_size_stays_whatever_becomes_of_the_storage() {
        let folder = MemoryDirectory::new();
        let file = folder.create("file").expect("made");
        file.write_at(0, b"0123456789").expect("written");
        let fixed = Closable::pinned(Arc::clone(&file)).of_this_size();
        file.write_at(10, b"more").expect("written");
        assert_eq!((fixed.size(), file.size()), (10, 14));
        file.run(Operation::SetSize { size: 4 }).expect("cut");
        assert_eq!(fixed.size(), 10);
        assert_eq!(fixed.read_at(0, &mut [0; 10]).expect("read"), 4);
    }

    #[test]
    fn what_is_gone_when_it_is_opened_again_is_an_error_that_gives_the_buffer_back() {
        let folder = ClosableDirectory::closing(MemoryDirectory::new(), 1);
        let first = folder.create("first").expect("made");
        let second = folder.create("second").expect("made");
        first.write_at(0, b"x").expect("written");
        second.write_at(0, b"x").expect("written");
        folder.remove("first").expect("removed");
        let completions = Completions::new();
        let buffer = crate::Buffer::new(1);
        first.submit(7, Operation::Read { offset: 0, buffer }, &completions);
        let done = completions.wait(&*first.clock());
        assert_eq!((done.token, done.buffer.map(|b| b.len())), (7, Some(1)));
        assert_eq!(done.result.expect_err("gone").kind(), io::ErrorKind::NotFound);
    }
}
