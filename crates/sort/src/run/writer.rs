//! Writing a run: finished pieces are placed as they come, in any order, from any thread; the
//! index and the footer follow, and a run that could not be finished is never named anywhere.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use storage::{Buffer, Completions, Operation, Storage, StorageExt};

use super::format::{
    self, BLOCK_BYTES, BlockEntry, Compression, FENCE_KEY_BYTES_MAX, FOOTER_BYTES, Footer,
    HEADER_BYTES, NO_START, PIECE_BYTES,
};
use super::reader::Run;
use crate::key::Order;
use crate::record::{Framing, with_framing};
use crate::{Error, Result};

/// A run being written. Shared by the threads that fill pieces.
pub struct RunWriter {
    storage: Arc<dyn Storage>,
    block_bytes: u32,
    compression: Compression,
    next_physical: AtomicU64,
    pieces: Mutex<BTreeMap<u64, Vec<PieceBlock>>>,
}

struct PieceBlock {
    physical: u64,
    stored_bytes: u32,
    logical_bytes: u32,
    crc: u32,
    fence: Option<Fence>,
}

struct Fence {
    record: u64,
    start: u32,
    key: Vec<u8>,
}

/// One piece being filled with the bytes of records.
pub(crate) struct Piece {
    buffer: Buffer,
    filled: usize,
    block_bytes: usize,
    fence_from: usize,
    fences: Vec<(usize, Fence)>,
}

impl Piece {
    pub(crate) fn new(buffer: Buffer, block_bytes: u32) -> Self {
        Piece {
            buffer,
            filled: 0,
            block_bytes: block_bytes as usize,
            fence_from: 0,
            fences: Vec::new(),
        }
    }

    pub(crate) fn filled(&self) -> usize {
        self.filled
    }

    pub(crate) fn space(&self) -> usize {
        self.buffer.len() - self.filled
    }

    /// The buffer, and how much of it is filled.
    pub(crate) fn into_bytes(self) -> (Buffer, usize) {
        (self.buffer, self.filled)
    }

    /// Tells that record number `record` begins at the next byte filled in.
    #[inline]
    pub(crate) fn begin_record(&mut self, record: u64, key: impl FnOnce(&mut Vec<u8>)) {
        if self.filled >= self.fence_from {
            self.add_fence(record, key);
        }
    }

    #[cold]
    fn add_fence(&mut self, record: u64, encode: impl FnOnce(&mut Vec<u8>)) {
        let block = self.filled / self.block_bytes;
        let start = u32::try_from(self.filled % self.block_bytes).expect("blocks are small");
        let mut key = Vec::new();
        encode(&mut key);
        self.fences.push((block, Fence { record, start, key }));
        self.fence_from = (block + 1) * self.block_bytes;
    }

    /// Copies as much of `bytes` as fits; returns how much.
    #[inline]
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> usize {
        let n = bytes.len().min(self.space());
        self.buffer[self.filled..self.filled + n].copy_from_slice(&bytes[..n]);
        self.filled += n;
        n
    }
}

impl RunWriter {
    /// Starts a run on the empty `storage`. `data_bytes`, when known, is reserved at once, so that
    /// a full disk is noticed here and direct writes need not extend the file.
    ///
    /// # Errors
    /// The storage's own; a full disk first of all.
    pub fn new(
        storage: Arc<dyn Storage>,
        block_bytes: u32,
        compression: Compression,
        data_bytes: Option<u64>,
    ) -> Result<Self> {
        assert!(BLOCK_BYTES.contains(&block_bytes) && block_bytes.is_power_of_two());
        if let (Some(bytes), Compression::Off) = (data_bytes, compression) {
            let len = HEADER_BYTES as u64 + bytes.next_multiple_of(4096);
            storage.run(Operation::Allocate { offset: 0, len })?;
        }
        Ok(RunWriter {
            storage,
            block_bytes,
            compression,
            next_physical: AtomicU64::new(HEADER_BYTES as u64),
            pieces: Mutex::new(BTreeMap::new()),
        })
    }

