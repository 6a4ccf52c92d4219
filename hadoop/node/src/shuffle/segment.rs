//! One segment of a spill: bytes read ahead into a buffer, checked on the way.
//!
//! ```text
//!   spill file  ── other partitions ──├ records ─────────┬ FF FF ┬ CRC32 ┤── other partitions ──
//!                                     offset             │       │       │
//!                                     ├── raw ───────────┴───────┤       │
//!                                     ├── part ──────────────────────────┤
//!   buffer                       ├ merged ├ window ┤ the kernel reads on meanwhile
//! ```
//!
//! A spill has usually been written minutes ago and is in the page cache, so reads are plain ones,
//! into a buffer small enough to stay in a processor's cache until its bytes are merged. Pages that are
//! not in the cache are asked for ahead of time (`posix_fadvise`), for all segments of a merge at once:
//! the device sees all of them and serves them in whatever order suits it, and no thread waits.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use merganser_sort::merge::ifile::Source;
use merganser_sort::record::ifile::END_MARKER;
use rustix::fs::{Advice, fadvise};

use super::{ShuffleError, ShuffleResult};

/// Bytes of a segment that are no records: the marker behind them, which `raw` counts.
pub(super) const MARKER_BYTES: u64 = END_MARKER.len() as u64;
/// Bytes of the checksum, which `part` counts and `raw` does not.
pub(super) const CRC_BYTES: u64 = 4;
/// What follows the records.
const TRAILER_BYTES: usize = (MARKER_BYTES + CRC_BYTES) as usize;

/// Bytes that the kernel is asked to have in memory ahead of each segment's reads.
const AHEAD_BYTES: u64 = 1 << 20;

/// Where a sorted segment lies, as the index of its spill says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentSpec {
    /// The spill file.
    pub path: PathBuf,
    /// Where in it the segment begins.
    pub offset: u64,
    /// Bytes of its records and the end marker, which are at least 2.
    pub raw: u64,
    /// Bytes of all of it: `raw` and 4 of the checksum.
    pub part: u64,
}

impl SegmentSpec {
    /// Where in the file its records end.
    pub(super) fn records_end(&self) -> u64 {
        self.offset + self.raw - MARKER_BYTES
    }

    /// Bytes of its records.
    pub(super) fn records_bytes(&self) -> u64 {
        self.raw - MARKER_BYTES
    }

    /// That its numbers agree with one another.
    pub(super) fn check(&self) -> ShuffleResult<()> {
        let SegmentSpec { path, offset, raw, part } = self;
        let agrees = *raw >= MARKER_BYTES && raw.checked_add(CRC_BYTES) == Some(*part);
        if !agrees {
            let detail = format!(
                "a segment of {part} bytes, {raw} of them without its checksum; the first is {} \
                 more than the second, which is at least {MARKER_BYTES}",
                CRC_BYTES
            );
            return Err(ShuffleError::Damaged { path: path.clone(), offset: *offset, detail });
        }
        if offset.checked_add(*part).is_none_or(|end| end > i64::MAX as u64) {
            let detail = format!("a segment of {part} bytes, which no file has there");
            return Err(ShuffleError::Damaged { path: path.clone(), offset: *offset, detail });
        }
        Ok(())
    }
}

/// Memory that the segments of a merge share beyond their own buffers, for long keys.
pub(super) type SpareBytes = Arc<AtomicUsize>;

/// Reads one segment.
#[derive(Debug)]
pub(super) struct SegmentReader {
    path: Arc<Path>,
    file: File,
    /// Where in the file the next read begins, and where the records end.
    next: u64,
    records_end: u64,
    /// Up to where the kernel was asked to read.
    advised: u64,
    /// Of what was read.
    crc: crc32fast::Hasher,
    /// `capacity` bytes and room for a trailer, unless a long key made it grow.
    buffer: Vec<u8>,
    capacity: usize,
    /// The bytes of the buffer that are not consumed.
    start: usize,
    end: usize,
    spare: SpareBytes,
}

impl SegmentReader {
    /// Reads `spec`, which was checked, from `file`, through a buffer of `capacity` bytes.
    pub(super) fn new(
        spec: &SegmentSpec,
        file: File,
        capacity: usize,
        spare: &SpareBytes,
    ) -> ShuffleResult<Self> {
        let io = |source| ShuffleError::Io { path: spec.path.clone(), offset: 0, source };
        let len = file.metadata().map_err(io)?.len();
        let end = spec.offset + spec.part;
        if len < end {
            let detail = format!("the file ends here, and the segment would end at byte {end}");
            return Err(ShuffleError::Damaged { path: spec.path.clone(), offset: len, detail });
        }
        let mut reader = SegmentReader {
            path: spec.path.clone().into(),
            file,
            next: spec.offset,
            records_end: spec.records_end(),
            advised: spec.offset,
            crc: crc32fast::Hasher::new(),
            buffer: vec![0; capacity + TRAILER_BYTES],
            capacity,
            start: 0,
            end: 0,
            spare: Arc::clone(spare),
        };
        reader.advise();
        if spec.records_bytes() == 0 {
            reader.read()?;
        }
        Ok(reader)
    }

