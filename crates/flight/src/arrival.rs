//! Whether the body of a request has arrived: the gate asks, and each call says so where it begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tonic::Request;

/// Of one request. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrival(Arc<AtomicBool>);

impl Arrival {
    /// Whether it has arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Says that the body of `request` has arrived.
pub(crate) fn arrived<T>(request: &Request<T>) {
    if let Some(Arrival(complete)) = request.extensions().get() {
        complete.store(true, Ordering::Relaxed);
    }
}
