//! The replies to one client: each needs a place in its outbox, and has the form that it agreed to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::outbox::{Outbox, ReplyTicket};
use super::wire;

/// What a client hears of a write that finds no memory.
pub(super) const NO_MEMORY: &str = "the server has no memory for the write";

/// How the requests of a client ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransmissionEnd {
    /// The requests under way are still answered.
    Left,
    Broken,
}

/// The way to one client.
pub(super) struct ClientReplies {
    pub(super) outbox: Arc<Outbox>,
    /// Whether replies are structured.
    pub(super) structured: bool,
}

impl ClientReplies {
    /// Answers a request that has succeeded and brings no bytes.
    pub(super) fn done(&self, cookie: u64) -> Result<(), TransmissionEnd> {
        let head = || match self.structured {
            true => wire::done_chunk(cookie),
            false => wire::simple_reply(cookie, 0),
        };
        self.admit(0)?.post(head, Vec::new());
        Ok(())
    }

    /// Answers a request with an error.
    pub(super) fn refuse(&self, cookie: u64, error: u32, why: &str) -> Result<(), TransmissionEnd> {
        let head = || match self.structured {
            true => wire::error_chunk(cookie, error, why),
            false => wire::simple_reply(cookie, error),
        };
        self.admit(0)?.post(head, Vec::new());
        Ok(())
    }

    /// A place for a reply of `bytes`; waits until there is room.
    pub(super) fn admit(&self, bytes: usize) -> Result<ReplyTicket, TransmissionEnd> {
        self.outbox.admit(bytes).ok_or(TransmissionEnd::Broken)
    }
}

/// Whether this chunk is the last of its reply; asked while its place in the order is held.
pub(super) fn is_last(left: &AtomicUsize) -> bool {
    left.fetch_sub(1, Ordering::Relaxed) == 1
}
