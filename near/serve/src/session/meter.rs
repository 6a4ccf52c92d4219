//! How far a run is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use merganser_sort::Progress;

/// How far a run is, and whether it shall end.
#[derive(Debug, Default)]
pub(super) struct RunMeter {
    pub(super) bytes_total: AtomicU64,
    done: AtomicU64,
    pub(super) cancelled: AtomicBool,
}

impl RunMeter {
    /// Bytes of input that are done.
    pub(super) fn bytes_done(&self) -> u64 {
        let total = self.bytes_total.load(Ordering::Relaxed);
        self.done.load(Ordering::Relaxed).min(total)
    }
}

impl Progress for RunMeter {
    fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
