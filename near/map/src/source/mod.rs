//! Chunks of whole records, in the order of the inputs, for any number of workers.
//!
//! ```text
//!   lines, fixed, in a storage   local       a worker takes the next range, reads it and finds its borders
//!   csv, keyed; all streams      sequential  one worker at a time reads on from where the last one ended
//!   pipes, decompressors         feed        a thread reads ahead, so that it and the workers overlap
//! ```
//!
//! A range owns the records whose first byte is in it (McSD's integrity check, section 3.4.4 and Figure
//! 3.7; there the displacement of the next border is what the check returns). So borders that workers find
//! each for itself cut an input into every record once, wherever the ranges end. CSV has no such border: a
//! newline may be in quotes that began anywhere before it.
//!
//! Chunks are numbered in the order of the input; some are empty.
//!
//! A worker that reads on in a stream holds the lock, and may wait for an idle pipe. What other workers need
//! meanwhile is outside the lock: the header row, and the end of all.

mod feed;
mod local;
mod sequential;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use merganser_sort::Budget;
use merganser_sort::Error;
use merganser_sort::record::Format;
use merganser_storage::Storage;
use parking_lot::Mutex;

use super::MapInput;
use super::chunk_buffer::WorkerBuffer;
pub(super) use feed::FEED_BYTES_MIN;
use local::Local;
use sequential::Sequential;

/// Bytes that a chunk's buffer has in addition to the chunk: the rest of its last record, in most cases.
pub(super) const SLACK_BYTES: usize = 16 << 10;

/// The inputs of a map, chunk by chunk.
pub(super) struct MapSources {
    /// The names of all inputs, in their order.
    names: Vec<String>,
    format: Format,
    chunk_bytes: usize,
    feed_bytes: usize,
    budget: Budget,
    /// The header row of the first input, where inputs have one.
    header: OnceLock<Vec<u8>>,
    stopped: Arc<AtomicBool>,
    state: Mutex<SourceState>,
}

struct SourceState {
    inputs: VecDeque<MapInput>,
    current: Option<CurrentInput>,
    /// Number of the next input and of the next chunk.
    next_input: u32,
    next_chunk: u64,
    /// Bytes of all chunks that were claimed.
    claimed: u64,
}

enum CurrentInput {
    Local(Arc<Local>, u64),
    Sequential(Box<Sequential>),
}

/// A chunk in the buffer of a worker.
#[derive(Debug, Clone)]
pub(super) struct ChunkClaim {
    /// Its number, from 0.
    pub(super) number: u64,
    /// The input.
    pub(super) input: u32,
    /// Place of its first record in the input.
    pub(super) offset: u64,
    /// Its records in the buffer; perhaps none.
    pub(super) records: std::ops::Range<usize>,
    /// Bytes of the input that it stands for, for progress.
    pub(super) bytes: u64,
    /// Bytes of all inputs before it, for partitions.
    pub(super) before: u64,
}

/// What failed, and at which chunk.
pub(super) struct Failed {
    pub(super) number: u64,
    pub(super) error: Error,
}

impl MapSources {
    /// Chunks of about `chunk_bytes`; a stream is read ahead by up to `feed_bytes`. Long records take more of
    /// `budget`.
    pub(super) fn new(
        inputs: Vec<MapInput>,
        format: Format,
        (chunk_bytes, feed_bytes): (usize, usize),
        budget: &Budget,
    ) -> Self {
        let names = inputs.iter().map(|input| input.name().to_owned()).collect();
        let state = SourceState {
            inputs: inputs.into(),
            current: None,
            next_input: 0,
            next_chunk: 0,
            claimed: 0,
        };
        MapSources {
            names,
            format,
            chunk_bytes,
            feed_bytes,
            budget: budget.clone(),
            header: OnceLock::new(),
            stopped: Arc::default(),
            state: Mutex::new(state),
        }
    }

    /// A buffer for chunks.
    ///
    /// # Errors
    /// Too little memory.
    pub(super) fn buffer(&self) -> merganser_sort::Result<WorkerBuffer> {
        WorkerBuffer::new(buffer_bytes(self.chunk_bytes), &self.budget)
    }

    /// The name of an input that a chunk was claimed of.
    pub(super) fn name(&self, input: u32) -> &str {
        &self.names[input as usize]
    }

    /// No more chunks are handed out, but for those that are claimed at this moment.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// The header row, once it was read; it is before any record is handed out.
    pub(super) fn header(&self) -> Option<Vec<u8>> {
        self.header.get().cloned()
    }

    /// The header row that was read.
    pub(super) fn into_header(self) -> Option<Vec<u8>> {
        self.header.into_inner()
    }

