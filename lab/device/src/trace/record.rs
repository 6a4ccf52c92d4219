//! Records a trace of one of our own runs: storages that note every request, without root and
//! without blktrace.
//!
//! ```text
//!   submit ──► Recorder notes (time, storage, kind, offset, len, hashes) ──► the storage, unchanged
//! ```
//!
//! Several files become one device: the storages follow one another in the order of their first
//! requests, each with its final size. A file system would reuse the space of removed files; the
//! trace does not.

use std::collections::HashMap;
use std::sync::Arc;

use merganser_storage::wrapped::{StorageOrigin, Wrapped, Wrapper};
use merganser_storage::{Clock, Completions, Directory, Geometry, Operation, Storage};
use parking_lot::{Mutex, MutexGuard};

use crate::request::{ContentHash, DeviceRequest, RequestHashes, RequestKind, SimTime};

/// Sizes are rounded up to multiples of this.
const EXTENT: u64 = 1 << 20;

/// Records the requests of all storages that are made through it.
pub struct TraceRecorder {
    clock: Arc<dyn Clock>,
    start_ns: u64,
    /// Of written bytes.
    hash: Option<ContentHash>,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    notes: Vec<Note>,
    /// The end of the last byte that was requested, per storage.
    ends: Vec<u64>,
}

struct Note {
    at_ns: u64,
    storage: usize,
    kind: RequestKind,
    offset: u64,
    len: u64,
    content: Option<RequestHashes>,
}

impl TraceRecorder {
    /// A recorder whose time begins now on `clock`. With `hash`, it notes the content of each page that is
    /// written, in 16 bytes.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, hash: Option<ContentHash>) -> Arc<Self> {
        let start_ns = clock.now_ns();
        Arc::new(TraceRecorder { clock, start_ns, hash, log: Mutex::default() })
    }

    /// `inner`, with its requests recorded.
    #[must_use]
    pub fn storage(self: &Arc<Self>, inner: Arc<dyn Storage>) -> Arc<dyn Storage> {
        let id = self.enter();
        Arc::new(RecordedStorage { inner, recorder: Arc::clone(self), id })
    }

    /// `inner`, with the requests of all its storages recorded.
    #[must_use]
    pub fn directory(self: &Arc<Self>, inner: Arc<dyn Directory>) -> Arc<RecordingDirectory> {
        Wrapped::new(inner, RecordingWrapper { recorder: Arc::clone(self), ids: Mutex::default() })
    }

    /// The recorded requests, as requests to one device, in the order in which they were submitted.
    #[must_use]
    pub fn requests(&self) -> Vec<DeviceRequest> {
        let log = self.log();
        let mut bases = vec![None; log.ends.len()];
        let mut free = 0_u64;
        let place = |note: &Note| {
            let base = *bases[note.storage].get_or_insert_with(|| {
                let base = free;
                free = free.saturating_add(log.ends[note.storage].div_ceil(EXTENT) * EXTENT);
                base
            });
            let flush = note.kind == RequestKind::Flush;
            let offset = if flush { 0 } else { base.saturating_add(note.offset) };
            let Note { at_ns, kind, len, .. } = *note;
            let content = note.content.clone();
            DeviceRequest { arrival: SimTime(at_ns), kind, offset, len, content }
        };
        log.notes.iter().map(place).collect()
    }

    fn enter(&self) -> usize {
        let mut log = self.log();
        log.ends.push(0);
        log.ends.len() - 1
    }

    fn note(
        &self,
        storage: usize,
        (kind, offset, len): (RequestKind, u64, u64),
        content: Option<RequestHashes>,
    ) {
        let mut log = self.log();
        // Read under the lock, so that times ascend.
        let at_ns = self.clock.now_ns().saturating_sub(self.start_ns);
        let end = &mut log.ends[storage];
        *end = (*end).max(offset.saturating_add(len));
        log.notes.push(Note { at_ns, storage, kind, offset, len, content });
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock()
    }
}

struct RecordedStorage {
    inner: Arc<dyn Storage>,
    recorder: Arc<TraceRecorder>,
    id: usize,
}

impl Storage for RecordedStorage {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.inner.clock()
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        let noted = match &operation {
            // A request behind the end of the storage never reaches the device.
            Operation::Read { offset, buffer } => {
                let len = self.size().saturating_sub(*offset).min(buffer.len() as u64);
                Some((RequestKind::Read, *offset, len))
            }
            Operation::Write { offset, buffer } => {
                Some((RequestKind::Write, *offset, buffer.len() as u64))
            }
            Operation::Discard { offset, len } => {
                let len = self.size().saturating_sub(*offset).min(*len);
                Some((RequestKind::Trim, *offset, len))
            }
            Operation::Sync => Some((RequestKind::Flush, 0, 0)),
            // These change only the tables of the file system.
            Operation::Allocate { .. } | Operation::SetSize { .. } => None,
        };
        if let Some((kind, offset, len)) = noted
            && (len > 0 || kind == RequestKind::Flush)
        {
            let content = match (&operation, self.recorder.hash) {
                (Operation::Write { buffer, .. }, Some(hash)) => {
                    Some(RequestHashes::of_bytes(buffer, hash))
                }
                _ => None,
            };
            self.recorder.note(self.id, (kind, offset, len), content);
        }
        self.inner.submit(token, operation, completions);
    }
}

