//! The events of a request in a blktrace.

/// The event that counts as a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BlkparseEvent {
    /// `D`: the driver submitted it to the device.
    #[default]
    Issued,
    /// `Q`: the block layer got it, before merging and scheduling.
    Queued,
}

impl BlkparseEvent {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BlkparseEvent::Issued => "issued",
            BlkparseEvent::Queued => "queued",
        }
    }

    /// The other one.
    pub(super) fn other(self) -> Self {
        match self {
            BlkparseEvent::Issued => BlkparseEvent::Queued,
            BlkparseEvent::Queued => BlkparseEvent::Issued,
        }
    }

    /// How blkparse prints it.
    pub(super) fn letter(self) -> &'static str {
        match self {
            BlkparseEvent::Issued => "D",
            BlkparseEvent::Queued => "Q",
        }
    }
}
