//! A directory around another: it passes every call on, and wraps the storages that come back.
//!
//! ```text
//!   create, open ──► Wrapped ──► the directory ──► storage ──► Wrapper::wrap ──► caller
//! ```

use std::io;
use std::sync::Arc;

use crate::{Clock, Directory, Hold, Storage};

/// The change that a [`Wrapped`] directory makes to the storages of the directory in it.
pub trait Wrapper: Send + Sync {
    /// Wraps `storage`, which came from `inner` as `origin` says.
    fn wrap(
        &self,
        storage: Arc<dyn Storage>,
        origin: StorageOrigin<'_>,
        inner: &Arc<dyn Directory>,
    ) -> Arc<dyn Storage>;

    /// A storage has another name now.
    fn renamed(&self, _from: &str, _to: &str) {}

    /// A storage was removed.
    fn removed(&self, _name: &str) {}
}

/// Where a storage came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageOrigin<'a> {
    /// It was made under this name.
    Created(&'a str),
    /// It was made without a name.
    Unnamed,
    /// It was there under this name.
    Opened {
        /// The name.
        name: &'a str,
        /// Whether it may be written to.
        writable: bool,
    },
}

/// A directory whose storages are wrapped by `W`.
pub struct Wrapped<W> {
    inner: Arc<dyn Directory>,
    wrapper: W,
}

impl<W: Wrapper> Wrapped<W> {
    /// `inner`, with its storages wrapped by `wrapper`.
    #[must_use]
    pub fn new(inner: Arc<dyn Directory>, wrapper: W) -> Arc<Self> {
        Arc::new(Wrapped { inner, wrapper })
    }

    fn wrap(
        &self,
        storage: io::Result<Arc<dyn Storage>>,
        origin: StorageOrigin<'_>,
    ) -> io::Result<Arc<dyn Storage>> {
        storage.map(|storage| self.wrapper.wrap(storage, origin, &self.inner))
    }
}

impl<W: Wrapper> Directory for Wrapped<W> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.inner.clock()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>> {
        self.wrap(self.inner.create(name), StorageOrigin::Created(name))
    }

    fn create_unnamed(&self) -> io::Result<Arc<dyn Storage>> {
        self.wrap(self.inner.create_unnamed(), StorageOrigin::Unnamed)
    }

    fn open(&self, name: &str, writable: bool) -> io::Result<Arc<dyn Storage>> {
        self.wrap(self.inner.open(name, writable), StorageOrigin::Opened { name, writable })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)?;
        self.wrapper.renamed(from, to);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)?;
        self.wrapper.removed(name);
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }

    fn storages_left(&self) -> u64 {
        self.inner.storages_left()
    }

    fn hold(&self) -> io::Result<Hold> {
        self.inner.hold()
    }
}
