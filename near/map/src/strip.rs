//! Sorted records in a file without a name: the result of one sort of spills, until all of them are merged.
//!
//! ```text
//!   ├ length u32 ┼ stored u32 ┼ CRC32C u32 ┼ stored bytes ┤ ├ ...          a record may continue in the next block
//!                                             of records, up to 128 KiB, as they are or packed by LZ4
//! ```
//!
//! It is read from its beginning to its end, so it has no index, and its reader takes the same little memory however
//! long it is. A block is read together with the head of the next one.

use std::sync::Arc;

use merganser_sort::budget::Reservation;
use merganser_sort::reduced::{CARRY_BYTES, Encoding, RecordCutter, RowStream, set};
use merganser_sort::run::Compression;
use merganser_sort::{Budget, Error};
use merganser_storage::{Storage, StorageExt};

use crate::ssdlet::SsdletError;

/// Bytes of records in one block.
const BLOCK_BYTES: usize = 128 << 10;
const HEAD_BYTES: usize = 12;
/// A packed block has two parts of three of its bytes at most: with less gain, packing takes more time than it
/// saves.
const PACKED_PARTS: (usize, usize) = (2, 3);
/// Blocks that are not tried after one that packing made no shorter.
const NOT_TRIED: u32 = 15;
/// The memory of a writer: a block, the same packed, and while it is packed what LZ4 may make of it.
pub(super) const WRITER_BYTES: u64 = 3 * (HEAD_BYTES + BLOCK_BYTES + BLOCK_BYTES / 16) as u64;
/// Copies of the longest record that a reader holds, at most: its row, and a key without its escapes; one more while a
/// copy grows.
const COPIES: u64 = 3;
/// For rows up to a third of this.
const ROWS_BYTES: u64 = 64 << 10;
/// A block, and the same as it is stored.
const BLOCKS_BYTES: u64 = (2 * BLOCK_BYTES + HEAD_BYTES) as u64;
/// What a reader holds at least.
pub(super) const READER_BYTES: u64 = BLOCKS_BYTES + CARRY_BYTES as u64 + ROWS_BYTES;

/// A finished strip.
pub(super) struct Strip {
    storage: Arc<dyn Storage>,
    end: u64,
    /// Bytes of its records.
    pub(super) bytes: u64,
}

/// Writes a strip.
pub(super) struct StripWriter {
    storage: Arc<dyn Storage>,
    at: u64,
    bytes: u64,
    /// A head, and the records of a block.
    block: Vec<u8>,
    /// A head, and the same packed.
    packed: Vec<u8>,
    /// Blocks that are not tried.
    not_tried: u32,
}

impl StripWriter {
    /// A strip in the empty `storage`. The caller holds [`WRITER_BYTES`].
    pub(super) fn new(storage: Arc<dyn Storage>) -> Self {
        StripWriter {
            storage,
            at: 0,
            bytes: 0,
            block: Vec::with_capacity(HEAD_BYTES + BLOCK_BYTES),
            packed: Vec::with_capacity(HEAD_BYTES + BLOCK_BYTES),
            not_tried: 0,
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
        let len = self.block.len() - HEAD_BYTES;
        let stored = if self.packs() { &mut self.packed } else { &mut self.block };
        let (head, bytes) = stored.split_at_mut(HEAD_BYTES);
        head.copy_from_slice(&StripBlockHead::of(len, bytes).bytes());
        self.storage.write_at(self.at, stored)?;
        self.at += stored.len() as u64;
        self.block.clear();
        Ok(())
    }

    /// Whether the block is worth packing; it is packed then.
    fn packs(&mut self) -> bool {
        if self.not_tried > 0 {
            self.not_tried -= 1;
            return false;
        }
        self.packed.clear();
        self.packed.extend_from_slice(&[0; HEAD_BYTES]);
        let block = &self.block[HEAD_BYTES..];
        Compression::Lz4.pack(block, &mut self.packed);
        let packed = self.packed.len() - HEAD_BYTES;
        let shrinks =
            packed < block.len() && packed * PACKED_PARTS.1 <= block.len() * PACKED_PARTS.0;
        self.not_tried = if shrinks { 0 } else { NOT_TRIED };
        shrinks
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The storage's own.
    pub(super) fn finish(mut self) -> Result<Strip, Error> {
        if !self.block.is_empty() {
            self.flush()?;
        }
        Ok(Strip { storage: self.storage, end: self.at, bytes: self.bytes })
    }
}

/// The head of a block.
#[derive(Clone, Copy, PartialEq)]
struct StripBlockHead {
    /// Bytes of records.
    len: u32,
    /// Bytes as they are stored: fewer if they are packed.
    stored: u32,
    /// Of both lengths and the stored bytes.
    crc: u32,
}

impl StripBlockHead {
    fn of(len: usize, stored: &[u8]) -> Self {
        let mut head = StripBlockHead { len: len as u32, stored: stored.len() as u32, crc: 0 };
        head.crc = crc32c::crc32c_append(crc32c::crc32c(&head.bytes()[..8]), stored);
        head
    }

    fn bytes(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&self.len.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.stored.to_le_bytes());
        bytes[8..].copy_from_slice(&self.crc.to_le_bytes());
        bytes
    }

    /// The head with these bytes, if there is a block of such lengths.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let head = StripBlockHead { len: number(0)?, stored: number(4)?, crc: number(8)? };
        let is_one = head.stored <= head.len && head.len as usize <= BLOCK_BYTES && head.len > 0;
        is_one.then_some(head)
    }
}

