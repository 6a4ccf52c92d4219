//! The rows of a node on their way from its thread to the caller's.

use std::sync::mpsc::{Receiver, RecvTimeoutError};

use merganser_map::RowSink;
use merganser_map::ssdlet::SsdletError;
use merganser_sort::record::{CsvHeader, Format};
use merganser_sort::rows::RowStream;
use merganser_sort::{Error, Progress};

use super::LOOK;
use crate::client::StopFlag;

/// Bytes of a batch that a thread hands over: its rows, and what they take in [`FetchedRows::ends`].
const BATCH_BYTES: usize = 256 << 10;

/// Rows.
#[derive(Default)]
pub(super) struct FetchedRows {
    bytes: Vec<u8>,
    /// Ends of key and value of each row.
    ends: Vec<(usize, usize)>,
    /// All rows of the node have come.
    is_last: bool,
}

impl FetchedRows {
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() + self.ends.len() * size_of::<(usize, usize)>() >= BATCH_BYTES
    }

    /// The same batch, after which no other comes.
    pub(super) fn into_last(self) -> Self {
        FetchedRows { is_last: true, ..self }
    }
}

/// The rows of a node, in the caller's thread.
pub(super) struct NodeRows<'a> {
    name: String,
    batches: Receiver<FetchedRows>,
    /// Another node has failed.
    ended: &'a StopFlag,
    progress: &'a dyn Progress,
    batch: FetchedRows,
    /// Number of the next row in the batch.
    next: usize,
    start: usize,
    at_end: bool,
}

impl<'a> NodeRows<'a> {
    pub(super) fn new(
        name: String,
        batches: Receiver<FetchedRows>,
        ended: &'a StopFlag,
        progress: &'a dyn Progress,
    ) -> Self {
        let batch = FetchedRows::default();
        NodeRows { name, batches, ended, progress, batch, next: 0, start: 0, at_end: false }
    }

    /// Whether all rows of the node were taken.
    pub(super) fn is_at_end(&self) -> bool {
        self.at_end
    }

    fn ends(&self) -> (usize, usize) {
        self.batch.ends[self.next - 1]
    }

    /// Waits for the next batch.
    fn receive(&mut self) -> Result<(), SsdletError> {
        loop {
            if self.progress.cancelled() {
                return Err(SsdletError::Engine(Error::Cancelled));
            }
            // Its thread, or that of the other node, says why.
            let early = || SsdletError::Failed(format!("{}: its rows ended early", self.name));
            match self.batches.recv_timeout(LOOK) {
                Ok(batch) => {
                    (self.batch, self.next) = (batch, 0);
                    return Ok(());
                }
                Err(RecvTimeoutError::Timeout) if !self.ended.is_set() => {}
                Err(_) => return Err(early()),
            }
        }
    }
}

impl RowStream for &mut NodeRows<'_> {
    type Error = SsdletError;

    fn advance(&mut self) -> Result<bool, SsdletError> {
        while self.next >= self.batch.ends.len() {
            if self.batch.is_last {
                self.at_end = true;
                return Ok(false);
            }
            self.receive()?;
        }
        self.start = self.next.checked_sub(1).map_or(0, |last| self.batch.ends[last].1);
        self.next += 1;
        Ok(true)
    }

    fn key(&self) -> &[u8] {
        &self.batch.bytes[self.start..self.ends().0]
    }

    fn value(&self) -> &[u8] {
        let (key_end, end) = self.ends();
        &self.batch.bytes[key_end..end]
    }
}

/// Hands over records, stream after stream. Where `format` has a header, each stream begins with the row that names
/// the columns, which is handed over once.
pub(super) fn append_into(
    streams: &mut [NodeRows<'_>],
    format: Format,
    sink: &mut dyn RowSink,
) -> Result<u64, SsdletError> {
    let mut rows = 0;
    let mut header: Option<Vec<u8>> = None;
    for mut stream in streams.iter_mut() {
        let mut header_due = format.has_header();
        while RowStream::advance(&mut stream)? {
            let record = RowStream::key(&stream);
            if std::mem::take(&mut header_due) {
                match &header {
                    Some(known) => match CsvHeader::difference_of(format, known, record) {
                        None => continue,
                        Some(difference) => {
                            let told = format!("{}: {difference}", stream.name);
                            return Err(SsdletError::Failed(told));
                        }
                    },
                    None => header = Some(record.to_vec()),
                }
            }
            rows += 1;
            if !sink.records(record)? {
                return Ok(rows);
            }
        }
    }
    Ok(rows)
}
