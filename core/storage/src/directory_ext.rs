//! Two steps that callers with named files in a [`Directory`] share: they publish a whole file, and they
//! remove a file that may be gone already.

use std::io;
use std::sync::Arc;

use crate::{Directory, Storage, StorageExt};

/// Helpers on top of [`Directory`].
pub trait DirectoryExt: Directory {
    /// Makes `bytes` the content of `name`, durably and in one step: after a crash the name holds
    /// the old content or the new one. Until the rename they are in `NAME.new`, which a later call
    /// replaces.
    ///
    /// # Errors
    /// The device's own. `name` then holds its old content, or the new one when only the last sync
    /// failed.
    fn publish(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let unpublished = format!("{name}.new");
        self.remove_if_exists(&unpublished)?;
        let file = self.create(&unpublished)?;
        file.write_at(0, bytes)?;
        file.sync()?;
        self.rename(&unpublished, name)?;
        self.sync()
    }

    /// Removes `name`; says whether it was there.
    ///
    /// # Errors
    /// The device's own, but not `NotFound`.
    fn remove_if_exists(&self, name: &str) -> io::Result<bool> {
        match self.remove(name) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Opens `name` for reading; `None` where there is no such storage.
    ///
    /// # Errors
    /// The device's own, but not `NotFound`.
    fn open_if_exists(&self, name: &str) -> io::Result<Option<Arc<dyn Storage>>> {
        match self.open(name, false) {
            Ok(storage) => Ok(Some(storage)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl<D: Directory + ?Sized> DirectoryExt for D {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryDirectory;

    #[test]
    fn a_published_name_holds_the_last_content_and_nothing_else_is_left() {
        let directory = MemoryDirectory::new();
        for content in ["a longer first one", "second"] {
            directory.publish("state", content.as_bytes()).expect("publishes");
            let file = directory.open("state", false).expect("is there");
            assert_eq!(file.size(), content.len() as u64);
            assert_eq!(directory.list().expect("lists"), ["state"]);
        }
    }

    #[test]
    fn a_missing_name_is_no_error() {
        let directory = MemoryDirectory::new();
        assert!(directory.open_if_exists("state").expect("looks").is_none());
        assert!(!directory.remove_if_exists("state").expect("looks"));
        directory.publish("state", b"x").expect("publishes");
        assert!(directory.open_if_exists("state").expect("looks").is_some());
        assert!(directory.remove_if_exists("state").expect("removes"));
        assert!(directory.list().expect("lists").is_empty());
    }
}
