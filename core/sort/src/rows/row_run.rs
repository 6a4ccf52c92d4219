//! Rows in order on a temporary disk, until they are read once from front to end.
//!
//! ```text
//!   ├ length u32 ┼ stored u32 ┼ CRC32C u32 ┼ stored bytes ┤ ├ ...
//!                                            whole rows, as they are or packed by LZ4
//! ```
//!
//! Such a run has no fences, and its reader takes the same little memory however long it is. A block is read together
//! with the head of the next one. Many runs share a file, so that there may be more of them than open files.

use std::sync::Arc;

use merganser_storage::{ALIGNMENT, Buffer, Completions, Directory, Operation, Storage};

use super::RowStream;
use super::buffer::{LENGTHS, frame, frame_lengths, lengths, split};
use crate::budget::Reservation;
use crate::run::Compression;
use crate::run::write_behind::WriteBehind;
use crate::{Budget, Error, Result};

const HEAD_BYTES: usize = 12;
/// A packed block has two parts of three of its bytes at most: with less gain, packing takes more time than it saves.
const PACKED_PARTS: (usize, usize) = (2, 3);
/// Blocks that are not tried after one that packing made no shorter.
const NOT_TRIED: u32 = 15;
/// Runs in one file: its space comes back when all of them are read.
const RUNS_OF_A_FILE: u32 = 32;

/// Buffers that are filled and written in turn.
const STAGES: usize = 2;
/// Blocks that one of them holds.
const BLOCKS_OF_A_STAGE: usize = 2;
/// Runs begin at a page of the disk, and are read and written by whole pages.
const PAGE: usize = ALIGNMENT;

/// The memory of a writer of blocks of this length: a block, the same packed, what LZ4 may make of it meanwhile, and what
/// is on its way to the disk.
pub(super) fn writer_bytes(block_bytes: usize) -> u64 {
    let staged = STAGES * BLOCKS_OF_A_STAGE * block_bytes;
    (3 * (HEAD_BYTES + block_bytes + block_bytes / 16) + staged) as u64
}

/// The memory of a reader of blocks of `block_most`, where `block_bytes` are usual: one, the same as it is stored, and two
/// pieces of the run.
pub(super) fn reader_bytes(block_most: usize, block_bytes: usize) -> u64 {
    (2 * block_most + HEAD_BYTES + 2 * block_bytes) as u64
}

/// A finished run.
#[derive(Clone)]
pub(super) struct RowRun {
    /// The number of the producer that pushed its rows.
    pub(super) producer: usize,
    storage: Arc<dyn Storage>,
    start: u64,
    end: u64,
    /// Bytes of its rows.
    pub(super) bytes: u64,
    /// The longest of its blocks, in bytes of rows.
    pub(super) block_most: usize,
    /// The usual length of one.
    pub(super) block_bytes: usize,
}

impl RowRun {
    /// The same, whose rows another producer pushed than the one that has the writer.
    pub(super) fn pushed_by(self, producer: usize) -> RowRun {
        RowRun { producer, ..self }
    }

    /// The memory of its reader.
    pub(super) fn reader_bytes(&self) -> u64 {
        reader_bytes(self.block_most, self.block_bytes)
    }
}

/// Writes runs, one after the other.
pub(super) struct RowRunWriter {
    folders: Vec<Arc<dyn Directory>>,
    producer: usize,
    /// Files so far.
    files: usize,
    file: Option<StagedFile>,
    /// Runs in this file.
    runs: u32,
    start: u64,
    bytes: u64,
    block_bytes: usize,
    /// The longest block of the run.
    block_most: usize,
    /// A head, and the rows of a block.
    block: Vec<u8>,
    /// A head, and the same packed.
    packed: Vec<u8>,
    /// Blocks that are not tried.
    not_tried: u32,
    _memory: Reservation,
}

impl RowRunWriter {
    /// A writer of blocks of `block_bytes` for the producer of this number: its files are in `folders` in turn, from that
    /// number on.
    ///
    /// # Errors
    /// Too little memory: it holds [`writer_bytes`].
    pub(super) fn new(
        folders: &[Arc<dyn Directory>],
        producer: usize,
        block_bytes: usize,
        budget: &Budget,
    ) -> Result<Self> {
        Ok(RowRunWriter {
            folders: folders.to_vec(),
            producer,
            files: producer,
            file: None,
            runs: 0,
            start: 0,
            bytes: 0,
            block_bytes,
            block_most: 0,
            block: Vec::with_capacity(HEAD_BYTES + block_bytes),
            packed: Vec::with_capacity(HEAD_BYTES + block_bytes),
            not_tried: 0,
            _memory: budget.reserve(writer_bytes(block_bytes), "writing rows")?,
        })
    }

