//! Streams that stand still: which of them makes room when another one waits for memory.
//!
//! ```text
//!   a stream waits for its client ──► since then it stands still, until the client takes or sends something
//!   another one waits for memory  ──► the stream that has stood still for longest, and for STANDSTILL at least, ends:
//!                                     its connection is closed, and its memory is free
//! ```
//!
//! A stream that waits for this server (for memory, for the end of a run) does not stand still. A client that continues
//! reading, however slowly, is not cut off by this: each batch that it takes begins its time again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::presence::ConnectionPresence;

/// How long a client may take nothing while other streams wait for memory.
const STANDSTILL: Duration = Duration::from_secs(5);
/// The pause between two ends, in which the memory of the first one becomes free.
const PAUSE: Duration = Duration::from_millis(500);
/// In the place of a time: the stream does not wait for its client.
const MOVES: u64 = u64::MAX;

/// The streams that hold memory. Clones are the same ones.
#[derive(Clone)]
pub(crate) struct Streams(Arc<RunningStreams>);

struct RunningStreams {
    begun: Instant,
    streams: Mutex<Vec<Arc<WatchedStream>>>,
    ended_at: Mutex<Option<Instant>>,
}

struct WatchedStream {
    presence: ConnectionPresence,
    /// Since when it waits for its client, in milliseconds, or [`MOVES`].
    still_since: AtomicU64,
    is_ended: AtomicBool,
}

/// One stream among them, until this is dropped.
pub(crate) struct Moving {
    all: Arc<RunningStreams>,
    stream: Arc<WatchedStream>,
}

impl Streams {
    pub(crate) fn new() -> Self {
        let (streams, ended_at) = Default::default();
        Streams(Arc::new(RunningStreams { begun: Instant::now(), streams, ended_at }))
    }

    /// Counts the stream of the connection `presence`.
    pub(crate) fn enter(&self, presence: ConnectionPresence) -> Moving {
        let still_since = AtomicU64::new(MOVES);
        let stream =
            Arc::new(WatchedStream { presence, still_since, is_ended: AtomicBool::new(false) });
        self.0.streams.lock().push(Arc::clone(&stream));
        Moving { all: Arc::clone(&self.0), stream }
    }

    /// A stream waits for memory: ends the one that has stood still for longest, if there is one.
    pub(crate) fn make_room(&self) {
        self.make_room_at(self.0.begun.elapsed());
    }

    fn make_room_at(&self, now: Duration) {
        let mut ended_at = self.0.ended_at.lock();
        if ended_at.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        let streams = self.0.streams.lock();
        let standing = streams.iter().filter(|stream| !stream.is_ended.load(Ordering::Relaxed));
        let Some(longest) = standing.min_by_key(|each| each.still_since.load(Ordering::Relaxed))
        else {
            return;
        };
        let since = longest.still_since.load(Ordering::Relaxed);
        if since != MOVES && now.saturating_sub(Duration::from_millis(since)) >= STANDSTILL {
            longest.is_ended.store(true, Ordering::Relaxed);
            longest.presence.close();
            *ended_at = Some(Instant::now());
        }
    }
}

impl Moving {
    /// It waits for its client.
    pub(crate) fn waits(&self) {
        let now = self.all.begun.elapsed().as_millis() as u64;
        self.stream.still_since.store(now, Ordering::Relaxed);
    }

    /// Its client has taken or sent something.
    pub(crate) fn moves(&self) {
        self.stream.still_since.store(MOVES, Ordering::Relaxed);
    }

    /// Ends its connection.
    pub(crate) fn close(&self) {
        self.stream.presence.close();
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        self.all.streams.lock().retain(|other| !Arc::ptr_eq(other, &self.stream));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(streams: &Streams, seconds: u64) {
        *streams.0.ended_at.lock() = None;
        streams.make_room_at(streams.0.begun.elapsed() + Duration::from_secs(seconds));
    }

    #[test]
    fn the_stream_that_stands_still_for_longest_ends_first() {
        let streams = Streams::new();
        let presences: Vec<_> = (0..3).map(|_| ConnectionPresence::new()).collect();
        let all: Vec<_> = presences.iter().map(|each| streams.enter(each.clone())).collect();
        let closed = || presences.iter().map(ConnectionPresence::is_closed).collect::<Vec<_>>();
        after(&streams, 600);
        assert_eq!(closed(), [false; 3], "all of them move");
        all[1].waits();
        std::thread::sleep(Duration::from_millis(5));
        all[2].waits();
        after(&streams, 4);
        assert_eq!(closed(), [false; 3], "not for long enough");
        after(&streams, 6);
        assert_eq!(closed(), [false, true, false]);
        streams.make_room_at(streams.0.begun.elapsed() + Duration::from_secs(6));
        assert_eq!(closed(), [false, true, false], "one after another");
        after(&streams, 6);
        assert_eq!(closed(), [false, true, true]);
    }

    #[test]
    fn a_stream_that_moves_again_stays_and_one_that_is_over_is_forgotten() {
        let streams = Streams::new();
        let (slow, gone) = (ConnectionPresence::new(), ConnectionPresence::new());
        let moving = streams.enter(slow.clone());
        moving.waits();
        moving.moves();
        let over = streams.enter(gone.clone());
        over.waits();
        drop(over);
        after(&streams, 600);
        assert!(!slow.is_closed() && !gone.is_closed());
    }
}
