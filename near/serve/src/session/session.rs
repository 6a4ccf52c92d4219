//! One open session.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use merganser_storage::file::FileDirectory;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::holdings::{self, HeldBytes};
use super::meter::RunMeter;
use super::request::{NAMES_BYTES_MAX, RANGES_MAX, SessionRange, SetRequest};
use super::results::FinishedRows;
use super::scratch::{ScratchBytes, ScratchSpace};
use super::state::{SessionEvent, SessionState};
use super::{SessionError, SessionResult};
use merganser_map::MapReport;
use merganser_map::ssdlet::Ssdlet;

/// What a client learns about its session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// The session's id.
    pub session: String,
    /// Where it is.
    pub state: SessionState,
    /// Number of the run that it is in, or that it collects ranges for, from 1.
    pub run: u64,
    /// Ranges of that run.
    pub ranges: usize,
    /// Bytes of input that the run has.
    pub bytes_total: u64,
    /// Bytes of them that are done.
    pub bytes_done: u64,
    /// Fuel that guests used, or what built-in SSDlets count instead. Known at the end.
    pub metered: u64,
    /// Rows of the result. Known at the end.
    pub rows: u64,
    /// Bytes of the result on the node. Known at the end.
    pub output_bytes: u64,
    /// Bytes of results and blobs that the session keeps on the node.
    pub kept_bytes: u64,
    /// Memory and threads that the run got; 0 before it began.
    pub memory: u64,
    /// Threads that the run got; 0 before it began.
    pub threads: usize,
    /// Why the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The blobs, in the order of their names.
    pub blobs: Vec<BlobStatus>,
}

/// A blob of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobStatus {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// An SSDlet that was opened for a client.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) ssdlet: Box<dyn Ssdlet>,
    pub(super) memory_bytes: u64,
    pub(super) threads: usize,
    pub(super) temp: Arc<FileDirectory>,
    pub(super) space: Arc<ScratchSpace>,
    pub(super) inner: Mutex<Inner>,
    /// Memory of the open SSDlet.
    _held: Option<HeldBytes>,
}

pub(super) struct Inner {
    pub(super) state: SessionState,
    pub(super) run: u64,
    ranges: Arc<Vec<SessionRange>>,
    /// Bytes of the names in them.
    names_bytes: usize,
    /// Memory of them all.
    held: Vec<HeldBytes>,
    meter: Arc<RunMeter>,
    /// The results of the run, if it is done.
    pub(super) results: Option<Arc<FinishedRows>>,
    report: MapReport,
    /// The error of the run, if it failed.
    pub(super) error: Option<String>,
    granted: (u64, usize),
    pub(super) blobs: BTreeMap<String, Arc<ScratchBytes>>,
    /// Clients that are in the middle of something.
    pub(super) users: usize,
    pub(super) used_at: Instant,
    closed: bool,
    /// Called when the run is over, by the number of the GET that waits.
    pub(super) waiting: BTreeMap<u64, Box<dyn FnOnce() + Send>>,
    pub(super) next_getting: u64,
}

/// A run that may begin now.
pub(super) struct RunStart {
    pub(super) ranges: Arc<Vec<SessionRange>>,
    pub(super) meter: Arc<RunMeter>,
}

impl Session {
    pub(super) fn new(
        id: String,
        (ssdlet, held): (Box<dyn Ssdlet>, Option<HeldBytes>),
        (memory_bytes, threads): (u64, usize),
        temp: Arc<FileDirectory>,
        space: Arc<ScratchSpace>,
    ) -> Arc<Self> {
        let inner = Inner {
            state: SessionState::Open,
            run: 1,
            ranges: Arc::default(),
            names_bytes: 0,
            held: Vec::new(),
            meter: Arc::default(),
            results: None,
            report: MapReport::default(),
            error: None,
            granted: (0, 0),
            blobs: BTreeMap::new(),
            users: 0,
            used_at: Instant::now(),
            closed: false,
            waiting: BTreeMap::new(),
            next_getting: 0,
        };
        Arc::new(Session {
            id,
            ssdlet,
            memory_bytes,
            threads,
            temp,
            space,
            inner: Mutex::new(inner),
            _held: held,
        })
    }

    /// Memory that has to be reserved before the ranges of `request` are added.
    pub(super) fn due(&self, request: &SetRequest) -> u64 {
        let inner = self.inner.lock();
        let bytes = |ranges: &[SessionRange], names: usize| (size_of_val(ranges) + names) as u64;
        let names = request.ranges.iter().map(SessionRange::name_bytes).sum();
        let wanted = bytes(&request.ranges, names);
        match inner.state {
            SessionState::Open => {
                let held = inner.held.iter().map(HeldBytes::bytes).sum();
                holdings::due(wanted + bytes(&inner.ranges, inner.names_bytes), held)
            }
            _ => holdings::due(wanted, 0),
        }
    }

