//! The merge process: merges on request, for clients that it does not trust.
//!
//! ```text
//!   accept ──► a thread per client ────► admission ──► open in a local folder ──► merge ──► frames
//!              idle ones go first         or busy       or refused                 one buffer
//!              when there are many
//! ```
//!
//! The harm that a client can do to others is bounded by numbers, each a constant here or an option. The
//! server waits for bytes of a request for at most 30 seconds, for room for a frame
//! [`FRAME_PATIENCE`], for another request 10 minutes; a merge takes one buffer of 256 KiB beyond what was granted
//! to it; connections take a thread with a small stack each and are at most [`CONNECTIONS_MAX`].

use std::fmt;
use std::io::IoSlice;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use merganser_server::{
    Address, ClientLimits, ClientStream, ConnectedClient, Connections, Incident, Presence, Service,
};

pub use merganser_server::Stopper;
use merganser_storage::contained::{self, Cause};

pub use crate::talk::SocketBindError;

use super::admission::{MergeAdmission, MergeTicket};
use super::error::Shortage;
use super::local_dirs::LocalDirs;
use super::protocol::{
    MergeFrame, MergeRequest, RequestHead, ShuffleErrorKind, ShuffleRequest, VERSION, frame_head,
};
use super::segment::forget;
use super::{SegmentMerge, SegmentSpec, ShuffleError, WritableOrder};
use crate::message::sentence;
use crate::talk::{Events, Talk, TalkEnd, converse};

/// The most connections at once. One more ends the one that is idle for longest.
pub const CONNECTIONS_MAX: usize = 1024;
/// How long a client may take to make room for one more frame of 256 KiB: a reducer that holds a stream
/// while it merges what it has needs seconds, and minutes on a bad day.
pub const FRAME_PATIENCE: Duration = Duration::from_secs(300);
/// How long merges may take once the process was asked to end.
pub const DRAIN_PATIENCE: Duration = Duration::from_secs(8);

/// Bytes of data in a frame, and of the buffer that they are merged into.
const DATA_BYTES: usize = 256 << 10;
/// Bytes that are skipped before it is looked whether the client is still there.
const SKIP_BYTES: u64 = 16 << 20;

/// What to serve where.
pub struct ShuffleServerOptions {
    /// The socket's path.
    pub socket: PathBuf,
    /// The mode of its file.
    pub socket_mode: u32,
    /// Folders, as absolute paths: only files below them are opened.
    pub local_dirs: Vec<PathBuf>,
    /// Bytes that all merges together may take, and requests while they arrive.
    pub memory_bytes: u64,
    /// Merges at once.
    pub merges: u32,
    /// Whether the system's cache may keep the spills that were served. Otherwise it is asked to drop them,
    /// since hardly any is fetched twice.
    pub keep_cache: bool,
    /// The version of the product, for clients that ask.
    pub product: String,
    /// Makes the sentence of an error, for clients and events: the program knows how its user can change
    /// what is refused.
    pub describe: Box<dyn Fn(&ShuffleError) -> String + Send + Sync>,
    /// Gets one line per event, from the thread in which it happens.
    pub on_event: Box<dyn Fn(&str) + Send + Sync>,
}

/// A server that listens; [`ShuffleServer::run`] serves.
pub struct ShuffleServer {
    connections: Connections,
    admission: Arc<MergeAdmission>,
    dirs: LocalDirs,
    keep_cache: bool,
    product: String,
    describe: Box<dyn Fn(&ShuffleError) -> String + Send + Sync>,
    events: Events,
}

