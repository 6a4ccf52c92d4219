//! The last step: a complete file gets its name.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use merganser_sort::journal::FileNote;
use merganser_storage::file;

use super::{ResultAttributes, Target, WorkError, note_of};

/// Gives the file `partial`, in the same file system, the name `target`, durably, with these
/// attributes. A file that already has the name is replaced only if it is `replaces`. Any other file
/// appeared after the work began, and the user did not agree to lose it.
///
/// # Errors
/// `AlreadyExists` if another file has the name; errors of the system. Both files are then unchanged.
pub fn publish(
    partial: &Path,
    target: &Target,
    replaces: Option<&FileNote>,
    attributes: ResultAttributes,
) -> io::Result<()> {
    let file = open_own_file(partial)?;
    attributes.apply(&file)?;
    file.sync_all()?;
    let path = target.path();
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => rename_to_free(partial, &path)?,
        Err(error) => return Err(error),
        Ok(found) if replaces.is_some_and(|old| old.is_same_file(&note_of(&found))) => {
            fs::rename(partial, &path)?;
        }
        Ok(_) => return Err(taken(&path)),
    }
    File::open(target.folder())?.sync_all()?;
    partial.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Opens a file of ours to change its attributes: never through a link, and without waiting, if
/// something else has its name.
///
/// # Errors
/// When it is no regular file; the system's own.
pub(super) fn open_own_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let file = options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        let replaced = WorkError::NotRegular(path.to_owned());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, replaced));
    }
    Ok(file)
}

/// Renames to a free name, in one step if the file system supports that.
pub(super) fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    file::rename_to_free(from, to).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => taken(to),
        _ => error,
    })
}

fn taken(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, WorkError::Taken(path.to_owned()))
}
