//! Counts of what a trace held.

/// What has been read so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests given.
    pub requests: u64,
    /// Requests of units that were not asked for.
    pub other_disks: u64,
    /// Lines that hold no request: comments, blank lines, other events.
    pub other_lines: u64,
    /// Requests that the trace has at an earlier time than the one before; they were given the time
    /// of the one before.
    pub late: u64,
    /// Requests whose address was wrapped to fit ([`Address::Wrapped`]).
    pub wrapped: u64,
}

impl Tally {
    pub(super) fn add(&mut self, more: Tally) {
        self.requests += more.requests;
        self.other_disks += more.other_disks;
        self.other_lines += more.other_lines;
        self.late += more.late;
        self.wrapped += more.wrapped;
    }
}
