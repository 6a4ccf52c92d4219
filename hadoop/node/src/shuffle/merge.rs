//! Several segments as one, with the same framing.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use merganser_sort::key::WritableOrder;
use merganser_sort::merge::ifile::{IFileCount, IFileError, IFileMerge};
use merganser_sort::record::ifile::END_MARKER;
use rustix::io::Errno;

use super::error::{Shortage, SpillRefusal};
use super::segment::{CRC_BYTES, MARKER_BYTES, SegmentReader, SegmentSpec};
use super::{ShuffleError, ShuffleResult};

/// The least buffer of a segment.
const BUFFER_BYTES_MIN: usize = 4 << 10;
/// The largest: those of some 64 segments together stay in a processor's second cache (2 MiB) from being
/// read to being merged. Larger ones would only save calls of the system, which cost little at this
/// size: with 256 KiB each, 100 segments of small or large records took 1.4 times as long.
const BUFFER_BYTES_MAX: usize = 32 << 10;
/// The most memory that a segment has a use for: its buffer, which grows for long keys.
const SEGMENT_BYTES_MAX: u64 = 256 << 10;
/// One part in this many of the memory is kept back for keys that are longer than a buffer.
const SPARE_PART: usize = 8;
/// Bytes that are merged at a time to be skipped.
const SKIP_BYTES: usize = 64 << 10;

/// The merged segment of several sorted segments, made as it is read: records in order, those with
/// equal keys in the order of their segments, and behind them the end marker and a fresh checksum.
///
/// Every segment's length, end marker and checksum are checked before its last bytes are handed out,
/// and all of them before the merged segment's own checksum is: who reads to the end has what the
/// spills held, or an error.
///
/// ```no_run
/// use merganser_hadoop_node::shuffle::{SegmentMerge, SegmentSpec};
///
/// let spill = |n: u32| format!("attempt_1_0001_m_000000_0_spill_{n}.out").into();
/// let segments =
///     [0, 1].map(|n| SegmentSpec { path: spill(n), offset: 0, raw: 4002, part: 4006 });
/// let mut merge = SegmentMerge::open(&"text".parse()?, &segments, 1 << 20)?;
/// assert_eq!(merge.part_len(), 8006, "known before anything is merged");
/// let mut out = vec![0; 64 << 10];
/// let n = merge.read(&mut out)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SegmentMerge {
    merge: IFileMerge<SegmentReader>,
    /// The file of each segment and the end of its records, for errors.
    places: Vec<(PathBuf, u64)>,
    raw_len: u64,
    crc: crc32fast::Hasher,
    /// Bytes handed out.
    at: u64,
    trailer: Option<[u8; (MARKER_BYTES + CRC_BYTES) as usize]>,
    /// Whether whole records were asked for: those are read without marker and checksum.
    records_only: bool,
    failed: bool,
}

impl SegmentMerge {
    /// Opens all files and checks their lengths, and the checksums of empty segments. All of its
    /// buffers together take at most `memory_bytes`; 5 KiB for each segment are enough for keys of a
    /// few kilobytes and records of any size.
    ///
    /// # Errors
    /// A file is missing or unreadable, a length can't be, the memory is too small.
    pub fn open(
        order: &WritableOrder,
        segments: &[SegmentSpec],
        memory_bytes: usize,
    ) -> ShuffleResult<Self> {
        Self::open_with(order, segments, memory_bytes, open)
    }

    /// As [`SegmentMerge::open`], but a key that is longer than its segment's buffer takes its own size
    /// beyond `memory_bytes`, instead of failing the merge. For callers that cannot hand the merge to another process.
    ///
    /// # Errors
    /// As there.
    pub fn open_for_any_key(
        order: &WritableOrder,
        segments: &[SegmentSpec],
        memory_bytes: usize,
    ) -> ShuffleResult<Self> {
        Self::open_sharing(order, segments, memory_bytes, Some(usize::MAX), open)
    }

