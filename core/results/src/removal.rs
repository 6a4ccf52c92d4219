//! Removes a folder and everything in it without memory of the heap: it runs when the heap is used up.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, SeekFrom, openat, seek, unlinkat};
use rustix::io::Errno;

/// Levels of folders that are removed. Unfinished work has eight, where six columns of a table name folders in a folder.
const LEVELS_MAX: u32 = 8;
/// Programs may add entries to a folder without end, and then even one listing of it has no end. So at most twice the
/// entries of the beginning are removed, and this many more.
const ADDED_MAX: u64 = 4096;
/// Stack for the entries of a level.
const ENTRIES_BYTES: usize = 4096;

/// Removes the folder `path`. Links in it are removed, never followed. Work that still runs may add files
/// meanwhile: then the caller tries again.
///
/// # Errors
/// [`Errno::NOENT`] if it is not there; [`Errno::NOTEMPTY`] if files are added faster than they are removed; the
/// system's own.
pub fn remove_folder(path: &CStr) -> Result<(), Errno> {
    remove_level(CWD, path, LEVELS_MAX)
}

fn remove_level(parent: BorrowedFd<'_>, name: &CStr, levels: u32) -> Result<(), Errno> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(parent, name, how, Mode::empty())?;
    let mut left = 2 * count(folder.as_fd())? + ADDED_MAX;
    // A removal may hide other entries from the same listing.
    loop {
        seek(&folder, SeekFrom::Start(0))?;
        let before = left;
        remove_listed(folder.as_fd(), levels, &mut left)?;
        if left == before || left == 0 {
            break;
        }
    }
    unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// The number of entries. It ends, because entries are read faster than they are added.
fn count(folder: BorrowedFd<'_>) -> Result<u64, Errno> {
    let mut memory = [MaybeUninit::uninit(); ENTRIES_BYTES];
    let mut entries = RawDir::new(folder, &mut memory);
    let mut count = 0;
    while let Some(entry) = entries.next() {
        entry?;
        count += 1;
    }
    Ok(count)
}

/// Removes the entries of one listing, at most `left` of them.
fn remove_listed(folder: BorrowedFd<'_>, levels: u32, left: &mut u64) -> Result<(), Errno> {
    let mut memory = [MaybeUninit::uninit(); ENTRIES_BYTES];
    let mut entries = RawDir::new(folder, &mut memory);
    while *left > 0
        && let Some(entry) = entries.next()
    {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        *left -= 1;
        let removed = match unlinkat(folder, name, AtFlags::empty()) {
            // POSIX says EPERM for a folder, Linux EISDIR.
            Err(Errno::ISDIR | Errno::PERM) if levels > 1 => remove_level(folder, name, levels - 1),
            other => other,
        };
        match removed {
            // Work that still runs has removed it.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn of_path(path: &Path) -> CString {
        CString::new(path.as_os_str().as_bytes()).expect("no zero byte")
    }

    #[test]
    fn a_folder_of_many_files_goes_and_what_links_name_stays() {
        let place = tempfile::tempdir().expect("a folder");
        let (folder, other) = (place.path().join("folder"), place.path().join("other"));
        fs::create_dir_all(folder.join("inner")).expect("made");
        fs::create_dir(&other).expect("made");
        fs::write(other.join("kept"), "kept").expect("written");
        for n in 0..500 {
            let name = format!("file with a name that fills the listing {n}");
            fs::write(folder.join(&name), "x").expect("written");
            fs::write(folder.join("inner").join(&name), "x").expect("written");
        }
        symlink(&other, folder.join("link")).expect("linked");
        symlink("nowhere", folder.join("dangling")).expect("linked");
        remove_folder(&of_path(&folder)).expect("removed");
        assert!(!folder.exists());
        assert_eq!(fs::read(other.join("kept")).expect("there"), b"kept");
        assert_eq!(remove_folder(&of_path(&folder)), Err(Errno::NOENT));
    }

    #[test]
    fn a_folder_that_is_filled_again_and_again_does_not_hold_up_the_end() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("folder");
        fs::create_dir(&folder).expect("made");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let (ended_to, ended) = mpsc::channel();
            for n in 0..4 {
                let (folder, is_over) = (&folder, &is_over);
                scope.spawn(move || {
                    for number in 0.. {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        // Once the folder is gone, it is made again.
                        let _ = fs::create_dir(folder);
                        let _ = fs::write(folder.join(format!("{n}.{number}")), "");
                    }
                });
            }
            let name = of_path(&folder);
            thread::spawn(move || {
                for _ in 0..3 {
                    let _ = remove_folder(&name);
                }
                let _ = ended_to.send(());
            });
            let ended = ended.recv_timeout(Duration::from_secs(60));
            is_over.store(true, Ordering::Relaxed);
            ended.expect("it gives up");
        });
    }

    #[test]
    fn a_link_in_place_of_the_folder_is_not_followed() {
        let place = tempfile::tempdir().expect("a folder");
        let (link, other) = (place.path().join("link"), place.path().join("other"));
        fs::create_dir(&other).expect("made");
        fs::write(other.join("kept"), "kept").expect("written");
        symlink(&other, &link).expect("linked");
        assert!(remove_folder(&of_path(&link)).is_err());
        assert!(other.join("kept").exists());
    }

    #[test]
    fn folders_of_six_columns_go() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join(".out.unfinished");
        for number in 1..3 {
            let inner = folder.join(format!("files/a=1/b={number}/c=1/d=1/e=1/f={number}"));
            fs::create_dir_all(&inner).expect("made");
            fs::write(inner.join("part-00000.parquet"), "rows").expect("written");
        }
        remove_folder(&of_path(&folder)).expect("removed");
        assert!(!folder.exists());
    }

    #[test]
    fn deeper_folders_than_ours_are_left() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("1");
        fs::create_dir_all(folder.join("2/3/4/5/6/7/8/9")).expect("made");
        assert!(remove_folder(&of_path(&folder)).is_err());
        assert!(folder.join("2/3/4/5/6/7/8/9").exists());
    }
}
