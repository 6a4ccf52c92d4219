//! How work reports its progress, and learns that it was cancelled.

/// Receives progress; called from any thread, often.
pub trait Progress: Sync {
    /// A new phase begins: its name and how many bytes it will handle, when known.
    fn phase(&self, name: &'static str, total_bytes: Option<u64>) {
        let _ = (name, total_bytes);
    }

    /// `bytes` more are done in this phase.
    fn advance(&self, bytes: u64) {
        let _ = bytes;
    }

    /// Whether to stop; work ends with [`crate::Error::Cancelled`] soon after.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Reports to no caller.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {}