/// A directory whose storages are recorded. A file that is opened again keeps its addresses.
pub type RecordingDirectory = Wrapped<RecordingWrapper>;

/// Records the requests of a directory's storages.
pub struct RecordingWrapper {
    recorder: Arc<TraceRecorder>,
    ids: Mutex<HashMap<String, usize>>,
}

impl Wrapper for RecordingWrapper {
    fn wrap(
        &self,
        inner: Arc<dyn Storage>,
        origin: StorageOrigin<'_>,
        _: &Arc<dyn Directory>,
    ) -> Arc<dyn Storage> {
        let id = match origin {
            StorageOrigin::Unnamed => self.recorder.enter(),
            StorageOrigin::Created(name) => {
                let id = self.recorder.enter();
                self.ids.lock().insert(name.to_owned(), id);
                id
            }
            StorageOrigin::Opened { name, .. } => {
                *self.ids.lock().entry(name.to_owned()).or_insert_with(|| self.recorder.enter())
            }
        };
        Arc::new(RecordedStorage { inner, recorder: Arc::clone(&self.recorder), id })
    }

    fn renamed(&self, from: &str, to: &str) {
        let mut ids = self.ids.lock();
        match ids.remove(from) {
            Some(id) => ids.insert(to.to_owned(), id),
            None => ids.remove(to),
        };
    }

    fn removed(&self, name: &str) {
        self.ids.lock().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
    use merganser_storage::{RealClock, StorageExt};

    use super::*;

    #[test]
    fn storages_lie_side_by_side_in_the_order_of_their_first_request() {
        let recorder = TraceRecorder::new(Arc::new(RealClock::new()), None);
        let folder = recorder.directory(MemoryDirectory::new());
        let input = recorder.storage(MemoryStorage::from_bytes("in", &[1; 5000]));
        let run = folder.create("run").expect("new");
        run.write_at(0, &[2; 3 << 20]).expect("written");
        input.read_at(4096, &mut [0; 8192]).expect("read");
        run.sync().expect("synced");
        drop(run);
        let again = folder.open("run", true).expect("there");
        again.run(Operation::Discard { offset: 4096, len: 4 << 20 }).expect("discarded");
        let seen: Vec<_> = recorder.requests().iter().map(|r| (r.kind, r.offset, r.len)).collect();
        let expected = [
            (RequestKind::Write, 0, 3 << 20),
            (RequestKind::Read, (3 << 20) + 4096, 904),
            (RequestKind::Flush, 0, 0),
            (RequestKind::Trim, 4096, (3 << 20) - 4096),
        ];
        assert_eq!(seen, expected);
        assert!(recorder.requests().is_sorted_by_key(|request| request.arrival));
    }

    #[test]
    fn a_name_keeps_its_place_until_it_is_another_file() {
        let recorder = TraceRecorder::new(Arc::new(RealClock::new()), None);
        let folder = recorder.directory(MemoryDirectory::new());
        folder.create("a").expect("new").write_at(0, b"a").expect("written");
        folder.rename("a", "b").expect("renamed");
        folder.open("b", true).expect("there").write_at(1, b"b").expect("written");
        folder.remove("b").expect("removed");
        folder.create("b").expect("new").write_at(0, b"c").expect("written");
        folder.create_unnamed().expect("new").write_at(7, b"d").expect("written");
        let offsets: Vec<_> = recorder.requests().iter().map(|request| request.offset).collect();
        assert_eq!(offsets, [0, 1, EXTENT, 2 * EXTENT + 7]);
    }

    /// The last page is shorter, and what is not written has no content.
    #[test]
    fn written_pages_have_hashes() {
        let hash: ContentHash = |bytes| (bytes.len() as u128) << 8 | u128::from(bytes[0]);
        let recorder = TraceRecorder::new(Arc::new(RealClock::new()), Some(hash));
        let storage = recorder.storage(MemoryStorage::from_bytes("in", &[1; 9000]));
        storage.read_at(0, &mut [0; 4096]).expect("read");
        storage.write_at(100, &[3; 50]).expect("written");
        storage.write_at(0, &[[1; 4096], [2; 4096]].concat()).expect("written");
        storage.write_at(512, &[[7; 4096].as_slice(), &[8; 1]].concat()).expect("written");
        storage.sync().expect("synced");
        let contents: Vec<_> = recorder.requests().into_iter().map(|it| it.content).collect();
        let pages = |of: &[(u128, u128)]| {
            Some(RequestHashes::Pages(of.iter().map(|(len, first)| len << 8 | first).collect()))
        };
        let one = Some(RequestHashes::Whole(50 << 8 | 3));
        let expected =
            [None, one, pages(&[(4096, 1), (4096, 2)]), pages(&[(4096, 7), (1, 8)]), None];
        assert_eq!(contents, expected);
    }
}
