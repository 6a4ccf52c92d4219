//! A file that appears under its name when it is finished, or not at all.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::FileOptions;
use super::directory::{create_hidden, hidden_path, lacks_unnamed, open_unnamed};
use super::flight::FileError;
use super::storage::FileStorage;
use crate::StorageExt;

/// A file being made. It has no name before [`Output::publish`]: whatever ends the process, nothing
/// is left behind and what bore the name before is untouched.
///
/// Where the file system has no unnamed files it has a hidden name (`.merganser-PID-N.tmp`) until
/// then, which goes when the `Output` drops but stays when the process is killed.
pub struct Output {
    storage: Arc<FileStorage>,
    /// As given, for messages.
    name: String,
    /// Absolute, symbolic links followed.
    target: PathBuf,
    hidden: Option<PathBuf>,
}

impl Output {
    /// Starts a file that is to replace or become `path`, through symbolic links.
    ///
    /// # Errors
    /// `InvalidInput` when something other than a regular file bears the name; the system's own.
    pub fn create(path: impl AsRef<Path>, options: FileOptions) -> io::Result<Output> {
        Self::begin(path.as_ref(), options, open_unnamed)
    }

    /// [`Output::create`] with a way to get an unnamed file with a mode in a directory.
    fn begin(
        path: &Path,
        options: FileOptions,
        unnamed: impl Fn(&Path, u32) -> io::Result<File>,
    ) -> io::Result<Output> {
        let name = path.display().to_string();
        let wrap = |e| FileError::wrap(&name, "create", e);
        let target = resolve(path).map_err(wrap)?;
        let directory = parent(&target);
        // Readable as the umask says: it is to be an ordinary file.
        let made = if Path::new("/proc/self/fd").exists() {
            unnamed(directory, 0o666)
        } else {
            // There would be no way to give it a name.
            Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
        };
        let (file, hidden) = match made {
            Ok(file) => (file, None),
            Err(e) if lacks_unnamed(&e) => {
                let (file, at) = create_hidden(directory, 0o666).map_err(wrap)?;
                (file, Some(at))
            }
            Err(e) => return Err(wrap(e)),
        };
        let storage = match FileStorage::from_file(file, name.clone(), true, options) {
            Ok(storage) => storage,
            Err(e) => {
                discard(hidden.as_deref());
                return Err(e);
            }
        };
        Ok(Output { storage, name, target, hidden })
    }

    /// The file, to write to. Handles may outlive the `Output`.
    #[must_use]
    pub fn storage(&self) -> Arc<FileStorage> {
        Arc::clone(&self.storage)
    }

    /// Syncs the file and gives it its name, in one step for whoever looks: the old content or the
    /// new one, never less. The mode of a replaced file stays, and its owner where we may set it.
    ///
    /// On return the file survives a power cut. A kill in the moment between two system calls here
    /// may leave a hidden second name (`.merganser-PID-N.tmp`) where a file is replaced.
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
        match fs::metadata(&self.target) {
            Ok(old) => {
                let file = self.storage.file();
                // An ordinary user may not give files away; it is their file then.
                let _ = fchown(file, Some(old.uid()), Some(old.gid()));
                file.set_permissions(old.permissions())?;
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        if self.hidden.is_none() {
            match link(self.storage.file(), &self.target) {
                Ok(()) => return sync_directory(parent(&self.target)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
            self.hidden = Some(link_hidden(self.storage.file(), parent(&self.target))?);
        }
        let hidden = self.hidden.as_ref().expect("just linked, or created so");
        fs::rename(hidden, &self.target)?;
        self.hidden = None;
        sync_directory(parent(&self.target))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        discard(self.hidden.as_deref());
    }
}

/// Removes an unfinished file. If that fails it stays: there is nobody to tell and nothing to do.
fn discard(hidden: Option<&Path>) {
    if let Some(path) = hidden {
        let _ = fs::remove_file(path);
    }
}

/// The absolute path that `path` means, whether it exists or not.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Ok(target) if fs::metadata(&target)?.is_file() => Ok(target),
        Ok(_) => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "exists and is not a regular file"))
        }
        // A dangling link stays and its target is made, as opening it for writing would.
        Err(e) if e.kind() == io::ErrorKind::NotFound => match fs::read_link(path) {
            Ok(next) => resolve(&parent(&std::path::absolute(path)?).join(next)),
            Err(_) => std::path::absolute(path),
        },
        Err(e) => Err(e),
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Gives the unnamed `file` the name `target`, which nobody may have.
fn link(file: &File, target: &Path) -> io::Result<()> {
    let c_string = |bytes: &[u8]| std::ffi::CString::new(bytes).map_err(io::Error::from);
    // Linking the descriptor itself (AT_EMPTY_PATH) would ask for a privilege.
    let from = c_string(format!("/proc/self/fd/{}", file.as_raw_fd()).as_bytes())?;
    let to = c_string(target.as_os_str().as_bytes())?;
    let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: both are NUL-terminated strings that outlive the call.
    let result = unsafe { libc::linkat(here, from.as_ptr(), here, to.as_ptr(), follow) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// [`link`] under a hidden name.
fn link_hidden(file: &File, directory: &Path) -> io::Result<PathBuf> {
    loop {
        let path = hidden_path(directory);
        match link(file, &path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
            Ok(()) => return Ok(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_unnamed_files_a_hidden_one_takes_their_place() {
        let place = tempfile::tempdir().expect("temporary directory");
        let path = place.path().join("sorted");
        let names = || -> Vec<String> {
            let entries = fs::read_dir(place.path()).expect("list");
            let name = |e: io::Result<fs::DirEntry>| e.expect("entry").file_name();
            entries.map(|e| name(e).into_string().expect("text")).collect()
        };
        let begin = || {
            let lacking = |_: &Path, _| Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
            Output::begin(&path, FileOptions::default(), lacking).expect("create")
        };
        for content in ["first", "second"] {
            let output = begin();
            output.storage().write_at(0, content.as_bytes()).expect("write");
            assert!(names().iter().any(|name| name.starts_with(".merganser-")));
            output.publish().expect("publish");
            assert_eq!(names(), ["sorted"]);
            assert_eq!(fs::read_to_string(&path).expect("read"), content);
        }
        drop(begin());
        assert_eq!(names(), ["sorted"]);
    }
}
