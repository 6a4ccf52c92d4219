//! The rows of a finished run: read from any row on, as often as wanted.
//!
//! ```text
//!   run ──rows──► Recorder ──► file:   row 0 ┊ row 1 ┊ ... ┊ row n      keyed: lengths, key, value
//!                              index:  every MiB: number of a row, its place       ordered: as they are
//!   GET(row) ──► index ──► a MiB at most is skipped ──► rows
//! ```
//!
//! A result is written once, reduced, because a client that lost its connection asks for row *n*: the
//! merged runs of a view would have to be reduced from their beginning to find it. The result is
//! small compared with the input (the ISC paper, section 2.1, takes it as a condition for such programs).

use std::ops::Range;
use std::sync::Arc;

use merganser_sort::record::Format;
use merganser_storage::file::FileDirectory;

use super::scratch::{ScratchBytes, ScratchSpace, ScratchWriter};
use super::{SessionError, SessionResult};
use merganser_map::RowSink;
use merganser_map::ssdlet::{SsdletError, SsdletOutput};

/// Bytes between entries of the index.
const INDEX_BYTES: u64 = 1 << 20;
/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// The longest row, in bytes. Clients of gRPC take messages of 4 MiB unless they are configured otherwise.
pub const ROW_BYTES_MAX: usize = 2 << 20;

/// The format in which rows of `output` are kept.
fn format(output: &SsdletOutput) -> Format {
    match output {
        SsdletOutput::Keyed { .. } => Format::Keyed,
        SsdletOutput::Ordered { format } => *format,
    }
}

/// Takes the rows of a run.
pub(super) struct ResultRecorder {
    writer: ScratchWriter,
    format: Format,
    rows: u64,
    index: Vec<(u64, u64)>,
    /// The beginning of a record whose end has not come yet.
    pending: Vec<u8>,
}

impl ResultRecorder {
    pub(super) fn new(
        output: &SsdletOutput,
        temp: &FileDirectory,
        space: &Arc<ScratchSpace>,
    ) -> SessionResult<Self> {
        let writer = ScratchWriter::new(temp, space)?;
        Ok(ResultRecorder {
            writer,
            format: format(output),
            rows: 0,
            index: Vec::new(),
            pending: Vec::new(),
        })
    }

    /// A row of `len` bytes begins at the place where the writer is.
    fn begin_row(&mut self, len: usize) -> SessionResult<()> {
        if len > ROW_BYTES_MAX {
            return Err(too_long());
        }
        let place = self.writer.bytes();
        if self.index.last().is_none_or(|(_, last)| place - last >= INDEX_BYTES) {
            self.index.push((self.rows, place));
        }
        self.rows += 1;
        Ok(())
    }

    fn write_records(&mut self, mut records: &[u8]) -> SessionResult<()> {
        while !records.is_empty() {
            let Some(len) = self.format.record_len(records) else {
                if records.len() > ROW_BYTES_MAX {
                    return Err(too_long());
                }
                self.pending.extend_from_slice(records);
                break;
            };
            self.begin_row(len)?;
            self.writer.write(&records[..len])?;
            records = &records[len..];
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> SessionResult<FinishedRows> {
        if !self.pending.is_empty() {
            let last = std::mem::take(&mut self.pending);
            self.begin_row(last.len())?;
            self.writer.write(&last)?;
        }
        let ResultRecorder { writer, format, rows, index, .. } = self;
        Ok(FinishedRows { kept: writer.finish()?, format, rows, index })
    }
}

impl RowSink for ResultRecorder {
    fn keyed(&mut self, key: &[u8], value: &[u8]) -> SessionResult<bool, SsdletError> {
        let mut write = || {
            self.begin_row(key.len().saturating_add(value.len()))?;
            // Not cut: a row is shorter than 4 GiB.
            self.writer.write(&(key.len() as u32).to_le_bytes())?;
            self.writer.write(&(value.len() as u32).to_le_bytes())?;
            self.writer.write(key)?;
            self.writer.write(value)
        };
        write().map(|()| true).map_err(|e| SsdletError::Failed(e.to_string()))
    }

    fn records(&mut self, records: &[u8]) -> SessionResult<bool, SsdletError> {
        let failed = |e: SessionError| SsdletError::Failed(e.to_string());
        if self.pending.is_empty() {
            self.write_records(records).map_err(failed)?;
        } else {
            let mut whole = std::mem::take(&mut self.pending);
            whole.extend_from_slice(records);
            self.write_records(&whole).map_err(failed)?;
        }
        Ok(true)
    }
}

fn too_long() -> SessionError {
    SessionError::Failed(format!("a row of the result has more than {ROW_BYTES_MAX} bytes"))
}

/// The rows of a finished run.
pub struct FinishedRows {
    kept: ScratchBytes,
    format: Format,
    rows: u64,
    index: Vec<(u64, u64)>,
}

impl FinishedRows {
    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes that they take on the node.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.kept.bytes
    }

    /// The rows from number `row` on.
    ///
    /// # Errors
    /// When `row` is behind the last one, or the disk fails.
    pub fn read(self: &Arc<Self>, row: u64) -> SessionResult<RowReader> {
        if row > self.rows {
            return Err(SessionError::Invalid(format!(
                "the offset {row} is behind the last of {} rows",
                self.rows
            )));
        }
        let entry = self.index.partition_point(|(number, _)| *number <= row);
        let (mut number, place) = entry.checked_sub(1).map_or((0, 0), |entry| self.index[entry]);
        let results = Arc::clone(self);
        let mut reader =
            RowReader { results, buffer: Vec::new(), used: 0, next_place: place, left: u64::MAX };
        while number < row {
            reader.next_row()?;
            number += 1;
        }
        reader.left = self.rows - row;
        Ok(reader)
    }
}

/// Reads rows in order.
pub struct RowReader {
    results: Arc<FinishedRows>,
    /// Bytes of the file before `next_place`; `used` of them are passed.
    buffer: Vec<u8>,
    used: usize,
    next_place: u64,
    left: u64,
}

impl RowReader {
    /// The next row; `None` behind the last.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn next_row(&mut self) -> SessionResult<Option<&[u8]>> {
        if self.left == 0 {
            return Ok(None);
        }
        let row = loop {
            let rest = &self.buffer[self.used..];
            if let Some(len) = self.results.format.record_len(rest).filter(|_| !rest.is_empty()) {
                break self.used..self.used + len;
            }
            if !self.fill()? {
                break self.used..self.buffer.len();
            }
        };
        self.used = row.end;
        self.left -= 1;
        Ok(Some(&self.buffer[row]))
    }

