//! The operations of a storage, and its shape.

use std::io;
use std::sync::Arc;

use crate::numbers::u64_of;
use crate::{Buffer, Clock, Completions};

/// One request. Buffers are owned by the operation while it is in flight and come back in the
/// [`crate::Completion`], so no lifetime crosses the kernel boundary.
#[derive(Debug)]
pub enum Operation {
    /// Fill `buffer` from byte `offset` on. Completes with the number of bytes read, which is
    /// less than the buffer only where the storage ends.
    Read {
        /// First byte to read.
        offset: u64,
        /// Where to; all of its length is asked for.
        buffer: Buffer,
    },
    /// Write all of `buffer` at `offset`, growing the storage where it ends earlier.
    Write {
        /// First byte to write.
        offset: u64,
        /// What to write; all of its length.
        buffer: Buffer,
    },
    /// Make everything that was completed before survive a power cut.
    Sync,
    /// Give `len` bytes at `offset` back to the device; they read as zeros afterwards. The size
    /// stays. Unaligned edges may keep their blocks.
    Discard {
        /// First byte to give back.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Reserve space for `len` bytes at `offset`, so that later writes cannot fail for lack of
    /// it. Grows the size to at least `offset + len`.
    Allocate {
        /// First byte to reserve.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Set the size; cuts or extends with zeros.
    SetSize {
        /// The new size in bytes.
        size: u64,
    },
}

/// The physical layout that a caller can plan for. A real disk has one too, measured or default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Smallest unit of an aligned transfer, in bytes; a power of two.
    pub page_bytes: u32,
    /// Transfer size in bytes beyond which throughput no longer grows.
    pub best_io_bytes: u32,
    /// Requests in flight beyond which throughput no longer grows.
    pub queue_depth: u32,
    /// Independent channels; 1 where unknown.
    pub channels: u32,
    /// Consecutive bytes on one channel before the next one begins; 0 where unknown.
    pub stripe_bytes: u32,
}

impl Default for Geometry {
    /// What a contemporary SSD likes: 4 KiB pages, 1 MiB transfers, 16 in flight.
    fn default() -> Self {
        Geometry {
            page_bytes: 4096,
            best_io_bytes: 1 << 20,
            queue_depth: 16,
            channels: 1,
            stripe_bytes: 0,
        }
    }
}

/// A stretch of bytes that can be read, written and synced: a file, a device, a view.
pub trait Storage: Send + Sync {
    /// Its name in error messages: a path where there is one.
    fn name(&self) -> &str;

    /// Size in bytes now.
    fn size(&self) -> u64;

    /// The layout to plan for.
    fn geometry(&self) -> Geometry {
        Geometry::default()
    }

    /// The clock that this storage's completions move along.
    fn clock(&self) -> Arc<dyn Clock>;

    /// Starts `operation`; exactly one [`crate::Completion`] with this `token` is posted to
    /// `completions`, now or later, whatever happens. Operations in flight may complete in any
    /// order; overlapping ones have no defined order.
    fn submit(&self, token: u64, operation: Operation, completions: &Completions);

    /// Reads into `out` from `offset` on in the caller's thread, where that is the fastest way to read
    /// bytes that are wanted at once: from a file that goes through the page cache. The count is short only
    /// at the end of the storage. `None` for all others, and for layers that act on operations: submit a
    /// read then.
    fn read_now(&self, offset: u64, out: &mut [u8]) -> Option<io::Result<usize>> {
        let _ = (offset, out);
        None
    }

    /// Says that `len` bytes from `offset` on are read soon, so that a storage which reads through a cache
    /// can start now. It does not wait, and nothing depends on it. Layers pass it on; most storages have
    /// no use for it.
    fn read_ahead(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }
}

/// Memory that is asked for without a thought that it may be refused, in bytes.
const SURE_BYTES: usize = 1 << 20;

/// Blocking helpers on every storage.
pub trait StorageExt: Storage {
    /// Runs one operation to its end. Returns the buffer it carried (if any) and the count.
    ///
    /// # Errors
    /// The operation's own error.
    fn run(&self, operation: Operation) -> io::Result<(Option<Buffer>, usize)> {
        let completions = Completions::new();
        self.submit(0, operation, &completions);
        let done = completions.wait(&*self.clock());
        done.result.map(|n| (done.buffer, n))
    }

    /// Reads `len` bytes at `offset` into a fresh vector.
    ///
    /// # Errors
    /// `UnexpectedEof` when the storage ends before `offset + len`.
    fn read_vec(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut out = if len <= SURE_BYTES { vec![0; len] } else { Vec::new() };
        if out.len() < len {
            // The length that a file claims may be more than there is memory.
            out.try_reserve_exact(len).map_err(|_| {
                let name = self.name();
                let why = format!("{name}: the system has no memory for {len} bytes of it");
                io::Error::new(io::ErrorKind::OutOfMemory, why)
            })?;
            out.resize(len, 0);
        }
        let n = self.read_at(offset, &mut out)?;
        if n < len {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("{}: ends at byte {}, {} wanted", self.name(), offset + u64_of(n), len),
            ));
        }
        Ok(out)
    }

    /// Reads into `out` from `offset` on; the count is short only at the end of the storage.
    ///
    /// # Errors
    /// The device's own.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < out.len() {
            let want = (out.len() - done).min(1 << 20);
            let buffer = Buffer::try_new(want)?;
            let (buffer, n) =
                self.run(Operation::Read { offset: offset + u64_of(done), buffer })?;
            let buffer = buffer.expect("a read returns its buffer");
            out[done..done + n].copy_from_slice(&buffer[..n]);
            done += n;
            if n < want {
                break;
            }
        }
        Ok(done)
    }

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// The device's own.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut buffer = Buffer::try_new(bytes.len())?;
        buffer.copy_from_slice(bytes);
        self.run(Operation::Write { offset, buffer }).map(|_| ())
    }

    /// [`Operation::Sync`], to its end.
    ///
    /// # Errors
    /// The device's own; after one, nothing written since the last good sync may be trusted.
    fn sync(&self) -> io::Result<()> {
        self.run(Operation::Sync).map(|_| ())
    }
}

impl<S: Storage + ?Sized> StorageExt for S {}
