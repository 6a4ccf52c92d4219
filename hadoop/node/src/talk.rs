//! The common part of servers of requests and frames: reads and writes that end in time, and events that
//! are reported no more often than a log can take.

use std::io::{self, IoSlice, Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use merganser_server::{ClientStream, ListenError, Presence};
use parking_lot::Mutex;

use crate::message::{BadMessage, HEAD_BYTES};

/// How long a request, once begun, may take to arrive.
const REQUEST_PATIENCE: Duration = Duration::from_secs(30);
/// How long a connection may be idle.
const IDLE_PATIENCE: Duration = Duration::from_secs(600);

/// Events per second that are reported; more of them are counted.
const EVENTS_PER_SECOND: u32 = 20;

/// A server cannot listen at its socket.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", socket.display())]
pub struct SocketBindError {
    /// The socket's path.
    pub socket: PathBuf,
    /// The cause.
    pub source: ListenError,
}

/// Why a connection ends.
#[derive(Debug)]
pub(crate) enum TalkEnd {
    /// The client left, or this process is asked to end.
    Gone,
    /// It takes too long.
    Slow(&'static str),
    /// It does not speak the protocol.
    Bad(BadMessage),
}

impl From<io::Error> for TalkEnd {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                TalkEnd::Slow("to take an answer")
            }
            _ => TalkEnd::Gone,
        }
    }
}

/// One client's stream.
#[derive(Clone, Copy)]
pub(crate) struct Talk<'a> {
    pub(crate) stream: &'a ClientStream,
    /// How long the client may take to make room for one more frame.
    pub(crate) frame_patience: Duration,
}

impl Talk<'_> {
    /// Writes all parts, one after the other.
    pub(crate) fn write(&self, mut parts: &mut [IoSlice<'_>]) -> Result<(), TalkEnd> {
        let until = Instant::now() + self.frame_patience;
        while !parts.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(TalkEnd::Slow("to take an answer"));
            }
            self.stream.set_write_timeout(Some(left))?;
            match (&mut &*self.stream).write_vectored(parts) {
                Ok(0) => return Err(TalkEnd::Gone),
                Ok(n) => IoSlice::advance_slices(&mut parts, n),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Fills `into` before `until`.
    pub(crate) fn receive(&self, mut into: &mut [u8], until: Instant) -> Result<(), TalkEnd> {
        while !into.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(TalkEnd::Slow("to send a request"));
            }
            self.stream.set_read_timeout(Some(left))?;
            match (&mut &*self.stream).read(into) {
                Ok(0) => return Err(TalkEnd::Gone),
                Ok(n) => into = &mut into[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Waits for a request. Its head, and until when the rest has to be here; the server owes an answer then.
    pub(crate) fn head(&self, presence: &Presence) -> Result<([u8; HEAD_BYTES], Instant), TalkEnd> {
        let mut head = [0; HEAD_BYTES];
        let (first, rest) = head.split_at_mut(1);
        self.receive(first, Instant::now() + IDLE_PATIENCE).map_err(|_| TalkEnd::Gone)?;
        presence.owe();
        let until = Instant::now() + REQUEST_PATIENCE;
        self.receive(rest, until)?;
        Ok((head, until))
    }

    /// Reads `bytes` bytes and forgets them.
    pub(crate) fn discard(&self, mut bytes: usize, until: Instant) -> Result<(), TalkEnd> {
        let mut into = [0; 4096];
        while bytes > 0 {
            let n = bytes.min(into.len());
            self.receive(&mut into[..n], until)?;
            bytes -= n;
        }
        Ok(())
    }

    /// Sends the reason to a client that is not served, if it can be sent without waiting.
    pub(crate) fn turn_away(mut stream: &ClientStream, frame: &[u8]) {
        let _ = stream.set_nonblocking(true);
        let _ = stream.write(frame);
    }
}

/// Takes one request after the other by `next`, until the connection ends. `client` is the noun for events; `bad` tells
/// the client why it does not speak the protocol.
pub(crate) fn converse(
    events: &Events,
    client: &str,
    mut next: impl FnMut() -> Result<(), TalkEnd>,
    bad: impl FnOnce(String),
) {
    let end = loop {
        if let Err(end) = next() {
            break end;
        }
    };
    match end {
        TalkEnd::Gone => {}
        TalkEnd::Slow(what) => {
            events.tell(&format!("{client} hung up on: it took too long {what}"));
        }
        TalkEnd::Bad(why) => {
            events.tell(&format!("{client} hung up on: {why}"));
            bad(why.to_string());
        }
    }
}

/// Reports events, up to [`EVENTS_PER_SECOND`].
pub(crate) struct Events {
    tell: Box<dyn Fn(&str) + Send + Sync>,
    told: Mutex<(Option<Instant>, u32)>,
}

impl Events {
    pub(crate) fn new(tell: Box<dyn Fn(&str) + Send + Sync>) -> Self {
        Events { tell, told: Mutex::new((None, 0)) }
    }

    pub(crate) fn tell(&self, event: &str) {
        let mut told = self.told.lock();
        let (second, count) = &mut *told;
        if second.is_none_or(|second| second.elapsed() >= Duration::from_secs(1)) {
            if *count > EVENTS_PER_SECOND {
                (self.tell)(&format!("{} more events in that second", *count - EVENTS_PER_SECOND));
            }
            (*second, *count) = (Some(Instant::now()), 0);
        }
        *count += 1;
        if *count <= EVENTS_PER_SECOND {
            (self.tell)(event);
        }
    }
}
