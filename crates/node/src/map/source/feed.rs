//! A stream that a thread of its own reads ahead, so that reading (a pipe, a decompressor) and mapping
//! overlap even where one worker maps.
//!
//! ```text
//!   thread: read ──full──► channel ──► whoever holds the lock
//!             ▲──────────── empty ◄──────────┘          a few buffers, which go round
//! ```

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use merganser_sort::Budget;
use merganser_sort::budget::Reservation;
use merganser_storage::thread::spawn;

/// Buffers that go round.
const BUFFERS: usize = 4;
/// Bytes of one, at most and at least.
const BYTES_MAX: usize = 256 << 10;
const BYTES_MIN: usize = 16 << 10;

/// The bytes of a stream.
pub(super) struct Feed {
    full: Receiver<io::Result<Vec<u8>>>,
    empty: SyncSender<Vec<u8>>,
    current: Vec<u8>,
    at: usize,
    ended: bool,
    _memory: Reservation,
}

impl Feed {
    /// Starts the thread.
    ///
    /// # Errors
    /// Too little memory; when the system gives no thread.
    pub(super) fn start(
        reader: Box<dyn Read + Send>,
        chunk_bytes: usize,
        budget: &Budget,
    ) -> merganser_sort::Result<Self> {
        let bytes = (chunk_bytes / BUFFERS).clamp(BYTES_MIN, BYTES_MAX);
        let memory = budget.reserve((BUFFERS * bytes) as u64, "reading a stream")?;
        // Room for all of them, so that neither side waits for the other's channel, but for buffers.
        let (send_full, full) = sync_channel(BUFFERS + 1);
        let (empty, receive_empty) = sync_channel(BUFFERS + 1);
        for _ in 0..BUFFERS {
            empty.send(vec![0; bytes]).expect("there is room");
        }
        spawn("read", move || pump(reader, &receive_empty, &send_full))?;
        Ok(Feed { full, empty, current: Vec::new(), at: 0, ended: false, _memory: memory })
    }

    /// Copies the next bytes; 0 at the end.
    pub(super) fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.current.len() {
            let spent = std::mem::take(&mut self.current);
            self.at = 0;
            if spent.capacity() > 0 {
                // The thread may have ended; then no one needs it.
                let _ = self.empty.send(spent);
            }
            if self.ended {
                return Ok(0);
            }
            let next = self.full.recv().unwrap_or_else(|_| {
                Err(io::Error::other("the thread that read it has failed; this is a bug"))
            });
            match next {
                Ok(bytes) => self.current = bytes,
                Err(error) => {
                    self.ended = true;
                    return Err(error);
                }
            }
            self.ended = self.current.is_empty();
        }
        let n = out.len().min(self.current.len() - self.at);
        out[..n].copy_from_slice(&self.current[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

/// Reads until the end, an error, or until no one wants more. An empty buffer is the end.
fn pump(
    mut reader: Box<dyn Read + Send>,
    empty: &Receiver<Vec<u8>>,
    full: &SyncSender<io::Result<Vec<u8>>>,
) {
    let last = loop {
        let Ok(mut buffer) = empty.recv() else { return };
        let room = buffer.capacity();
        buffer.resize(room, 0);
        let read = loop {
            match reader.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let ends = !matches!(read, Ok(n) if n > 0);
        let message = read.map(|n| {
            buffer.truncate(n);
            buffer
        });
        if ends {
            break message;
        }
        if full.send(message).is_err() {
            return;
        }
    };
    // Its memory is back before the next input begins.
    drop(reader);
    let _ = full.send(last);
}
