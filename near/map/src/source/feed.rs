//! A stream that a thread of its own reads ahead, so that reading (a pipe, a decompressor) and mapping
//! overlap even where one worker maps.
//!
//! ```text
//!   thread: read ──full──► queue ──► the worker that holds the lock
//!             ▲──────────── empty ◄──────────┘          pieces, which go round
//! ```
//!
//! The queue has several chunks, so that either side may be late for a while: a worker takes a chunk at once, and
//! where there are fewer cores than threads, each of them waits for a core from time to time. A thread that has
//! filled all pieces sleeps until half of them are empty, since waking it for each one would cost more than it reads.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use merganser_sort::Budget;
use merganser_sort::budget::Reservation;
use merganser_storage::thread::spawn;
use parking_lot::{Condvar, Mutex};

/// The fewest pieces.
const PIECES_MIN: usize = 4;
/// Bytes of one, at most and at least.
const BYTES_MAX: usize = 128 << 10;
const BYTES_MIN: usize = 16 << 10;
/// The least memory of a feed, in bytes.
pub(crate) const FEED_BYTES_MIN: usize = PIECES_MIN * BYTES_MIN;

/// How long a reader sleeps before it looks whether the map was stopped: the writer of a pipe may be idle for hours.
const LOOK: Duration = Duration::from_millis(100);

/// The bytes of a stream.
pub(super) struct StreamFeed {
    queue: Arc<FeedQueue>,
    current: Vec<u8>,
    at: usize,
    _memory: Reservation,
}

/// What the thread and the reader share.
struct FeedQueue {
    state: Mutex<FeedState>,
    /// A piece is full, or the stream has ended.
    filled: Condvar,
    /// Enough pieces are empty, or no one reads any more.
    emptied: Condvar,
    /// Empty pieces for which a thread that waits is woken.
    enough: usize,
    /// The map needs no more bytes.
    stopped: Arc<AtomicBool>,
}

struct FeedState {
    full: VecDeque<Vec<u8>>,
    empty: Vec<Vec<u8>>,
    /// How the stream ended. That comes after the full pieces.
    end: Option<io::Result<()>>,
    /// No one reads any more.
    closed: bool,
}

impl StreamFeed {
    /// Starts the thread, with `bytes` of memory for the queue, or what is left of it; [`FEED_BYTES_MIN`] at least.
    ///
    /// # Errors
    /// Too little memory; when the system gives no thread.
    pub(super) fn start(
        reader: Box<dyn Read + Send>,
        bytes: usize,
        budget: &Budget,
        stopped: &Arc<AtomicBool>,
    ) -> merganser_sort::Result<Self> {
        let reserve = |bytes: usize| budget.reserve(bytes as u64, "reading a stream");
        // A long record may have some of it just now.
        let memory = reserve(bytes.max(FEED_BYTES_MIN)).or_else(|_| reserve(FEED_BYTES_MIN))?;
        let bytes = memory.bytes() as usize;
        let piece = (bytes / PIECES_MIN).clamp(BYTES_MIN, BYTES_MAX);
        let pieces = bytes / piece;
        let state = FeedState {
            full: VecDeque::with_capacity(pieces),
            empty: (0..pieces).map(|_| vec![0; piece]).collect(),
            end: None,
            closed: false,
        };
        let queue = Arc::new(FeedQueue {
            state: Mutex::new(state),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            enough: pieces / 2,
            stopped: Arc::clone(stopped),
        });
        let pumped = Arc::clone(&queue);
        spawn("read", move || pump(reader, pumped))?;
        Ok(StreamFeed { queue, current: Vec::new(), at: 0, _memory: memory })
    }

