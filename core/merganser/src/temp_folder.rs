//! A folder for temporary files that counts what is written to them.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use merganser_storage::file::{LazyDirectory, Mode};
use merganser_storage::metered::{Meter, Metered, Transfer};
use merganser_storage::{Clock, Directory, Storage};

/// The folder at a path, once that is looked at.
pub(crate) struct TempFolder {
    folder: Arc<LazyDirectory>,
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
        Arc::new(TempFolder { folder: LazyDirectory::new(path), written: Arc::default() })
    }

    /// Its path, as typed.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// How files in it are reached, if there were any.
    pub(crate) fn mode(&self) -> Option<Mode> {
        self.folder.mode()
    }

    /// How much was written to its temporary files, in bytes.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.written.0.load(Ordering::Relaxed)
    }
}

impl Directory for TempFolder {
    fn name(&self) -> &str {
        self.folder.name()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.folder.clock()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>> {
        self.folder.create(name)
    }

    fn create_unnamed(&self) -> io::Result<Arc<dyn Storage>> {
        Ok(Metered::new(self.folder.create_unnamed()?, Arc::clone(&self.written) as _))
    }

    fn open(&self, name: &str, writable: bool) -> io::Result<Arc<dyn Storage>> {
        self.folder.open(name, writable)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn sync(&self) -> io::Result<()> {
        self.folder.sync()
    }

    fn storages_left(&self) -> u64 {
        self.folder.storages_left()
    }
}
