//! The file that has a name now.

use std::fs::Metadata;
use std::io;
use std::path::Path;

use merganser_sort::journal::FileNote;

/// The metadata of the file with a name, without following links; `None` only if the system says
/// that no file has the name. Any other failure is an error, because a file that can't be seen may
/// still exist.
///
/// # Errors
/// The system's own.
pub fn find(path: &Path) -> io::Result<Option<Metadata>> {
    match path.symlink_metadata() {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the file at `path` is `known`.
///
/// # Errors
/// The system's own.
pub fn is_at(path: &Path, known: &FileNote) -> io::Result<bool> {
    Ok(find(path)?.is_some_and(|found| found.is_file() && known.is_same_file(&note_of(&found))))
}

/// Whether a file at a hidden name, which no other program uses, has the size and the time of the
/// last change of `known`. Such a file was restored from a copy.
pub fn is_restored(found: &Metadata, known: &FileNote) -> bool {
    let now = note_of(found);
    found.is_file() && (now.size, now.modified_unix_ns) == (known.size, known.modified_unix_ns)
}

/// The identity of a file, and the outer signs of its content: size and times.
pub fn note_of(found: &Metadata) -> FileNote {
    FileNote::of_metadata(found)
}