impl ShuffleServer {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the socket cannot be listened on.
    pub fn bind(options: ShuffleServerOptions) -> Result<Self, SocketBindError> {
        let ShuffleServerOptions { socket, socket_mode, memory_bytes, merges, .. } = options;
        let limits = ClientLimits {
            connections_max: CONNECTIONS_MAX,
            idle_at_least: Duration::ZERO,
            drain: DRAIN_PATIENCE,
            ..ClientLimits::default()
        };
        let address = Address::Unix(socket.clone());
        let connections = Connections::listen(&address, socket_mode, limits)
            .map_err(|source| SocketBindError { socket, source })?;
        Ok(ShuffleServer {
            connections,
            admission: MergeAdmission::new(merges, memory_bytes),
            dirs: LocalDirs::new(options.local_dirs),
            keep_cache: options.keep_cache,
            product: options.product,
            describe: options.describe,
            events: Events::new(options.on_event),
        })
    }

    /// A handle that can end it from any thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.connections.stopper()
    }

    /// Serves until [`Stopper::stop`]. Then merges that run may end, within [`DRAIN_PATIENCE`].
    pub fn run(self) {
        let cut = self.connections.run(&self).cut_off;
        if cut > 0 {
            self.events.tell(&format!("{cut} merges were cut off by the end of the process"));
        }
    }

    /// Says why to a client that is not served.
    fn turn_away(&self, stream: &ClientStream, why: &ShuffleError) {
        let frame = error_frame(why.into(), (self.describe)(why)).encode();
        Talk::turn_away(stream, &frame);
    }
}

impl Service for ShuffleServer {
    const THREAD: &'static str = "shuffle";
    /// A merge recurses nowhere.
    const STACK_BYTES: usize = 256 << 10;

    fn serve(&self, client: &ConnectedClient) {
        let (stream, presence) = (client.stream(), client.presence());
        let talk = Talk { stream, frame_patience: FRAME_PATIENCE };
        ShuffleConnection { server: self, talk, presence }.serve();
    }

    fn notice(&self, incident: Incident<'_>) {
        match incident {
            Incident::NotAccepted(e) => self.events.tell(&format!("no connection taken: {e}")),
            Incident::Full { stream, connections_max } => {
                let shortage = Shortage::Connections { max: connections_max };
                self.events.tell(&format!("client turned away: {shortage}"));
                self.turn_away(stream, &ShuffleError::Busy { shortage });
            }
            Incident::NoThread(e) => self.events.tell(&format!("client turned away: {e}")),
            Incident::Panicked => {
                self.events.tell("a merge was ended by a mistake in this program");
            }
        }
    }
}

/// One client, in its thread.
struct ShuffleConnection<'a> {
    server: &'a ShuffleServer,
    talk: Talk<'a>,
    presence: &'a Presence,
}

