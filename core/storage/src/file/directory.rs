//! A directory of a file system.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::descriptors;
use super::error::FileError;
use super::kind::FileKind;
use super::open_file::DirectRefusal;
use super::own::{self, CAREFUL};
use super::storage::FileStorage;
use super::wall::wall_clock;
use super::{Engines, FileOptions, Mode, at};
use crate::{Clock, Directory, Hold, Storage};

/// A command that has just made or finished a folder keeps its lock for a moment.
const HOLD_PATIENCE: Duration = Duration::from_millis(500);
/// Between two looks at the lock.
const HOLD_PAUSE: Duration = Duration::from_millis(10);

/// An existing directory of a file system. Its members are regular files: a symbolic link, a FIFO or
/// a device that bears a member's name is an error that says so, and never waited for.
pub struct FileDirectory {
    /// As given, for messages.
    name: String,
    /// Absolute, so that a later change of the working directory does not matter.
    path: PathBuf,
    /// Names are looked up here, so that nothing that replaces the folder is mistaken for it.
    handle: Arc<File>,
    engine: Arc<Engines>,
    refusal: Arc<DirectRefusal>,
    /// Files are made for this user alone, and only such files are opened.
    private: bool,
}

impl FileDirectory {
    /// Opens the directory at `path` with default options.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, or the system's own.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Arc<FileDirectory>> {
        Self::open_with(path, FileOptions::default())
    }

    /// [`FileDirectory::open`] with options.
    ///
    /// # Errors
    /// As there.
    pub fn open_with(
        path: impl AsRef<Path>,
        options: FileOptions,
    ) -> io::Result<Arc<FileDirectory>> {
        let path = path.as_ref();
        let mut how = OpenOptions::new();
        let handle = how.read(true).custom_flags(OFlags::DIRECTORY.bits().cast_signed()).open(path);
        Self::assemble(path, handle, options, false)
    }

    /// Opens a helper folder that an earlier run left at `path`, if it is this user's own and no other
    /// user may write it ([`own::check_folder`]). It is [private](FileDirectory::private).
    ///
    /// # Errors
    /// As [`FileDirectory::open`], and an [`own::FileRefusal`].
    pub fn open_own(path: impl AsRef<Path>) -> io::Result<Arc<FileDirectory>> {
        let path = path.as_ref();
        Self::assemble(path, own::open_folder(path), FileOptions::default(), true)
    }

    /// Makes a helper folder at `path` that only this user may use (mode 0700). It is
    /// [private](FileDirectory::private); [`super::publish_folder`] opens it to others. If this
    /// fails nothing is left behind.
    ///
    /// # Errors
    /// `AlreadyExists`, or as [`FileDirectory::open`].
    pub fn create_own(path: impl AsRef<Path>) -> io::Result<Arc<FileDirectory>> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let handle = own::create_folder(path).map_err(|e| FileError::wrap(&name, "create", e))?;
        Self::assemble(path, Ok(handle), FileOptions::default(), true).inspect_err(|_| {
            // The first error is what the caller needs to know.
            let _ = fs::remove_dir(path);
        })
    }

    /// `handle` as a directory that was found at `path`.
    pub(super) fn assemble(
        path: &Path,
        handle: io::Result<File>,
        options: FileOptions,
        private: bool,
    ) -> io::Result<Arc<FileDirectory>> {
        let name = path.display().to_string();
        let parts =
            || Ok((Arc::new(handle?), std::path::absolute(path)?, Engines::shared(options)?));
        let (handle, path, engine) = parts().map_err(|e| FileError::wrap(&name, "open", e))?;
        let refusal = DirectRefusal::for_options(options);
        Ok(Arc::new(FileDirectory { name, path, handle, engine, refusal, private }))
    }

    /// The same folder for helper files: each one is made for this user alone (mode 0600), and only
    /// this user's own files with one name ([`own::check_file`]) are opened. The folder itself may
    /// belong to anybody.
    #[must_use]
    pub fn private(&self) -> Arc<FileDirectory> {
        Arc::new(FileDirectory {
            name: self.name.clone(),
            path: self.path.clone(),
            handle: Arc::clone(&self.handle),
            engine: Arc::clone(&self.engine),
            refusal: Arc::clone(&self.refusal),
            private: true,
        })
    }

    /// How files here are reached. Direct I/O counts as given until a file has been refused it.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.engine.mode(self.refusal.reason().is_none(), self.refusal.reason())
    }

    /// How many more files this process can have open, wherever they are.
    #[must_use]
    pub fn files_left() -> u64 {
        // One descriptor through the page cache and one past it.
        descriptors::left() / 2
    }

    /// The absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open folder itself, to be locked, or to have its permissions set.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.handle
    }

    /// [`Directory::create`] with the type of what is made.
    ///
    /// # Errors
    /// As there.
    pub fn create_file(&self, name: &str) -> io::Result<Arc<FileStorage>> {
        let (name, shown) = self.place(name, "create")?;
        let mode = if self.private { 0o600 } else { 0o666 };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file = at::open(&self.handle, name, flags, mode);
        let file = file.map_err(|e| FileError::wrap(&shown, "create", e))?;
        self.storage(file, shown, true)
    }

    /// [`Directory::create_unnamed`] with the type of what is made. Nobody but the owner may read
    /// it.
    ///
    /// # Errors
    /// As there.
    pub fn create_unnamed_file(&self) -> io::Result<Arc<FileStorage>> {
        let shown = format!("{} (unnamed)", self.name);
        let file = match open_unnamed(&self.handle, 0o600) {
            Err(e) if lacks_unnamed(&e) => create_nameless(&self.handle),
            made => made,
        };
        let file = file.map_err(|e| FileError::wrap(&shown, "create", e))?;
        self.storage(file, shown, true)
    }

    /// [`Directory::open`] with the type of what is opened.
    ///
    /// # Errors
    /// As there; an [`own::FileRefusal`] for anything but a regular file.
    pub fn open_file(&self, name: &str, writable: bool) -> io::Result<Arc<FileStorage>> {
        let (name, shown) = self.place(name, "open")?;
        let open = || {
            let access = if writable { OFlags::RDWR } else { OFlags::RDONLY };
            let look = || at::look(&self.handle, name)?.metadata();
            let opened = at::open(&self.handle, name, access | CAREFUL, 0);
            let file = opened.map_err(|e| own::explain(e, look, FileKind::Regular))?;
            let found = file.metadata()?;
            if self.private {
                own::check_file(&found)?;
            } else {
                own::check_kind(&found, FileKind::Regular)?;
            }
            at::set_blocking(&file)?;
            Ok(file)
        };
        let file = open().map_err(|e| FileError::wrap(&shown, "open", e))?;
        self.storage(file, shown, writable)
    }

    fn storage(&self, file: File, name: String, writable: bool) -> io::Result<Arc<FileStorage>> {
        let (engine, refusal) = (Arc::clone(&self.engine), Arc::clone(&self.refusal));
        FileStorage::assemble(file, name, writable, engine, refusal)
    }

    /// `name` if it is one in this folder, and what to call it in messages.
    fn place<'n>(&self, name: &'n str, operation: &str) -> io::Result<(&'n OsStr, String)> {
        let shown = Path::new(&self.name).join(name).display().to_string();
        let mut components = Path::new(name).components();
        match (components.next(), components.next()) {
            (Some(Component::Normal(only)), None) if only == name => Ok((only, shown)),
            _ => {
                let cause = io::Error::new(io::ErrorKind::InvalidInput, "not a plain file name");
                Err(FileError::wrap(&shown, operation, cause))
            }
        }
    }
}

