//! Storages whose reads and writes are counted as they begin and as they end.
//!
//! ```text
//!   submit ──► Metered: began ──► the storage
//!     ▲                              │
//!     └── ended ◄── completion ◄─────┘
//! ```
//!
//! Between the two a request is in flight, so whoever counts knows the queue depth, of real and of
//! modelled devices alike.

use std::sync::Arc;

use crate::wrapped::{StorageOrigin, Wrapped, Wrapper};
use crate::{Clock, Completions, Directory, Geometry, Operation, Storage};

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// From the storage to memory.
    Read,
    /// From memory to the storage.
    Write,
}

/// Gets to know every read and write. Any thread may call it, and some of them must not be held up.
pub trait Meter: Send + Sync {
    /// A transfer was submitted.
    fn began(&self, transfer: Transfer);

    /// A transfer completed and moved `bytes`; 0 when it failed.
    fn ended(&self, transfer: Transfer, bytes: u64);
}

/// A storage under a [`Meter`].
pub struct Metered {
    inner: Arc<dyn Storage>,
    meter: Arc<dyn Meter>,
}

impl Metered {
    /// `inner`, with `meter` told of its transfers.
    #[must_use]
    pub fn new(inner: Arc<dyn Storage>, meter: Arc<dyn Meter>) -> Arc<Self> {
        Arc::new(Metered { inner, meter })
    }
}

impl Storage for Metered {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.inner.clock()
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        let transfer = match &operation {
            Operation::Read { .. } => Transfer::Read,
            Operation::Write { .. } => Transfer::Write,
            _ => return self.inner.submit(token, operation, completions),
        };
        self.meter.began(transfer);
        let watched = completions.watched(Arc::clone(&self.meter), transfer);
        self.inner.submit(token, operation, &watched);
    }

    fn read_ahead(&self, offset: u64, len: u64) {
        self.inner.read_ahead(offset, len);
    }
}

/// A directory whose storages are [`Metered`].
pub type MeteredDirectory = Wrapped<Arc<dyn Meter>>;

impl Wrapper for Arc<dyn Meter> {
    fn wrap(
        &self,
        storage: Arc<dyn Storage>,
        _: StorageOrigin<'_>,
        _: &Arc<dyn Directory>,
    ) -> Arc<dyn Storage> {
        Metered::new(storage, Arc::clone(self))
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;
    use crate::StorageExt;
    use crate::memory::MemoryDirectory;

    #[derive(Default)]
    struct Log(Mutex<Vec<(Transfer, Option<u64>)>>);

    impl Meter for Log {
        fn began(&self, transfer: Transfer) {
            self.0.lock().push((transfer, None));
        }

        fn ended(&self, transfer: Transfer, bytes: u64) {
            self.0.lock().push((transfer, Some(bytes)));
        }
    }

    #[test]
    fn transfers_are_told_once_to_every_meter_and_nothing_else_is() {
        let (outer, inner) = (Arc::new(Log::default()), Arc::new(Log::default()));
        let folder = MeteredDirectory::new(MemoryDirectory::new(), Arc::clone(&inner) as _);
        let storage = Metered::new(folder.create("file").expect("new"), Arc::clone(&outer) as _);
        storage.write_at(0, b"four").expect("written");
        assert_eq!(storage.read_vec(2, 2).expect("read"), b"ur");
        storage.sync().expect("synced");
        storage.run(Operation::Discard { offset: 0, len: 4 }).expect("discarded");
        let reader = folder.open("file", false).expect("there");
        reader.write_at(0, b"refused").expect_err("for reading only");
        let expected = [
            (Transfer::Write, None),
            (Transfer::Write, Some(4)),
            (Transfer::Read, None),
            (Transfer::Read, Some(2)),
        ];
        assert_eq!(*outer.0.lock(), expected);
        let failed = [(Transfer::Write, None), (Transfer::Write, Some(0))];
        assert_eq!(*inner.0.lock(), [&expected[..], &failed].concat());
    }
}
