//! The costs of merging on this node: how fast its disk writes and reads, how long a seek takes, how fast
//! [`SegmentMerge`] merges.
//!
//! All files are in a folder of their own, inside the one that is measured; it is removed at the end.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use merganser_random::Random;
use merganser_sort::record::ifile::{END_MARKER, push_record};
use rustix::fs::{Advice, fadvise};

use super::segment::forget;
use super::{SegmentMerge, SegmentSpec, ShuffleError, ShuffleResult, WritableOrder};

/// Bytes of a key; the rest of a record is its value.
const KEY_BYTES: usize = 10;
/// Bytes that a merge of the table reads.
const MERGE_BYTES: usize = 16 << 20;
/// Bytes that are written and read to measure the disk, at most.
const DISK_BYTES: u64 = 256 << 20;
/// How long writing may take before what was written has to do.
const DISK_TIME: Duration = Duration::from_secs(2);
/// Seeks that are timed.
const SEEKS: u64 = 200;
/// How long they may take in all.
const SEEK_TIME: Duration = Duration::from_secs(1);
/// Merges that are timed for one number; the median counts.
const ROUNDS: usize = 3;
/// Memory of a timed merge.
const MEMORY_BYTES: usize = 16 << 20;
const CHUNK_BYTES: usize = 1 << 20;

/// The measured costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// Nanoseconds to write a byte so that it is on the disk.
    pub write_ns: f64,
    /// Nanoseconds to read a byte that is not in memory.
    pub read_ns: f64,
    /// Nanoseconds to read 4 KiB anywhere, beyond reading as many bytes in a row.
    pub seek_ns: f64,
    /// Nanoseconds that a segment takes in a merge, however small it is.
    pub segment_ns: f64,
    /// Nanoseconds to copy a byte from a spill in memory, without merging.
    pub copy_ns: f64,
    /// For each record size and fan-in, what merging takes.
    pub merges: Vec<MergeCost>,
}

/// The cost of merging spills that are in memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MergeCost {
    /// Bytes of a record, its lengths included.
    pub record_bytes: usize,
    /// Segments.
    pub fan_in: usize,
    /// Nanoseconds a byte.
    pub ns: f64,
}

/// Measures in a folder below `dir`, merges for each of `record_bytes` (at least 16) and `fan_ins`.
///
/// # Errors
/// When the folder can't be written or read.
pub fn calibrate(
    dir: &Path,
    record_bytes: &[usize],
    fan_ins: &[usize],
) -> ShuffleResult<Calibration> {
    let scratch = CalibrationFolder::new(dir)?;
    let (write_ns, read_ns, seek_ns) = scratch.disk()?;
    let mut merges = Vec::new();
    let mut copy_ns = f64::MAX;
    for &record_bytes in record_bytes {
        for &fan_in in fan_ins {
            let segments = scratch.segments(record_bytes, fan_in)?;
            copy_ns = copy_ns.min(median(|| copy(&segments))?);
            merges.push(MergeCost { record_bytes, fan_in, ns: median(|| merge(&segments))? });
        }
    }
    let fan_in = fan_ins.iter().copied().max().unwrap_or(2);
    let empty = scratch.write_segments(&vec![Vec::new(); fan_in])?;
    let segment_ns = median(|| Ok(merge(&empty)? / fan_in as f64))?;
    Ok(Calibration { write_ns, read_ns, seek_ns, segment_ns, copy_ns, merges })
}

/// The median of some measurements.
fn median(mut measure: impl FnMut() -> ShuffleResult<f64>) -> ShuffleResult<f64> {
    let mut found = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        found.push(measure()?);
    }
    found.sort_by(f64::total_cmp);
    Ok(found[ROUNDS / 2])
}

/// Nanoseconds a byte, or in all if there are only empty segments, to merge `segments`.
fn merge(segments: &[SegmentSpec]) -> ShuffleResult<f64> {
    let order: WritableOrder = "raw".parse().expect("an order");
    let mut out = vec![0; 256 << 10];
    let begun = Instant::now();
    let mut merge = SegmentMerge::open(&order, segments, MEMORY_BYTES)?;
    while merge.read(&mut out)? > 0 {}
    let bytes: u64 = segments.iter().map(SegmentSpec::records_bytes).sum();
    Ok(begun.elapsed().as_nanos() as f64 / bytes.max(1) as f64)
}

/// Nanoseconds a byte to read `segments` one after the other and copy them once.
fn copy(segments: &[SegmentSpec]) -> ShuffleResult<f64> {
    let (mut chunk, mut out) = (vec![0; 256 << 10], vec![0; 256 << 10]);
    let begun = Instant::now();
    let mut bytes = 0;
    for segment in segments {
        let io = failed(&segment.path);
        let file = File::open(&segment.path).map_err(&io)?;
        let (mut at, end) = (segment.offset, segment.offset + segment.part);
        while at < end {
            let n = (end - at).min(chunk.len() as u64) as usize;
            file.read_exact_at(&mut chunk[..n], at).map_err(&io)?;
            out[..n].copy_from_slice(&chunk[..n]);
            std::hint::black_box(&mut out);
            at += n as u64;
        }
        bytes += segment.part;
    }
    Ok(begun.elapsed().as_nanos() as f64 / bytes as f64)
}

