//! Sorted records in a file without a name: the result of one sort of spills, until all of them are merged.
//!
//! ```text
//!   ├ length u32 ┼ CRC32C u32 ┼ bytes of records, up to 128 KiB ┤ ├ ...        a record may continue in the next block
//! ```
//!
//! It is read from its beginning to its end, so it has no index, and its reader takes the same little memory however
//! long it is.

use std::sync::Arc;

use merganser_sort::budget::Reservation;
use merganser_sort::{Budget, Error};
use merganser_storage::{Storage, StorageExt};

use super::chunk_buffer::CARRY_BYTES;
use super::encoding::Encoding;
use super::records::RecordCutter;
use super::rows::RowStream;
use crate::ssdlet::{SsdletError, set};

/// Bytes of records in one block.
const BLOCK_BYTES: usize = 128 << 10;
const HEAD_BYTES: usize = 8;
/// What a writer holds.
pub(super) const WRITER_BYTES: u64 = (HEAD_BYTES + BLOCK_BYTES) as u64;
/// Copies of the longest record that a reader holds, at most: its row, and a key without its escapes; one more while a
/// copy grows.
const COPIES: u64 = 3;
/// For rows up to a third of this.
const ROWS_BYTES: u64 = 64 << 10;
/// What a reader holds at least.
pub(super) const READER_BYTES: u64 = WRITER_BYTES + CARRY_BYTES as u64 + ROWS_BYTES;

/// A finished strip.
pub(super) struct Strip {
    storage: Arc<dyn Storage>,
    end: u64,
    /// Bytes of its records.
    pub(super) bytes: u64,
    /// How many merges its records have seen.
    pub(super) level: u32,
}

/// Writes a strip.
pub(super) struct StripWriter {
    storage: Arc<dyn Storage>,
    at: u64,
    bytes: u64,
    block: Vec<u8>,
}

impl StripWriter {
    /// A strip in the empty `storage`. The caller holds [`WRITER_BYTES`].
    pub(super) fn new(storage: Arc<dyn Storage>) -> Self {
        StripWriter {
            storage,
            at: 0,
            bytes: 0,
            block: Vec::with_capacity(HEAD_BYTES + BLOCK_BYTES),
        }
    }

