//! Writing a run: finished pieces are placed as they come, in any order, from any thread; the
//! index and the footer follow, and a run that could not be finished is never named anywhere.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use merganser_storage::{Buffer, Completions, Operation, Storage, StorageExt};
use parking_lot::Mutex;

use super::format::{
    self, BLOCK_BYTES, BlockEntry, Compression, ENTRY_FIXED_BYTES, FENCE_KEY_BYTES_MAX,
    FOOTER_BYTES, Footer, HEADER_BYTES, NO_START, PIECE_BYTES,
};
use super::reader::{Index, Run, index_bytes};
use crate::activity::{State, wait};
use crate::budget::Reservation;
use crate::key::Order;
use crate::record::{Framing, with_framing};
use crate::{Error, Result};

/// A run being written. Shared by the threads that fill pieces.
pub struct RunWriter {
    storage: Arc<dyn Storage>,
    block_bytes: u32,
    compression: Compression,
    next_physical: AtomicU64,
    placed: Mutex<Placed>,
}

/// The index of the pieces so far, within a reservation that grows with it.
struct Placed {
    pieces: BTreeMap<u64, PieceIndex>,
    bytes: u64,
    memory: Reservation,
}

/// The index entries of a piece's blocks.
struct PieceIndex {
    /// As they will be written, but for `first_record` of the last ones when no record starts in
    /// them: that number is some later piece's.
    entries: Box<[u8]>,
    /// Where in `entries` those begin.
    open_from: usize,
    first_record: Option<u64>,
    blocks: usize,
    fences: usize,
    key_bytes: usize,
    logical_bytes: u64,
    physical_end: u64,
}

/// What a [`PieceIndex`] takes besides its entries: itself, its place in the map, the allocator's
/// share.
const PIECE_INDEX_BYTES: u64 = 160;

/// Of a budget, for messages.
pub(crate) const FENCES: &str = "the fences of the runs";

/// Memory for the index of a run: `writing` until it is finished, and `open` from then on; both at
/// once while it is being finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexMemory {
    pub(crate) writing: u64,
    pub(crate) open: u64,
}

impl IndexMemory {
    /// For a run of `data_bytes` whose fences' keys have `key_bytes` in the mean.
    pub(crate) fn expected(data_bytes: u64, block_bytes: u32, key_bytes: f64) -> Self {
        let blocks = data_bytes.div_ceil(u64::from(block_bytes));
        let pieces = data_bytes.div_ceil(PIECE_BYTES as u64);
        let keys = (blocks as f64 * key_bytes) as u64;
        IndexMemory {
            writing: blocks * ENTRY_FIXED_BYTES as u64 + keys + pieces * PIECE_INDEX_BYTES,
            open: index_bytes(blocks, blocks, keys, true),
        }
    }

    pub(crate) fn most(self) -> u64 {
        self.writing + self.open
    }
}

struct PieceBlock {
    physical: u64,
    stored_bytes: u32,
    crc: u32,
}

struct Fence {
    record: u64,
    start: u32,
    key: Vec<u8>,
    cut: bool,
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

    /// A piece of which others fill what comes before `from`.
    pub(crate) fn beginning_at(buffer: Buffer, block_bytes: u32, from: usize) -> Self {
        Piece { filled: from, fence_from: from, ..Self::new(buffer, block_bytes) }
    }

