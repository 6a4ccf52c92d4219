//! The bytes of a split out of the files of its blocks, each checked against its checksum.
//!
//! ```text
//!   block    │ 512 │ 512 │ 512 │ 512 │ 512 │ 40 │       each piece has a checksum
//!   range          ┌───────────────┐
//!   read        ┌──┴───────────────┴──┐                 whole pieces, checked whole
//! ```
//! The checksums of all ranges are read when they are opened, so that they are those of the replica that was
//! found then. Data is asked for ahead of time (`posix_fadvise`), as a DataNode does for its own readers.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;

use merganser_sort::Budget;
use merganser_sort::budget::Reservation;
use rustix::fs::{Advice, fadvise};

use super::meta::{BYTES_PER_CHECKSUM_MAX, CHECKSUM_BYTES, Checksum, HEADER_BYTES, MetaHeader};
use super::replica::{DataDirs, Replica};
use super::request::BlockRange;
use super::split::Body;
use super::{HdfsBlock, HdfsError, HdfsResult};

/// Bytes that are read and checked at once, about.
const STEP_BYTES: usize = 1 << 20;
/// Bytes that the kernel is asked to have in memory ahead of the reads.
const AHEAD_BYTES: u64 = 4 << 20;

const _: () = assert!(BYTES_PER_CHECKSUM_MAX as usize <= STEP_BYTES, "a step holds a piece");

/// The memory of [`BlockRanges`] without the checksums, in bytes.
pub(super) const RANGES_BYTES: u64 = STEP_BYTES as u64;

/// The ranges of a split, one after the other.
#[derive(Debug)]
pub(super) struct BlockRanges {
    parts: Vec<OpenRange>,
    /// The part that is read.
    current: usize,
    left_bytes: u64,
    scratch: Vec<u8>,
    _memory: Reservation,
    /// Bytes that were read from files.
    pub(super) read_bytes: u64,
    /// Bytes that a checksum was compared for.
    pub(super) verified_bytes: u64,
}

/// A range of a block.
#[derive(Debug)]
struct OpenRange {
    block: HdfsBlock,
    data: File,
    header: MetaHeader,
    /// Those of the pieces from `first` on, big-endian.
    sums: Vec<u8>,
    first: u64,
    /// Bytes of the whole block.
    block_length: u64,
    /// The bytes that are wanted.
    next: u64,
    end: u64,
    advised: u64,
}

impl BlockRanges {
    /// Finds and opens all `ranges` in `pool`.
    ///
    /// # Errors
    /// When a replica is not here as it was described; too little memory for the checksums.
    pub(super) fn open(
        dirs: &DataDirs,
        pool: &str,
        ranges: &[BlockRange],
        budget: &Budget,
    ) -> HdfsResult<Self> {
        let mut memory = budget.reserve(STEP_BYTES as u64, "blocks")?;
        let mut read_bytes = 0;
        let mut parts = Vec::with_capacity(ranges.len());
        for range in ranges {
            let replica = dirs.open(pool, range.block, range.block_length)?;
            let part = OpenRange::open(replica, range, |bytes| {
                let all = memory.bytes() + bytes;
                let given = budget.limit_bytes();
                memory.grow_to(all).map_err(|_| HdfsError::Memory { needed: given + bytes, given })
            })?;
            read_bytes += (HEADER_BYTES + part.sums.len()) as u64;
            parts.push(part);
        }
        let left_bytes = ranges.iter().map(|range| range.length).sum();
        Ok(BlockRanges {
            parts,
            current: 0,
            left_bytes,
            scratch: vec![0; STEP_BYTES],
            _memory: memory,
            read_bytes,
            verified_bytes: 0,
        })
    }
}

impl Body for BlockRanges {
    fn more(&mut self, to: &mut Vec<u8>) -> HdfsResult<()> {
        let Some(part) = self.parts.get_mut(self.current) else { return Ok(()) };
        let (wanted, read) = part.read(&mut self.scratch)?;
        self.read_bytes += read as u64;
        if part.header.checksum != Checksum::Null {
            self.verified_bytes += read as u64;
        }
        to.extend_from_slice(&self.scratch[wanted.clone()]);
        self.left_bytes -= wanted.len() as u64;
        if part.next == part.end {
            self.current += 1;
        }
        Ok(())
    }

    fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    fn step_bytes(&self) -> usize {
        STEP_BYTES
    }
}