    pub(crate) fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    pub(crate) fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Places piece number `number` of the run and starts writing it. Every piece but the last
    /// is full.
    pub(crate) fn place(&self, number: u64, piece: Piece, behind: &mut WriteBehind) -> Result<()> {
        let Piece { mut buffer, filled, block_bytes, fences, .. } = piece;
        let mut blocks = Vec::with_capacity(filled.div_ceil(block_bytes));
        let physical = match self.compression {
            Compression::Off => {
                let physical = HEADER_BYTES as u64 + number * PIECE_BYTES as u64;
                for (i, block) in buffer[..filled].chunks(block_bytes).enumerate() {
                    blocks.push(PieceBlock {
                        physical: physical + (i * block_bytes) as u64,
                        stored_bytes: block.len() as u32,
                        logical_bytes: block.len() as u32,
                        crc: crc32c::crc32c(block),
                        fence: None,
                    });
                }
                buffer[filled..].fill(0);
                behind.write(physical, buffer, filled.next_multiple_of(4096))?;
                physical
            }
            Compression::Lz4 | Compression::Zstd => {
                let mut packed = Vec::with_capacity(filled);
                for block in buffer[..filled].chunks(block_bytes) {
                    let from = packed.len();
                    self.compress(block, &mut packed);
                    let stored = &packed[from..];
                    blocks.push(PieceBlock {
                        physical: from as u64,
                        stored_bytes: stored.len() as u32,
                        logical_bytes: block.len() as u32,
                        crc: crc32c::crc32c(stored),
                        fence: None,
                    });
                }
                let len = packed.len().next_multiple_of(4096);
                buffer[..packed.len()].copy_from_slice(&packed);
                buffer[packed.len()..len].fill(0);
                let physical = self.next_physical.fetch_add(len as u64, Ordering::Relaxed);
                for block in &mut blocks {
                    block.physical += physical;
                }
                behind.write(physical, buffer, len)?;
                physical
            }
        };
        debug_assert_eq!(physical % 4096, 0);
        for (block, fence) in fences {
            blocks[block].fence = Some(fence);
        }
        self.pieces.lock().expect("no writer panics").insert(number, blocks);
        Ok(())
    }

    /// Appends `block` compressed, or as it is when that is no longer.
    fn compress(&self, block: &[u8], out: &mut Vec<u8>) {
        let packed = match self.compression {
            Compression::Lz4 => lz4_flex::block::compress(block),
            _ => zstd::bulk::compress(block, 1).unwrap_or_default(),
        };
        if packed.is_empty() || packed.len() >= block.len() {
            out.extend_from_slice(block);
        } else {
            out.extend_from_slice(&packed);
        }
    }

    /// Writes index and footer and opens the run. All pieces must have been written out before
    /// (`WriteBehind::drain`). With `durable`, returns only when the run survives a power cut.
    ///
    /// # Errors
    /// The storage's own.
    pub fn finish(self, spec: &str, records: u64, durable: bool) -> Result<Run> {
        let pieces = self.pieces.into_inner().expect("no writer panics");
        let mut data_bytes = 0;
        let mut physical_end = HEADER_BYTES as u64;
        let mut entries = Vec::new();
        let last = pieces.len().saturating_sub(1) as u64;
        for (at, (number, blocks)) in (0..).zip(pieces) {
            assert_eq!(number, at, "every piece is placed once");
            let full = blocks.len() == PIECE_BYTES / self.block_bytes as usize;
            assert!(number == last || full, "only the last piece is short");
            for block in blocks {
                data_bytes += u64::from(block.logical_bytes);
                physical_end = physical_end.max(block.physical + u64::from(block.stored_bytes));
                let (first_start, first_record, key) = match block.fence {
                    Some(f) => (f.start, f.record, f.key),
                    None => (NO_START, 0, Vec::new()),
                };
                let key_cut = key.len() > FENCE_KEY_BYTES_MAX;
                let mut key = key;
                key.truncate(FENCE_KEY_BYTES_MAX);
                entries.push(BlockEntry {
                    physical: block.physical,
                    stored_bytes: block.stored_bytes,
                    crc: block.crc,
                    first_record,
                    first_start,
                    key,
                    key_cut,
                });
            }
        }
        let mut following = records;
        for entry in entries.iter_mut().rev() {
            if entry.first_start == NO_START {
                entry.first_record = following;
            }
            following = entry.first_record;
        }
        let mut index = Vec::new();
        index.extend_from_slice(&(spec.len() as u32).to_le_bytes());
        index.extend_from_slice(spec.as_bytes());
        for entry in &entries {
            format::encode_entry(entry, &mut index);
        }
        let index_offset = physical_end.next_multiple_of(4096);
        let footer = Footer {
            index_offset,
            index_bytes: index.len() as u64,
            blocks: entries.len() as u64,
            records,
            data_bytes,
            index_crc: crc32c::crc32c(&index),
            block_bytes: self.block_bytes,
            compression: self.compression,
        };
        let mut end = index;
        end.extend_from_slice(&format::encode_footer(&footer));
        let storage = self.storage;
        storage.write_at(0, &format::encode_header(self.block_bytes))?;
        storage.write_at(index_offset, &end)?;
        let size = index_offset + end.len() as u64;
        debug_assert_eq!(footer.index_bytes + FOOTER_BYTES as u64 + index_offset, size);
        storage.run(Operation::SetSize { size })?;
        if durable {
            storage.sync()?;
        }
        Run::from_entries(storage, footer, spec.to_owned(), &entries)
    }
}

/// Keeps a bounded number of writes in flight, each with its own buffer, for one thread.
pub(crate) struct WriteBehind {
    storage: Arc<dyn Storage>,
    completions: Completions,
    free: Vec<Buffer>,
    /// Indexed by token: the unwritten rest of the buffer in flight, and the bytes awaited.
    flying: Vec<Option<(Buffer, usize)>>,
    in_flight: usize,
}

