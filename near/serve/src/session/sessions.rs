//! All sessions of a server.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use merganser_storage::file::FileDirectory;
use merganser_storage::thread::spawn;
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};

use super::catalog::{Catalog, Offered, SsdletOpener};
use super::data::DataFolder;
use super::holdings::Holdings;
use super::in_use::{BlobWriter, Getting};
use super::request::{OpenRequest, SetRequest};
use super::run::{self, MEMORY_BYTES_MIN};
use super::scratch::ScratchSpace;
use super::session::{Session, SessionStatus};
use super::{SessionError, SessionResult};
use merganser_map::admission::{Admission, AdmissionLender, Demand, Permit, Shares};
use merganser_map::ssdlet::SsdletDescription;

/// Streams that may wait for memory at once.
const WAITING_STREAMS_MAX: usize = 64;
/// How long a stream waits for memory.
const STREAM_PATIENCE: Duration = Duration::from_secs(30);
/// The share of the memory that is for streams of results and views, 1 / 4; runs get the rest. So a
/// long run never keeps a client from its results.
const STREAM_SHARE: u64 = 4;
/// A stream gets at most this fraction of the memory for streams, 1 / 8: a few large ones leave room for others.
const STREAMS_SHARE: u64 = 8;
/// A run gets this fraction of the memory for runs if its session does not say, 1 / 4.
const RUN_SHARE: u64 = 4;

/// The limits of a server's sessions.
pub struct SessionOptions {
    /// The folder below which files and views may be read.
    pub data: PathBuf,
    /// Where runs spill, and where results and blobs are kept, in files without a name.
    pub temp: Arc<FileDirectory>,
    /// Memory of all runs and streams together, in bytes.
    pub memory_bytes: u64,
    /// Threads of all runs together.
    pub threads: usize,
    /// Sessions at once.
    pub sessions_max: usize,
    /// How long a session may be idle.
    pub idle: Duration,
    /// Bytes of results and blobs that one session may keep.
    pub scratch_bytes: u64,
    /// Opens SSDlets that are not built in.
    pub opener: Arc<dyn SsdletOpener>,
}

/// The answer to OPEN.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenedSession {
    /// The id, which only this client knows.
    pub session: String,
    /// The SSDlet's formats and options.
    pub description: SsdletDescription,
    /// A run gives at most this many rows, those with the least keys; nothing for all. The rows of several
    /// runs are then not those of all input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_most: Option<u64>,
    /// Memory that a run asks for, in bytes.
    pub memory: u64,
    /// Threads that a run asks for.
    pub threads: usize,
}

/// What a server offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// The SSDlets.
    pub ssdlets: Vec<Offered>,
    /// Open sessions.
    pub sessions: usize,
    /// The most of them.
    pub sessions_max: usize,
    /// Memory of a server's runs together, in bytes.
    pub memory: u64,
    /// Threads of a server's runs together.
    pub threads: usize,
}

/// Memory of a stream, given back when dropped.
#[derive(Debug)]
pub struct Grant {
    permit: Permit,
}

impl Grant {
    /// How much it is, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.permit.shares.memory_bytes
    }
}

/// The sessions of a server, and what they share.
pub struct Sessions {
    shared: Arc<SessionResources>,
    reaper: Option<std::thread::JoinHandle<()>>,
}

struct SessionResources {
    data: DataFolder,
    catalog: Catalog,
    temp: Arc<FileDirectory>,
    runs: Arc<Admission>,
    /// Lends of the memory for runs.
    lender: AdmissionLender,
    holdings: Holdings,
    streams: Arc<Admission>,
    sessions_max: usize,
    idle: Duration,
    scratch_bytes: u64,
    all: Mutex<SessionTable>,
    changed: Condvar,
}

#[derive(Default)]
struct SessionTable {
    sessions: HashMap<String, Arc<Session>>,
    /// Runs under way, of closed sessions as well.
    runs: usize,
    ending: bool,
}

impl Sessions {
    /// Begins with none.
    ///
    /// # Errors
    /// When there is no thread for the end of idle sessions.
    pub fn new(options: SessionOptions) -> io::Result<Self> {
        let streams_bytes = options.memory_bytes / STREAM_SHARE;
        let runs =
            Shares { memory_bytes: options.memory_bytes - streams_bytes, threads: options.threads };
        // Threads of streams are bounded by the door.
        let streams = Shares { memory_bytes: streams_bytes, threads: usize::MAX };
        // A session has one run at most, and runs of closed ones end soon.
        let runs = Admission::new(runs, 2 * options.sessions_max);
        let shared = Arc::new(SessionResources {
            data: DataFolder::new(options.data),
            catalog: Catalog::new(options.opener),
            temp: options.temp.private(),
            lender: AdmissionLender(Arc::clone(&runs)),
            holdings: Holdings::new(Arc::clone(&runs)),
            runs,
            streams: Admission::new(streams, WAITING_STREAMS_MAX),
            sessions_max: options.sessions_max,
            idle: options.idle,
            scratch_bytes: options.scratch_bytes,
            all: Mutex::default(),
            changed: Condvar::new(),
        });
        let reaped = Arc::clone(&shared);
        let reaper = spawn("idle sessions", move || reaped.reap())?;
        Ok(Sessions { shared, reaper: Some(reaper) })
    }

