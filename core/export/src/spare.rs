//! Buffers of requests that are over: a new buffer costs the system a mapping and its pages.

use std::io;

use merganser_storage::Buffer;
use parking_lot::Mutex;

/// Buffers that wait for their next request.
#[derive(Default)]
pub(crate) struct SpareBuffers(Mutex<Vec<Buffer>>);

impl SpareBuffers {
    /// Bytes that are kept at most.
    const BYTES_MAX: usize = 8 << 20;
    /// Buffers that are kept at most.
    const COUNT_MAX: usize = 64;

    /// A buffer of exactly `len` bytes with any content.
    ///
    /// # Errors
    /// When the system has no memory for it.
    pub(crate) fn take(&self, len: usize) -> io::Result<Buffer> {
        let mut spare = self.0.lock();
        match spare.iter().position(|buffer| buffer.len() == len) {
            Some(at) => Ok(spare.swap_remove(at)),
            None => Buffer::try_new(len),
        }
    }

    /// Keeps a buffer, if there is room for it.
    pub(crate) fn give_back(&self, buffer: Buffer) {
        let mut spare = self.0.lock();
        let kept: usize = spare.iter().map(|buffer| buffer.len()).sum();
        if kept + buffer.len() <= Self::BYTES_MAX && spare.len() < Self::COUNT_MAX {
            spare.push(buffer);
        }
    }
}
