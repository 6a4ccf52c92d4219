//! What is asked of a modelled device: by a trace, by a generator, by a host.

/// A time or a span of virtual time, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SimTime(pub u64);

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// Bytes from the device.
    Read,
    /// Bytes to the device.
    Write,
    /// The bytes are no longer needed.
    Trim,
    /// What was written before must survive a power cut.
    Flush,
}

/// One request, as traces and generators give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// When it arrives, since the start of the workload.
    pub arrival: SimTime,
    /// What is asked.
    pub kind: RequestKind,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// A hash of the content that is written, where the trace has one.
    pub content: Option<u128>,
}
