//! The files and views that clients may read: those below one folder.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_sort::error::InputError;
use merganser_sort::view::MANIFEST_NAME;
use merganser_storage::Storage;
use merganser_storage::closable::{Closable, OpenSet};
use merganser_storage::file::{Direct, FileDirectory, FileOptions, FileStorage};

use super::request::check_path;
use super::{SessionError, SessionResult};
use merganser_server::beneath;

/// The most views that are listed.
const LISTED_MAX: usize = 10_000;
/// The most folders that are looked into for a list.
const FOLDERS_MAX: usize = 10_000;
/// How deep a list goes.
const DEPTH_MAX: usize = 16;

/// The folder of the data. Only regular files and views below it are opened, for reading, and no link
/// below it is followed.
#[derive(Debug, Clone)]
pub struct DataFolder {
    dir: PathBuf,
}

impl DataFolder {
    /// The folder at `dir`. It is looked up at each request, so that it may be mounted again.
    #[must_use]
    pub fn new(dir: PathBuf) -> Self {
        DataFolder { dir }
    }

    /// Opens the file at `path`, to be read through the page cache: chunks of lines begin anywhere, so their reads
    /// are never aligned, and a file is often read several times.
    ///
    /// # Errors
    /// [`SessionError::Refused`], [`SessionError::Missing`], or what the system says.
    pub fn file(&self, path: &str) -> SessionResult<Arc<FileStorage>> {
        check_path(path)?;
        self.open(path).map_err(|error| SessionError::on(path, &error))
    }

    fn open(&self, path: &str) -> io::Result<Arc<FileStorage>> {
        let file = beneath::open_file(&self.dir, Path::new(path))?;
        // As long as it is open, no `--consume` begins to give its bytes back.
        let _ = file.try_lock_shared();
        let options = FileOptions { direct: Direct::Never, ..FileOptions::default() };
        FileStorage::from_file(file, path.to_owned(), false, options)
    }

    /// The file at `path` for one run: it is closed while others of `set` are read, and opened again if it is still
    /// the same. Its size stays what it is now.
    ///
    /// # Errors
    /// As [`DataFolder::file`].
    pub(super) fn closable(&self, path: &str, set: &Arc<OpenSet>) -> SessionResult<Closable> {
        let file = self.file(path)?;
        let known = identity(&file).map_err(|error| SessionError::on(path, &error))?;
        let (folder, name) = (self.clone(), path.to_owned());
        let again = move || -> io::Result<Arc<dyn Storage>> {
            let failed = |cause: io::Error| {
                io::Error::new(cause.kind(), InputError { name: name.clone(), cause })
            };
            let file = folder.open(&name).map_err(failed)?;
            if identity(&file).map_err(failed)? != known {
                let why = "another file has taken its name since the run began; begin a new run";
                return Err(failed(io::Error::other(why)));
            }
            Ok(file)
        };
        Ok(Closable::new(file, set, again).of_this_size())
    }

    /// Opens the folder at `path`, to read a view in it.
    ///
    /// # Errors
    /// As [`DataFolder::file`].
    pub fn folder(&self, path: &str) -> SessionResult<Arc<FileDirectory>> {
        check_path(path)?;
        let open = || {
            let folder = beneath::open_folder(&self.dir, Path::new(path))?;
            // The open folder itself, whatever has taken its name meanwhile.
            FileDirectory::open(format!("/proc/self/fd/{}", folder.as_raw_fd()))
        };
        open().map_err(|error| SessionError::on(path, &error))
    }

    /// The paths of the views, in byte order; at most 10,000, found in as many folders.
    ///
    /// # Errors
    /// When the data folder itself can't be read.
    pub fn views(&self) -> SessionResult<Vec<String>> {
        let mut found = Vec::new();
        let mut left = FOLDERS_MAX;
        let top =
            std::fs::read_dir(&self.dir).map_err(|e| SessionError::on("the data folder", &e))?;
        self.look(top, "", 0, &mut left, &mut found);
        found.sort_unstable();
        Ok(found)
    }

    fn look(
        &self,
        entries: std::fs::ReadDir,
        above: &str,
        depth: usize,
        left: &mut usize,
        found: &mut Vec<String>,
    ) {
        for entry in entries.filter_map(io::Result::ok) {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            if !is_folder || found.len() >= LISTED_MAX || *left == 0 {
                continue;
            }
            *left -= 1;
            let path = if above.is_empty() { name } else { format!("{above}/{name}") };
            let manifest = format!("{path}/{MANIFEST_NAME}");
            if beneath::open_file(&self.dir, Path::new(&manifest)).is_ok() {
                found.push(path);
            } else if depth + 1 < DEPTH_MAX
                && let Ok(folder) = beneath::open_folder(&self.dir, Path::new(&path))
                && let Ok(entries) =
                    std::fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))
            {
                self.look(entries, &path, depth + 1, left, found);
            }
        }
    }
}

/// The device and the number of a file, which it keeps when its name changes.
fn identity(file: &FileStorage) -> io::Result<(u64, u64)> {
    file.file().metadata().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A `sort --consume` asks for it alone.
    #[test]
    fn a_file_that_is_read_is_locked_for_readers() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("a"), "a\n").expect("written");
        let other = || fs::File::open(dir.path().join("a")).expect("open");
        let data = DataFolder::new(dir.path().to_owned());
        let read = data.file("a").expect("open");
        assert!(other().try_lock().is_err() && other().try_lock_shared().is_ok());
        drop(read);
        // A child that another test starts shares the lock until it runs its program.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while other().try_lock().is_err() {
            assert!(std::time::Instant::now() < until, "it stays locked");
            std::thread::yield_now();
        }
    }

    #[test]
    fn files_and_views_below_the_folder_are_found_and_no_others() {
        let root = tempfile::tempdir().expect("a folder");
        let dir = root.path().join("data");
        fs::create_dir_all(dir.join("a/b.view")).expect("made");
        fs::create_dir_all(root.path().join("other.view")).expect("made");
        fs::write(root.path().join("other.view").join(MANIFEST_NAME), "").expect("written");
        fs::write(dir.join("a/b.view").join(MANIFEST_NAME), "").expect("written");
        fs::write(dir.join("a/text"), "12345").expect("written");
        symlink("../other.view", dir.join("link.view")).expect("made");
        symlink("a/text", dir.join("alias")).expect("made");
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.join("pipe"), rustix::fs::Mode::from(0o600))
            .expect("made");

        let data = DataFolder::new(dir.clone());
        let text = data.file("a/text").expect("a file");
        let mut bytes = [0; 3];
        let read = text.read_now(2, &mut bytes).expect("in this thread").expect("reads");
        assert_eq!((text.size(), &bytes[..read]), (5, &b"345"[..]));
        data.folder("a/b.view").expect("a folder");
        assert_eq!(data.views().expect("readable"), ["a/b.view"]);
        for path in
            ["alias", "pipe", "a", "../other.view/manifest", "link.view/manifest", "/etc/passwd"]
        {
            assert!(matches!(data.file(path), Err(SessionError::Refused { .. })), "{path}");
        }
        assert!(matches!(data.file("a/none"), Err(SessionError::Missing(_))));
        assert!(matches!(data.folder("link.view"), Err(SessionError::Refused { .. })));
    }
}
