//! Whether the body of a request has arrived. Each call sets this when it begins, and the gate reads it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tonic::Request;

/// Whether the body of one request has arrived. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodyArrival(Arc<AtomicBool>);

impl BodyArrival {
    /// Whether it has arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Says that the body of `request` has arrived.
pub(crate) fn arrived<T>(request: &Request<T>) {
    if let Some(BodyArrival(complete)) = request.extensions().get() {
        complete.store(true, Ordering::Relaxed);
    }
}