    /// Appends records.
    ///
    /// # Errors
    /// The storage's own.
    pub(super) fn push(&mut self, mut records: &[u8]) -> Result<(), Error> {
        self.bytes += records.len() as u64;
        while !records.is_empty() {
            if self.block.is_empty() {
                self.block.extend_from_slice(&[0; HEAD_BYTES]);
            }
            let n = records.len().min(HEAD_BYTES + BLOCK_BYTES - self.block.len());
            self.block.extend_from_slice(&records[..n]);
            records = &records[n..];
            if self.block.len() == HEAD_BYTES + BLOCK_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let (head, bytes) = self.block.split_at_mut(HEAD_BYTES);
        head[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        head[4..].copy_from_slice(&crc32c::crc32c(bytes).to_le_bytes());
        self.storage.write_at(self.at, &self.block)?;
        self.at += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The storage's own.
    pub(super) fn finish(mut self, level: u32) -> Result<Strip, Error> {
        if !self.block.is_empty() {
            self.flush()?;
        }
        Ok(Strip { storage: self.storage, end: self.at, bytes: self.bytes, level })
    }
}

/// The rows of a strip, as its records have them: a value that has a place has it in front.
pub(super) struct StripRows {
    strip: Strip,
    at: u64,
    block: Vec<u8>,
    /// Bytes of the block that are used.
    used: usize,
    records: RecordCutter,
    encoding: Encoding,
    key: Vec<u8>,
    value: Vec<u8>,
    unescaped: Vec<u8>,
    memory: Reservation,
}

impl StripRows {
    /// Reads `strip` with memory of `budget`.
    ///
    /// # Errors
    /// Too little memory: it holds [`READER_BYTES`] at least.
    pub(super) fn new(strip: Strip, encoding: Encoding, budget: &Budget) -> Result<Self, Error> {
        let memory = budget.reserve(WRITER_BYTES + ROWS_BYTES, "merging sorted spills")?;
        let (key, value, unescaped) = Default::default();
        Ok(StripRows {
            strip,
            at: 0,
            block: vec![0; HEAD_BYTES + BLOCK_BYTES],
            used: HEAD_BYTES + BLOCK_BYTES,
            records: RecordCutter::new(budget)?,
            encoding,
            key,
            value,
            unescaped,
            memory,
        })
    }

    fn damaged(&self, offset: u64, detail: &str) -> Error {
        let file = self.strip.storage.name().to_owned();
        Error::Corrupt { file, offset, detail: detail.to_owned() }
    }

    /// Reads the next block; false at the end.
    fn read(&mut self) -> Result<bool, Error> {
        let Strip { storage, end, .. } = &self.strip;
        let len = (end - self.at).min((HEAD_BYTES + BLOCK_BYTES) as u64) as usize;
        if len == 0 {
            return Ok(false);
        }
        self.block.resize(len, 0);
        let read = storage.read_at(self.at, &mut self.block)?;
        let (head, bytes) = self.block.split_at(HEAD_BYTES.min(read));
        let sealed = [(bytes.len() as u32).to_le_bytes(), crc32c::crc32c(bytes).to_le_bytes()];
        if read < len || head != sealed.as_flattened() {
            return Err(self.damaged(self.at, "a block of sorted spills is not what was written"));
        }
        (self.at, self.used) = (self.at + len as u64, HEAD_BYTES);
        Ok(true)
    }
}

impl RowStream for StripRows {
    fn advance(&mut self) -> Result<bool, SsdletError> {
        loop {
            let mut rest = &self.block[self.used..];
            if let Some(record) = self.records.next(&mut rest)? {
                self.memory.grow_to(WRITER_BYTES + COPIES * record.len() as u64)?;
                let row = self.encoding.split(record, &mut self.unescaped);
                let whole = row.is_some();
                if let Some((key, value)) = row {
                    set(&mut self.key, key);
                    set(&mut self.value, value);
                }
                self.used = self.block.len() - rest.len();
                if !whole {
                    return Err(self.damaged(self.at, "it holds no record of this map").into());
                }
                return Ok(true);
            }
            self.used = self.block.len();
            if !self.read()? {
                if self.records.is_inside_a_record() {
                    return Err(self.damaged(self.at, "its last record is cut short").into());
                }
                return Ok(false);
            }
        }
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn value(&self) -> &[u8] {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use merganser_storage::memory::MemoryStorage;

    use super::*;

    fn record(key: &[u8], value: &[u8]) -> Vec<u8> {
        let mut record = Vec::new();
        Encoding::Plain.push(key, value, &mut record);
        record
    }

    fn strip(rows: &[(Vec<u8>, Vec<u8>)], storage: &Arc<MemoryStorage>) -> Strip {
        let mut writer = StripWriter::new(Arc::clone(storage) as Arc<dyn Storage>);
        for (key, value) in rows {
            writer.push(&record(key, value)).expect("written");
        }
        writer.finish(0).expect("written")
    }

    type Rows = Vec<(Vec<u8>, Vec<u8>)>;

    fn read(strip: Strip, budget: &Budget) -> Result<Rows, SsdletError> {
        let mut rows = StripRows::new(strip, Encoding::Plain, budget)?;
        let mut all = Vec::new();
        while rows.advance()? {
            all.push((rows.key().to_vec(), rows.value().to_vec()));
        }
        Ok(all)
    }

    #[test]
    fn rows_come_back_and_damage_is_found() {
        let mut rows: Vec<_> = (0..40_000_u32)
            .map(|n| (n.to_be_bytes().to_vec(), vec![b'v'; n as usize % 9]))
            .collect();
        rows.push((vec![b'k'; 300_000], vec![b'v'; 200_000]));
        rows.push((Vec::new(), Vec::new()));
        let storage = MemoryStorage::new("strip");
        let written = strip(&rows, &storage);
        let budget = Budget::new(8 << 20);
        assert_eq!(read(written, &budget).expect("reads"), rows);
        assert_eq!(budget.free_bytes(), budget.limit_bytes());
        let (empty, none) = (MemoryStorage::new("empty"), Vec::new());
        assert_eq!(read(strip(&none, &empty), &budget).expect("reads"), none);
        // A byte of a head, of the middle, and of the last block.
        for at in [0, 5, 70_000, storage.size() - 1] {
            let storage = MemoryStorage::new("strip");
            let written = strip(&rows, &storage);
            let old = storage.read_vec(at, 1).expect("there");
            storage.write_at(at, &[old[0] ^ 4]).expect("written");
            let error = read(written, &budget).expect_err("damaged").to_string();
            assert!(error.contains("strip") && error.contains("not what was written"), "{error}");
        }
        let little = Budget::new(READER_BYTES - 1);
        assert!(read(strip(&rows, &MemoryStorage::new("strip")), &little).is_err());
        let enough = Budget::new(READER_BYTES);
        assert_eq!(
            read(strip(&rows[..9], &MemoryStorage::new("strip")), &enough).expect("fits").len(),
            9
        );
    }
}
