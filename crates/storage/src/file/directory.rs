//! A directory of a file system.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::descriptors;
use super::flight::FileError;
use super::storage::{DirectRefusal, FileStorage, wall_clock};
use super::{Engines, FileOptions, Mode};
use crate::{Clock, Directory, Storage};

/// An existing directory of a file system.
pub struct FileDirectory {
    /// As given, for messages.
    name: String,
    /// Absolute, so that a later change of the working directory does not matter.
    path: PathBuf,
    handle: File,
    engine: Arc<Engines>,
    refusal: Arc<DirectRefusal>,
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
        let name = path.display().to_string();
        let open = || {
            let handle =
                OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(path)?;
            Ok((handle, std::path::absolute(path)?, Engines::shared(options)?))
        };
        let (handle, path, engine) = open().map_err(|e| FileError::wrap(&name, "open", e))?;
        let refusal = DirectRefusal::for_options(options);
        Ok(Arc::new(FileDirectory { name, path, handle, engine, refusal }))
    }

    /// How files here are reached. Direct I/O counts as given until a file has been refused it.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.engine.mode(self.refusal.reason().is_none(), self.refusal.reason())
    }

    /// The absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// [`Directory::create`] with the type of what is made.
    ///
    /// # Errors
    /// As there.
    pub fn create_file(&self, name: &str) -> io::Result<Arc<FileStorage>> {
        let (path, shown) = self.place(name, "create")?;
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
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
        let file = match open_unnamed(&self.path, 0o600) {
            Err(e) if lacks_unnamed(&e) => {
                create_hidden(&self.path, 0o600).and_then(|(file, at)| {
                    fs::remove_file(at)?;
                    Ok(file)
                })
            }
            made => made,
        };
        let file = file.map_err(|e| FileError::wrap(&shown, "create", e))?;
        self.storage(file, shown, true)
    }

    /// [`Directory::open`] with the type of what is opened.
    ///
    /// # Errors
    /// As there.
    pub fn open_file(&self, name: &str, writable: bool) -> io::Result<Arc<FileStorage>> {
        let (path, shown) = self.place(name, "open")?;
        let file = OpenOptions::new().read(true).write(writable).open(path);
        let file = file.map_err(|e| FileError::wrap(&shown, "open", e))?;
        self.storage(file, shown, writable)
    }

    fn storage(&self, file: File, name: String, writable: bool) -> io::Result<Arc<FileStorage>> {
        let (engine, refusal) = (Arc::clone(&self.engine), Arc::clone(&self.refusal));
        FileStorage::assemble(file, name, writable, engine, refusal)
    }

    /// Where `name` lies, and what to call it in messages.
    fn place(&self, name: &str, operation: &str) -> io::Result<(PathBuf, String)> {
        let shown = Path::new(&self.name).join(name).display().to_string();
        let mut components = Path::new(name).components();
        match (components.next(), components.next()) {
            (Some(Component::Normal(only)), None) if only == name => {
                Ok((self.path.join(name), shown))
            }
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
        fs::rename(from, to)
            .map_err(|e| FileError::wrap(&shown, format!("rename to {to_shown}"), e))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let (path, shown) = self.place(name, "remove")?;
        fs::remove_file(path).map_err(|e| FileError::wrap(&shown, "remove", e))
    }

    /// All names of files and directories, sorted; those that are no UTF-8 are none of ours and
    /// left out.
    fn list(&self) -> io::Result<Vec<String>> {
        let read = || -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in fs::read_dir(&self.path)? {
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
        // One descriptor through the page cache and one past it.
        descriptors::left() / 2
    }
}

/// A file without a name in `directory`, which may be given one later.
pub(super) fn open_unnamed(directory: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .mode(mode)
        .custom_flags(libc::O_TMPFILE)
        .open(directory)
}

/// Whether `error` from [`open_unnamed`] says that the file system or kernel has no such files.
pub(super) fn lacks_unnamed(error: &io::Error) -> bool {
    // Where the flag is unknown it looks like an attempt to write a directory.
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL))
}

/// A new file in `directory` under a hidden name that nobody else has.
pub(super) fn create_hidden(directory: &Path, mode: u32) -> io::Result<(File, PathBuf)> {
    loop {
        let path = hidden_path(directory);
        let mut how = OpenOptions::new();
        match how.read(true).write(true).mode(mode).create_new(true).open(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
            Ok(file) => return Ok((file, path)),
        }
    }
}

/// A name that this process has not used before; a process of the same id may have left it behind.
pub(super) fn hidden_path(directory: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    directory.join(format!(".merganser-{}-{count}.tmp", std::process::id()))
}
