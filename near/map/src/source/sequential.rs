//! Records that are cut one after the other, because their borders depend on all that came before, or
//! because the bytes come but once.
//!
//! ```text
//!   carry │ bytes read now                        buffer of the worker that holds the lock
//!   ──────┴──────────┬───────┬────────────┬─────
//!      records of the chunk               │ the next carry
//! ```

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use merganser_sort::error::{InputError, stray_quote};
use merganser_sort::record::{CsvHeader, Format, InputRecords, Tail};
use merganser_sort::rows::Carry;
use merganser_sort::{Budget, Error};
use merganser_storage::Storage;

use super::super::MapInput;
use super::super::chunk_buffer::WorkerBuffer;
use super::feed::StreamFeed;
use super::{shrunk, too_long};

/// The longest terminator: a carriage return and a newline.
const TERMINATOR_BYTES: usize = 2;

/// An input that is read from its beginning to its end.
pub(super) struct Sequential {
    name: String,
    format: Format,
    bytes: SequentialBytes,
    /// The beginning of the next record, and its place.
    carry: Carry,
    offset: u64,
    /// Records that begin here or later are not wanted.
    end: u64,
    /// No more bytes come.
    dry: bool,
    ended: bool,
    records: InputRecords,
    cuts: Vec<usize>,
}

enum SequentialBytes {
    Storage { storage: Arc<dyn Storage>, at: u64, size: u64 },
    Feed(StreamFeed),
}

impl Sequential {
    /// The records of `input`. A stream is read ahead by up to `feed_bytes`, and seems to end once it is `stopped`.
    ///
    /// # Errors
    /// A range that does not begin at 0; too little memory; when the system gives no thread.
    pub(super) fn new(
        input: MapInput,
        format: Format,
        feed_bytes: usize,
        budget: &Budget,
        stopped: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let (name, bytes, end) = match input {
            MapInput::Storage { storage, range } => {
                let size = storage.size();
                let Range { start, end } = range.unwrap_or(0..size);
                if start > 0 {
                    return Err(Error::Input {
                        file: storage.name().to_owned(),
                        offset: start,
                        detail: "a range of such records can't begin inside the file, because only the bytes before tell where one begins; begin at 0 or take lines".to_owned(),
                    });
                }
                (storage.name().to_owned(), SequentialBytes::Storage { storage, at: 0, size }, end)
            }
            MapInput::Stream { name, reader, .. } => {
                let feed = StreamFeed::start(reader, feed_bytes, budget, stopped)?;
                (name, SequentialBytes::Feed(feed), u64::MAX)
            }
        };
        Ok(Sequential {
            name,
            format,
            bytes,
            carry: Carry::new(budget)?,
            offset: 0,
            end,
            dry: false,
            ended: end == 0,
            records: InputRecords::of_input(format),
            cuts: Vec::new(),
        })
    }

    /// Reads the next records: the place of the first one, where they are in the buffer, and how many
    /// bytes of input they stand for.
    pub(super) fn read(
        &mut self,
        buffer: &mut WorkerBuffer,
        chunk_bytes: usize,
        budget: &Budget,
        header: &OnceLock<Vec<u8>>,
    ) -> Result<Option<(u64, Range<usize>, u64)>, Error> {
        if self.ended {
            return Ok(None);
        }
        buffer.shrink()?;
        let mut filled = self.carry.bytes().len();
        // Bytes stay for a terminator that the last record has not.
        let mut target = chunk_bytes.min(buffer.len() - TERMINATOR_BYTES);
        let grown = buffer.grow(filled + 1 + TERMINATOR_BYTES, 0, budget);
        grown.map_err(|e| too_long(&self.name, self.offset, buffer.len(), e))?;
        buffer.bytes_mut()[..filled].copy_from_slice(self.carry.bytes());
        self.carry.clear();
        let mut preamble = 0;
        let cut = loop {
            while filled < target && !self.dry {
                let read = self.fill(buffer, filled, target)?;
                self.dry = read == 0;
                filled += read;
            }
            if self.records.is_preamble_due() {
                let len = self.records.preamble_len(&buffer.bytes()[..filled]);
                let len = len.map_err(|quote| stray_quote(&self.name, self.offset, quote))?;
                if len.is_none() && self.dry && filled > 0 {
                    self.complete(buffer, 0, &mut filled)?;
                    continue;
                }
                preamble = len.unwrap_or(0);
            }
            self.cuts.clear();
            if !self.records.is_preamble_due() {
                let begun = &buffer.bytes()[preamble..filled];
                self.format.cut(begun, filled.max(1), &mut self.cuts);
            }
            match self.cuts.last() {
                Some(cut) => break preamble + *cut,
                None if self.dry => break self.complete(buffer, preamble, &mut filled)?,
                // It may be long before a record comes, and others wait for the header.
                None if preamble > 0 => break preamble,
                None => {
                    // A record that is longer than the chunk.
                    target = filled.max(target).saturating_mul(2);
                    let grown = buffer.grow(target + TERMINATOR_BYTES, filled, budget);
                    grown.map_err(|e| self.too_long(&buffer.bytes()[..filled], e))?;
                }
            }
        };
        let carried = self.carry.push(&buffer.bytes()[cut..filled]);
        carried.map_err(|e| too_long(&self.name, self.offset, filled, e))?;
        self.ended = self.dry && cut == filled;
        let bytes = buffer.bytes();
        self.take_preamble(&bytes[..preamble], header)?;
        let told = self.records.records(&bytes[preamble..cut]);
        let place = self.offset + preamble as u64;
        told.map_err(|quote| stray_quote(&self.name, place, quote))?;
        let records = self.within_end(bytes, preamble..cut);
        let offset = self.offset + records.start as u64;
        self.offset += cut as u64;
        Ok(Some((offset, records, cut as u64)))
    }