    /// Asks the kernel to read ahead, half of [`AHEAD_BYTES`] at a time.
    fn advise(&mut self) {
        let end = self.records_end + TRAILER_BYTES as u64;
        let until = (self.next + AHEAD_BYTES).min(end);
        if until - self.advised < (AHEAD_BYTES / 2).min(end - self.advised) || until == self.advised
        {
            return;
        }
        let len = NonZeroU64::new(until - self.advised);
        // It is advice: a failure costs nothing.
        let _ = fadvise(&self.file, self.advised, len, Advice::WillNeed);
        self.advised = until;
    }

    /// Reads on, as much as fits behind what is there; with the last record, the trailer, too.
    fn read(&mut self) -> ShuffleResult<()> {
        let room = self.buffer.len() - TRAILER_BYTES - self.end;
        let records = (self.records_end - self.next).min(room as u64) as usize;
        let last = self.next + records as u64 == self.records_end;
        let len = records + if last { TRAILER_BYTES } else { 0 };
        let into = self.end..self.end + len;
        self.read_exactly(into.start, into.end)?;
        self.next += len as u64;
        self.end += records;
        let bytes = &self.buffer[into];
        if last {
            let (covered, crc) = bytes.split_at(len - CRC_BYTES as usize);
            self.crc.update(covered);
            let marker = &covered[records..];
            if marker != END_MARKER {
                let detail = format!("{marker:02x?} where the end marker ff ff should be");
                return Err(self.damaged(self.records_end, detail));
            }
            let expected = u32::from_be_bytes(crc.try_into().expect("four bytes"));
            let found = self.crc.clone().finalize();
            if found != expected {
                let detail =
                    format!("the segment's checksum is {expected:08x}, its bytes have {found:08x}");
                return Err(self.damaged(self.records_end + MARKER_BYTES, detail));
            }
        } else {
            self.crc.update(bytes);
            self.advise();
        }
        Ok(())
    }

    /// Reads what comes next into the buffer, from `start` to `end`.
    fn read_exactly(&mut self, start: usize, end: usize) -> ShuffleResult<()> {
        let mut at = start;
        while at < end {
            let offset = self.next + (at - start) as u64;
            match self.file.read_at(&mut self.buffer[at..end], offset) {
                Ok(0) => {
                    let detail = "the file ends here, inside the segment".to_owned();
                    return Err(self.damaged(offset, detail));
                }
                Ok(n) => at += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(ShuffleError::Io { path: self.path.to_path_buf(), offset, source });
                }
            }
        }
        Ok(())
    }

    /// Makes the buffer hold `n` bytes, or what it should hold, if it does more for no reason.
    fn resize(&mut self, n: usize) -> ShuffleResult<()> {
        let (now, then) = (self.buffer.len() - TRAILER_BYTES, n.max(self.capacity));
        if then > now {
            let more = then - now;
            let taken = self.spare.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |spare| {
                spare.checked_sub(more)
            });
            taken.map_err(|spare| ShuffleError::Memory {
                needed: then as u64,
                given: (now + spare) as u64,
            })?;
            self.buffer.reserve_exact(more);
        } else {
            self.spare.fetch_add(now - then, Ordering::Relaxed);
        }
        self.buffer.resize(then + TRAILER_BYTES, 0);
        self.buffer.shrink_to_fit();
        Ok(())
    }

    #[cold]
    fn damaged(&self, offset: u64, detail: String) -> ShuffleError {
        ShuffleError::Damaged { path: self.path.to_path_buf(), offset, detail }
    }
}

/// Has the system forget what it holds of a file, except what was not written to the disk yet: that
/// it begins to write. Whole pages only.
pub(super) fn forget(file: &File, offset: u64, len: u64) {
    let _ = fadvise(file, offset, NonZeroU64::new(len), Advice::DontNeed);
}

impl Source for SegmentReader {
    type Error = ShuffleError;

    #[inline]
    fn window(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    #[inline]
    fn left(&self) -> u64 {
        self.records_end.saturating_sub(self.next) + (self.end - self.start) as u64
    }

    #[inline]
    fn consume(&mut self, n: usize) {
        debug_assert!(n <= self.end - self.start);
        self.start += n;
    }

    fn fill(&mut self, n: usize) -> ShuffleResult<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if n.max(self.capacity) != self.buffer.len() - TRAILER_BYTES {
            self.resize(n)?;
        }
        self.read()
    }
}
