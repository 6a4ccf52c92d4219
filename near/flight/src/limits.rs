//! Limits of messages and streams of all clients.

/// The longest message of a client, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Streams of results, views and blobs at once; a further one is refused and may try again.
pub(crate) const STREAMS_MAX: usize = 128;
