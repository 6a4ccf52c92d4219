//! A folder for temporary files that is opened once one is needed: a sort that fits into the memory works
//! without the folder, as GNU sort does.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use merganser_storage::file::{FileDirectory, FileStorage, Mode, descriptors};
use merganser_storage::metered::{Meter, Metered, Transfer};
use merganser_storage::{Clock, Directory, RealClock, Storage};

/// The folder at a path, once that is looked at.
pub(crate) struct TempFolder {
    path: PathBuf,
    name: String,
    clock: Arc<RealClock>,
    folder: OnceLock<Arc<FileDirectory>>,
    written: Arc<TempBytesWritten>,
}

/// Counts the bytes that were written to temporary files.
#[derive(Default)]
struct TempBytesWritten(AtomicU64);

impl Meter for TempBytesWritten {
    fn began(&self, _: Transfer) {}

    fn ended(&self, transfer: Transfer, bytes: u64) {
        if transfer == Transfer::Write {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

impl TempFolder {
    /// The folder at `path`.
    pub(crate) fn new(path: &Path) -> Arc<Self> {
        Arc::new(TempFolder {
            path: path.to_owned(),
            name: path.display().to_string(),
            clock: Arc::new(RealClock::new()),
            folder: OnceLock::new(),
            written: Arc::default(),
        })
    }

    /// Its path, as typed.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How files in it are reached, if there were any.
    pub(crate) fn mode(&self) -> Option<Mode> {
        self.folder.get().map(|folder| folder.mode())
    }

    /// How much was written to its temporary files, in bytes.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.written.0.load(Ordering::Relaxed)
    }

    fn opened(&self) -> io::Result<&FileDirectory> {
        if self.folder.get().is_none() {
            // Another thread may have been faster.
            let _ = self.folder.set(FileDirectory::open(&self.path)?);
        }
        Ok(self.folder.get().expect("just set"))
    }
}

impl Directory for TempFolder {
    fn name(&self) -> &str {
        &self.name
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as _
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>> {
        self.opened()?.create(name)
    }

    fn create_unnamed(&self) -> io::Result<Arc<dyn Storage>> {
        let file = if descriptors::are_few() {
            FileStorage::create_unnamed_in(&self.path)?
        } else {
            self.opened()?.create_unnamed_file()?
        };
        Ok(Metered::new(file, Arc::clone(&self.written) as _))
    }

    fn open(&self, name: &str, writable: bool) -> io::Result<Arc<dyn Storage>> {
        self.opened()?.open(name, writable)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.opened()?.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.opened()?.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.opened()?.list()
    }

    fn sync(&self) -> io::Result<()> {
        self.opened()?.sync()
    }

    fn storages_left(&self) -> u64 {
        FileDirectory::files_left()
    }
}