    /// As [`SegmentMerge::open`], of files that `open` opens.
    ///
    /// # Errors
    /// As there.
    pub fn open_with(
        order: &WritableOrder,
        segments: &[SegmentSpec],
        memory_bytes: usize,
        open: impl FnMut(&Path) -> io::Result<File>,
    ) -> ShuffleResult<Self> {
        Self::open_sharing(order, segments, memory_bytes, None, open)
    }

    /// Long keys take what the buffers leave of the memory, or `spare` bytes.
    fn open_sharing(
        order: &WritableOrder,
        segments: &[SegmentSpec],
        memory_bytes: usize,
        spare: Option<usize>,
        mut open: impl FnMut(&Path) -> io::Result<File>,
    ) -> ShuffleResult<Self> {
        let raw_len = merged_raw_len(segments)?;
        let sizes: Vec<u64> = segments.iter().map(SegmentSpec::records_bytes).collect();
        let (buffers, left) = share(&sizes, memory_bytes)?;
        let spare = Arc::new(AtomicUsize::new(spare.unwrap_or(left)));
        let mut readers = Vec::with_capacity(segments.len());
        for (spec, buffer) in segments.iter().zip(buffers) {
            let file = open(&spec.path).map_err(|e| opening(&spec.path, e))?;
            readers.push(SegmentReader::new(spec, file, buffer, &spare)?);
        }
        Ok(SegmentMerge {
            merge: IFileMerge::new(order, readers),
            places: segments.iter().map(|s| (s.path.clone(), s.records_end())).collect(),
            raw_len,
            crc: crc32fast::Hasher::new(),
            at: 0,
            trailer: None,
            records_only: false,
            failed: false,
        })
    }

    /// The most memory that a merge of `segments` has a use for, unless its keys are very long.
    #[must_use]
    pub fn useful_memory_bytes(segments: &[SegmentSpec]) -> u64 {
        let buffer = |segment: &SegmentSpec| segment.raw.min(SEGMENT_BYTES_MAX);
        let buffers: u64 = segments.iter().map(buffer).sum();
        buffers + buffers / (SPARE_PART as u64 - 1) + SPARE_PART as u64
    }

    /// Bytes of the merged segment without its checksum.
    #[must_use]
    pub fn raw_len(&self) -> u64 {
        self.raw_len
    }

    /// Bytes of the merged segment.
    #[must_use]
    pub fn part_len(&self) -> u64 {
        self.raw_len + CRC_BYTES
    }

    /// Whether all of the merged segment was read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.at == self.part_len()
    }

    /// Records and compares so far.
    #[must_use]
    pub fn count(&self) -> IFileCount {
        self.merge.count()
    }

    /// Fills `out` with the next bytes of the merged segment; less only at its end, 0 behind it.
    ///
    /// # Errors
    /// When a segment can't be read or is damaged. From then on there are only errors.
    ///
    /// # Panics
    /// After [`SegmentMerge::read_records`].
    pub fn read(&mut self, out: &mut [u8]) -> ShuffleResult<usize> {
        assert!(!self.records_only, "its records were asked for before");
        let records = self.raw_len - MARKER_BYTES;
        let mut n = 0;
        if self.at < records {
            let most = (records - self.at).min(out.len() as u64) as usize;
            n = self.advance(|merge| merge.read(&mut out[..most]))?;
            assert_eq!(n, most, "the records of all segments are those of their lengths");
            self.crc.update(&out[..n]);
            self.at += n as u64;
            if self.at < records {
                return Ok(n);
            }
        }
        let crc = &mut self.crc;
        let trailer = self.trailer.get_or_insert_with(|| {
            crc.update(&END_MARKER);
            let [a, b] = END_MARKER;
            let [c, d, e, f] = crc.clone().finalize().to_be_bytes();
            [a, b, c, d, e, f]
        });
        let left = &trailer[(self.at - records) as usize..];
        let last = left.len().min(out.len() - n);
        out[n..n + last].copy_from_slice(&left[..last]);
        self.at += last as u64;
        Ok(n + last)
    }

    /// Goes on by `bytes` bytes of the merged segment, or to its end, as if they were read.
    ///
    /// # Errors
    /// As [`SegmentMerge::read`].
    pub fn skip(&mut self, bytes: u64) -> ShuffleResult<()> {
        let mut left = bytes.min(self.part_len() - self.at);
        let mut out = vec![0; left.min(SKIP_BYTES as u64) as usize];
        while left > 0 {
            let n = self.read(&mut out[..left.min(SKIP_BYTES as u64) as usize])?;
            left -= n as u64;
        }
        Ok(())
    }

    /// Fills `out` with as many whole records as fit, without end marker and checksum; 0 bytes at the
    /// end.
    ///
    /// # Errors
    /// [`ShuffleError::Output`] when not even the next record fits, which a larger output mends; any
    /// other as [`SegmentMerge::read`].
    ///
    /// # Panics
    /// After [`SegmentMerge::read`].
    pub fn read_records(&mut self, out: &mut [u8]) -> ShuffleResult<usize> {
        assert!(self.records_only || self.at == 0, "its bytes were asked for before");
        self.records_only = true;
        self.advance(|merge| merge.read_records(out))
    }

    fn advance(
        &mut self,
        step: impl FnOnce(
            &mut IFileMerge<SegmentReader>,
        ) -> ShuffleResult<usize, IFileError<ShuffleError>>,
    ) -> ShuffleResult<usize> {
        if self.failed {
            return Err(ShuffleError::Failed);
        }
        step(&mut self.merge).map_err(|e| {
            self.failed = !matches!(e, IFileError::Output { .. });
            match e {
                IFileError::Source(e) => e,
                IFileError::Output { needed } => ShuffleError::Output { needed },
                IFileError::Record { segment, left, fault } => {
                    let (path, end) = &self.places[segment];
                    let detail = fault.to_string();
                    ShuffleError::Damaged { path: path.clone(), offset: end - left, detail }
                }
            }
        })
    }
}

