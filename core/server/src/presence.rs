//! When a client last did something, and whether the server owes it an answer: what decides which
//! client goes when a new one finds all places taken.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The last activity of a client. Shared by a connection's threads and the thread that takes new clients.
#[derive(Debug)]
pub struct Presence {
    connected: Instant,
    /// When bytes last came from the client or were taken by it, in milliseconds since then.
    seen_ms: AtomicU64,
    /// Requests that workers have not answered yet. A client that waits for them is not idle.
    owed: AtomicUsize,
}

impl Presence {
    /// The presence of a client that has just connected.
    #[must_use]
    pub fn new() -> Self {
        Presence {
            connected: Instant::now(),
            seen_ms: AtomicU64::new(0),
            owed: AtomicUsize::new(0),
        }
    }

    /// The client sent or took bytes.
    pub fn seen(&self) {
        let now = self.connected.elapsed().as_millis() as u64;
        self.seen_ms.fetch_max(now, Ordering::Relaxed);
    }

    /// It has asked for something.
    pub fn owe(&self) {
        self.owed.fetch_add(1, Ordering::Relaxed);
    }

    /// One answer is on its way to it. The client's time begins again.
    pub fn answered(&self) {
        self.seen();
        self.owed.fetch_sub(1, Ordering::Relaxed);
    }

    /// How long it has neither sent nor taken anything; `None` while it waits for the server.
    pub fn idle(&self) -> Option<Duration> {
        if self.owed.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let seen = Duration::from_millis(self.seen_ms.load(Ordering::Relaxed));
        Some(self.connected.elapsed().saturating_sub(seen))
    }
}

impl Default for Presence {
    fn default() -> Self {
        Self::new()
    }
}
