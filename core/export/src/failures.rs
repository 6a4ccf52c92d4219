//! Requests that failed: each is reported at once, and the first is kept for the end.

use std::io;

use parking_lot::Mutex;

use crate::Error;

/// Called for every failed request.
pub type OnError = Box<dyn Fn(&Error) + Send + Sync>;

/// Whether a change failed for want of space, which clients get by a number of its own.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The failures of one mount or server.
#[derive(Default)]
pub(crate) struct Failures {
    on_error: Option<OnError>,
    first: Mutex<Option<Error>>,
}

impl Failures {
    /// No failures yet; `on_error` gets each.
    pub(crate) fn new(on_error: Option<OnError>) -> Self {
        Failures { on_error, first: Mutex::default() }
    }

    /// Tells of a failure, and keeps it if it is the first.
    pub(crate) fn tell(&self, error: Error) {
        if let Some(on_error) = &self.on_error {
            on_error(&error);
        }
        self.first.lock().get_or_insert(error);
    }

    /// The first failure, if any; the next call gives none.
    pub(crate) fn take_first(&self) -> Option<Error> {
        self.first.lock().take()
    }
}