impl Directory for FileDirectory {
    fn name(&self) -> &str {
        &self.name
    }

    fn clock(&self) -> Arc<dyn Clock> {
        wall_clock()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>> {
        Ok(self.create_file(name)?)
    }

    fn create_unnamed(&self) -> io::Result<Arc<dyn Storage>> {
        Ok(self.create_unnamed_file()?)
    }

    fn open(&self, name: &str, writable: bool) -> io::Result<Arc<dyn Storage>> {
        Ok(self.open_file(name, writable)?)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, shown) = self.place(from, "rename")?;
        let (to, to_shown) = self.place(to, "rename")?;
        at::rename(&self.handle, from, to)
            .map_err(|e| FileError::wrap(&shown, format!("rename to {to_shown}"), e))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let (name, shown) = self.place(name, "remove")?;
        at::remove(&self.handle, name).map_err(|e| FileError::wrap(&shown, "remove", e))
    }

    /// All names of files and directories, sorted. Names that are not UTF-8 aren't ours and are
    /// left out.
    fn list(&self) -> io::Result<Vec<String>> {
        let read = || -> io::Result<Vec<String>> {
            // Through /proc: this folder even when another one bears its name now.
            let held = fs::read_dir(format!("/proc/self/fd/{}", self.handle.as_raw_fd()));
            let mut names = Vec::new();
            for entry in held.or_else(|_| fs::read_dir(&self.path))? {
                names.extend(entry?.file_name().into_string().ok());
            }
            names.sort_unstable();
            Ok(names)
        };
        read().map_err(|e| FileError::wrap(&self.name, "list", e))
    }