    /// Reads more; false at the end.
    fn fill(&mut self) -> SessionResult<bool> {
        self.buffer.drain(..std::mem::take(&mut self.used));
        // Doubled, so that a long row is not searched again and again for its end.
        let more = READ_BYTES.max(self.buffer.len());
        let kept = self.buffer.len();
        self.buffer.resize(kept + more, 0);
        let read = self.results.kept.read(self.next_place, &mut self.buffer[kept..]);
        let n = read.map_err(|e| SessionError::Failed(format!("this node's disk failed: {e}")))?;
        self.buffer.truncate(kept + n);
        self.next_place += n as u64;
        Ok(n > 0)
    }
}

/// Key and value of a row of keyed output, as places in it.
///
/// # Panics
/// When `row` isn't a row.
#[must_use]
pub fn key_and_value(row: &[u8]) -> (Range<usize>, Range<usize>) {
    let len = |at: usize| {
        let bytes = row[at..at + 4].try_into().expect("four bytes");
        u32::from_le_bytes(bytes) as usize
    };
    let key_end = 8 + len(0);
    (8..key_end, key_end..key_end + len(4))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use merganser_map::ssdlet::{Combine, Type};

    fn recorder(output: &SsdletOutput) -> ResultRecorder {
        let dir = tempfile::tempdir().expect("a folder");
        let temp = FileDirectory::open(dir.path()).expect("there");
        ResultRecorder::new(output, &temp, &ScratchSpace::new(64 << 20)).expect("room")
    }

    fn rows(results: &Arc<FinishedRows>, from: u64) -> Vec<Vec<u8>> {
        let mut reader = results.read(from).expect("a row");
        std::iter::from_fn(|| reader.next_row().expect("readable").map(<[u8]>::to_vec)).collect()
    }

    const LINES: SsdletOutput =
        SsdletOutput::Ordered { format: Format::Lines { delimiter: b'\n' } };
    const KEYED: SsdletOutput =
        SsdletOutput::Keyed { key: Type::Text, value: Type::I64, combine: Combine::Sum };

    proptest! {
        #[test]
        fn every_row_is_found_again(lens in prop::collection::vec(0_usize..20_000, 1..200), keyed: bool) {
            let mut recorder = recorder(if keyed { &KEYED } else { &LINES });
            let mut expected = Vec::new();
            for (i, len) in lens.iter().enumerate() {
                let mut text = vec![b'a' + (i % 26) as u8; *len];
                if keyed {
                    recorder.keyed(&text, &[b'v'; 8]).expect("room");
                    let lens = [(*len as u32).to_le_bytes(), 8_u32.to_le_bytes()].concat();
                    expected.push([&lens, &text[..], &[b'v'; 8]].concat());
                } else {
                    text.push(b'\n');
                    // Records may come in pieces.
                    let (a, b) = text.split_at(len / 2);
                    recorder.records(a).expect("room");
                    recorder.records(b).expect("room");
                    expected.push(text);
                }
            }
            let results = Arc::new(recorder.finish().expect("room"));
            prop_assert_eq!(results.rows(), expected.len() as u64);
            for from in [0, 1, expected.len() / 2, expected.len() - 1, expected.len()] {
                prop_assert_eq!(&rows(&results, from as u64)[..], &expected[from..]);
            }
            prop_assert!(results.read(expected.len() as u64 + 1).is_err());
        }
    }

    #[test]
    fn an_unfinished_last_record_is_a_row() {
        let mut recorder = recorder(&LINES);
        recorder.records(b"one\ntwo").expect("room");
        let results = Arc::new(recorder.finish().expect("room"));
        assert_eq!(rows(&results, 1), [b"two"]);
    }

    #[test]
    fn a_key_and_a_value_are_found() {
        let row = [&2_u32.to_le_bytes()[..], &1_u32.to_le_bytes(), b"abc"].concat();
        assert_eq!(key_and_value(&row), (8..10, 10..11));
    }
}