impl fmt::Debug for SegmentMerge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentMerge")
            .field("segments", &self.places.len())
            .field("at", &self.at)
            .field("part_len", &self.part_len())
            .finish_non_exhaustive()
    }
}

/// Bytes of the merged segment without its checksum: known before anything is merged, for every record
/// keeps its bytes.
fn merged_raw_len(segments: &[SegmentSpec]) -> ShuffleResult<u64> {
    let mut raw_len = MARKER_BYTES;
    for segment in segments {
        segment.check()?;
        raw_len = raw_len.saturating_add(segment.records_bytes());
    }
    Ok(raw_len.min(i64::MAX as u64))
}

/// A buffer for each segment, none larger than the segment, and what is left for long keys.
fn share(sizes: &[u64], memory: usize) -> ShuffleResult<(Vec<usize>, usize)> {
    let least: usize = sizes.iter().map(|size| BUFFER_BYTES_MIN.min(*size as usize)).sum();
    let needed = least + least / (SPARE_PART - 1);
    if memory < needed {
        return Err(ShuffleError::Memory { needed: needed as u64, given: memory as u64 });
    }
    let mut left = memory - memory / SPARE_PART;
    let mut buffers = vec![0; sizes.len()];
    let mut by_size: Vec<usize> = (0..sizes.len()).collect();
    by_size.sort_by_key(|segment| sizes[*segment]);
    // Larger segments get the memory that small ones do not need.
    for (done, segment) in by_size.into_iter().enumerate() {
        let fair = left / (sizes.len() - done);
        let most = fair.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
        buffers[segment] = sizes[segment].min(most as u64) as usize;
        left -= buffers[segment].min(left);
    }
    let used: usize = buffers.iter().sum();
    Ok((buffers, memory - used.min(memory)))
}

fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).open(path)
}

fn opening(path: &Path, error: io::Error) -> ShuffleError {
    let path = path.to_path_buf();
    match error.kind() {
        io::ErrorKind::NotFound => ShuffleError::Missing { path },
        io::ErrorKind::PermissionDenied => {
            let reason = error.downcast().unwrap_or_else(SpillRefusal::System);
            ShuffleError::Refused { path, reason }
        }
        _ if matches!(Errno::from_io_error(&error), Some(Errno::MFILE | Errno::NFILE)) => {
            ShuffleError::Busy { shortage: Shortage::Files }
        }
        _ => ShuffleError::Io { path, offset: 0, source: error },
    }
}