    fn sync(&self) -> io::Result<()> {
        self.handle.sync_all().map_err(|e| FileError::wrap(&self.name, "sync", e))
    }

    fn storages_left(&self) -> u64 {
        FileDirectory::files_left()
    }

    /// A shared `flock` on the folder, which needs no permission but to read it. Where folders can't be
    /// locked, it does nothing.
    fn hold(&self) -> io::Result<Hold> {
        let here = OsStr::new(".");
        let opened = at::open(&self.handle, here, OFlags::RDONLY | OFlags::DIRECTORY, 0);
        let folder = opened.map_err(|e| FileError::wrap(&self.name, "open", e))?;
        let until = Instant::now() + HOLD_PATIENCE;
        loop {
            match folder.try_lock_shared() {
                Ok(()) => return Ok(Hold::of_locked(folder)),
                Err(TryLockError::Error(_)) => return Ok(Hold::default()),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(HOLD_PAUSE);
                }
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            }
        }
    }
}

/// A file without a name in `folder`, which may be given one later.
pub(super) fn open_unnamed(folder: &File, mode: u32) -> io::Result<File> {
    at::open(folder, OsStr::new("."), OFlags::TMPFILE | OFlags::RDWR, mode)
}

/// Whether `error` from [`open_unnamed`] says that the file system or kernel has no such files.
pub(super) fn lacks_unnamed(error: &io::Error) -> bool {
    // Where the flag is unknown it looks like an attempt to write a directory.
    matches!(Errno::from_io_error(error), Some(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL))
}

/// A new private file in `folder` that has lost its name. A kill between two system calls leaves an
/// empty `.merganser-PID-N.tmp`.
fn create_nameless(folder: &File) -> io::Result<File> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        // A process of the same id may have left this name behind.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".merganser-{}-{count}.tmp", std::process::id());
        let name = OsStr::new(&name);
        match at::open(folder, name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, 0o600) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
            Ok(file) => {
                at::remove(folder, name)?;
                return Ok(file);
            }
        }
    }
}

impl FileStorage {
    /// Makes a file without a name in the folder at `path`, which only this user can read and which goes with its last
    /// handle. It takes one descriptor less than [`FileDirectory`], which holds the folder.
    ///
    /// # Errors
    /// The system's own.
    pub fn create_unnamed_in(path: impl AsRef<Path>) -> io::Result<Arc<FileStorage>> {
        let path = path.as_ref();
        let mut how = OpenOptions::new();
        how.read(true).write(true).mode(0o600).custom_flags(OFlags::TMPFILE.bits().cast_signed());
        match how.open(path) {
            Err(e) if lacks_unnamed(&e) => FileDirectory::open(path)?.create_unnamed_file(),
            Err(e) => Err(FileError::wrap(&path.display().to_string(), "create", e)),
            Ok(file) => {
                let name = format!("{} (unnamed)", path.display());
                Self::from_file(file, name, true, FileOptions::default())
            }
        }
    }
}
