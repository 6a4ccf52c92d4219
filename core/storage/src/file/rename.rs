//! A rename that replaces nothing.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Renames a file or folder to a free name, in one step if the file system supports that.
///
/// # Errors
/// `AlreadyExists` if something has the name; the system's own. The path is not in the text.
pub fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::INVAL | Errno::NOSYS) => fs::rename(from, to),
        Err(error) => Err(error.into()),
    }
}
