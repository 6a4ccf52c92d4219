//! A folder that is opened once a file in it is needed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::{FileDirectory, FileStorage, Mode, descriptors};
use crate::{Clock, Directory, Hold, RealClock, Storage};

/// The folder at a path, which is not looked at before a file in it is needed: a sort that fits into the memory
/// works without its folder for temporary files, as GNU sort does.
pub struct LazyDirectory {
    path: PathBuf,
    name: String,
    clock: Arc<RealClock>,
    folder: OnceLock<Arc<FileDirectory>>,
}

impl LazyDirectory {
    /// The folder at `path`.
    #[must_use]
    pub fn new(path: impl AsRef<Path>) -> Arc<Self> {
        let path = path.as_ref();
        Arc::new(LazyDirectory {
            path: path.to_owned(),
            name: path.display().to_string(),
            clock: Arc::new(RealClock::new()),
            folder: OnceLock::new(),
        })
    }

    /// Its path, as given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How files in it are reached, if there were any.
    #[must_use]
    pub fn mode(&self) -> Option<Mode> {
        self.folder.get().map(|folder| folder.mode())
    }

    fn opened(&self) -> io::Result<&FileDirectory> {
        if self.folder.get().is_none() {
            // Another thread may have been faster.
            let _ = self.folder.set(FileDirectory::open(&self.path)?);
        }
        Ok(self.folder.get().expect("just set"))
    }
}

impl Directory for LazyDirectory {
    fn name(&self) -> &str {
        &self.name
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as _
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>> {
        self.opened()?.create(name)
    }

    /// Where only few files can be open, the folder isn't kept open.
    fn create_unnamed(&self) -> io::Result<Arc<dyn Storage>> {
        Ok(if descriptors::are_few() {
            FileStorage::create_unnamed_in(&self.path)?
        } else {
            self.opened()?.create_unnamed_file()?
        })
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

    fn hold(&self) -> io::Result<Hold> {
        self.opened()?.hold()
    }
}
