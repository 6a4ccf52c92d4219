//! The map process: maps splits on request, for tasks that it does not trust.
//!
//! ```text
//!   accept ──► a thread per task ──► admission: a place, memory ──► replicas ──► map ──► frames
//!              idle ones go first    in the order of requests,      or refused   one thread
//!              when there are many   or busy
//! ```
//!
//! The harm that a client can do to others is bounded by numbers. Each map has one thread and an equal part of
//! the memory. The server waits 30 seconds for a request, a minute for room for a frame, 10 minutes for
//! another request; all requests that are here take at most [`BODIES_BYTES_MAX`]; connections are at most
//! [`CONNECTIONS_MAX`].

use std::fmt;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use merganser_server::{
    Address, ClientLimits, ConnectedClient, Connections, Incident, Presence, Service,
};

pub use merganser_server::{ListenError, Stopper};
use merganser_storage::contained::{self, Cause};
use merganser_storage::thread;
use parking_lot::Mutex;

pub use crate::talk::SocketBindError;

use super::answer::{AnswerFrames, FRAME_PATIENCE};
use super::counts::MapServerCounts;
use super::error::hex;
use super::mapper;
use super::module::{Compile, Modules};
use super::protocol::{
    FOLDER_BYTES_MAX, FOLDERS_MAX, HdfsErrorKind, HdfsRequest, Hello, MapFrame, MapServerState,
    RequestHead, VERSION,
};
use super::replica::state_of;
use super::task::memory_bytes_min as map_bytes_min;
use super::{
    DataDirs, FolderState, HdfsError, HdfsResult, MapCounters, MapRequest, MapTask, SsdletName,
};
use crate::message::sentence;
use crate::talk::{Events, Talk, TalkEnd, converse};
use merganser_map::admission::{
    Admission, AdmissionError, AdmissionLender, Demand, Permit, Shares,
};

/// The most connections at once. One more ends the one that is idle for longest.
pub const CONNECTIONS_MAX: usize = 256;
/// How long maps may take once the process was asked to end.
pub const DRAIN_PATIENCE: Duration = Duration::from_secs(8);
/// Bytes of requests that are here, waiting or running, at most.
pub const BODIES_BYTES_MAX: u64 = 32 << 20;
/// The least memory of a map, in bytes.
pub const MAP_BYTES_MIN: u64 = 8 << 20;

/// The least memory for `maps` maps at once, in bytes. One map alone gets three quarters of the memory.
#[must_use]
pub fn memory_bytes_min(maps: u32) -> u64 {
    (u64::from(maps) * MAP_BYTES_MIN).max((MAP_BYTES_MIN * 4).div_ceil(3))
}

/// What to serve where.
pub struct HdfsServerOptions {
    /// The socket's path.
    pub socket: PathBuf,
    /// The mode of its file.
    pub socket_mode: u32,
    /// The folders of the DataNode, as absolute paths.
    pub data_dirs: Vec<PathBuf>,
    /// Bytes for all maps together, which get equal parts: at least [`memory_bytes_min`].
    pub memory_bytes: u64,
    /// Maps at once.
    pub maps: u32,
    /// Compiles SSDlets that jobs bring; without it, they may bring none.
    pub compile: Option<Box<Compile>>,
    /// The version of the product, for clients that ask.
    pub product: String,
    /// Makes the sentence of an error, for clients and events: the program knows how its user can change
    /// what is refused.
    pub describe: Box<dyn Fn(&HdfsError) -> String + Send + Sync>,
    /// Gets one line per event, from the thread in which it happens.
    pub on_event: Box<dyn Fn(&str) + Send + Sync>,
}

/// A server that listens; [`HdfsServer::run`] serves.
pub struct HdfsServer {
    connections: Connections,
    admission: Arc<Admission>,
    /// The most memory of a map.
    map_bytes_max: u64,
    bodies: AtomicU64,
    dirs: DataDirs,
    /// Held while the folders are looked at: a disk that hangs takes one thread.
    looking: Mutex<()>,
    uploads: bool,
    modules: Modules,
    counts: MapServerCounts,
    options: HdfsServerOptions,
    events: Events,
}

/// A number that is smaller again when this is dropped.
struct GaugeGuard<'a>(&'a AtomicU64, u64);

impl Drop for GaugeGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl HdfsServer {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the socket cannot be listened on.
    pub fn bind(mut options: HdfsServerOptions) -> HdfsResult<Self, SocketBindError> {
        let limits = ClientLimits {
            connections_max: CONNECTIONS_MAX,
            idle_at_least: Duration::ZERO,
            drain: DRAIN_PATIENCE,
            ..ClientLimits::default()
        };
        let address = Address::Unix(options.socket.clone());
        let connections = Connections::listen(&address, options.socket_mode, limits)
            .map_err(|source| SocketBindError { socket: options.socket.clone(), source })?;
        let shares = Shares { memory_bytes: options.memory_bytes, threads: options.maps as usize };
        let tell = std::mem::replace(&mut options.on_event, Box::new(|_| ()));
        Ok(HdfsServer {
            connections,
            // As many can wait as can be connected.
            admission: Admission::new(shares, CONNECTIONS_MAX),
            // The admission gives one request at most three quarters of the memory.
            map_bytes_max: shares
                .one_max()
                .memory_bytes
                .min(options.memory_bytes / u64::from(options.maps.max(1))),
            bodies: AtomicU64::new(0),
            dirs: DataDirs::new(std::mem::take(&mut options.data_dirs)),
            looking: Mutex::new(()),
            uploads: options.compile.is_some(),
            counts: MapServerCounts::new(),
            modules: Modules::new(options.compile.take()),
            options,
            events: Events::new(tell),
        })
    }