    /// The next chunk; `None` after the last one.
    ///
    /// # Errors
    /// Bad input, an input that fails, a record longer than memory.
    pub(super) fn next(&self, buffer: &mut WorkerBuffer) -> Result<Option<ChunkClaim>, Failed> {
        let mut state = self.state.lock();
        loop {
            if self.is_stopped() {
                return Ok(None);
            }
            let (number, before) = (state.next_chunk, state.claimed);
            let SourceState { current, next_input, .. } = &mut *state;
            let input = next_input.wrapping_sub(1);
            match current {
                Some(CurrentInput::Local(local, next)) => {
                    let Some(range) = local.next(next, self.chunk_bytes) else {
                        *current = None;
                        continue;
                    };
                    let local = Arc::clone(local);
                    let bytes = range.end - range.start;
                    state.next_chunk += 1;
                    state.claimed += bytes;
                    drop(state);
                    // Not under the lock: this is where the time goes.
                    local.read_ahead(&range);
                    let read = local.read(range.clone(), buffer, &self.budget);
                    let (offset, records) = read.map_err(|error| Failed { number, error })?;
                    return Ok(Some(ChunkClaim { number, input, offset, records, bytes, before }));
                }
                Some(CurrentInput::Sequential(sequential)) => {
                    let (budget, header) = (&self.budget, &self.header);
                    let read = sequential.read(buffer, self.chunk_bytes, budget, header);
                    if self.is_stopped() {
                        // A stream seems to end then, perhaps in a record.
                        return Ok(None);
                    }
                    match read {
                        Err(error) => {
                            self.stop();
                            return Err(Failed { number, error });
                        }
                        Ok(None) => *current = None,
                        Ok(Some((offset, records, bytes))) => {
                            state.next_chunk += 1;
                            state.claimed += bytes;
                            let claim =
                                ChunkClaim { number, input, offset, records, bytes, before };
                            return Ok(Some(claim));
                        }
                    }
                }
                None => {
                    let Some(input) = state.inputs.pop_front() else { return Ok(None) };
                    state.next_input += 1;
                    match self.begin(input) {
                        Ok(begun) => state.current = Some(begun),
                        Err(error) => {
                            self.stop();
                            return Err(Failed { number, error });
                        }
                    }
                }
            }
        }
    }

    fn begin(&self, input: MapInput) -> Result<CurrentInput, Error> {
        match (self.format, input) {
            (format, MapInput::Storage { storage, range }) if format.split_rule().is_local() => {
                let local = Local::new(storage, range, self.format);
                let start = local.start();
                Ok(CurrentInput::Local(Arc::new(local), start))
            }
            (format, input) => {
                let (budget, stopped) = (&self.budget, &self.stopped);
                let sequential = Sequential::new(input, format, self.feed_bytes, budget, stopped)?;
                Ok(CurrentInput::Sequential(Box::new(sequential)))
            }
        }
    }
}

/// Length of the buffer for chunks of `chunk_bytes`: the byte before the chunk, the chunk, and the rest of
/// its last record.
pub(super) fn buffer_bytes(chunk_bytes: usize) -> usize {
    (1 + chunk_bytes + SLACK_BYTES).next_multiple_of(4096)
}

/// The error for a storage that ends before the size that it had.
fn shrunk(storage: &dyn Storage, at: u64, size: u64) -> Error {
    Error::Input {
        file: storage.name().to_owned(),
        offset: at,
        detail: format!(
            "the file ends here, but had {size} bytes when it was opened; don't change an input while it is read"
        ),
    }
}

/// The error for a record that does not fit into memory.
fn too_long(file: &str, offset: u64, fits: usize, cause: Error) -> Error {
    match cause {
        Error::Memory { .. } => Error::RecordTooLong {
            file: file.to_owned(),
            offset,
            most_bytes: fits as u64,
            factor: None,
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Cursor, Read};
    use std::sync::mpsc::{self, Receiver};
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// A pipe whose writer is idle until it goes away.
    struct Idle(Receiver<()>);

    impl Read for Idle {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            // An error: the writer has gone.
            let _ = self.0.recv();
            Ok(0)
        }
    }

    #[test]
    fn no_worker_waits_for_one_that_reads_an_idle_pipe() {
        const CHUNK_BYTES: usize = 4096;
        let patience = Duration::from_secs(30);
        let (_writer, idle) = mpsc::channel();
        let rows = "head\n".repeat(FEED_BYTES_MIN / 5);
        let reader = Box::new(Cursor::new(rows).chain(Idle(idle)));
        let input = MapInput::Stream { name: "a pipe".to_owned(), reader, memory_bytes: 0 };
        let format = Format::csv_rows(b',', true);
        let sizes = (CHUNK_BYTES, FEED_BYTES_MIN);
        let sources = Arc::new(MapSources::new(vec![input], format, sizes, &Budget::new(1 << 20)));

        let (claims, claimed) = mpsc::channel();
        let reading = Arc::clone(&sources);
        thread::spawn(move || {
            let mut buffer = reading.buffer().expect("room");
            while let Some(claim) = reading.next(&mut buffer).ok().expect("no failure") {
                claims.send(claim).expect("heard");
            }
        });
        claimed.recv_timeout(patience).expect("the first chunk");
        // Until it has taken all that came, and waits.
        thread::sleep(Duration::from_millis(200));
        let (sender, done) = mpsc::channel();
        let stopping = Arc::clone(&sources);
        thread::spawn(move || {
            let header = stopping.header();
            stopping.stop();
            sender.send(header).expect("heard");
        });
        assert_eq!(done.recv_timeout(patience).expect("stopped"), Some(b"head\n".to_vec()));
        let ended = loop {
            match claimed.recv_timeout(patience) {
                Ok(claim) => assert_eq!(claim.records.len() % 5, 0, "whole records"),
                Err(ended) => break ended,
            }
        };
        assert_eq!(ended, mpsc::RecvTimeoutError::Disconnected, "the worker ends, too");
    }
}
