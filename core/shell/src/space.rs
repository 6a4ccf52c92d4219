//! The space that file systems have free, for commands that compare it with what they are going to write.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{statfs, statvfs};
use rustix::process::geteuid;

/// File systems on which as many bytes can be written as are free: ext2 to ext4, xfs and tmpfs. Others compress, share
/// blocks, keep several copies, or are on another machine, and their figure is an estimate.
const COUNTED: [i64; 3] = [0xef53, 0x5846_5342, 0x0102_1994];

/// The file system that a place is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSpace {
    /// The number of its device: two places with the same number share the space.
    pub device: u64,
    /// Bytes that can be written, as it says. The blocks that are kept for root are counted for root.
    pub bytes: u64,
    /// Whether more than that certainly can't be written.
    pub is_exact: bool,
}

impl FreeSpace {
    /// That of the file or folder `place`; `None` if it is not there, or its file system says nothing about its size.
    pub fn of_place(place: &Path) -> Option<Self> {
        let (found, system) = (fs::metadata(place).ok()?, statvfs(place).ok()?);
        // A tmpfs without a limit has no blocks.
        if system.f_blocks == 0 {
            return None;
        }
        let blocks = if geteuid().is_root() { system.f_bfree } else { system.f_bavail };
        Some(FreeSpace {
            device: found.dev(),
            bytes: blocks.saturating_mul(system.f_frsize),
            is_exact: statfs(place).is_ok_and(|kind| COUNTED.contains(&kind.f_type)),
        })
    }

    /// The sum of the file systems that `places` are on, each counted once; `None` if one of them is not known.
    pub fn together<'a>(places: impl Iterator<Item = &'a Path>) -> Option<Self> {
        let mut found: Vec<FreeSpace> = Vec::new();
        for place in places {
            let space = Self::of_place(place)?;
            if found.iter().all(|other| other.device != space.device) {
                found.push(space);
            }
        }
        let first = *found.first()?;
        Some(FreeSpace {
            bytes: found.iter().fold(0, |sum, space| sum.saturating_add(space.bytes)),
            is_exact: found.iter().all(|space| space.is_exact),
            ..first
        })
    }
}

/// The folder that the file `path` is in, or will be.
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| folder.as_os_str() != OsStr::new(""));
    folder.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_one_file_system_are_counted_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        fs::create_dir(&one).expect("made");
        fs::create_dir(&two).expect("made");
        let alone = FreeSpace::of_place(&one).expect("known");
        let both = FreeSpace::together([&*one, &*two].into_iter()).expect("known");
        assert_eq!((both.device, both.is_exact), (alone.device, alone.is_exact));
        // Other programs write meanwhile, but not as much as there is.
        assert!(both.bytes < alone.bytes.saturating_mul(2), "{both:?} {alone:?}");
        let missing = folder.path().join("missing");
        assert_eq!(FreeSpace::together([&*one, &*missing].into_iter()), None);
        assert_eq!(FreeSpace::together(std::iter::empty()), None);
    }

    #[test]
    fn file_systems_that_say_nothing_are_not_known() {
        assert_eq!(FreeSpace::of_place(Path::new("/proc")), None);
        assert_eq!(folder_of(Path::new("file")), Path::new("."));
        assert_eq!(folder_of(Path::new("a/file")), Path::new("a"));
    }
}
