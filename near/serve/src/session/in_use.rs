//! Requests of clients under way: a GET, or the PUT of a blob. Meanwhile a session does not become idle.

use std::sync::Arc;
use std::time::Instant;

use super::request::check_blob_name;
use super::results::FinishedRows;
use super::scratch::ScratchWriter;
use super::session::{BlobStatus, Session};
use super::state::SessionState;
use super::{SessionError, SessionResult};
use merganser_map::ssdlet::Ssdlet;

/// The most blobs of a session.
const BLOBS_MAX: usize = 64;

/// Keeps a session from becoming idle.
struct InUse(Arc<Session>);

impl InUse {
    fn new(session: &Arc<Session>) -> Self {
        session.inner.lock().users += 1;
        InUse(Arc::clone(session))
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut inner = self.0.inner.lock();
        inner.users -= 1;
        inner.used_at = Instant::now();
    }
}

/// A GET under way, of the run that the session was in when it came.
pub struct Getting {
    session: InUse,
    number: u64,
    run: u64,
}

impl Getting {
    /// A GET of `run`. The caller has its number from when it looked at the session: by now, another client may
    /// have set a later run.
    pub(super) fn new(session: &Arc<Session>, run: u64) -> Self {
        let session = InUse::new(session);
        let mut inner = session.0.inner.lock();
        let number = inner.next_getting;
        inner.next_getting += 1;
        drop(inner);
        Getting { session, number, run }
    }

    /// Calls `call` when the run is over: now, if it is. It is not called if this is dropped before, and not if
    /// another call follows.
    pub fn when_over(&self, call: impl FnOnce() + Send + 'static) {
        let mut inner = self.session.0.inner.lock();
        if inner.run == self.run && inner.state.is_busy() {
            inner.waiting.insert(self.number, Box::new(call));
        } else {
            drop(inner);
            call();
        }
    }

    /// The results; `None` while the run is under way. Once it is over, they are never `None`: those of a later run
    /// are not for this GET.
    ///
    /// # Errors
    /// The reason if there are no results.
    pub fn results(&self) -> SessionResult<Option<Arc<FinishedRows>>> {
        let inner = self.session.0.inner.lock();
        match inner.state {
            _ if inner.run != self.run => {
                Err(SessionError::State("another set began a new run meanwhile".to_owned()))
            }
            SessionState::Queued | SessionState::Running => Ok(None),
            SessionState::Done => Ok(inner.results.clone()),
            SessionState::Cancelled => Err(SessionError::Cancelled),
            SessionState::Failed => {
                Err(SessionError::Failed(inner.error.clone().unwrap_or_default()))
            }
            SessionState::Open => Err(SessionError::State("the run has not begun".to_owned())),
        }
    }

    /// The SSDlet, whose description says what rows are.
    #[must_use]
    pub fn ssdlet(&self) -> &dyn Ssdlet {
        &*self.session.0.ssdlet
    }
}

impl Drop for Getting {
    /// A client that asks again and again during a long run leaves nothing.
    fn drop(&mut self) {
        let forgotten = self.session.0.inner.lock().waiting.remove(&self.number);
        // Not under the lock: it may be anything.
        drop(forgotten);
    }
}

/// Takes the bytes of a blob.
pub struct BlobWriter {
    session: InUse,
    name: String,
    writer: ScratchWriter,
}

impl BlobWriter {
    pub(super) fn new(session: &Arc<Session>, name: &str) -> SessionResult<Self> {
        check_blob_name(name)?;
        let blobs = session.inner.lock().blobs.len();
        if blobs >= BLOBS_MAX {
            return Err(SessionError::Invalid(format!("a session has at most {BLOBS_MAX} blobs")));
        }
        let writer = ScratchWriter::new(&session.temp, &session.space)?;
        Ok(BlobWriter { session: InUse::new(session), name: name.to_owned(), writer })
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// When the session may keep no more, or the disk fails.
    pub fn write(&mut self, bytes: &[u8]) -> SessionResult<()> {
        self.writer.write(bytes)
    }

    /// Names the blob, which replaces an earlier one of this name. Without it, nothing is kept.
    ///
    /// # Errors
    /// As [`BlobWriter::write`]; when the session was closed or has too many blobs by now.
    pub fn finish(self) -> SessionResult<BlobStatus> {
        let BlobWriter { session, name, writer } = self;
        let kept = writer.finish()?;
        let bytes = kept.bytes;
        let mut inner = session.0.inner.lock();
        session.0.check_open(&inner)?;
        if inner.blobs.len() >= BLOBS_MAX && !inner.blobs.contains_key(&name) {
            return Err(SessionError::Invalid(format!("a session has at most {BLOBS_MAX} blobs")));
        }
        inner.blobs.insert(name.clone(), Arc::new(kept));
        drop(inner);
        Ok(BlobStatus { name, bytes })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use merganser_storage::file::FileDirectory;
    use serde_json::json;

    use super::super::request::{SessionRange, SetRequest};
    use super::super::scratch::ScratchSpace;
    use super::*;
    use merganser_map::ssdlet::builtin;

    /// Another client may set the next run after this one has looked at the session, and begin it at any time.
    #[test]
    fn a_get_is_of_the_run_that_it_found() {
        let dir = tempfile::tempdir().expect("a folder");
        let temp = FileDirectory::open(dir.path()).expect("there");
        let ssdlet = builtin::open("wordcount", &json!({})).expect("built in");
        let id = "session".to_owned();
        let session = Session::new(id, (ssdlet, None), (1 << 20, 1), temp, ScratchSpace::new(0));
        let set = SetRequest { ranges: vec![SessionRange::of_path("a")], run: false };
        session.set(&set, None).expect("open");
        let (first, begun) = session.begin().expect("ranges");
        assert!(begun.is_some());
        session.ended(Err(SessionError::Failed("as asked".to_owned())));
        let (found, begun) = session.begin().expect("over");
        assert_eq!((found, begun.is_some()), (first, false));

        session.set(&set, None).expect("over");
        let getting = Getting::new(&session, found);
        let is_over = || {
            let over = Arc::new(AtomicBool::new(false));
            let told = Arc::clone(&over);
            getting.when_over(move || told.store(true, Ordering::Relaxed));
            over.load(Ordering::Relaxed)
        };
        assert!(is_over());
        session.begin().expect("ranges");
        assert!(is_over(), "it does not wait for the next run");
        assert!(matches!(getting.results(), Err(SessionError::State(_))), "nor gets its results");
    }
}
