//! The state of a connection, for all that serve it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Context;

use futures::task::AtomicWaker;

/// What requests know of their connection.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionPresence(Arc<ConnectionFlags>);

#[derive(Debug, Default)]
struct ConnectionFlags {
    /// The token was shown.
    known: AtomicBool,
    /// The client has sent something.
    spoke: AtomicBool,
    closed: AtomicBool,
    waker: AtomicWaker,
}

impl ConnectionPresence {
    /// Of a client that has said nothing yet.
    pub(crate) fn new() -> Self {
        ConnectionPresence(Arc::default())
    }

    /// The client has shown the token.
    pub(crate) fn known(&self) {
        self.0.known.store(true, Ordering::Relaxed);
    }

    /// Whether it has.
    pub(crate) fn is_known(&self) -> bool {
        self.0.known.load(Ordering::Relaxed)
    }

    /// The client has sent something.
    pub(crate) fn spoke(&self) {
        self.0.spoke.store(true, Ordering::Relaxed);
    }

    /// Whether it has sent anything.
    pub(crate) fn has_spoken(&self) -> bool {
        self.0.spoke.load(Ordering::Relaxed)
    }

    /// Whether the server has closed the connection, or is about to.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    /// Closes the connection, and frees what waits in it for the client.
    pub(crate) fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
        self.0.waker.wake();
    }

    /// Wakes the task of `context` when the connection is closed.
    pub(crate) fn wake_when_closed(&self, context: &Context<'_>) {
        self.0.waker.register(context.waker());
    }
}