    /// Completes the record in the bytes from `start` on, which is the last one of the input. A damaged record is an
    /// error once all before it were handed out.
    fn complete(
        &self,
        buffer: &mut WorkerBuffer,
        start: usize,
        filled: &mut usize,
    ) -> Result<usize, Error> {
        if *filled == start {
            return Ok(start);
        }
        match self.records.tail(&buffer.bytes()[start..*filled]) {
            Tail::Whole => Ok(*filled),
            Tail::Complete(terminator) => {
                let end = *filled + terminator.len();
                buffer.bytes_mut()[*filled..end].copy_from_slice(terminator);
                *filled = end;
                Ok(end)
            }
            Tail::Damaged(detail) => {
                let (file, offset) = (self.name.clone(), self.offset + start as u64);
                Err(Error::LastRecord { file, offset, detail })
            }
        }
    }

    /// The error for a record that begins with `bytes` and does not fit into memory.
    fn too_long(&self, bytes: &[u8], cause: Error) -> Error {
        match self.records.returns_alone(bytes) {
            Some(detail) => Error::LastRecord { file: self.name.clone(), offset: 0, detail },
            None => too_long(&self.name, self.offset, bytes.len(), cause),
        }
    }

    /// Keeps the header of the first input, and refuses one with other columns.
    fn take_preamble(&self, preamble: &[u8], header: &OnceLock<Vec<u8>>) -> Result<(), Error> {
        if preamble.is_empty() || !self.format.has_header() {
            return Ok(());
        }
        let first = header.get_or_init(|| preamble.to_vec());
        match CsvHeader::difference_of(self.format, first, preamble) {
            None => Ok(()),
            Some(difference) => Err(Error::Header { file: self.name.clone(), difference }),
        }
    }

    /// The range without the records that begin at the end of what is wanted, or later.
    fn within_end(&mut self, bytes: &[u8], records: Range<usize>) -> Range<usize> {
        if self.offset + (records.end as u64) < self.end {
            return records;
        }
        self.ended = true;
        let mut at = records.start;
        while at < records.end && self.offset + (at as u64) < self.end {
            at += self.format.record_len(&bytes[at..records.end]).expect("whole records");
        }
        records.start..at
    }

    fn fill(&mut self, buffer: &mut WorkerBuffer, from: usize, to: usize) -> Result<usize, Error> {
        match &mut self.bytes {
            SequentialBytes::Storage { storage, at, size } => {
                let len = (to - from).min(usize::try_from(*size - *at).unwrap_or(usize::MAX));
                if len == 0 {
                    return Ok(0);
                }
                let read = buffer.read(&**storage, *at, from, from + len)?;
                if read < len {
                    return Err(shrunk(&**storage, *at + read as u64, *size));
                }
                *at += read as u64;
                Ok(read)
            }
            SequentialBytes::Feed(feed) => {
                let read = feed.read(&mut buffer.bytes_mut()[from..to]);
                read.map_err(|cause| {
                    let (kind, name) = (cause.kind(), self.name.clone());
                    Error::Io(std::io::Error::new(kind, InputError { name, cause }))
                })
            }
        }
    }
}
