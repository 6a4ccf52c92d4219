//! The place of a request among those that are answered at once.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

/// The place of a request. It is free again with the answer, or before.
#[derive(Debug, Clone)]
pub(crate) struct RequestSlot(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl RequestSlot {
    pub(crate) fn new(permit: OwnedSemaphorePermit) -> Self {
        RequestSlot(Arc::new(Mutex::new(Some(permit))))
    }

    /// For a request whose body was read, and that may wait for long: others get its place.
    pub(crate) fn give_back(&self) {
        self.0.lock().take();
    }
}