    /// A handle that can end it from any thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.connections.stopper()
    }

    /// Serves until [`Stopper::stop`]. Then maps that run may end, within [`DRAIN_PATIENCE`].
    pub fn run(self) {
        let cut = self.connections.run(&self).cut_off;
        if cut > 0 {
            self.events.tell(&format!("{cut} maps were cut off by the end of the process"));
        }
    }

    /// Counts a request of `bytes` bytes among those that are here; `None` if there is no room.
    fn hold(&self, bytes: usize) -> Option<GaugeGuard<'_>> {
        let bytes = bytes as u64;
        let add = |held: u64| Some(held + bytes).filter(|all| *all <= BODIES_BYTES_MAX);
        self.bodies.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(GaugeGuard(&self.bodies, bytes))
    }

    fn hello(&self) -> Hello {
        let free = self.admission.free();
        Hello {
            version: VERSION,
            // A map has one thread.
            maps: self.options.maps - free.threads as u32,
            memory_bytes: self.options.memory_bytes - free.memory_bytes,
            maps_max: self.options.maps,
            memory_bytes_max: self.options.memory_bytes,
            ssdlets: mapper::names(),
            product: self.options.product.clone(),
        }
    }

    fn state(&self, with_folders: bool) -> MapServerState {
        let folders = if with_folders { self.folders() } else { Vec::new() };
        MapServerState {
            hello: self.hello(),
            uploads: self.uploads,
            totals: self.counts.totals(),
            folders,
        }
    }

    fn folders(&self) -> Vec<(FolderState, String)> {
        let looking = self.looking.try_lock();
        let state =
            |dir: &Path| if looking.is_some() { state_of(dir) } else { FolderState::Waiting };
        let folder = |dir: &Path| {
            let mut path = dir.to_string_lossy().into_owned();
            path.truncate(path.floor_char_boundary(FOLDER_BYTES_MAX));
            (state(dir), path)
        };
        self.dirs.paths().take(FOLDERS_MAX).map(folder).collect()
    }
}

impl Service for HdfsServer {
    const THREAD: &'static str = "map task";
    const STACK_BYTES: usize = 512 << 10;

    fn serve(&self, client: &ConnectedClient) {
        let (stream, presence) = (client.stream(), client.presence());
        let talk = Talk { stream, frame_patience: FRAME_PATIENCE };
        HdfsConnection { server: self, talk, presence }.serve();
    }

    fn notice(&self, incident: Incident<'_>) {
        match incident {
            Incident::NotAccepted(e) => self.events.tell(&format!("no connection taken: {e}")),
            Incident::Full { stream, connections_max } => {
                let what = format!("all {connections_max} connections are in use");
                self.counts.error(HdfsErrorKind::Busy);
                self.events.tell(&format!("task turned away: {what}"));
                let frame = error_frame(HdfsErrorKind::Busy, what);
                Talk::turn_away(stream, &frame.encode());
            }
            Incident::NoThread(e) => {
                self.counts.error(HdfsErrorKind::Busy);
                self.events.tell(&format!("task turned away: {e}"));
            }
            Incident::Panicked => {
                self.counts.error(HdfsErrorKind::Mistake);
                self.events.tell("a map was ended by a mistake in this program");
            }
        }
    }
}

/// One client, in its thread.
struct HdfsConnection<'a> {
    server: &'a HdfsServer,
    talk: Talk<'a>,
    presence: &'a Presence,
}