impl WriteBehind {
    /// Writes to `storage` from `buffers`, as many in flight as there are buffers.
    pub(crate) fn new(storage: Arc<dyn Storage>, buffers: Vec<Buffer>) -> Self {
        let flying = buffers.iter().map(|_| None).collect();
        WriteBehind {
            storage,
            completions: Completions::new(),
            free: buffers,
            flying,
            in_flight: 0,
        }
    }

    /// Turns to another storage, once all is written.
    pub(crate) fn retarget(&mut self, storage: Arc<dyn Storage>) -> Result<()> {
        self.drain()?;
        self.storage = storage;
        Ok(())
    }

    /// A free buffer, after waiting for a write when none is.
    pub(crate) fn buffer(&mut self) -> Result<Buffer> {
        while self.free.is_empty() {
            self.reap()?;
        }
        Ok(self.free.pop().expect("not empty"))
    }

    /// Puts back a buffer that was not needed.
    pub(crate) fn put_back(&mut self, buffer: Buffer) {
        self.free.push(buffer);
    }

    /// Starts writing the first `len` bytes of `buffer` at `offset`.
    pub(crate) fn write(&mut self, offset: u64, mut buffer: Buffer, len: usize) -> Result<()> {
        let rest = buffer.split_off(len);
        let token = self.flying.iter().position(Option::is_none).expect("a slot a buffer");
        self.flying[token] = Some((rest, len));
        self.in_flight += 1;
        self.storage.submit(token as u64, Operation::Write { offset, buffer }, &self.completions);
        Ok(())
    }

    fn reap(&mut self) -> Result<()> {
        assert!(self.in_flight > 0, "waiting for a buffer that nobody holds");
        let done = self.completions.wait(&*self.storage.clock());
        self.in_flight -= 1;
        let slot = usize::try_from(done.token).expect("a slot number");
        let (rest, len) = self.flying[slot].take().expect("in flight");
        if let Some(mut buffer) = done.buffer
            && buffer.unsplit(rest).is_ok()
        {
            self.free.push(buffer);
        }
        let written = done.result?;
        if written != len {
            return Err(Error::Io(std::io::Error::new(
                std::io::ErrorKind::WriteZero,
                format!("{}: {written} of {len} bytes written", self.storage.name()),
            )));
        }
        Ok(())
    }

    /// Waits until everything is written. Waits for all of it even after an error.
    pub(crate) fn drain(&mut self) -> Result<()> {
        let mut first = Ok(());
        while self.in_flight > 0 {
            let one = self.reap();
            if first.is_ok() {
                first = one;
            }
        }
        first
    }
}

impl Drop for WriteBehind {
    fn drop(&mut self) {
        // Buffers in flight belong to the kernel until they come back.
        let _ = self.drain();
    }
}

/// Writes one run from records that come in order: the output of a merge pass.
pub struct RunBuilder {
    writer: RunWriter,
    behind: WriteBehind,
    piece: Option<Piece>,
    number: u64,
    records: u64,
    order: Order,
}

impl RunBuilder {
    /// Records come in the order of `order`.
    #[must_use]
    pub fn new(writer: RunWriter, order: Order) -> Self {
        let buffers = (0..4).map(|_| Buffer::new(PIECE_BYTES)).collect();
        let behind = WriteBehind::new(Arc::clone(writer.storage()), buffers);
        RunBuilder { writer, behind, piece: None, number: 0, records: 0, order }
    }

    /// Appends whole records that lie end to end.
    ///
    /// # Errors
    /// The storage's own.
    pub fn append(&mut self, records: &[u8]) -> Result<()> {
        let format = self.order.format();
        with_framing!(format, framing => {
            let mut rest = records;
            while let Some(len) = framing.next(rest) {
                let (record, after) = rest.split_at(len);
                self.push(record)?;
                rest = after;
            }
            assert!(rest.is_empty(), "whole records are appended");
        });
        Ok(())
    }

    fn push(&mut self, record: &[u8]) -> Result<()> {
        let mut rest = record;
        while !rest.is_empty() {
            let mut piece = match self.piece.take() {
                Some(piece) => piece,
                None => Piece::new(self.behind.buffer()?, self.writer.block_bytes()),
            };
            if rest.len() == record.len() {
                piece.begin_record(self.records, |key| self.order.encode_full(record, key));
            }
            rest = &rest[piece.fill(rest)..];
            if piece.space() == 0 {
                self.writer.place(self.number, piece, &mut self.behind)?;
                self.number += 1;
            } else {
                self.piece = Some(piece);
            }
        }
        self.records += 1;
        Ok(())
    }

    /// Ends the run; see [`RunWriter::finish`].
    ///
    /// # Errors
    /// The storage's own.
    pub fn finish(mut self, spec: &str, durable: bool) -> Result<Run> {
        if let Some(piece) = self.piece.take() {
            self.writer.place(self.number, piece, &mut self.behind)?;
        }
        self.behind.drain()?;
        self.writer.finish(spec, self.records, durable)
    }
}