    /// Files and views.
    #[must_use]
    pub fn data(&self) -> &DataFolder {
        &self.shared.data
    }

    /// OPEN.
    ///
    /// # Errors
    /// When there are too many sessions, no such SSDlet, or arguments that make no sense.
    pub fn open(&self, request: &OpenRequest) -> SessionResult<OpenedSession> {
        let shared = &*self.shared;
        shared.check_room(&shared.all.lock())?;
        let (args, limits) = (request.arguments()?, request.guest_limits()?);
        let ssdlet = shared.catalog.open(request.wanted()?, &args, limits, &shared.lender)?;
        let held = shared.holdings.hold(ssdlet.held_bytes())?;
        let all = shared.runs.all();
        let one = all.one_max();
        let memory = request.memory.unwrap_or(all.memory_bytes / RUN_SHARE);
        let memory = memory.max(MEMORY_BYTES_MIN).min(one.memory_bytes);
        let threads = request.threads.unwrap_or(one.threads).clamp(1, one.threads);
        let opened = OpenedSession {
            session: new_id().map_err(|e| SessionError::Failed(format!("no random id: {e}")))?,
            description: ssdlet.description().clone(),
            rows_most: ssdlet.rows_most(),
            memory,
            threads,
        };
        let id = opened.session.clone();
        let space = ScratchSpace::new(shared.scratch_bytes);
        let temp = Arc::clone(&shared.temp);
        let session = Session::new(id.clone(), (ssdlet, held), (memory, threads), temp, space);
        let mut all = shared.all.lock();
        shared.check_room(&all)?;
        all.sessions.insert(id, session);
        Ok(opened)
    }

    /// SET.
    ///
    /// # Errors
    /// When a run is under way, or a range can't be.
    pub fn set(&self, id: &str, request: &SetRequest) -> SessionResult<SessionStatus> {
        let session = self.session(id)?;
        let held = self.shared.holdings.hold(session.due(request))?;
        session.set(request, held)?;
        if request.run {
            self.begin(&session)?;
        }
        Ok(session.status())
    }

    /// GET: begins the run if it has not begun.
    ///
    /// # Errors
    /// When there is no input, or no thread for the run.
    pub fn get(&self, id: &str) -> SessionResult<Getting> {
        let session = self.session(id)?;
        let run = self.begin(&session)?;
        Ok(Getting::new(&session, run))
    }

    /// A session in use, without a run being begun: to learn what its rows are.
    ///
    /// # Errors
    /// When there is no such session.
    pub fn look(&self, id: &str) -> SessionResult<Getting> {
        let session = self.session(id)?;
        let run = session.inner.lock().run;
        Ok(Getting::new(&session, run))
    }

    /// The first half of GET: how far the run is.
    ///
    /// # Errors
    /// When there is no such session.
    pub fn status(&self, id: &str) -> SessionResult<SessionStatus> {
        Ok(self.session(id)?.status())
    }

    /// PUT: a blob called `name`.
    ///
    /// # Errors
    /// When the name can't be, or there are too many.
    pub fn put(&self, id: &str, name: &str) -> SessionResult<BlobWriter> {
        BlobWriter::new(&self.session(id)?, name)
    }

    /// Asks the run to end.
    ///
    /// # Errors
    /// When there is no such session.
    pub fn cancel(&self, id: &str) -> SessionResult<SessionStatus> {
        let session = self.session(id)?;
        session.cancel();
        Ok(session.status())
    }

    /// CLOSE. The memory of a run under way goes back when it notices.
    ///
    /// # Errors
    /// When there is no such session.
    pub fn close(&self, id: &str) -> SessionResult<()> {
        let removed = self.shared.all.lock().sessions.remove(id);
        removed.ok_or_else(|| no_session(id))?.close();
        Ok(())
    }

    /// What this server offers.
    #[must_use]
    pub fn list(&self) -> Listing {
        let all = self.shared.runs.all();
        Listing {
            ssdlets: self.shared.catalog.list(),
            sessions: self.shared.all.lock().sessions.len(),
            sessions_max: self.shared.sessions_max,
            memory: all.memory_bytes,
            threads: all.threads,
        }
    }