impl HdfsConnection<'_> {
    fn serve(&self) {
        converse(
            &self.server.events,
            "task",
            || self.next(),
            |why| {
                self.server.counts.error(HdfsErrorKind::Request);
                let _ = self.send(&error_frame(HdfsErrorKind::Request, why));
            },
        );
    }

    /// Takes one request and answers it.
    fn next(&self) -> HdfsResult<(), TalkEnd> {
        let (head, until) = self.talk.head(self.presence)?;
        // Nothing of it is used after a panic but the stream, where a frame may be cut: that ends it.
        let answered = contained::run(Cause::Mistake, || {
            self.answer(HdfsRequest::head(head).map_err(TalkEnd::Bad)?, until)
        });
        let answered = answered.unwrap_or_else(|_| {
            self.server.counts.error(HdfsErrorKind::Mistake);
            self.server.events.tell("a map was ended by a mistake in this program");
            let told = "a mistake in this program; its log has more".to_owned();
            let _ = self.send(&error_frame(HdfsErrorKind::Mistake, told));
            Err(TalkEnd::Gone)
        });
        self.presence.answered();
        answered
    }

    /// Takes the rest of a request and answers it.
    fn answer(&self, head: RequestHead, until: Instant) -> HdfsResult<(), TalkEnd> {
        let Some(_held) = self.server.hold(head.body_bytes) else {
            self.talk.discard(head.body_bytes, until)?;
            let what = "too many requests wait".to_owned();
            return self.refuse("a task", &HdfsError::Busy { what });
        };
        let mut body = vec![0; head.body_bytes];
        self.talk.receive(&mut body, until)?;
        let request = HdfsRequest::decode(head, body).map_err(TalkEnd::Bad)?;
        match request {
            HdfsRequest::Hello => self.send(&MapFrame::Hello(self.server.hello())),
            HdfsRequest::Map(request) => self.map(&request),
            HdfsRequest::Upload(module) => self.upload(&module),
            HdfsRequest::State { folders } => {
                self.send(&MapFrame::State(self.server.state(folders)))
            }
        }
    }

    fn upload(&self, module: &[u8]) -> HdfsResult<(), TalkEnd> {
        // The memory of a compilation is that of maps.
        let lender = AdmissionLender(Arc::clone(&self.server.admission));
        match in_own_thread(|| self.server.modules.add(module, &lender)) {
            Ok(module) => {
                let (sha256, description) = (hex(&module.sha256()), module.description());
                let name = &description.name;
                self.server.events.tell(&format!("a job brought the SSDlet {name}: {sha256}"));
                self.send(&MapFrame::Accepted { memory_bytes: description.worker_bytes })
            }
            Err(error) => self.refuse("an SSDlet of a job", &error),
        }
    }

    fn map(&self, request: &MapRequest) -> HdfsResult<(), TalkEnd> {
        let mut frames = AnswerFrames::new(self.talk);
        let mapped = match request.ssdlet {
            SsdletName::BuiltIn(_) => self.mapped(request, &mut frames),
            SsdletName::Module(_) => in_own_thread(|| self.mapped(request, &mut frames)),
        };
        let end = match mapped {
            Ok(counters) => {
                self.server.counts.done(&counters);
                return Ok(());
            }
            Err(error) => match frames.into_end() {
                Some(end) => end,
                None if matches!(error, HdfsError::Gone) => TalkEnd::Gone,
                None => return self.refuse(&request.attempt, &error),
            },
        };
        self.server.counts.left();
        Err(end)
    }

    /// Maps and sends all frames but that of an error.
    fn mapped(
        &self,
        request: &MapRequest,
        frames: &mut AnswerFrames<'_>,
    ) -> HdfsResult<MapCounters> {
        let program = mapper::find(request, &self.server.modules)?;
        // Held until the last frame is sent.
        let permit = self.admit(request, map_bytes_min(request, &program))?;
        let memory_bytes = permit.shares.memory_bytes;
        let task = MapTask::with(&program, request, &self.server.dirs, memory_bytes)?;
        frames.send(&MapFrame::Accepted { memory_bytes })?;
        let counters = task.run(frames)?;
        frames.send(&MapFrame::End(counters))?;
        Ok(counters)
    }

    /// Waits for a place with `least` bytes of memory or more.
    fn admit(&self, request: &MapRequest, least: u64) -> HdfsResult<Permit> {
        let most = self.server.map_bytes_max;
        let given = request.memory_bytes.min(most);
        if given < least {
            return Err(HdfsError::Memory { needed: least, given });
        }
        let demand = Demand { memory_bytes: given, memory_least_bytes: given, threads: 1 };
        let patience = Duration::from_millis(request.patience_ms.into());
        let gone = || self.talk.stream.is_hung_up();
        self.server.admission.take(demand, Some(patience), &gone).map_err(|error| match error {
            AdmissionError::Cancelled => HdfsError::Gone,
            error => HdfsError::Busy { what: error.to_string() },
        })
    }

    /// Tells the client and the log; the connection stays.
    fn refuse(&self, who: &str, error: &HdfsError) -> HdfsResult<(), TalkEnd> {
        let sentence = (self.server.options.describe)(error);
        self.server.counts.error(error.into());
        self.server.events.tell(&format!("{who}: not mapped: {sentence}"));
        self.send(&error_frame(error.into(), sentence))
    }

    fn send(&self, frame: &MapFrame) -> HdfsResult<(), TalkEnd> {
        self.talk.write(&mut [IoSlice::new(&frame.encode())])
    }
}

/// Does work that runs or compiles code of a job, whose stack is deep, and whose stack's memory must not stay with a
/// connection that is idle.
fn in_own_thread<T: Send>(work: impl FnOnce() -> HdfsResult<T> + Send) -> HdfsResult<T> {
    std::thread::scope(|scope| {
        let started = thread::spawn_scoped(scope, "ssdlet", work);
        let running = started.map_err(|error| HdfsError::Busy { what: error.to_string() })?;
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn error_frame(kind: HdfsErrorKind, told: String) -> MapFrame {
    MapFrame::Error { kind, sentence: sentence(told) }
}

impl fmt::Debug for HdfsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("admission", &self.admission).finish_non_exhaustive()
    }
}
