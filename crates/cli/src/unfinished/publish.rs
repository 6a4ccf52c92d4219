//! The last step: a complete file gets its name.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use merganser_sort::journal::FileNote;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::{Attributes, Target, note_of};

/// Gives the file `partial`, in the same file system, the name `target`, durably, with these
/// attributes. A file that bears the name already is replaced only if it is `replaces`: another one
/// appeared since the work began, and nobody asked to lose it.
///
/// # Errors
/// `AlreadyExists` where another file bears the name; the system's own. Both files are then as they
/// were.
pub fn publish(
    partial: &Path,
    target: &Target,
    replaces: Option<&FileNote>,
    attributes: Attributes,
) -> io::Result<()> {
    let file = File::open(partial)?;
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

/// Renames onto a name that nothing bears, in one step where the file system knows how.
pub(super) fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::INVAL | Errno::NOSYS) => fs::rename(from, to),
        Err(Errno::EXIST) => Err(taken(to)),
        Err(error) => Err(error.into()),
    }
}

fn taken(path: &Path) -> io::Error {
    let text = format!(
        "{}: another file has taken this name since the work began; move it away, then repeat the command",
        path.display()
    );
    io::Error::new(io::ErrorKind::AlreadyExists, text)
}