/// A folder that is removed when dropped.
struct CalibrationFolder(PathBuf);

impl CalibrationFolder {
    fn new(dir: &Path) -> ShuffleResult<Self> {
        let path = dir.join(format!(".merganser-advise.{}", std::process::id()));
        fs::create_dir(&path).map_err(failed(&path))?;
        Ok(CalibrationFolder(path))
    }

    /// Nanoseconds to write and read a byte in a row, and to seek.
    fn disk(&self) -> ShuffleResult<(f64, f64, f64)> {
        let path = self.0.join("disk");
        let io = failed(&path);
        let mut file =
            File::options().create_new(true).read(true).write(true).open(&path).map_err(&io)?;
        // Not zeros, which some disks do not store.
        let mut random = Random::new(1);
        let chunk: Vec<u8> =
            (0..CHUNK_BYTES / 8).flat_map(|_| random.bits().to_le_bytes()).collect();
        let begun = Instant::now();
        let mut bytes = 0;
        while bytes < DISK_BYTES && begun.elapsed() < DISK_TIME {
            for _ in 0..8 {
                file.write_all(&chunk).map_err(&io)?;
                bytes += CHUNK_BYTES as u64;
            }
            file.sync_data().map_err(&io)?;
        }
        let write_ns = begun.elapsed().as_nanos() as f64 / bytes as f64;

        forget(&file, 0, bytes);
        let mut into = vec![0; CHUNK_BYTES];
        let (begun, mut at) = (Instant::now(), 0);
        while at < bytes && begun.elapsed() < DISK_TIME {
            file.read_exact_at(&mut into, at).map_err(&io)?;
            at += CHUNK_BYTES as u64;
        }
        let read_ns = begun.elapsed().as_nanos() as f64 / at as f64;

        forget(&file, 0, bytes);
        let _ = fadvise(&file, 0, None, Advice::Random);
        let (begun, mut seeks) = (Instant::now(), 0);
        while seeks < SEEKS && begun.elapsed() < SEEK_TIME {
            let at = random.bits() % (bytes / 4096) * 4096;
            file.read_exact_at(&mut into[..4096], at).map_err(&io)?;
            seeks += 1;
        }
        let seek_ns = begun.elapsed().as_nanos() as f64 / seeks as f64;
        fs::remove_file(&path).map_err(&io)?;
        Ok((write_ns, read_ns, (seek_ns - 4096.0 * read_ns).max(0.0)))
    }

    /// Sorted segments of records with random keys, [`MERGE_BYTES`] in all.
    fn segments(&self, record_bytes: usize, fan_in: usize) -> ShuffleResult<Vec<SegmentSpec>> {
        let mut random = Random::new(record_bytes as u64);
        let records = (MERGE_BYTES / record_bytes / fan_in).max(1);
        let value = vec![b'v'; record_bytes.saturating_sub(KEY_BYTES + 2)];
        let segment = || {
            let mut keys: Vec<[u8; KEY_BYTES]> = (0..records)
                .map(|_| {
                    let mut key = [0; KEY_BYTES];
                    key[..8].copy_from_slice(&random.bits().to_be_bytes());
                    key
                })
                .collect();
            keys.sort_unstable();
            let mut bytes = Vec::with_capacity(records * record_bytes);
            keys.iter().for_each(|key| push_record(key, &value, &mut bytes));
            bytes
        };
        let records: Vec<Vec<u8>> = std::iter::repeat_with(segment).take(fan_in).collect();
        self.write_segments(&records)
    }

    /// Writes one spill for each of `segments`.
    fn write_segments(&self, segments: &[Vec<u8>]) -> ShuffleResult<Vec<SegmentSpec>> {
        let write = |(number, records): (usize, &Vec<u8>)| {
            let path = self.0.join(format!("spill_{number}.out"));
            let mut bytes = records.clone();
            bytes.extend(END_MARKER);
            let crc = crc32fast::hash(&bytes);
            bytes.extend(crc.to_be_bytes());
            fs::write(&path, &bytes).map_err(failed(&path))?;
            let part = bytes.len() as u64;
            Ok(SegmentSpec { path, offset: 0, raw: part - 4, part })
        };
        segments.iter().enumerate().map(write).collect()
    }
}

impl Drop for CalibrationFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> ShuffleError {
    move |source| ShuffleError::Io { path: path.to_path_buf(), offset: 0, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calibration_measures_all_and_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let found = calibrate(dir.path(), &[1000], &[2, 4]).expect("measured");
        let Calibration { write_ns, read_ns, segment_ns, copy_ns, .. } = found;
        assert!([write_ns, read_ns, segment_ns, copy_ns].iter().all(|ns| *ns > 0.0), "{found:?}");
        let measured: Vec<_> = found.merges.iter().map(|m| (m.record_bytes, m.fan_in)).collect();
        assert_eq!(measured, [(1000, 2), (1000, 4)]);
        assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 0);
    }
}