impl OpenRange {
    /// Reads the checksums of `range`, for which `reserve` takes memory.
    fn open(
        replica: Replica,
        range: &BlockRange,
        reserve: impl FnOnce(u64) -> HdfsResult<()>,
    ) -> HdfsResult<Self> {
        let BlockRange { block, block_length, offset, length } = *range;
        let Replica { data, meta } = replica;
        let mut header = [0; HEADER_BYTES];
        read_meta(&meta, block, &mut header, 0)?;
        let header = MetaHeader::decode(&header)
            .map_err(|fault| HdfsError::Checksum { block, detail: fault.to_string() })?;
        let (piece, end) = (u64::from(header.bytes_per_checksum), offset + length);
        let first = offset / piece;
        let mut sums = Vec::new();
        if header.checksum != Checksum::Null {
            let bytes = (end.div_ceil(piece) - first) * CHECKSUM_BYTES as u64;
            reserve(bytes)?;
            sums = vec![0; bytes as usize];
            let at = HEADER_BYTES as u64 + first * CHECKSUM_BYTES as u64;
            read_meta(&meta, block, &mut sums, at)?;
        }
        let part = OpenRange {
            block,
            data,
            header,
            sums,
            first,
            block_length,
            next: offset,
            end,
            advised: offset,
        };
        // It is advice: a failure costs nothing.
        let _ = fadvise(&part.data, offset, NonZeroU64::new(length), Advice::Sequential);
        Ok(part)
    }

    /// Reads on into `scratch`: which of its bytes are wanted, and how many were read.
    fn read(&mut self, scratch: &mut [u8]) -> HdfsResult<(std::ops::Range<usize>, usize)> {
        let piece = u64::from(self.header.bytes_per_checksum);
        let from = self.next / piece * piece;
        let step = scratch.len() as u64 / piece * piece;
        let until = self.end.next_multiple_of(piece).min(self.block_length).min(from + step);
        self.advise(until);
        let bytes = &mut scratch[..(until - from) as usize];
        self.data.read_exact_at(bytes, from).map_err(|e| {
            let (block, offset) = (self.block, from);
            HdfsError::Io { block, offset, source: short(e, "the replica became shorter") }
        })?;
        self.check(bytes, from)?;
        let wanted = (self.next - from) as usize..(until.min(self.end) - from) as usize;
        self.next = until.min(self.end);
        Ok((wanted, bytes.len()))
    }

    /// Compares the checksums of `bytes`, which begin a piece at `from`.
    fn check(&self, bytes: &[u8], from: u64) -> HdfsResult<()> {
        if self.header.checksum == Checksum::Null {
            return Ok(());
        }
        let piece = self.header.bytes_per_checksum as usize;
        let sums = &self.sums[(from / piece as u64 - self.first) as usize * CHECKSUM_BYTES..];
        let (sums, _) = sums.as_chunks::<CHECKSUM_BYTES>();
        for (n, (bytes, sum)) in bytes.chunks(piece).zip(sums).enumerate() {
            let (expected, found) =
                (u32::from_be_bytes(*sum), self.header.checksum.of_bytes(bytes));
            if expected != found {
                let detail = format!(
                    "the checksum of these {} bytes is {expected:08x} in its .meta, and they have {found:08x}",
                    bytes.len()
                );
                let offset = from + (n * piece) as u64;
                return Err(HdfsError::Damaged { block: self.block, offset, detail });
            }
        }
        Ok(())
    }

    /// Asks the kernel to read ahead, half of [`AHEAD_BYTES`] at a time.
    fn advise(&mut self, from: u64) {
        let until = (from + AHEAD_BYTES).min(self.end);
        let begin = self.advised.max(from);
        if until > begin && (until - begin >= AHEAD_BYTES / 2 || until == self.end) {
            let _ = fadvise(&self.data, begin, NonZeroU64::new(until - begin), Advice::WillNeed);
            self.advised = until;
        }
    }
}

/// Fills `into` from `at` of a file of checksums.
fn read_meta(meta: &File, block: HdfsBlock, into: &mut [u8], at: u64) -> HdfsResult<()> {
    meta.read_exact_at(into, at).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => {
            let detail = format!(
                "its .meta ends before byte {}, where checksums should be",
                at + into.len() as u64
            );
            HdfsError::Damaged { block, offset: 0, detail }
        }
        _ => HdfsError::Io { block, offset: 0, source: e },
    })
}

/// An early end of a file in plain words.
fn short(error: io::Error, why: &'static str) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof { io::Error::other(why) } else { error }
}

#[cfg(test)]
mod tests;