    /// Appends rows to the run, whole and with their lengths.
    ///
    /// # Errors
    /// The storage's own.
    pub(super) fn push_all(&mut self, mut rows: &[u8]) -> Result<()> {
        while !rows.is_empty() {
            // As many as there is room for, cut behind a row.
            let (room, mut len) = (self.room(), 0);
            while len < rows.len() {
                let (key, value) = lengths(&rows[len..]);
                let next = len + LENGTHS + key + value;
                if next > room {
                    break;
                }
                len = next;
            }
            if len == 0 {
                let (key, value) = split(rows);
                self.push(key, value)?;
                len = LENGTHS + key.len() + value.len();
            } else {
                self.block.extend_from_slice(&rows[..len]);
                self.bytes += len as u64;
            }
            rows = &rows[len..];
        }
        Ok(())
    }

    /// Appends one row.
    ///
    /// # Errors
    /// The storage's own.
    #[inline]
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let len = LENGTHS + key.len() + value.len();
        self.bytes += len as u64;
        if len > self.room() {
            self.flush()?;
            if len > self.block_bytes {
                return self.write_long(key, value);
            }
            self.block.extend_from_slice(&[0; HEAD_BYTES]);
        }
        frame(key, value, &mut self.block);
        Ok(())
    }

    /// Bytes of rows that still go into the block; none before it was begun.
    #[inline]
    fn room(&self) -> usize {
        if self.block.is_empty() { 0 } else { HEAD_BYTES + self.block_bytes - self.block.len() }
    }

    /// Writes a row that is longer than a block as a block of its own, from where it is.
    #[cold]
    fn write_long(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let len = LENGTHS + key.len() + value.len();
        let mut first = vec![0; HEAD_BYTES];
        frame_lengths(key, value, &mut first);
        let (head, lengths) = first.split_at_mut(HEAD_BYTES);
        head.copy_from_slice(&RowBlockHead::of_stored(len, &[lengths, key, value]).bytes());
        let file = self.file()?;
        for bytes in [&first, key, value] {
            file.append(bytes)?;
        }
        self.block_most = self.block_most.max(len);
        Ok(())
    }

    fn file(&mut self) -> Result<&mut StagedFile> {
        if self.file.is_none() {
            let folder = self.folders.get(self.files % self.folders.len().max(1));
            let storage = folder.ok_or(Error::NoTemp)?.create_unnamed()?;
            self.file = Some(StagedFile::new(storage, BLOCKS_OF_A_STAGE * self.block_bytes)?);
            self.files += 1;
            (self.runs, self.start) = (0, 0);
        }
        Ok(self.file.as_mut().expect("made above"))
    }

    fn flush(&mut self) -> Result<()> {
        if self.block.len() <= HEAD_BYTES {
            self.block.clear();
            return Ok(());
        }
        let len = self.block.len() - HEAD_BYTES;
        self.file()?;
        let stored = if self.packs() { &mut self.packed } else { &mut self.block };
        let (head, bytes) = stored.split_at_mut(HEAD_BYTES);
        head.copy_from_slice(&RowBlockHead::of_stored(len, &[bytes]).bytes());
        self.file.as_mut().expect("made above").append(stored)?;
        self.block_most = self.block_most.max(len);
        self.block.clear();
        Ok(())
    }

    /// Whether the block is worth packing; it is packed then.
    fn packs(&mut self) -> bool {
        if self.not_tried > 0 {
            self.not_tried -= 1;
            return false;
        }
        let block = &self.block[HEAD_BYTES..];
        self.packed.clear();
        self.packed.extend_from_slice(&[0; HEAD_BYTES]);
        Compression::Lz4.pack(block, &mut self.packed);
        let packed = self.packed.len() - HEAD_BYTES;
        let shrinks =
            packed < block.len() && packed * PACKED_PARTS.1 <= block.len() * PACKED_PARTS.0;
        self.not_tried = if shrinks { 0 } else { NOT_TRIED };
        shrinks
    }

    /// The producer that it is for.
    pub(super) fn producer(&self) -> usize {
        self.producer
    }

    /// Whether rows were pushed since the last run ended.
    pub(super) fn is_inside_a_run(&self) -> bool {
        self.bytes > 0
    }

    /// Ends the run.
    ///
    /// # Errors
    /// The storage's own.
    pub(super) fn end_run(&mut self) -> Result<RowRun> {
        self.flush()?;
        let file = self.file()?;
        let end = file.end();
        let (storage, next) = (Arc::clone(&file.storage), file.finish()?);
        let run = RowRun {
            producer: self.producer,
            storage,
            start: self.start,
            end,
            bytes: self.bytes,
            block_most: self.block_most,
            block_bytes: self.block_bytes,
        };
        (self.start, self.bytes, self.block_most) = (next, 0, 0);
        self.runs += 1;
        if self.runs == RUNS_OF_A_FILE {
            self.file = None;
        }
        Ok(run)
    }
}

