//! The way of batches from the thread that makes them to the client, and their memory.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_flight::error::FlightError;
use merganser_serve::session::{Grant, SessionError, Sessions};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::presence::ConnectionPresence;
use crate::standstill::{Moving, Streams};

/// Batches that wait for the client.
const AHEAD: usize = 4;
/// Copies of a batch that there are at once: those that wait, the one that is made, the one that is
/// encoded and the one that is sent.
pub(crate) const COPIES: usize = AHEAD + 4;
/// The least bytes of a batch.
pub(crate) const BATCH_BYTES_MIN: usize = 32 << 10;

/// What a stream holds while it lasts.
pub(crate) struct Sending {
    moving: Moving,
    _place: OwnedSemaphorePermit,
}

impl Sending {
    pub(crate) fn new(moving: Moving, place: OwnedSemaphorePermit) -> Self {
        Sending { moving, _place: place }
    }
}

/// A batch for the client, or the error that ends its stream.
type OutletItem = Result<RecordBatch, FlightError>;

/// Where a thread hands its batches to.
pub(crate) struct BatchOutlet {
    sender: mpsc::Sender<OutletItem>,
    runtime: Handle,
    patience: Duration,
    sending: Sending,
    /// Memory comes from here.
    lender: StreamLender,
}

/// Memory for streams. Those that stand still make room for one that waits.
#[derive(Clone)]
pub(crate) struct StreamLender {
    sessions: Arc<Sessions>,
    streams: Streams,
}

impl StreamLender {
    pub(crate) fn new(sessions: Arc<Sessions>) -> Self {
        StreamLender { sessions, streams: Streams::new() }
    }

    /// Counts a stream of the connection `presence`.
    pub(crate) fn enter(&self, presence: Option<ConnectionPresence>) -> Moving {
        // Each request of a listener has one.
        self.streams.enter(presence.unwrap_or_else(ConnectionPresence::new))
    }

    /// Memory for a stream: `wanted`, or less but at least `least`, in bytes.
    pub(crate) fn memory(&self, wanted: u64, least: u64) -> Result<Grant, SessionError> {
        self.sessions.stream_memory(wanted, least, &|| self.streams.make_room())
    }

    /// The sessions, and the files and views.
    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }
}

/// The client takes no more.
pub(crate) struct Gone;

impl BatchOutlet {
    /// The way for batches of `sending`, and their other end. `patience` is how long the client may take to make room for
    /// one more batch.
    pub(crate) fn new(
        patience: Duration,
        sending: Sending,
        lender: StreamLender,
    ) -> (BatchOutlet, mpsc::Receiver<OutletItem>) {
        let (sender, receiver) = mpsc::channel(AHEAD);
        let outlet = BatchOutlet { sender, runtime: Handle::current(), patience, sending, lender };
        (outlet, receiver)
    }

    /// The sender of its batches.
    pub(crate) fn sender(&self) -> &mpsc::Sender<OutletItem> {
        &self.sender
    }

    /// Where its memory comes from.
    pub(crate) fn lender(&self) -> &StreamLender {
        &self.lender
    }

    /// Hands over a batch, once there is room.
    pub(crate) fn send(&self, batch: RecordBatch) -> Result<(), Gone> {
        self.hand(Ok(batch))
    }

    /// Memory in addition to that of the stream, for long rows: as much as `bytes`.
    pub(crate) fn memory(&self, bytes: u64) -> Result<Grant, SessionError> {
        self.lender.memory(bytes, bytes)
    }

    /// Hands over a batch or an error, once there is room.
    pub(crate) fn hand(&self, item: OutletItem) -> Result<(), Gone> {
        let moving = &self.sending.moving;
        moving.waits();
        let sent = self.runtime.block_on(self.sender.send_timeout(item, self.patience));
        moving.moves();
        sent.map_err(|error| {
            if let mpsc::error::SendTimeoutError::Timeout(_) = error {
                moving.close();
            }
            Gone
        })
    }
}

/// Why the work of a stream ended early.
pub(crate) enum StreamEnd {
    /// The client went away, or takes nothing.
    Gone,
    /// An error that the client hears.
    Error(SessionError),
}

impl From<Gone> for StreamEnd {
    fn from(_: Gone) -> Self {
        StreamEnd::Gone
    }
}

impl From<SessionError> for StreamEnd {
    fn from(error: SessionError) -> Self {
        StreamEnd::Error(error)
    }
}

/// Bytes of a batch in `memory_bytes` of a stream.
pub(crate) fn batch_bytes(memory_bytes: u64) -> usize {
    usize::try_from(memory_bytes / COPIES as u64).unwrap_or(usize::MAX)
}