/// The rows of a strip, as its records have them: a value that has a place has it in front.
pub(super) struct StripRows {
    strip: Strip,
    /// Place of the next block, and its head if that was read.
    at: u64,
    head: Option<StripBlockHead>,
    /// The next block as it is stored, and the head after it.
    stored: Vec<u8>,
    /// The records of the block that is read.
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
        let memory = budget.reserve(BLOCKS_BYTES + ROWS_BYTES, "merging sorted spills")?;
        let (key, value, unescaped) = Default::default();
        Ok(StripRows {
            strip,
            at: 0,
            head: None,
            stored: Vec::with_capacity(BLOCK_BYTES + HEAD_BYTES),
            block: Vec::with_capacity(BLOCK_BYTES),
            used: 0,
            records: RecordCutter::new(budget)?,
            encoding,
            key,
            value,
            unescaped,
            memory,
        })
    }

    fn damaged(&self, detail: &str) -> Error {
        let (file, offset) = (self.strip.storage.name().to_owned(), self.at);
        Error::Corrupt { file, offset, detail: detail.to_owned() }
    }

    /// Reads the next block; false at the end.
    fn read(&mut self) -> Result<bool, Error> {
        const NOT_WRITTEN: &str = "a block of sorted spills is not what was written";
        let Strip { storage, end, .. } = &self.strip;
        let (storage, left) = (Arc::clone(storage), end - self.at);
        if left == 0 {
            return Ok(false);
        }
        let head = match self.head.take() {
            Some(head) => Some(head),
            None => {
                let mut first = [0; HEAD_BYTES];
                storage.read_at(self.at, &mut first)?;
                StripBlockHead::from_bytes(&first)
            }
        };
        let Some(head) = head else { return Err(self.damaged(NOT_WRITTEN)) };
        let (len, stored) = (head.len as usize, head.stored as usize);
        let after = left.checked_sub((HEAD_BYTES + stored) as u64);
        let Some(after) = after else { return Err(self.damaged(NOT_WRITTEN)) };
        let with_next = stored + after.min(HEAD_BYTES as u64) as usize;
        self.stored.resize(with_next, 0);
        let read = storage.read_at(self.at + HEAD_BYTES as u64, &mut self.stored)?;
        let (bytes, next) = self.stored.split_at(stored);
        if read < with_next || StripBlockHead::of(len, bytes) != head {
            return Err(self.damaged(NOT_WRITTEN));
        }
        // A head that is damaged is noticed when its block is read.
        self.head = StripBlockHead::from_bytes(next);
        self.block.resize(len, 0);
        if stored == len {
            self.block.copy_from_slice(bytes);
        } else if Compression::Lz4.unpack(bytes, &mut self.block) != Some(len) {
            return Err(self.damaged("a block of sorted spills does not unpack"));
        }
        (self.at, self.used) = (self.at + (HEAD_BYTES + stored) as u64, 0);
        Ok(true)
    }
}

impl RowStream for StripRows {
    type Error = SsdletError;

    fn advance(&mut self) -> Result<bool, SsdletError> {
        loop {
            let mut rest = &self.block[self.used..];
            if let Some(record) = self.records.next(&mut rest)? {
                self.memory.grow_to(BLOCKS_BYTES + COPIES * record.len() as u64)?;
                let row = self.encoding.split(record, &mut self.unescaped);
                let whole = row.is_some();
                if let Some((key, value)) = row {
                    set(&mut self.key, key);
                    set(&mut self.value, value);
                }
                self.used = self.block.len() - rest.len();
                if !whole {
                    return Err(self.damaged("it holds no record of this map").into());
                }
                return Ok(true);
            }
            self.used = self.block.len();
            if !self.read()? {
                if self.records.is_inside_a_record() {
                    return Err(self.damaged("its last record is cut short").into());
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
        writer.finish().expect("written")
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
        // Bytes of a head, of the middle, and of the last block.
        for at in (0..20).chain([70_000, storage.size() / 2, storage.size() - 1]) {
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

    /// Records that shrink are packed, and others are stored as they are, with a block tried now and then.
    #[test]
    fn blocks_are_packed_where_it_saves_a_third() {
        let mut random = merganser_testkit::Random::new(1);
        let mut noise =
            |len: usize| -> Vec<u8> { (0..len).map(|_| random.below(256) as u8).collect() };
        let alike = |n: u32| (n.to_be_bytes().to_vec(), vec![b'v'; 60]);
        let noisy: Rows = (0..40_000).map(|_| (noise(20), noise(20))).collect();
        let (same, other): (Rows, Rows) = ((0..40_000).map(alike).collect(), noisy.clone());
        let (noise_first, noise_last) =
            ([&noisy[..], &same[..]].concat(), [&same[..], &other[..]].concat());
        for (rows, parts) in
            [(same, 0.0..0.3), (noisy, 1.0..1.001), (noise_first, 0.3..0.7), (noise_last, 0.3..0.7)]
        {
            let storage = MemoryStorage::new("strip");
            let written = strip(&rows, &storage);
            let part = storage.size() as f64 / written.bytes as f64;
            assert!(parts.contains(&part), "{part} not in {parts:?}");
            assert!(read(written, &Budget::new(READER_BYTES)).expect("reads") == rows);
        }
    }
}