/// A file that grows while earlier bytes are on their way to the disk.
struct StagedFile {
    storage: Arc<dyn Storage>,
    behind: WriteBehind,
    /// The bytes that are not on their way yet, and how many.
    stage: Option<Buffer>,
    used: usize,
    /// Where they go: a page of the disk begins there.
    at: u64,
}

impl StagedFile {
    fn new(storage: Arc<dyn Storage>, stage_bytes: usize) -> Result<Self> {
        let buffers = (0..STAGES).map(|_| Buffer::try_new(stage_bytes));
        let buffers = buffers.collect::<std::io::Result<_>>()?;
        let behind = WriteBehind::new(Arc::clone(&storage), buffers);
        Ok(StagedFile { storage, behind, stage: None, used: 0, at: 0 })
    }

    /// Where the next byte goes.
    fn end(&self) -> u64 {
        self.at + self.used as u64
    }

    fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let mut stage = match self.stage.take() {
                Some(stage) => stage,
                None => self.behind.buffer()?,
            };
            let n = bytes.len().min(stage.len() - self.used);
            stage[self.used..self.used + n].copy_from_slice(&bytes[..n]);
            (self.used, bytes) = (self.used + n, &bytes[n..]);
            if self.used == stage.len() {
                self.write(stage)?;
            } else {
                self.stage = Some(stage);
            }
        }
        Ok(())
    }

    fn write(&mut self, stage: Buffer) -> Result<()> {
        let (at, len) = (self.at, self.used);
        (self.at, self.used) = (at + len as u64, 0);
        self.behind.write(at, stage, len)
    }

    /// Writes what is left, and waits for all of it. Returns where the next page begins.
    fn finish(&mut self) -> Result<u64> {
        if let Some(mut stage) = self.stage.take() {
            let whole = self.used.next_multiple_of(PAGE);
            stage[self.used..whole].fill(0);
            self.used = whole;
            self.write(stage)?;
        }
        self.behind.drain()?;
        Ok(self.at)
    }
}

/// The head of a block.
#[derive(Clone, Copy, PartialEq)]
struct RowBlockHead {
    /// Bytes of rows.
    len: u32,
    /// Bytes as they are stored: fewer if they are packed.
    stored: u32,
    /// Of both lengths and the stored bytes.
    crc: u32,
}

impl RowBlockHead {
    /// That of a block with `len` bytes of rows, which are stored as these parts.
    fn of_stored(len: usize, stored: &[&[u8]]) -> Self {
        let bytes: usize = stored.iter().map(|part| part.len()).sum();
        let mut head = RowBlockHead { len: len as u32, stored: bytes as u32, crc: 0 };
        head.crc = crc32c::crc32c(&head.bytes()[..8]);
        for part in stored {
            head.crc = crc32c::crc32c_append(head.crc, part);
        }
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
        let head = RowBlockHead { len: number(0)?, stored: number(4)?, crc: number(8)? };
        (head.stored <= head.len && head.len > 0).then_some(head)
    }
}

/// The rows of a run.
pub(super) struct RowRunReader {
    pieces: RunPieces,
    block_most: usize,
    /// A packed block as it is stored.
    stored: Vec<u8>,
    /// The rows of the block that is read.
    block: Vec<u8>,
    /// Where the row begins that was handed out last, and where it ends.
    begun: usize,
    end: usize,
    _memory: Reservation,
}

impl RowRunReader {
    /// Reads `run`.
    ///
    /// # Errors
    /// Too little memory: it holds [`RowRun::reader_bytes`].
    pub(super) fn new(run: RowRun, budget: &Budget) -> Result<Self> {
        let memory = budget.reserve(run.reader_bytes(), "merging rows")?;
        Ok(RowRunReader {
            block_most: run.block_most,
            stored: Vec::new(),
            block: Vec::with_capacity(run.block_most),
            pieces: RunPieces::new(run)?,
            begun: 0,
            end: 0,
            _memory: memory,
        })
    }

