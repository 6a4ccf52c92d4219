//! What clients are in the middle of: a GET, or the PUT of a blob. Meanwhile a session does not become idle.

use std::sync::Arc;
use std::time::Instant;

use super::request::check_blob_name;
use super::results::Results;
use super::scratch::Writer;
use super::session::{BlobStatus, Session};
use super::state::State;
use super::{Result, SessionError};
use crate::ssdlet::Ssdlet;

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
    pub(super) fn new(session: &Arc<Session>) -> Self {
        let session = InUse::new(session);
        let mut inner = session.0.inner.lock();
        let (number, run) = (inner.next_getting, inner.run);
        inner.next_getting += 1;
        drop(inner);
        Getting { session, number, run }
    }

    /// Calls `call` when the run is over: now, if it is. It is not called if this is dropped before, and not if
    /// another call follows.
    pub fn when_over(&self, call: impl FnOnce() + Send + 'static) {
        let mut inner = self.session.0.inner.lock();
        if inner.state.is_busy() {
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
    /// Why there are none.
    pub fn results(&self) -> Result<Option<Arc<Results>>> {
        let inner = self.session.0.inner.lock();
        match inner.state {
            _ if inner.run != self.run => {
                Err(SessionError::State("another set began a new run meanwhile".to_owned()))
            }
            State::Queued | State::Running => Ok(None),
            State::Done => Ok(inner.results.clone()),
            State::Cancelled => Err(SessionError::Cancelled),
            State::Failed => Err(SessionError::Failed(inner.error.clone().unwrap_or_default())),
            State::Open => Err(SessionError::State("the run has not begun".to_owned())),
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
    writer: Writer,
}

impl BlobWriter {
    pub(super) fn new(session: &Arc<Session>, name: &str) -> Result<Self> {
        check_blob_name(name)?;
        let blobs = session.inner.lock().blobs.len();
        if blobs >= BLOBS_MAX {
            return Err(SessionError::Invalid(format!("a session has at most {BLOBS_MAX} blobs")));
        }
        let writer = Writer::new(&session.temp, &session.space)?;
        Ok(BlobWriter { session: InUse::new(session), name: name.to_owned(), writer })
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// When the session may keep no more, or the disk fails.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.write(bytes)
    }

    /// Names the blob, which replaces an earlier one of this name. Without it, nothing is kept.
    ///
    /// # Errors
    /// As [`BlobWriter::write`]; when the session was closed or has too many blobs by now.
    pub fn finish(self) -> Result<BlobStatus> {
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