    /// Copies the next bytes; 0 at the end, after an error, and when the map was stopped and none are there.
    pub(super) fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.current.len() {
            self.at = 0;
            match self.queue.take(std::mem::take(&mut self.current))? {
                Some(piece) => self.current = piece,
                None => return Ok(0),
            }
        }
        let n = out.len().min(self.current.len() - self.at);
        out[..n].copy_from_slice(&self.current[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

impl Drop for StreamFeed {
    fn drop(&mut self) {
        self.queue.state.lock().closed = true;
        self.queue.emptied.notify_one();
    }
}

impl FeedQueue {
    /// The next full piece, for one that is `spent`; `None` at the end, or when none comes before the map is stopped.
    fn take(&self, spent: Vec<u8>) -> io::Result<Option<Vec<u8>>> {
        let mut state = self.state.lock();
        if spent.capacity() > 0 {
            state.empty.push(spent);
            if state.empty.len() >= self.enough {
                self.emptied.notify_one();
            }
        }
        loop {
            if let Some(piece) = state.full.pop_front() {
                return Ok(Some(piece));
            }
            match &mut state.end {
                // An error is reported once.
                Some(end) => return std::mem::replace(end, Ok(())).map(|()| None),
                None if self.stopped.load(Ordering::Relaxed) => return Ok(None),
                None => {
                    self.filled.wait_for(&mut state, LOOK);
                }
            }
        }
    }

    /// A piece to read into; `None` when no one reads any more.
    fn empty(&self) -> Option<Vec<u8>> {
        let mut state = self.state.lock();
        if state.empty.is_empty() {
            while !state.closed && state.empty.len() < self.enough {
                self.emptied.wait(&mut state);
            }
        }
        if state.closed { None } else { state.empty.pop() }
    }

    fn push(&self, piece: Vec<u8>) {
        self.state.lock().full.push_back(piece);
        self.filled.notify_one();
    }

    fn end(&self, how: io::Result<()>) {
        let mut state = self.state.lock();
        // The first one counts.
        if state.end.is_none() {
            state.end = Some(how);
        }
        drop(state);
        self.filled.notify_one();
    }
}

/// Ends the stream if its thread panics.
struct FeedAlarm(Arc<FeedQueue>);

impl Drop for FeedAlarm {
    fn drop(&mut self) {
        self.0.end(Err(io::Error::other("the thread that read it has failed; this is a bug")));
    }
}

/// Reads until the end, an error, or until no one wants more.
fn pump(mut reader: Box<dyn Read + Send>, queue: Arc<FeedQueue>) {
    let alarm = FeedAlarm(queue);
    let queue = &*alarm.0;
    let how = loop {
        let Some(mut piece) = queue.empty() else { break Ok(()) };
        let (filled, end) = fill(&mut *reader, &mut piece);
        if filled > 0 {
            piece.truncate(filled);
            queue.push(piece);
        }
        if let Some(how) = end {
            break how;
        }
    };
    // Its memory is back before the next input begins.
    drop(reader);
    queue.end(how);
}

/// Fills `piece` up to the room that it has: how many bytes it got, and how the stream ended if it did.
fn fill(reader: &mut dyn Read, piece: &mut Vec<u8>) -> (usize, Option<io::Result<()>>) {
    piece.resize(piece.capacity(), 0);
    let mut filled = 0;
    while filled < piece.len() {
        match reader.read(&mut piece[filled..]) {
            Ok(0) => return (filled, Some(Ok(()))),
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (filled, Some(Err(error))),
        }
    }
    (filled, None)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Instant;

    use super::*;

    type End = fn() -> io::Result<usize>;

    /// Gives bytes in pieces of changing length and counts them; then it ends, fails or panics.
    struct Source {
        given: Arc<AtomicUsize>,
        all: usize,
        end: End,
    }

    impl Read for Source {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let given = self.given.load(Ordering::Relaxed);
            let n = out.len().min(self.all - given).min(1 + given % 7919);
            if n == 0 {
                return (self.end)();
            }
            if given.is_multiple_of(5) && n > 1 {
                self.given.fetch_add(1, Ordering::Relaxed);
                out[0] = given as u8;
                return Ok(1);
            }
            for (at, byte) in out[..n].iter_mut().enumerate() {
                *byte = (given + at) as u8;
            }
            self.given.fetch_add(n, Ordering::Relaxed);
            Ok(n)
        }
    }

    fn feed(all: usize, bytes: usize, end: End) -> (StreamFeed, Arc<AtomicUsize>) {
        let given = Arc::new(AtomicUsize::new(0));
        let source = Source { given: Arc::clone(&given), all, end };
        let budget = Budget::new(bytes as u64);
        let feed = StreamFeed::start(Box::new(source), bytes, &budget, &Arc::default());
        (feed.expect("fits"), given)
    }

    #[test]
    fn all_bytes_come_in_order_and_then_the_end() {
        let ends: [(bool, End); 2] =
            [(false, || Ok(0)), (true, || Err(io::Error::other("broken")))];
        for all in [0, 1, FEED_BYTES_MIN - 1, FEED_BYTES_MIN, 1_000_003] {
            for bytes in [FEED_BYTES_MIN, 100_000, 4 << 20] {
                for (fails, end) in ends {
                    let (mut feed, _) = feed(all, bytes, end);
                    let (mut at, mut out) = (0, vec![0; 30_000]);
                    let ended = loop {
                        match feed.read(&mut out[..1 + at % 29_999]) {
                            Ok(0) => break Ok(()),
                            Ok(n) => {
                                assert!((at..at + n).zip(&out).all(|(at, byte)| at as u8 == *byte));
                                at += n;
                            }
                            Err(error) => break Err(error),
                        }
                    };
                    assert_eq!((at, ended.is_err()), (all, fails), "{all} {bytes}");
                    assert_eq!(feed.read(&mut out).expect("told once"), 0);
                }
            }
        }
    }

    /// Several chunks are read ahead while no one takes them, and no more than there is memory for.
    #[test]
    fn the_queue_is_filled_while_no_one_reads() {
        for bytes in [FEED_BYTES_MIN, 1 << 20, 4 << 20] {
            let (_feed, given) = feed(1 << 30, bytes, || Ok(0));
            let until = Instant::now() + Duration::from_secs(20);
            while given.load(Ordering::Relaxed) < bytes && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(given.load(Ordering::Relaxed), bytes);
        }
    }

    #[test]
    fn a_thread_that_panics_is_an_error() {
        let (mut feed, _) = feed(10, FEED_BYTES_MIN, || panic!("as asked"));
        let mut out = [0; 20];
        let error = loop {
            match feed.read(&mut out) {
                Ok(n) => assert!(n > 0, "the error comes first"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("this is a bug"), "{error}");
    }

    #[test]
    fn less_memory_makes_a_shorter_queue() {
        let budget = Budget::new(FEED_BYTES_MIN as u64);
        let start = || StreamFeed::start(Box::new(io::empty()), 4 << 20, &budget, &Arc::default());
        let feed = start().expect("fits");
        assert!(start().is_err());
        drop(feed);
        assert_eq!(budget.free_bytes(), FEED_BYTES_MIN as u64);
    }
}
