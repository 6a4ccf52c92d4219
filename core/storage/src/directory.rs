//! Where named storages live.

use std::fs::File;
use std::io;
use std::sync::Arc;

use crate::{Clock, Storage};

/// Keeps a directory as it is; see [`Directory::hold`].
#[derive(Debug, Default)]
pub struct Hold {
    /// Locked as long as it is open.
    _file: Option<File>,
}

impl Hold {
    /// A hold that lasts as long as `locked` is open.
    #[must_use]
    pub fn of_locked(locked: File) -> Self {
        Hold { _file: Some(locked) }
    }
}

/// A flat set of named storages with a durable name table: a directory of a file system, or of a
/// memory or modelled volume. A name has no separators.
pub trait Directory: Send + Sync {
    /// Its name in error messages: a path where there is one.
    fn name(&self) -> &str;

    /// The clock of the storages in it.
    fn clock(&self) -> Arc<dyn Clock>;

    /// Makes a new, empty storage.
    ///
    /// # Errors
    /// `AlreadyExists`, or the device's own.
    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>>;

    /// Makes a storage that has no name and is gone, space and all, when its last handle drops or
    /// the process dies: for runs that are not needed later.
    ///
    /// # Errors
    /// The device's own.
    fn create_unnamed(&self) -> io::Result<Arc<dyn Storage>>;

    /// Opens an existing storage, for reading only unless `writable`.
    ///
    /// # Errors
    /// `NotFound`, or the device's own.
    fn open(&self, name: &str, writable: bool) -> io::Result<Arc<dyn Storage>>;

    /// Renames, replacing what bore the name before. Durable after [`Directory::sync`].
    ///
    /// # Errors
    /// `NotFound`, or the device's own.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a storage.
    ///
    /// # Errors
    /// `NotFound`, or the device's own.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// All names, sorted.
    ///
    /// # Errors
    /// The device's own.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes every create, rename and remove before it survive a power cut.
    ///
    /// # Errors
    /// The device's own.
    fn sync(&self) -> io::Result<()>;

    /// How many more storages can be open at once, as far as is known now: a process may have only
    /// some files open.
    fn storages_left(&self) -> u64 {
        u64::MAX
    }

    /// Keeps other processes from taking the directory apart while the [`Hold`] lives, as far as they
    /// ask for that. Any number of readers can hold it at once, also where nothing may be written.
    /// Directories that no other process can reach need no hold.
    ///
    /// # Errors
    /// `WouldBlock` while a process takes it apart.
    fn hold(&self) -> io::Result<Hold> {
        Ok(Hold::default())
    }
}
