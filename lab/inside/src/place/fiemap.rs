//! Where the file system says that the bytes of a file are: `FS_IOC_FIEMAP` of Linux.
//!
//! ```text
//!    0 ┌ start u64 ┬ length u64 ┬ flags u32 ┬ mapped u32 ┬ count u32 ┬ reserved u32 ┐  struct fiemap
//!   32 ├ logical u64 ┬ physical u64 ┬ length u64 ┬ reserved 2 u64 ┬ flags u32 ┬ reserved 3 u32 ┤  per extent
//! ```

use std::io;
use std::os::fd::AsFd;

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// Extents of one call.
const EXTENTS: usize = 128;
/// Writes dirty pages to the device first.
const FLAG_SYNC: u32 = 1;
/// The extent is the last one of the file.
const EXTENT_LAST: u32 = 1;

/// An extent as the kernel gives it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RawExtent {
    pub(super) logical: u64,
    pub(super) physical: u64,
    pub(super) length: u64,
    pub(super) reserved64: [u64; 2],
    pub(super) flags: u32,
    pub(super) reserved: [u32; 3],
}

/// The header, by whose size the kernel numbers the call.
#[repr(C)]
#[derive(Default)]
struct FiemapHeader {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
}

#[repr(C)]
struct Map {
    header: FiemapHeader,
    extents: [RawExtent; EXTENTS],
}

const FS_IOC_FIEMAP: Opcode = opcode::read_write::<FiemapHeader>(b'f', 11);

/// All extents of `file`, in its order, after its dirty pages were written.
///
/// # Errors
/// `EOPNOTSUPP` of a file system without the call, or the file's own.
pub(super) fn extents(file: impl AsFd) -> io::Result<Vec<RawExtent>> {
    let mut all: Vec<RawExtent> = Vec::new();
    let mut start = 0;
    loop {
        let mut map = Map {
            header: FiemapHeader {
                start,
                length: u64::MAX - start,
                flags: FLAG_SYNC,
                count: EXTENTS as u32,
                ..FiemapHeader::default()
            },
            extents: [RawExtent::default(); EXTENTS],
        };
        // SAFETY: the opcode is FS_IOC_FIEMAP. The kernel reads and writes a `struct fiemap`, which
        // `Map` begins with, and after it at most `count` extents, for which `Map` has room.
        let call = unsafe { Updater::<FS_IOC_FIEMAP, Map>::new(&mut map) };
        // SAFETY: as above; the call has no effect on memory other than `map`.
        unsafe { ioctl(file.as_fd(), call) }?;
        let mapped = (map.header.mapped as usize).min(EXTENTS);
        let Some(last) = map.extents[..mapped].last() else { return Ok(all) };
        let next = last.logical.saturating_add(last.length);
        all.extend_from_slice(&map.extents[..mapped]);
        if last.flags & EXTENT_LAST != 0 || next <= start {
            return Ok(all);
        }
        start = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_the_kernels() {
        assert_eq!((size_of::<FiemapHeader>(), size_of::<RawExtent>()), (32, 56));
        assert_eq!(FS_IOC_FIEMAP, 0xC020_660B);
    }
}