    /// Reads the next block; false at the end.
    #[cold]
    fn read(&mut self) -> Result<bool> {
        if self.pieces.left() == 0 {
            return Ok(false);
        }
        let offset = self.pieces.place();
        let mut first = [0; HEAD_BYTES];
        let whole = self.pieces.left() >= HEAD_BYTES as u64;
        if whole {
            self.pieces.fill(&mut first)?;
        }
        let head = RowBlockHead::from_bytes(&first).filter(|head| {
            let fits = u64::from(head.stored) <= self.pieces.left();
            whole && fits && head.len as usize <= self.block_most
        });
        let Some(head) = head else { return Err(self.damaged(offset, NOT_WRITTEN)) };
        let (len, stored) = (head.len as usize, head.stored as usize);
        let packed = stored < len;
        let bytes = if packed { &mut self.stored } else { &mut self.block };
        bytes.resize(stored, 0);
        self.pieces.fill(bytes)?;
        if RowBlockHead::of_stored(len, &[bytes]) != head {
            return Err(self.damaged(offset, NOT_WRITTEN));
        }
        if packed {
            self.block.resize(len, 0);
            if Compression::Lz4.unpack(&self.stored, &mut self.block) != Some(len) {
                return Err(self.damaged(offset, "a block of sorted rows does not unpack"));
            }
        }
        (self.begun, self.end) = (0, 0);
        Ok(true)
    }

    fn damaged(&self, offset: u64, detail: &str) -> Error {
        let file = self.pieces.run.storage.name().to_owned();
        Error::Corrupt { file, offset, detail: detail.to_owned() }
    }
}

const NOT_WRITTEN: &str = "a block of sorted rows is not what was written";

/// The bytes of a run, read ahead by a piece.
struct RunPieces {
    run: RowRun,
    completions: Completions,
    /// The piece that is used, how much of it is, and how much was read.
    piece: Buffer,
    used: usize,
    len: usize,
    /// A piece that is read now, or was and is not used; else its buffer.
    in_flight: bool,
    spare: Option<Buffer>,
    /// Where the next piece begins that is not asked for.
    next: u64,
    /// Bytes that were handed out.
    taken: u64,
}

impl RunPieces {
    fn new(run: RowRun) -> Result<Self> {
        let bytes = run.block_bytes;
        let mut pieces = RunPieces {
            completions: Completions::new(),
            piece: Buffer::try_new(bytes)?,
            used: 0,
            len: 0,
            in_flight: false,
            spare: Some(Buffer::try_new(bytes)?),
            next: run.start,
            taken: 0,
            run,
        };
        pieces.ask();
        Ok(pieces)
    }

    /// Bytes that were not handed out.
    fn left(&self) -> u64 {
        self.run.end - self.run.start - self.taken
    }

    /// Where the next byte is.
    fn place(&self) -> u64 {
        self.run.start + self.taken
    }

    /// Asks for the next piece.
    fn ask(&mut self) {
        if self.next < self.run.end
            && let Some(buffer) = self.spare.take()
        {
            let offset = self.next;
            self.next += buffer.len() as u64;
            self.in_flight = true;
            let read = Operation::Read { offset, buffer };
            self.run.storage.submit(0, read, &self.completions);
        }
    }

    /// Fills `out` with the next bytes, which are there.
    fn fill(&mut self, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            if self.used == self.len {
                self.next_piece()?;
            }
            let n = out.len().min(self.len - self.used);
            let (now, later) = std::mem::take(&mut out).split_at_mut(n);
            now.copy_from_slice(&self.piece[self.used..self.used + n]);
            self.used += n;
            self.taken += n as u64;
            out = later;
        }
        Ok(())
    }

    fn next_piece(&mut self) -> Result<()> {
        self.ask();
        let done = self.completions.wait(&*self.run.storage.clock());
        self.in_flight = false;
        let (place, len) = (self.place(), done.result?);
        let Some(buffer) = done.buffer.filter(|_| len > 0) else {
            let (file, offset) = (self.run.storage.name().to_owned(), place);
            return Err(Error::Corrupt { file, offset, detail: NOT_WRITTEN.to_owned() });
        };
        // A read may end early; the next one begins where it did.
        if len < buffer.len() {
            self.next = place + len as u64;
        }
        self.spare = Some(std::mem::replace(&mut self.piece, buffer));
        (self.used, self.len) = (0, len);
        self.ask();
        Ok(())
    }
}

impl Drop for RunPieces {
    fn drop(&mut self) {
        if self.in_flight {
            let _ = self.completions.wait(&*self.run.storage.clock());
        }
    }
}

impl RowStream for RowRunReader {
    type Error = Error;

