//! Writing a run: finished pieces are placed as they come, in any order, from any thread; the
//! index and the footer follow, and a run that could not be finished is never named anywhere.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use merganser_storage::{Operation, Storage, StorageExt};
use parking_lot::Mutex;

use super::format::{
    self, BLOCK_BYTES, Compression, FOOTER_BYTES, Footer, HEADER_BYTES, PIECE_BYTES,
};
use super::index::{PIECE_INDEX_BYTES, RunIndex, index_bytes};
use super::piece::{Piece, PieceBlock, PieceIndex};
use super::reader::Run;
use super::write_behind::WriteBehind;
use crate::Result;
use crate::budget::Reservation;

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

impl RunWriter {
    /// Starts a run on the empty `storage`. When `data_bytes` is known, that space is reserved at
    /// once, so that a full disk is noticed here and direct writes don't extend the file. The run's
    /// index is held within `memory`, which grows when it must.
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
                    self.compression.pack(block, &mut packed);
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
        let mut index = RunIndex::with_room(footer.blocks as usize, fences, key_bytes, packed);
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
