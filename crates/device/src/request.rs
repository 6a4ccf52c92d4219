//! Requests to a modelled device, from a trace, a generator or a host.

/// A time or a span of virtual time, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SimTime(pub u64);

/// The kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// Read bytes from the device.
    Read,
    /// Write bytes to the device.
    Write,
    /// Mark bytes as no longer needed.
    Trim,
    /// Make all earlier writes survive a power cut.
    Flush,
}

/// One request of a trace or a generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The arrival time, since the start of the workload.
    pub arrival: SimTime,
    /// The kind of request.
    pub kind: RequestKind,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
    /// A hash of the content that is written, if the trace has one.
    pub content: Option<u128>,
}
