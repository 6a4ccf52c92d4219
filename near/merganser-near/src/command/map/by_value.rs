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

use merganser_map::ssdlet::{SsdletError, Type};
use merganser_map::{RowSink, sort_threads};
use merganser_shell::failure::Failure;
use merganser_shell::rows::{RowWriter, keyed};
use merganser_sort::activity::Activity;
use merganser_sort::budget::Reservation;
use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::reduced::RecordCutter;
use merganser_sort::run::Compression;
use merganser_sort::run::SortInput;
use merganser_sort::{
    Budget, CompressionChoice, Progress, SortOptions, SortOutput, Strategy, sort,
};
use merganser_storage::Directory;
use merganser_storage::thread::spawn_scoped;

use super::rank;
use super::split::{MemorySplit, OF_PIECES, PIECE_BYTES, PIECES, PIECES_HELD};

/// How the rows are sorted.
pub(super) struct ByValue {
    /// The type of values.
    pub of: Type,
    /// The memory of the sort.
    pub budget: Budget,
    /// The split of all memory that gave it.
    pub split: MemorySplit,
    /// Its threads, at most.
    pub threads: usize,
    /// Its temporary folders.
    pub temp: Vec<Arc<dyn Directory>>,
}

impl ByValue {
    /// Runs `map`, whose rows it sorts and writes.
    ///
    /// # Errors
    /// Those of `map`; those of the sort and of `rows`.
    pub(super) fn run<W: Write + Send, T>(
        self,
        rows: &mut RowWriter<W>,
        progress: &dyn Progress,
        map: impl FnOnce(&mut dyn RowSink) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (sender, receiver) = sync_channel(PIECES);
        let (of, split) = (self.of, self.split);
        let of_chosen = |error| split.of_chosen(error);
        let of_pieces = Budget::new(OF_PIECES.of(self.budget.limit_bytes()));
        let owner = "sorting rows by value";
        let _held = self.budget.reserve(of_pieces.limit_bytes(), owner).map_err(of_chosen)?;
        let records = RecordCutter::new(&of_pieces).map_err(of_chosen)?;
        let held = PIECES_HELD * PIECE_BYTES as u64;
        let memory = of_pieces.reserve(held, owner).map_err(of_chosen)?;
        let activity = Activity::here();
        std::thread::scope(|scope| {
            let sorting = spawn_scoped(scope, "by value", move || {
                let _worker = activity.enroll("order");
                let mut unpack = Unpack { of, records, rows };
                self.sort(receiver, &mut unpack, progress)?;
                unpack.rows.flush().map_err(|error| Failure::named(&error))
            });
            let sorting = sorting.map_err(|error| Failure::named(&error))?;
            let mut feed =
                RowFeed { of, piece: Vec::new(), rank: Vec::new(), sender, memory, split };
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

    fn sort(
        self,
        receiver: Receiver<io::Result<Vec<u8>>>,
        rows: &mut (dyn Write + Send),
        progress: &dyn Progress,
    ) -> Result<(), Failure> {
        let fed = Fed { receiver, piece: Vec::new(), at: 0 };
        let input = SortInput::Stream { name: "the rows".to_owned(), reader: Box::new(fed) };
        let memory_bytes = self.budget.free_bytes();
        let options = SortOptions {
            order: OrderSpec::new(Format::Keyed),
            threads: sort_threads(memory_bytes, self.threads),
            budget: self.budget,
            temp: self.temp,
            temp_limit_bytes: None,
            compression: CompressionChoice::Fixed(Compression::Off),
            top: None,
            strategy: Strategy::Merge,
        };
        let sorted =
            sort(vec![input], SortOutput::Writer(rows), &options, &QuietProgress(progress));
        sorted.map_err(|error| self.split.of_chosen(error))?;
        Ok(())
    }
}

/// The map has the bar; both end with a cancel.
struct QuietProgress<'a>(&'a dyn Progress);

impl Progress for QuietProgress<'_> {
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

/// Sends rows to the sort.
struct RowFeed {
    of: Type,
    piece: Vec<u8>,
    rank: Vec<u8>,
    sender: SyncSender<io::Result<Vec<u8>>>,
    /// The memory of all pieces: each is as long as the longest row so far.
    memory: Reservation,
    split: MemorySplit,
}

impl RowFeed {
    /// Sends the last rows; if the map failed, the sort fails, too, and prints nothing.
    fn end(self, whole: bool) {
        let last = if whole { Ok(self.piece) } else { Err(io::Error::other("the map failed")) };
        // A sort that has ended already has failed, and says so.
        let _ = self.sender.send(last);
    }
}

impl RowSink for RowFeed {
    fn keyed(&mut self, key: &[u8], value: &[u8]) -> Result<bool, SsdletError> {
        // At most: the value is in the rank, too, with a byte more for each of some.
        let most = 8 + key.len() + 3 * value.len() + 10;
        let held = PIECES_HELD * most as u64;
        if self.memory.grow_to(held).is_err() {
            let cut_bytes = most as u64;
            let least = OF_PIECES.least_with(held.saturating_add(cut_bytes));
            let least = self.split.least_with_chosen(least);
            return Err(SsdletError::Failed(format!(
                "--order value: a row takes {most} bytes; with --memory {least} or more there is room for it"
            )));
        }
        self.rank.clear();
        self.rank.reserve_exact(most);
        rank::rank(self.of, key, value, &mut self.rank);
        let mut is_wanted = true;
        if self.piece.capacity() - self.piece.len() < most {
            let next = Vec::with_capacity(PIECE_BYTES.max(most));
            let full = std::mem::replace(&mut self.piece, next);
            is_wanted = self.sender.send(Ok(full)).is_ok();
        }
        keyed(&self.rank, value, &mut self.piece).map_err(merganser_sort::Error::from)?;
        Ok(is_wanted)
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
    records: RecordCutter,
    rows: &'a mut RowWriter<W>,
}

impl<W: Write> Write for Unpack<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some(record) = self.records.next(&mut rest)? {
            let (head, both) = record.split_at(8);
            let key_len = u32::from_le_bytes(*head.first_chunk().expect("8 bytes")) as usize;
            let (rank, value) = both.split_at(key_len);
            self.rows.row(rank::key_of_rank(self.of, rank), value)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
