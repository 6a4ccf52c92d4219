//! A file that appears under its name when it is finished, or not at all.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use super::attributes::{Attributes, publish_file};
use super::directory::{lacks_unnamed, open_unnamed};
use super::error::FileError;
use super::kind::FileKind;
use super::resolve::{ResolvedName, ResolvedOutput, guard, resolve_output};
use super::storage::FileStorage;
use super::{FileOptions, at, hidden, own};
use crate::StorageExt;

/// A file being made. It has no name before [`UnpublishedFile::publish`]: whatever ends the process, nothing
/// is left behind and what bore the name before is untouched.
///
/// Where the file system has no unnamed files it has a hidden name (`.OUT.merganser-new`) until
/// then, and only this user may read it. The name goes when the `UnpublishedFile` drops. When the process is
/// killed it stays, until the next `UnpublishedFile` of that name removes it.
///
/// A file that is replaced loses what belongs to the file and not to the name: other hard links keep
/// the old content, and ACLs and extended attributes are not taken over.
pub struct UnpublishedFile {
    storage: Arc<FileStorage>,
    /// As given, for messages.
    name: String,
    place: ResolvedName,
    hidden: Option<OsString>,
}

impl UnpublishedFile {
    /// Starts a file that is to replace or become `path`, through symbolic links.
    ///
    /// # Errors
    /// `InvalidInput` when something other than a regular file bears the name; those of
    /// [`resolve_output`]; the system's own.
    pub fn create(path: impl AsRef<Path>, options: FileOptions) -> io::Result<UnpublishedFile> {
        let path = path.as_ref();
        Self::begin(resolve_output(path)?, path, options, open_unnamed)
    }

    /// [`UnpublishedFile::create`] for a name that is resolved already; `shown` is what to call it in errors.
    ///
    /// # Errors
    /// As there.
    pub fn create_resolved(
        resolved: ResolvedOutput,
        shown: impl AsRef<Path>,
        options: FileOptions,
    ) -> io::Result<UnpublishedFile> {
        Self::begin(resolved, shown.as_ref(), options, open_unnamed)
    }

    /// [`UnpublishedFile::create_resolved`] with a way to get an unnamed file with a mode in a folder.
    fn begin(
        resolved: ResolvedOutput,
        shown: &Path,
        options: FileOptions,
        unnamed: impl Fn(&File, u32) -> io::Result<File>,
    ) -> io::Result<UnpublishedFile> {
        let name = shown.display().to_string();
        let wrap = |e| FileError::wrap(&name, "create", e);
        let place = resolved.into_place().map_err(wrap)?;
        hidden::clear(&place.folder, &place.name);
        // Readable as the umask says: it is to be an ordinary file.
        let made = if Path::new("/proc/self/fd").exists() {
            unnamed(&place.folder, 0o666)
        } else {
            // There would be no way to give it a name.
            Err(Errno::OPNOTSUPP.into())
        };
        let (file, hidden) = match made {
            Ok(file) => {
                hidden::lock(&file);
                (file, None)
            }
            Err(e) if lacks_unnamed(&e) => {
                let (file, at) = hidden::create(&place.folder, &place.name).map_err(wrap)?;
                (file, Some(at))
            }
            Err(e) => return Err(wrap(e)),
        };
        match FileStorage::from_file(file, name.clone(), true, options) {
            Ok(storage) => Ok(UnpublishedFile { storage, name, place, hidden }),
            Err(e) => {
                discard(&place, hidden);
                Err(e)
            }
        }
    }

    /// The file, to write to. Handles may outlive the `UnpublishedFile`.
    #[must_use]
    pub fn storage(&self) -> Arc<FileStorage> {
        Arc::clone(&self.storage)
    }

    /// Syncs the file and gives it its name, in one step for readers: the old content or the
    /// new one, never less. The mode of a replaced file stays, and its owner where we may set it.
    ///
    /// On return the file survives a power cut. A kill in the moment between two system calls here
    /// may leave a hidden name (`.OUT.merganser-new`) where a file is replaced.
    ///
    /// # Errors
    /// The system's own; the name then still means what it meant before, or, when only the last sync
    /// of the directory failed, the new file.
    pub fn publish(mut self) -> io::Result<()> {
        self.storage.sync()?;
        let name = self.name.clone();
        self.put_in_place().map_err(|e| FileError::wrap(&name, "putting in place", e))
    }

    fn put_in_place(&mut self) -> io::Result<()> {
        let file = self.storage.file();
        let ResolvedName { folder, name } = &self.place;
        let replaces = self.take_attributes()?;
        if self.hidden.is_none() {
            if !replaces {
                match at::link(file, folder, name) {
                    Ok(()) => return folder.sync_all(),
                    // Another process has just made it.
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                        self.take_attributes()?;
                    }
                    Err(e) => return Err(e),
                }
            }
            self.hidden = Some(hidden::link(file, folder, name)?);
        }
        let hidden = self.hidden.as_ref().expect("just linked, or created so");
        at::rename(folder, hidden, name)?;
        self.hidden = None;
        folder.sync_all()
    }

    /// Gives the file owner and mode of the one that it replaces; says whether there is one.
    fn take_attributes(&self) -> io::Result<bool> {
        let file = self.storage.file();
        let ResolvedName { folder, name } = &self.place;
        let old = match at::look(folder, name) {
            Ok(old) => old,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                if self.hidden.is_some() {
                    publish_file(file)?;
                }
                return Ok(false);
            }
            Err(e) => return Err(e),
        };
        // Another user may have put a file or link there meanwhile: it is not followed, and its
        // owner does not get the output.
        let found = old.metadata()?;
        own::check_kind(&found, FileKind::Regular)?;
        guard(&folder.metadata()?, &found)?;
        Attributes::of_file(&old)?.give_to(file)?;
        Ok(true)
    }
}

impl Drop for UnpublishedFile {
    fn drop(&mut self) {
        discard(&self.place, self.hidden.take());
    }
}

/// Removes an unfinished file. If that fails it stays, until the next output of that name removes it.
fn discard(place: &ResolvedName, hidden: Option<OsString>) {
    if let Some(hidden) = hidden {
        let _ = at::remove(&place.folder, &hidden);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn without_unnamed_files_a_hidden_one_takes_their_place() {
        let place = tempfile::tempdir().expect("temporary directory");
        let path = place.path().join("sorted");
        let names = || -> Vec<String> {
            let entries = fs::read_dir(place.path()).expect("list");
            let name = |e: io::Result<fs::DirEntry>| e.expect("entry").file_name();
            let mut names: Vec<_> = entries.map(|e| name(e).into_string().expect("text")).collect();
            names.sort_unstable();
            names
        };
        let begin = || {
            let lacking = |_: &File, _| Err(Errno::OPNOTSUPP.into());
            UnpublishedFile::begin(
                resolve_output(&path).expect("resolved"),
                &path,
                FileOptions::default(),
                lacking,
            )
            .expect("create")
        };
        for content in ["first", "second"] {
            let output = begin();
            output.storage().write_at(0, content.as_bytes()).expect("write");
            assert_eq!(names()[0], ".sorted.merganser-new");
            output.publish().expect("publish");
            assert_eq!(names(), ["sorted"]);
            assert_eq!(fs::read_to_string(&path).expect("read"), content);
        }
        drop(begin());
        assert_eq!(names(), ["sorted"]);
    }
}