    #[inline]
    fn advance(&mut self) -> Result<bool> {
        if self.end == self.block.len() && !self.read()? {
            return Ok(false);
        }
        self.begun = self.end;
        // The checksum was right, so whole rows were written here.
        let (key, value) = lengths(&self.block[self.begun..]);
        self.end = self.begun + LENGTHS + key + value;
        Ok(true)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        split(&self.block[self.begun..self.end]).0
    }

    #[inline]
    fn value(&self) -> &[u8] {
        split(&self.block[self.begun..self.end]).1
    }
}

#[cfg(test)]
mod tests {
    use merganser_storage::StorageExt;
    use merganser_storage::memory::MemoryDirectory;
    use merganser_testkit::Random;

    use super::*;

    type List = Vec<(Vec<u8>, Vec<u8>)>;
    const BLOCK: usize = 16 << 10;

    fn folders() -> Vec<Arc<dyn Directory>> {
        vec![MemoryDirectory::new()]
    }

    fn written(rows: &List, budget: &Budget) -> RowRun {
        let mut writer = RowRunWriter::new(&folders(), 0, BLOCK, budget).expect("fits");
        for (key, value) in rows {
            writer.push(key, value).expect("written");
        }
        writer.end_run().expect("written")
    }

    fn read(run: RowRun, budget: &Budget) -> Result<List> {
        let mut rows = RowRunReader::new(run, budget)?;
        let mut all = Vec::new();
        while rows.advance()? {
            all.push((rows.key().to_vec(), rows.value().to_vec()));
        }
        Ok(all)
    }

    fn numbered(count: u32) -> List {
        (0..count).map(|n| (n.to_be_bytes().to_vec(), vec![b'v'; n as usize % 9])).collect()
    }

    #[test]
    fn rows_come_back_and_damage_is_found() {
        let mut rows = numbered(40_000);
        rows.push((vec![b'k'; 300_000], vec![b'v'; 200_000]));
        rows.push((Vec::new(), Vec::new()));
        let budget = Budget::new(8 << 20);
        let run = written(&rows, &budget);
        assert_eq!(read(run.clone(), &budget).expect("reads"), rows);
        assert_eq!(budget.free_bytes(), budget.limit_bytes());
        let size = run.end;
        // Bytes of a head, of the middle, and of the last block.
        for at in (0..20).chain([7000, size / 2, size - 1]) {
            let run = written(&rows, &budget);
            let old = run.storage.read_vec(at, 1).expect("there");
            run.storage.write_at(at, &[old[0] ^ 4]).expect("written");
            let error = read(run, &budget).expect_err("damaged").to_string();
            assert!(error.contains("not what was written"), "{error}");
        }
        let little = Budget::new(run.reader_bytes() - 1);
        assert!(read(run, &little).is_err());
    }

    /// Runs that share a file are read each by itself, also those without a row.
    #[test]
    fn many_runs_share_a_file() {
        let budget = Budget::new(1 << 20);
        let folder = folders();
        let mut writer = RowRunWriter::new(&folder, 0, BLOCK, &budget).expect("fits");
        let lists: Vec<List> = (0..70).map(|count| numbered(count * 13 % 900)).collect();
        let mut runs = Vec::new();
        for list in &lists {
            let mut framed = Vec::new();
            for (key, value) in list {
                frame(key, value, &mut framed);
            }
            // End to end, as rows that came in order are.
            writer.push_all(&framed).expect("written");
            runs.push(writer.end_run().expect("written"));
        }
        assert_eq!(writer.files, 3);
        for (run, list) in runs.into_iter().zip(lists) {
            assert_eq!(read(run, &budget).expect("reads"), list);
        }
    }

    /// Rows that shrink are packed, and others are stored as they are, with a block tried now and then.
    #[test]
    fn blocks_are_packed_where_it_saves_a_third() {
        let budget = Budget::new(8 << 20);
        let mut random = Random::new(1);
        let alike = |n: u32| (n.to_be_bytes().to_vec(), vec![b'v'; 60]);
        let noisy: List = (0..40_000).map(|_| (random.bytes(20), random.bytes(20))).collect();
        let packed: List = (0..40_000).map(alike).collect();
        let stored = |rows: &List| {
            let run = written(rows, &budget);
            assert_eq!(read(run.clone(), &budget).expect("reads"), *rows);
            (run.end - run.start) as f64 / run.bytes as f64
        };
        assert!(stored(&packed) < 0.4, "{}", stored(&packed));
        let noise = stored(&noisy);
        assert!(noise > 1.0 && noise < 1.01, "{noise}");
        let both: List = noisy[..9000].iter().chain(&packed).cloned().collect();
        assert!(stored(&both) < 0.6, "{}", stored(&both));
    }
}
