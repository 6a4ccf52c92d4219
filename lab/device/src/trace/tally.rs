//! Counts of the lines of a trace.

/// The counts of the lines read so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests returned.
    pub requests: u64,
    /// Requests of disks that were not selected.
    pub other_disks: u64,
    /// Lines without a request: comments, blank lines, other events.
    pub other_lines: u64,
    /// Requests with an earlier time than the request before them; they got the time of that
    /// request.
    pub late: u64,
    /// Requests whose address was wrapped to fit (`Address::Wrapped`).
    pub wrapped: u64,
    /// Lines that were skipped because they could not be used.
    pub bad_lines: u64,
}

impl Tally {
    pub(super) fn add(&mut self, more: Tally) {
        self.requests += more.requests;
        self.other_disks += more.other_disks;
        self.other_lines += more.other_lines;
        self.late += more.late;
        self.wrapped += more.wrapped;
        self.bad_lines += more.bad_lines;
    }
}
