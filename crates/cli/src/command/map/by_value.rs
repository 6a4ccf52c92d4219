//! All rows by value, the largest first: a second sort, behind the map.
//!
//! ```text
//!   map ──rows by key──► feed: rank, value ──pieces──► sort of length-prefixed records ──► rows
//!                        (this thread)       2 at most  (a thread; ranks are the keys)
//! ```
//!
//! Map and sort work at the same time, so each has half of the memory.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use merganser_node::map::RowSink;
use merganser_node::ssdlet::{SsdletError, Type};
use merganser_sort::activity::Activity;
use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::run::Compression;
use merganser_sort::run::Input;
use merganser_sort::{
    Budget, CompressionChoice, Progress, SortOptions, SortOutput, Strategy, sort,
};
use merganser_storage::Directory;
use merganser_storage::thread::spawn_scoped;

use super::rank;
use super::rows::{RowWriter, keyed};
use super::run::of_whole;
use crate::failure::Failure;

/// Rows go to the sort in pieces of this size.
const PIECE_BYTES: usize = 256 << 10;
/// Pieces on their way.
const PIECES: usize = 2;

/// How the rows are sorted.
pub struct ByValue {
    /// The type of values.
    pub of: Type,
    /// The memory of the sort.
    pub budget: Budget,
    /// All memory, for sentences.
    pub memory_bytes: u64,
    /// Its threads.
    pub threads: usize,
    /// Its temporary folders.
    pub temp: Vec<Arc<dyn Directory>>,
}

impl ByValue {
    /// Runs `map`, whose rows it sorts and writes.
    ///
    /// # Errors
    /// Those of `map`; those of the sort and of `rows`.
    pub fn run<W: Write + Send, T>(
        self,
        rows: &mut RowWriter<W>,
        progress: &dyn Progress,
        map: impl FnOnce(&mut dyn RowSink) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (sender, receiver) = sync_channel(PIECES);
        let of = self.of;
        let activity = Activity::here();
        std::thread::scope(|scope| {
            let sorting = spawn_scoped(scope, "by value", move || {
                let _worker = activity.enroll("order");
                self.sort(receiver, rows, progress)
            });
            let sorting = sorting.map_err(|error| Failure::named(&error))?;
            let mut feed = Feed { of, piece: Vec::new(), rank: Vec::new(), sender };
            let mapped = map(&mut feed);
            feed.end(mapped.is_ok());
            let sorted = sorting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // A sort that ended early is why the map's rows were refused; a failed map is why the
            // sort got no end.
            let mapped = mapped?;
            sorted?;
            Ok(mapped)
        })
    }

    fn sort<W: Write + Send>(
        self,
        receiver: Receiver<io::Result<Vec<u8>>>,
        rows: &mut RowWriter<W>,
        progress: &dyn Progress,
    ) -> Result<(), Failure> {
        let fed = Fed { receiver, piece: Vec::new(), at: 0 };
        let input = Input::Stream { name: "the rows".to_owned(), reader: Box::new(fed) };
        let options = SortOptions {
            order: OrderSpec::new(Format::Keyed),
            budget: self.budget,
            threads: self.threads,
            temp: self.temp,
            temp_limit_bytes: None,
            compression: CompressionChoice::Fixed(Compression::Off),
            top: None,
            strategy: Strategy::Merge,
        };
        let mut unpack = Unpack { of: self.of, pending: Vec::new(), rows };
        let sorted = sort(vec![input], SortOutput::Writer(&mut unpack), &options, &Quiet(progress));
        sorted.map_err(|error| of_whole(error, self.memory_bytes))?;
        unpack.rows.flush().map_err(|error| Failure::named(&error))
    }
}

/// The map has the bar; both end with a cancel.
struct Quiet<'a>(&'a dyn Progress);

impl Progress for Quiet<'_> {
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

/// Sends rows to the sort.
struct Feed {
    of: Type,
    piece: Vec<u8>,
    rank: Vec<u8>,
    sender: SyncSender<io::Result<Vec<u8>>>,
}

impl Feed {
    /// Sends the last rows; if the map failed, the sort fails, too, and prints nothing.
    fn end(self, whole: bool) {
        let last = if whole { Ok(self.piece) } else { Err(io::Error::other("the map failed")) };
        // A sort that has ended already has failed, and says so.
        let _ = self.sender.send(last);
    }
}

impl RowSink for Feed {
    fn keyed(&mut self, key: &[u8], value: &[u8]) -> Result<bool, SsdletError> {
        self.rank.clear();
        rank::rank(self.of, key, value, &mut self.rank);
        keyed(&self.rank, value, &mut self.piece).map_err(merganser_sort::Error::from)?;
        if self.piece.len() < PIECE_BYTES {
            return Ok(true);
        }
        let next = Vec::with_capacity(self.piece.capacity());
        let full = std::mem::replace(&mut self.piece, next);
        Ok(self.sender.send(Ok(full)).is_ok())
    }

    fn records(&mut self, records: &[u8]) -> Result<bool, SsdletError> {
        debug_assert!(records.is_empty(), "an SSDlet has one kind of output");
        Ok(true)
    }
}

/// The sort's end of it.
struct Fed {
    receiver: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
}

impl Read for Fed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() {
            let Ok(piece) = self.receiver.recv() else { return Ok(0) };
            (self.piece, self.at) = (piece?, 0);
        }
        let left = &self.piece[self.at..];
        let len = left.len().min(out.len());
        out[..len].copy_from_slice(&left[..len]);
        self.at += len;
        Ok(len)
    }
}

/// Takes sorted records, and writes them as rows.
struct Unpack<'a, W> {
    of: Type,
    /// The beginning of a record that a write broke off.
    pending: Vec<u8>,
    rows: &'a mut RowWriter<W>,
}

impl<W: Write> Unpack<'_, W> {
    /// Writes the rows of whole records at the front of `bytes`; gives their length.
    fn rows(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut at = 0;
        while let Some(len) = Format::Keyed.record_len(&bytes[at..]) {
            let record = &bytes[at..at + len];
            let key_len = u32::from_le_bytes(record[..4].try_into().expect("4 bytes")) as usize;
            let (rank, value) = record[8..].split_at(key_len);
            self.rows.row(rank::key_of_rank(self.of, rank), value)?;
            at += len;
        }
        Ok(at)
    }
}

impl<W: Write> Write for Unpack<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.pending.is_empty() {
            let framed = self.rows(bytes)?;
            self.pending.extend_from_slice(&bytes[framed..]);
        } else {
            self.pending.extend_from_slice(bytes);
            let pending = std::mem::take(&mut self.pending);
            let framed = self.rows(&pending)?;
            self.pending = pending;
            self.pending.drain(..framed);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