    /// Adds ranges to the run that comes next, with the memory that was [due](Session::due).
    pub(super) fn set(&self, request: &SetRequest, held: Option<HeldBytes>) -> SessionResult<()> {
        let mut inner = self.inner.lock();
        self.check_open(&inner)?;
        inner.used_at = Instant::now();
        let next = inner.state.after(SessionEvent::Set)?;
        for range in &request.ranges {
            range.source()?;
        }
        let (earlier, earlier_bytes) = match inner.state {
            SessionState::Open => (inner.ranges.len(), inner.names_bytes),
            _ => (0, 0),
        };
        if earlier + request.ranges.len() > RANGES_MAX {
            let told =
                format!("a run has at most {RANGES_MAX} ranges; use longer ones, or a further run");
            return Err(SessionError::Invalid(told));
        }
        let names_bytes =
            earlier_bytes + request.ranges.iter().map(SessionRange::name_bytes).sum::<usize>();
        if names_bytes > NAMES_BYTES_MAX {
            let told = format!(
                "the names in the ranges of a run have at most {NAMES_BYTES_MAX} bytes together; use a further run"
            );
            return Err(SessionError::Invalid(told));
        }
        if inner.state != SessionState::Open {
            inner.run += 1;
            inner.ranges = Arc::default();
            inner.held.clear();
            inner.meter = Arc::default();
            inner.results = None;
            inner.report = MapReport::default();
            inner.error = None;
            inner.granted = (0, 0);
        }
        inner.state = next;
        inner.names_bytes = names_bytes;
        inner.held.extend(held);
        // No run has them yet, so nothing is copied.
        Arc::make_mut(&mut inner.ranges).extend_from_slice(&request.ranges);
        Ok(())
    }

    /// Has the run begin, if it has not. Returns its number, and its ranges if the caller must start it.
    pub(super) fn begin(&self) -> SessionResult<(u64, Option<RunStart>)> {
        let mut inner = self.inner.lock();
        self.check_open(&inner)?;
        inner.used_at = Instant::now();
        if inner.state == SessionState::Open && inner.ranges.is_empty() {
            let told = "the session has no input yet: set ranges first";
            return Err(SessionError::State(told.to_owned()));
        }
        let was = inner.state;
        inner.state = inner.state.after(SessionEvent::Begin)?;
        let begins = was == SessionState::Open;
        let begun =
            || RunStart { ranges: Arc::clone(&inner.ranges), meter: Arc::clone(&inner.meter) };
        Ok((inner.run, begins.then(begun)))
    }

    /// The run got memory and threads.
    pub(super) fn admitted(&self, memory_bytes: u64, threads: usize) {
        let mut inner = self.inner.lock();
        inner.granted = (memory_bytes, threads);
        inner.state = inner.state.after(SessionEvent::Admitted).expect("a queued run");
    }

    /// The run is over.
    pub(super) fn ended(&self, result: SessionResult<(FinishedRows, MapReport)>) {
        let mut inner = self.inner.lock();
        inner.used_at = Instant::now();
        let event = match result {
            Ok((results, report)) => {
                inner.results = Some(Arc::new(results));
                inner.report = report;
                SessionEvent::Finished
            }
            Err(SessionError::Cancelled) => SessionEvent::Stopped,
            Err(error) => {
                inner.error = Some(error.to_string());
                SessionEvent::Failed
            }
        };
        inner.state = inner.state.after(event).expect("a run under way");
        let waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        waiting.into_values().for_each(|call| call());
    }

    /// Asks the run to end.
    pub(super) fn cancel(&self) {
        let mut inner = self.inner.lock();
        inner.used_at = Instant::now();
        inner.cancel();
    }

    /// Marks it as closed and ends its run. A request that has found it before begins no other one.
    pub(super) fn close(&self) {
        let mut inner = self.inner.lock();
        inner.closed = true;
        inner.cancel();
    }

    pub(super) fn check_open(&self, inner: &Inner) -> SessionResult<()> {
        match inner.closed {
            false => Ok(()),
            true => Err(SessionError::NoSession { id: self.id.clone() }),
        }
    }

    /// Whether no client has used it for `idle`, and no run is under way.
    pub(super) fn is_idle(&self, idle: Duration) -> bool {
        let inner = self.inner.lock();
        inner.users == 0 && !inner.state.is_busy() && inner.used_at.elapsed() >= idle
    }

    pub(super) fn status(&self) -> SessionStatus {
        let mut inner = self.inner.lock();
        inner.used_at = Instant::now();
        let results = inner.results.as_ref();
        SessionStatus {
            session: self.id.clone(),
            state: inner.state,
            run: inner.run,
            ranges: inner.ranges.len(),
            bytes_total: inner.meter.bytes_total.load(Ordering::Relaxed),
            bytes_done: inner.meter.bytes_done(),
            metered: inner.report.metered,
            rows: results.map_or(0, |results| results.rows()),
            output_bytes: results.map_or(0, |results| results.bytes()),
            kept_bytes: self.space.used_bytes(),
            memory: inner.granted.0,
            threads: inner.granted.1,
            error: inner.error.clone(),
            blobs: inner
                .blobs
                .iter()
                .map(|(name, blob)| BlobStatus { name: name.clone(), bytes: blob.bytes })
                .collect(),
        }
    }

    /// The blob called `name`.
    pub(super) fn blob(&self, name: &str) -> SessionResult<Arc<ScratchBytes>> {
        let inner = self.inner.lock();
        let found = inner.blobs.get(name).cloned();
        found.ok_or_else(|| SessionError::Missing(format!("the session has no blob called {name}")))
    }
}

impl Inner {
    fn cancel(&self) {
        if self.state.is_busy() {
            self.meter.cancelled.store(true, Ordering::Relaxed);
        }
    }
}