impl ShuffleConnection<'_> {
    fn serve(&self) {
        converse(
            &self.server.events,
            "client",
            || self.next(),
            |why| {
                let _ = self.error(ShuffleErrorKind::Request, why);
            },
        );
    }

    /// Takes one request and answers it.
    fn next(&self) -> Result<(), TalkEnd> {
        let (head, until) = self.talk.head(self.presence)?;
        let head = ShuffleRequest::head(head).map_err(TalkEnd::Bad)?;
        // Nothing of it is used after a panic but the stream, where a frame may be cut: that ends it.
        let answered = contained::run(Cause::Mistake, || self.answer(head, until));
        let answered = answered.unwrap_or_else(|_| {
            self.server.events.tell("a merge was ended by a mistake in this program");
            Err(TalkEnd::Gone)
        });
        self.presence.answered();
        answered
    }

    /// Takes the rest of a request and answers it.
    fn answer(&self, head: RequestHead, until: Instant) -> Result<(), TalkEnd> {
        let request = match self.server.admission.memory(head.body_bytes as u64) {
            Ok(_taken) => {
                let mut body = vec![0; head.body_bytes];
                self.talk.receive(&mut body, until)?;
                ShuffleRequest::decode(head, &body).map_err(TalkEnd::Bad)?
            }
            Err(busy) => {
                self.talk.discard(head.body_bytes, until)?;
                return self.fail(&busy);
            }
        };
        match request {
            ShuffleRequest::Hello => {
                let taken = self.server.admission.taken();
                self.send(&MergeFrame::Hello {
                    version: VERSION,
                    merges: taken.merges,
                    memory_bytes: taken.memory_bytes,
                    product: self.server.product.clone(),
                })
            }
            ShuffleRequest::Merge(request) => self.merge(&request),
        }
    }

    fn merge(&self, request: &MergeRequest) -> Result<(), TalkEnd> {
        let order: WritableOrder = match request.order.parse() {
            Ok(order) => order,
            Err(e) => {
                let sentence = e.to_string();
                self.server.events.tell(&format!("merge refused: {sentence}"));
                return self.error(ShuffleErrorKind::Order, sentence);
            }
        };
        // Held until the last frame is sent.
        let (ticket, mut merge) = match self.open(&order, request) {
            Ok(opened) => opened,
            Err(e) => return self.fail(&e),
        };
        let mut skip = request.skip;
        while skip > 0 {
            let step = skip.min(SKIP_BYTES);
            if let Err(e) = merge.skip(step) {
                return self.fail(&e);
            }
            skip = if merge.is_done() { 0 } else { skip - step };
            if self.talk.stream.is_hung_up() {
                return Err(TalkEnd::Gone);
            }
        }
        let mut data = vec![0; DATA_BYTES];
        loop {
            match merge.read(&mut data) {
                Ok(0) => break,
                Ok(n) => self.send_data(&data[..n])?,
                Err(e) => return self.fail(&e),
            }
        }
        let count = merge.count();
        drop((merge, data, ticket));
        self.send(&MergeFrame::End { records: count.records, compares: count.compares })?;
        if !self.server.keep_cache {
            self.forget(request);
        }
        Ok(())
    }

    /// Has the system's cache forget what was served.
    fn forget(&self, request: &MergeRequest) {
        for SegmentSpec { path, offset, part, .. } in &request.segments {
            // A file that is gone by now is in no cache.
            if let Ok(file) = self.server.dirs.open(path) {
                forget(&file, *offset, *part);
            }
        }
    }

    fn open(
        &self,
        order: &WritableOrder,
        request: &MergeRequest,
    ) -> Result<(MergeTicket, SegmentMerge), ShuffleError> {
        let useful = SegmentMerge::useful_memory_bytes(&request.segments);
        let granted = request.memory_bytes.min(useful);
        let ticket = self.server.admission.merge(granted + DATA_BYTES as u64)?;
        let memory = ticket.memory_bytes().saturating_sub(DATA_BYTES as u64) as usize;
        let open = |path: &std::path::Path| self.server.dirs.open(path);
        let merge = SegmentMerge::open_with(order, &request.segments, memory, open)?;
        Ok((ticket, merge))
    }

    /// Tells the client and the log; the connection stays.
    fn fail(&self, error: &ShuffleError) -> Result<(), TalkEnd> {
        let how = match error {
            ShuffleError::Busy { .. } => "merge turned away",
            _ => "merge failed",
        };
        let sentence = (self.server.describe)(error);
        self.server.events.tell(&format!("{how}: {sentence}"));
        self.error(error.into(), sentence)
    }

    fn error(&self, kind: ShuffleErrorKind, sentence: String) -> Result<(), TalkEnd> {
        self.send(&error_frame(kind, sentence))
    }

    fn send(&self, frame: &MergeFrame) -> Result<(), TalkEnd> {
        self.talk.write(&mut [IoSlice::new(&frame.encode())])
    }

    fn send_data(&self, data: &[u8]) -> Result<(), TalkEnd> {
        self.talk.write(&mut [IoSlice::new(&frame_head(data.len())), IoSlice::new(data)])
    }
}

fn error_frame(kind: ShuffleErrorKind, told: String) -> MergeFrame {
    MergeFrame::Error { kind, sentence: sentence(told) }
}

impl fmt::Debug for ShuffleServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("admission", &self.admission).finish_non_exhaustive()
    }
}
