//! From a file to the addresses of its bytes on the device below its file system.
//!
//! ```text
//!   file ── FIEMAP (synced first) ──► extents ── checked, cut at the file's size ──► Placement
//!                                                                                      │ split()
//!                                                            addresses for a device ◄──┘
//! ```
//!
//! A device that reads a file by its addresses goes past the page cache and past the file system. So
//! the bytes must be on the device, as they are, and stay there while they are read:
//!
//! - extents that are not on the device yet, or not as the file's bytes, are refused
//!   ([`PlaceError::Extent`]);
//! - the file must not change. [`FilePlacement::check_unchanged`] looks after the reads whether it has: if so,
//!   what was read is worth nothing.
//!
//! Addresses are those of the file system's block device: a partition's, if it is on one.

mod fiemap;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::linux::fs::MetadataExt;

use fiemap::RawExtent;

use crate::isc::command::{ByteExtent, DeviceSplit, SECTOR_BYTES};
use crate::isc::split::SplitCut;

/// Why flags forbid to read an extent raw (`FIEMAP_EXTENT_...` of Linux).
const FORBIDDEN: [(u32, &str); 8] = [
    (0x2, "the file system does not know where it is"),
    (0x4, "it is not allocated yet; sync the file"),
    (0x8, "it is compressed"),
    (0x80, "it is encrypted"),
    (0x100, "it does not begin at a block"),
    (0x200, "it is stored within metadata"),
    (0x400, "it shares a block with other files"),
    (0x800, "it was allocated but never written: its bytes are zeros, not those of the device"),
];

/// Why a file can't be read by its addresses.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The file system does not say.
    #[error("its file system does not say where files are on the device: {0}")]
    Unsupported(io::Error),
    /// The file could not be examined.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is a folder, a pipe or a device.
    #[error("it is not a regular file")]
    NotRegular,
    /// An extent must not be read raw.
    #[error("the {bytes} bytes at {offset} can't be read from the device: {reason}")]
    Extent {
        /// Place in the file.
        offset: u64,
        /// Its length.
        bytes: u64,
        /// The reason.
        reason: &'static str,
    },
    /// A part of it is on no device.
    #[error("the {bytes} bytes at {offset} are a hole; copy the file without holes")]
    Hole {
        /// Place in the file.
        offset: u64,
        /// Its length.
        bytes: u64,
    },
    /// It changed between two looks.
    #[error("it changed while it was read: {0}")]
    Changed(&'static str),
}

/// A stretch of the file that is in one piece on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStretch {
    /// Its first byte in the file.
    pub at: u64,
    /// The same byte on the device.
    pub on_device: u64,
    /// Its length; the last one ends with the file.
    pub bytes: u64,
}

/// The marks that tell a changed file from the one that was placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Where all bytes of a file are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlacement {
    version: FileVersion,
    device: u64,
    stretches: Vec<FileStretch>,
}

impl FilePlacement {
    /// Where the bytes of `file` are now; its dirty pages are written first.
    ///
    /// # Errors
    /// A file that can't be read by its addresses, or that changes at this moment.
    pub fn of_file(file: &File) -> Result<FilePlacement, PlaceError> {
        let before = version(file)?;
        file.sync_all()?;
        let raw = fiemap::extents(file).map_err(|error| match error.kind() {
            io::ErrorKind::Unsupported => PlaceError::Unsupported(error),
            _ if error.raw_os_error() == Some(rustix::io::Errno::NOTTY.raw_os_error()) => {
                PlaceError::Unsupported(error)
            }
            _ => PlaceError::Io(error),
        })?;
        let stretches = stretches(&raw, before.size)?;
        let metadata = file.metadata()?;
        if version(file)? != before {
            return Err(PlaceError::Changed("its size or its times"));
        }
        Ok(FilePlacement { version: before, device: metadata.st_dev(), stretches })
    }

    /// The device number of its file system.
    #[must_use]
    pub fn device(&self) -> u64 {
        self.device
    }

    /// Bytes of the file.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.version.size
    }

    /// Its stretches, in the order of the file.
    #[must_use]
    pub fn stretches(&self) -> &[FileStretch] {
        &self.stretches
    }

    /// That the file is as it was, and where it was: call it after its addresses were read.
    ///
    /// A write that is under way at this moment is seen by the times; one whose times were set back by
    /// hand is not.
    ///
    /// # Errors
    /// What changed.
    pub fn check_unchanged(&self, file: &File) -> Result<(), PlaceError> {
        if version(file)? != self.version {
            return Err(PlaceError::Changed("its size or its times"));
        }
        let raw = fiemap::extents(file)?;
        if stretches(&raw, self.version.size).ok().as_ref() != Some(&self.stretches) {
            return Err(PlaceError::Changed("its place on the device"));
        }
        Ok(())
    }

    /// The addresses of `range`, widened to whole sectors, and the bytes before its start in the first of
    /// them. Widening is safe, because file systems allocate whole sectors.
    ///
    /// # Panics
    /// When the range is not in the file.
    #[must_use]
    pub fn extents(&self, range: Range<u64>) -> (Vec<ByteExtent>, u64) {
        assert!(range.start <= range.end && range.end <= self.size(), "{range:?} of a file");
        let mut extents: Vec<ByteExtent> = Vec::new();
        let mut before = 0;
        for stretch in &self.stretches {
            let from = range.start.max(stretch.at);
            let to = range.end.min(stretch.at + stretch.bytes);
            if from >= to {
                continue;
            }
            let first = stretch.on_device + (from - stretch.at);
            let offset = first / SECTOR_BYTES * SECTOR_BYTES;
            if extents.is_empty() {
                before = first - offset;
            }
            let end = stretch.on_device + (to - stretch.at);
            let bytes = end.next_multiple_of(SECTOR_BYTES) - offset;
            extents.push(ByteExtent { offset, bytes });
        }
        (extents, before)
    }

    /// A split of this file as a device takes it: input number `input`.
    #[must_use]
    pub fn split(&self, input: u32, cut: &SplitCut) -> DeviceSplit {
        let (extents, before) = self.extents(cut.range.clone());
        DeviceSplit {
            input,
            place: cut.mapped().start,
            bytes: before + (cut.range.end - cut.range.start),
            start_offset: before + cut.start_offset,
            end_offset: cut.end_offset,
            extents,
        }
    }

    /// `range` of this file, all of whose bytes are mapped, as a split that stands at `place` in input
    /// number `input`: a split record that was stored in a file of its own.
    #[must_use]
    pub fn part(&self, range: Range<u64>, input: u32, place: u64) -> DeviceSplit {
        let cut = SplitCut { range, start_offset: 0, end_offset: 0 };
        DeviceSplit { place, ..self.split(input, &cut) }
    }
}