    /// Takes `part` of `other`, which is a part of the same piece, and its fences there. Returns the
    /// other's buffer.
    pub(crate) fn join(&mut self, other: Piece, part: Range<usize>) -> Buffer {
        self.buffer[part.clone()].copy_from_slice(&other.buffer[part]);
        self.filled = self.filled.max(other.filled);
        self.fences.extend(other.fences);
        // The first record that begins in a block is its fence.
        self.fences.sort_by_key(|(block, fence)| (*block, fence.start));
        self.fences.dedup_by_key(|(block, _)| *block);
        other.buffer
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
        let cut = key.len() > FENCE_KEY_BYTES_MAX;
        if cut {
            key = key[..FENCE_KEY_BYTES_MAX].to_vec();
        }
        self.fences.push((block, Fence { record, start, key, cut }));
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
    /// a full disk is noticed here and direct writes need not extend the file. The run's index is
    /// held within `memory`, which grows when it must.
    ///
    /// # Errors
    /// The storage's own; a full disk first of all.
    pub fn new(
        storage: Arc<dyn Storage>,
        block_bytes: u32,
        compression: Compression,
        data_bytes: Option<u64>,
        memory: Reservation,
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
            placed: Mutex::new(Placed { pieces: BTreeMap::new(), bytes: 0, memory }),
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
                        crc: crc32c::crc32c(block),
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
                        crc: crc32c::crc32c(stored),
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
        let index = PieceIndex::new(&blocks, fences, filled);
        let mut placed = self.placed.lock();
        let bytes = placed.bytes + index.entries.len() as u64 + PIECE_INDEX_BYTES;
        placed.memory.grow_to(bytes)?;
        placed.bytes = bytes;
        placed.pieces.insert(number, index);
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
    /// The storage's own; [`crate::Error::Memory`] for its fences.
    pub fn finish(self, spec: &str, records: u64, durable: bool) -> Result<Run> {
        let RunWriter { storage, block_bytes, compression, placed, .. } = self;
        let Placed { mut pieces, bytes, mut memory } = placed.into_inner();
        let mut footer = Footer {
            index_offset: 0,
            index_bytes: 4 + spec.len() as u64,
            blocks: 0,
            records,
            data_bytes: 0,
            index_crc: 0,
            block_bytes,
            compression,
        };
        let last = pieces.len().saturating_sub(1) as u64;
        let (mut physical_end, mut fences, mut key_bytes) = (HEADER_BYTES as u64, 0, 0);
        for (at, (number, piece)) in (0..).zip(&pieces) {
            assert_eq!(*number, at, "every piece is placed once");
            let full = piece.blocks == PIECE_BYTES / block_bytes as usize;
            assert!(at == last || full, "only the last piece is short");
            footer.blocks += piece.blocks as u64;
            footer.data_bytes += piece.logical_bytes;
            footer.index_bytes += piece.entries.len() as u64;
            physical_end = physical_end.max(piece.physical_end);
            fences += piece.fences;
            key_bytes += piece.key_bytes;
        }
        let mut following = records;
        for piece in pieces.values_mut().rev() {
            following = piece.close(following);
        }
        footer.index_offset = physical_end.next_multiple_of(4096);
        let packed = compression != Compression::Off;
        let open = index_bytes(footer.blocks, fences as u64, key_bytes as u64, packed);
        memory.grow_to(bytes + open)?;
        let mut index = Index::with_room(footer.blocks as usize, fences, key_bytes, packed);
        storage.write_at(0, &format::encode_header(block_bytes))?;
        let mut out = Vec::new();
        out.extend_from_slice(&(spec.len() as u32).to_le_bytes());
        out.extend_from_slice(spec.as_bytes());
        let mut offset = footer.index_offset;
        for (_, piece) in pieces {
            let mut entries = &piece.entries[..];
            while let Some(entry) = format::decode_entry(&mut entries) {
                index.push(block_bytes, &entry);
            }
            out.extend_from_slice(&piece.entries);
            // An index may be large: no more than a piece of it waits here.
            if out.len() >= PIECE_BYTES {
                footer.index_crc = crc32c::crc32c_append(footer.index_crc, &out[..PIECE_BYTES]);
                storage.write_at(offset, &out[..PIECE_BYTES])?;
                offset += PIECE_BYTES as u64;
                out.drain(..PIECE_BYTES);
            }
        }
        footer.index_crc = crc32c::crc32c_append(footer.index_crc, &out);
        out.extend_from_slice(&format::encode_footer(&footer));
        storage.write_at(offset, &out)?;
        let size = footer.index_offset + footer.index_bytes + FOOTER_BYTES as u64;
        debug_assert_eq!(offset + out.len() as u64, size);
        storage.run(Operation::SetSize { size })?;
        if durable {
            storage.sync()?;
        }
        memory.shrink_to(open);
        Run::from_index(storage, footer, spec.to_owned(), index, Some(memory))
    }
}

impl PieceIndex {
    /// Of a piece of `filled` bytes in `blocks`; `fences` come with the numbers of their blocks.
    fn new(blocks: &[PieceBlock], fences: Vec<(usize, Fence)>, filled: usize) -> Self {
        let first_record = fences.first().map(|(_, fence)| fence.record);
        let count = fences.len();
        let key_bytes = fences.iter().map(|(_, fence)| fence.key.len()).sum();
        let physical_end = |b: &PieceBlock| b.physical + u64::from(b.stored_bytes);
        let mut entries = Vec::with_capacity(blocks.len() * ENTRY_FIXED_BYTES + key_bytes);
        let mut fences = fences.into_iter().peekable();
        let mut open_from = 0;
        for (number, block) in blocks.iter().enumerate() {
            let next_record = fences.peek().map(|(_, fence)| fence.record);
            let fence = fences.next_if(|(block, _)| *block == number).map(|(_, fence)| fence);
            let starts = fence.is_some();
            let (first_start, key, key_cut) =
                fence.map_or((NO_START, Vec::new(), false), |f| (f.start, f.key, f.cut));
            let entry = BlockEntry {
                physical: block.physical,
                stored_bytes: block.stored_bytes,
                crc: block.crc,
                first_record: next_record.unwrap_or_default(),
                first_start,
                key,
                key_cut,
            };
            format::encode_entry(&entry, &mut entries);
            if starts {
                open_from = entries.len();
            }
        }
        PieceIndex {
            entries: entries.into_boxed_slice(),
            open_from,
            first_record,
            blocks: blocks.len(),
            fences: count,
            key_bytes,
            logical_bytes: filled as u64,
            physical_end: blocks.iter().map(physical_end).max().unwrap_or_default(),
        }
    }

    /// Fills in the number of the record that follows this piece; returns the first one from this
    /// piece's start on.
    fn close(&mut self, following: u64) -> u64 {
        for entry in self.entries[self.open_from..].chunks_exact_mut(ENTRY_FIXED_BYTES) {
            format::set_first_record(entry, following);
        }
        self.first_record.unwrap_or(following)
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
        let token = self.flying.iter().position(Option::is_none).unwrap_or_else(|| {
            // A buffer that came from somebody else.
            self.flying.push(None);
            self.flying.len() - 1
        });
        self.flying[token] = Some((rest, len));
        self.in_flight += 1;
        self.storage.submit(token as u64, Operation::Write { offset, buffer }, &self.completions);
        Ok(())
    }

    fn reap(&mut self) -> Result<()> {
        assert!(self.in_flight > 0, "waiting for a buffer that nobody holds");
        let done = {
            let _waiting = wait(State::Writing);
            self.completions.wait(&*self.storage.clock())
        };
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
    ///
    /// # Errors
    /// When the system has no memory for the buffers.
    pub fn new(writer: RunWriter, order: Order) -> Result<Self> {
        let buffers =
            (0..4).map(|_| Buffer::try_new(PIECE_BYTES)).collect::<std::io::Result<_>>()?;
        let behind = WriteBehind::new(Arc::clone(writer.storage()), buffers);
        Ok(RunBuilder { writer, behind, piece: None, number: 0, records: 0, order })
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
