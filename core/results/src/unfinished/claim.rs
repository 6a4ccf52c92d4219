//! The hidden name of an input while its bytes are given back.

use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use merganser_sort::journal::{FileNote, SortJournal};

use super::publish::rename_to_free;
use super::{LOCK_PATIENCE, claimed_path, find, is_at, is_restored, note_of};
use crate::{Notice, ResultsError};

/// Why an input can't be consumed, or not any more.
pub const OTHER_LINK: &str =
    "has got another hard link, whose content would vanish, too; remove one of the two names";

/// Why an input does not get its hidden name. It is the inner error of an [`io::Error`].
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another file, or none, has the input's name.
    #[error("{}: was moved away while it was sorted", .0.display())]
    Moved(PathBuf),
    /// The input has got another hard link.
    #[error("{}: {OTHER_LINK}", .0.display())]
    OtherLink(PathBuf),
}

/// Gives the input at `path` its hidden name, durably, so that no other program takes the rest of the
/// input for a complete file.
///
/// # Errors
/// `AlreadyExists` when another interrupted command has an input of this name; `NotFound` when the
/// file at `path` is not `known`; the system's own.
pub fn claim(path: &Path, known: &FileNote) -> io::Result<()> {
    let hidden = claimed_path(path);
    if is_claimed(&hidden, known)? {
        return Ok(());
    }
    if !is_at(path, known)? {
        return Err(moved(path));
    }
    rename_to_free(path, &hidden)?;
    if !is_at(&hidden, known)? {
        // Another file took the name between the look and the rename.
        rename_to_free(&hidden, path)?;
        return Err(moved(path));
    }
    sync_parent(path)
}

fn moved(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, ClaimError::Moved(path.to_owned()))
}

/// [`claim`] before the first byte is given back. An input that has got another hard link since it was checked keeps its
/// own name.
///
/// # Errors
/// As [`claim`]; for another link.
pub fn claim_unlinked(path: &Path, known: &FileNote) -> io::Result<()> {
    claim(path, known)?;
    let hidden = claimed_path(path);
    if find(&hidden)?.is_none_or(|found| found.nlink() <= 1) {
        return Ok(());
    }
    rename_to_free(&hidden, path)?;
    sync_parent(path)?;
    Err(io::Error::other(ClaimError::OtherLink(path.to_owned())))
}

/// Gives an input its own name back, if it is as `known`: another command may have claimed the same file, too, and given
/// bytes back. The rest of it must not be taken for the whole.
///
/// # Errors
/// `AlreadyExists` when another file has taken the name; the system's own.
fn unclaim(path: &Path, known: &FileNote, tell: &dyn Fn(&Notice)) -> io::Result<()> {
    let hidden = claimed_path(path);
    if !is_claimed(&hidden, known)? {
        return Ok(());
    }
    let file = open_input(&hidden, false)?;
    if lock_file(&file) && is_restored(&file.metadata()?, known) {
        rename_to_free(&hidden, path)?;
        return sync_parent(path);
    }
    tell(&Notice::KeepsHiddenName(hidden));
    Ok(())
}

/// Opens an input itself, never through a link.
///
/// # Errors
/// The system's own.
pub fn open_input(path: &Path, writable: bool) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(writable).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options.open(path)
}

/// Locks a file until it is closed. `false` if another process has locked it, and keeps it. Where files can't be locked,
/// it does nothing.
pub fn lock_file(file: &File) -> bool {
    // A child of a process that was just killed shares the lock until it runs its program.
    let until = Instant::now() + LOCK_PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) | Err(TryLockError::Error(_)) => return true,
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => return false,
        }
    }
}

/// Gives the inputs of a sort that had only begun their own names back. An input that was changed keeps its hidden name,
/// and `tell` gets that.
///
/// # Errors
/// As `unclaim`.
pub fn unclaim_all(journal: &SortJournal, tell: &dyn Fn(&Notice)) -> Result<(), ResultsError> {
    for input in &journal.inputs {
        let path = Path::new(input.path.as_os_str());
        unclaim(path, &input.file, tell).map_err(ResultsError::on(path))?;
    }
    Ok(())
}

/// Whether the file at the hidden name is `known`, or a copy of it that was put there.
fn is_claimed(hidden: &Path, known: &FileNote) -> io::Result<bool> {
    let is_it = |found: &Metadata| found.is_file() && known.is_same_file(&note_of(found));
    Ok(find(hidden)?.is_some_and(|found| is_it(&found) || is_restored(&found, known)))
}

/// Whether an input of a sort has its hidden name. Until it has its own one back, another command
/// that writes to that name would not see that there is a file.
pub fn has_claimed(journal: &SortJournal) -> bool {
    journal.inputs.iter().any(|input| {
        is_claimed(&claimed_path(Path::new(input.path.as_os_str())), &input.file).unwrap_or(true)
    })
}

fn sync_parent(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}