fn version(file: &File) -> Result<FileVersion, PlaceError> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(PlaceError::NotRegular);
    }
    Ok(FileVersion {
        inode: metadata.st_ino(),
        size: metadata.st_size(),
        modified: (metadata.st_mtime(), metadata.st_mtime_nsec()),
        changed: (metadata.st_ctime(), metadata.st_ctime_nsec()),
    })
}

/// The extents of a file of `size` bytes, if all may be read raw.
fn stretches(raw: &[RawExtent], size: u64) -> Result<Vec<FileStretch>, PlaceError> {
    let mut found: Vec<FileStretch> = Vec::new();
    let mut at = 0;
    for extent in raw {
        if extent.logical >= size {
            // Space that was allocated beyond the end.
            break;
        }
        if extent.logical != at {
            return Err(PlaceError::Hole { offset: at, bytes: extent.logical.saturating_sub(at) });
        }
        let bytes = extent.length.min(size - at);
        let forbidden = FORBIDDEN.iter().find(|(flag, _)| extent.flags & flag != 0);
        if let Some((_, reason)) = forbidden {
            return Err(PlaceError::Extent { offset: at, bytes, reason });
        }
        let sector = extent.physical.is_multiple_of(SECTOR_BYTES);
        if !sector || extent.length == 0 || extent.physical.checked_add(extent.length).is_none() {
            let reason = "the file system gives it an impossible place";
            return Err(PlaceError::Extent { offset: at, bytes, reason });
        }
        found.push(FileStretch { at, on_device: extent.physical, bytes });
        at += bytes;
    }
    if at < size {
        return Err(PlaceError::Hole { offset: at, bytes: size - at });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(logical: u64, physical: u64, length: u64, flags: u32) -> RawExtent {
        RawExtent { logical, physical, length, flags, ..RawExtent::default() }
    }

    fn placement(raw: &[RawExtent], size: u64) -> FilePlacement {
        let version = FileVersion { inode: 1, size, modified: (0, 0), changed: (0, 0) };
        FilePlacement { version, device: 0, stretches: stretches(raw, size).expect("readable") }
    }

    #[test]
    fn extents_are_cut_at_the_files_size() {
        let raw = [raw(0, 40_960, 8192, 0), raw(8192, 4096, 4096, 1), raw(16_384, 0, 4096, 0x800)];
        let found = stretches(&raw, 9000).expect("readable");
        let stretch = |at, on_device, bytes| FileStretch { at, on_device, bytes };
        assert_eq!(found, [stretch(0, 40_960, 8192), stretch(8192, 4096, 808)]);
        assert_eq!(stretches(&[], 0).expect("empty"), []);
    }

    #[test]
    fn what_must_not_be_read_raw_is_refused() {
        for (flag, reason) in FORBIDDEN {
            let said = stretches(&[raw(0, 4096, 4096, flag | 1)], 100).expect_err("refused");
            assert_eq!(
                said.to_string(),
                format!("the 100 bytes at 0 can't be read from the device: {reason}")
            );
        }
        // Merged and shared extents are fine.
        stretches(&[raw(0, 4096, 4096, 0x1000 | 0x2000 | 1)], 100).expect("readable");
        let hole = stretches(&[raw(0, 4096, 4096, 0), raw(8192, 8192, 4096, 1)], 9000);
        let said = hole.expect_err("a hole").to_string();
        assert_eq!(said, "the 4096 bytes at 4096 are a hole; copy the file without holes");
        stretches(&[raw(0, 4096, 4096, 1)], 5000).expect_err("a hole at the end");
        stretches(&[raw(0, 100, 4096, 1)], 5000).expect_err("not on a sector");
        stretches(&[raw(0, u64::MAX - 511, 4096, 1)], 4096).expect_err("beyond all devices");
    }

    #[test]
    fn ranges_are_widened_to_sectors() {
        let placement = placement(&[raw(0, 40_960, 8192, 0), raw(8192, 4096, 8192, 1)], 16_000);
        let extent = |offset, bytes| ByteExtent { offset, bytes };
        let one = placement.extents(700..1100);
        assert_eq!(one, (vec![extent(41_472, 1024)], 188));
        let two = placement.extents(8000..9000);
        assert_eq!(two, (vec![extent(48_640, 512), extent(4096, 1024)], 320));
        let cut = SplitCut { range: 8000..9000, start_offset: 5, end_offset: 7 };
        let split = placement.split(3, &cut);
        assert_eq!((split.input, split.place, split.bytes), (3, 8005, 1320));
        assert_eq!((split.start_offset, split.end_offset), (325, 7));
        assert_eq!(placement.extents(16_000..16_000), (vec![], 0));
    }
}
