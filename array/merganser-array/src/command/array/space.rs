//! Space for members, reserved when a volume is made. Without it, a file system that other files fill up would fail the
//! writes of a volume that has room by its own count, and even its next opening, which writes a checkpoint.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use merganser_shell::failure::Failure;
use merganser_shell::shown;
use merganser_shell::space::{FreeSpace, folder_of};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

/// Bytes of the blocks that `st_blocks` counts.
const STAT_BLOCK: u64 = 512;

/// What the members on one file system need.
struct Need<'a> {
    free: FreeSpace,
    /// The first of these members.
    first: &'a Path,
    bytes: u64,
}

/// Refuses members that their file systems have no room for, before anything is made. Each is given with the bytes that it
/// gets if it isn't there. `remedy` ends the sentence.
pub(super) fn check<'a>(
    members: impl Iterator<Item = (&'a Path, u64)>,
    remedy: &str,
) -> Result<(), Failure> {
    let mut needs: Vec<Need<'_>> = Vec::new();
    for (member, bytes) in members {
        let (place, missing) = match fs::metadata(member) {
            Ok(found) if found.is_file() => (member, holes(&found)),
            // A block device has its space.
            Ok(_) => continue,
            Err(_) => (folder_of(member), bytes),
        };
        // A fault of the place is reported when the member is made there.
        let Some(free) = FreeSpace::of_place(place) else { continue };
        match needs.iter_mut().find(|need| need.free.device == free.device) {
            Some(need) => need.bytes += missing,
            None => needs.push(Need { free, first: member, bytes: missing }),
        }
    }
    match needs.iter().find(|need| need.bytes > need.free.bytes) {
        Some(Need { first, bytes, free, .. }) => Err(format!(
            "{}: the members need {bytes} bytes on this file system, and {} are free; {remedy}",
            shown::name(first),
            free.bytes
        )
        .into()),
        None => Ok(()),
    }
}

/// Bytes of a file for which its file system has no blocks.
fn holes(found: &fs::Metadata) -> u64 {
    found.len().saturating_sub(found.blocks() * STAT_BLOCK)
}

/// Gives a file its first `bytes` bytes, with blocks for all of them; what is there stays. Returns `false` where the file
/// system can't do so, and then the file has its size and holes.
pub(super) fn reserve(file: &File, bytes: u64) -> io::Result<bool> {
    if bytes == 0 {
        return Ok(true);
    }
    loop {
        match fallocate(file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => break,
            Err(error) => return Err(error.into()),
        }
    }
    if file.metadata()?.len() < bytes {
        file.set_len(bytes)?;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use rustix::fs::statvfs;

    use super::*;

    #[test]
    fn a_reserved_file_has_its_blocks_and_its_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("member");
        fs::write(&path, b"kept").expect("written");
        let file = File::options().write(true).open(&path).expect("opened");
        file.set_len(3 << 20).expect("sparse");
        assert!(holes(&file.metadata().expect("asked")) > 2 << 20);
        assert!(reserve(&file, 3 << 20).expect("there is room"), "this file system can");
        assert_eq!(holes(&file.metadata().expect("asked")), 0);
        let content = fs::read(&path).expect("read");
        assert_eq!((content.len(), &content[..4]), (3 << 20, &b"kept"[..]));
        assert!(content[4..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn members_of_one_file_system_are_counted_together() {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = ["one", "two"].map(|name| folder.path().join(name));
        let [one, two] = paths.each_ref().map(|path| path.as_path());
        let system = statvfs(folder.path()).expect("asked");
        let most = system.f_blocks * system.f_frsize;
        let said = |members: &[(&Path, u64)]| {
            check(members.iter().copied(), "make room").err().map(|failure| {
                failure.sentence().expect("a sentence").replace(one.to_str().expect("text"), "one")
            })
        };
        assert_eq!(said(&[(one, 1 << 20), (two, 1 << 20)]), None);
        let refused = said(&[(one, 1 << 20), (two, most)]).expect("too much");
        let needed = most + (1 << 20);
        assert!(
            refused.starts_with(&format!("one: the members need {needed} bytes on")),
            "{refused}"
        );
        assert!(refused.ends_with(" are free; make room"), "{refused}");
        // It is not the members' place that is missing, and that is said by the one who makes them.
        assert_eq!(said(&[(Path::new("/no/such/folder/x"), u64::MAX)]), None);
    }
}
