//! Requests to a modelled device, from a trace, a generator or a host.

use std::sync::Arc;

/// Bytes of a request that have a hash of their own in [`RequestHashes::Pages`].
pub const CONTENT_BYTES: u64 = 4096;
/// Hashes of one request at most; a longer request has one hash of all its bytes.
pub const CONTENT_PAGES_MAX: u64 = 16_384;

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

/// Gives bytes a number that other bytes don't have.
pub type ContentHash = fn(&[u8]) -> u128;

/// The bytes of a request, as hashes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RequestHashes {
    /// The hash of all bytes.
    Whole(u128),
    /// The hash of each [`CONTENT_BYTES`], from the first byte of the request on; the last one may be of
    /// fewer bytes. There are at least two.
    Pages(Arc<[u128]>),
}

impl RequestHashes {
    /// The content of a request that writes `bytes`.
    #[must_use]
    pub fn of_bytes(bytes: &[u8], hash: ContentHash) -> RequestHashes {
        let pages = (bytes.len() as u64).div_ceil(CONTENT_BYTES);
        if !(2..=CONTENT_PAGES_MAX).contains(&pages) {
            return RequestHashes::Whole(hash(bytes));
        }
        RequestHashes::Pages(bytes.chunks(CONTENT_BYTES as usize).map(hash).collect())
    }
}

impl From<u128> for RequestHashes {
    fn from(hash: u128) -> Self {
        RequestHashes::Whole(hash)
    }
}

/// One request of a trace or a generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRequest {
    /// The arrival time, since the start of the workload.
    pub arrival: SimTime,
    /// The kind of request.
    pub kind: RequestKind,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
    /// The content that is written, if the trace has hashes.
    pub content: Option<RequestHashes>,
}
