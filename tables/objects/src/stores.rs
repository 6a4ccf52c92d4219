//! The door: objects are found, read and written by their addresses.

use std::path::Path;
use std::sync::Arc;

use merganser_tables::TableInput;
use object_store::ObjectStore;
use parking_lot::Mutex;

use crate::ObjectsError;
use crate::address::ObjectAddress;
use crate::connect::reading;
use crate::find::Finder;
use crate::requests::Requests;

/// A store and the address that it was made for.
type KnownStore = (ObjectAddress, Arc<dyn ObjectStore>);

/// The stores that a process reads and writes. Connections are made when they are first used.
pub struct ObjectStores {
    pub(crate) requests: Arc<Requests>,
    /// The stores that are read from.
    known: Mutex<Vec<KnownStore>>,
}

impl ObjectStores {
    /// Starts the threads of requests; waits for answers end when `is_cancelled`.
    ///
    /// # Errors
    /// The system's own.
    pub fn new(
        is_cancelled: impl Fn() -> bool + Send + Sync + 'static,
    ) -> std::io::Result<ObjectStores> {
        // Another crate of the process may have chosen the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let requests = Requests::new(Box::new(is_cancelled))?;
        Ok(ObjectStores { requests, known: Mutex::new(Vec::new()) })
    }

    /// The objects that `typed` names, in order: an object is itself, a folder all tables in it and in its folders, and a
    /// pattern (`s3://bucket/in/*.parquet`) the objects that match it. Those of a folder or a pattern are in the order of their
    /// names, as with files. A web address is one file.
    ///
    /// # Errors
    /// A text that isn't an address; settings that are missing; an object that is not there; a folder or pattern without tables; those of
    /// the store.
    pub fn find(&self, typed: &Path) -> Result<Vec<TableInput>, ObjectsError> {
        let text = typed.to_str().ok_or_else(|| ObjectsError::Address {
            shown: typed.display().to_string(),
            why: "is no text",
        })?;
        let address = ObjectAddress::parse(text)?;
        let store = self.reading(&address)?;
        let found = Finder { requests: &self.requests, store: &store, address: &address }.find()?;
        Ok(found.into_iter().map(|object| TableInput::Object(Arc::new(object))).collect())
    }

    /// The store that an address is read from.
    pub(crate) fn reading(
        &self,
        address: &ObjectAddress,
    ) -> Result<Arc<dyn ObjectStore>, ObjectsError> {
        let is_its = |known: &ObjectAddress| {
            (known.kind, &known.bucket, &known.query)
                == (address.kind, &address.bucket, &address.query)
        };
        let mut known = self.known.lock();
        if let Some((_, store)) = known.iter().find(|(known, _)| is_its(known)) {
            return Ok(Arc::clone(store));
        }
        let store = reading(address)?;
        known.push((address.clone(), Arc::clone(&store)));
        Ok(store)
    }
}