    /// Verifies and keeps an SSDlet of a client.
    ///
    /// # Errors
    /// When the bytes are not an SSDlet.
    pub fn upload(&self, sha256: &str, bytes: &[u8]) -> SessionResult<SsdletDescription> {
        self.shared.catalog.upload(sha256, bytes, &self.shared.lender)
    }

    /// Memory for a stream: `memory_bytes`, or less but at least `least_bytes`. One stream gets at most an eighth of the
    /// memory for streams, unless `least_bytes` is more. It waits for its turn, and calls `waiting` from time to time
    /// meanwhile: for streams of others that have stopped to be ended.
    ///
    /// # Errors
    /// [`SessionError::Busy`] after 30 seconds; when there never is as much.
    pub fn stream_memory(
        &self,
        memory_bytes: u64,
        least_bytes: u64,
        waiting: &dyn Fn(),
    ) -> SessionResult<Grant> {
        let streams = &self.shared.streams;
        let share = (streams.all().memory_bytes / STREAMS_SHARE).max(least_bytes);
        let memory_bytes = memory_bytes.min(share);
        let demand = Demand { memory_bytes, memory_least_bytes: least_bytes, threads: 1 };
        let wait = || {
            waiting();
            false
        };
        let permit = streams.take(demand, Some(STREAM_PATIENCE), &wait)?;
        Ok(Grant { permit })
    }

    /// Ends all sessions, and waits up to `patience` for their runs.
    pub fn end(&self, patience: Duration) {
        let until = Instant::now() + patience;
        let mut all = self.shared.all.lock();
        all.ending = true;
        let sessions: Vec<_> = all.sessions.drain().map(|(_, session)| session).collect();
        self.shared.changed.notify_all();
        drop(all);
        sessions.iter().for_each(|session| session.close());
        let mut all = self.shared.all.lock();
        while all.runs > 0 {
            if self.shared.changed.wait_until(&mut all, until).timed_out() {
                break;
            }
        }
    }

    fn session(&self, id: &str) -> SessionResult<Arc<Session>> {
        let all = self.shared.all.lock();
        all.sessions.get(id).cloned().ok_or_else(|| no_session(id))
    }

    /// Starts the run of `session` if it has not begun, and returns its number.
    fn begin(&self, session: &Arc<Session>) -> SessionResult<u64> {
        let (number, begun) = session.begin()?;
        let Some(begun) = begun else { return Ok(number) };
        self.shared.all.lock().runs += 1;
        let (shared, running) = (Arc::clone(&self.shared), Arc::clone(session));
        let started = spawn("run", move || {
            run::run(&running, &begun, &shared.runs, &shared.data);
            drop(running);
            shared.run_ended();
        });
        if let Err(error) = started {
            self.shared.run_ended();
            session.ended(Err(SessionError::Failed(error.to_string())));
        }
        Ok(number)
    }
}

impl SessionResources {
    fn check_room(&self, all: &SessionTable) -> SessionResult<()> {
        if all.ending {
            return Err(SessionError::Busy { what: "this server is ending".to_owned() });
        }
        if all.sessions.len() >= self.sessions_max {
            let what = format!("all {} sessions are open", self.sessions_max);
            return Err(SessionError::Busy { what });
        }
        Ok(())
    }

    fn run_ended(&self) {
        self.all.lock().runs -= 1;
        self.changed.notify_all();
    }

    /// Closes sessions that are idle, until the server ends.
    fn reap(&self) {
        let pause = (self.idle / 8).clamp(Duration::from_millis(10), Duration::from_secs(5));
        let mut all = self.all.lock();
        while !all.ending {
            self.changed.wait_for(&mut all, pause);
            let idle: Vec<String> = all
                .sessions
                .iter()
                .filter(|(_, session)| session.is_idle(self.idle))
                .map(|(id, _)| id.clone())
                .collect();
            let closed: Vec<_> = idle.iter().filter_map(|id| all.sessions.remove(id)).collect();
            parking_lot::MutexGuard::unlocked(&mut all, || {
                closed.iter().for_each(|session| session.close());
                drop(closed);
            });
        }
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
        if let Some(reaper) = self.reaper.take() {
            // Its only work is to end sessions, which is done.
            let _ = reaper.join();
        }
    }
}

fn no_session(id: &str) -> SessionError {
    let mut id = id.to_owned();
    id.truncate(id.floor_char_boundary(64));
    SessionError::NoSession { id }
}

/// 128 random bits in hexadecimal digits: so that no client guesses the session of another.
fn new_id() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
