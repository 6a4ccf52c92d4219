//! Memory full of whole records.
//!
//! ```text
//!   chunk buffer   ├── headroom ──┤── read area, page-aligned ───────────────────┤ 1 page
//!                        ├─ carry ┤─ file A … end ┤ gap ├─ file B …  ── tail ──┤
//!                        └── the record that the last chunk broke off    │
//!                                              the next chunk's carry ◄──┘
//! ```
//!
//! Files are read straight into the chunk, several pieces in flight. Each file begins at a page, so
//! direct I/O needs no copy. Every byte is read once. It is copied only in the carry, or when a
//! [`Follower`] copies it to its place.

use std::ops::Range;
use std::sync::Arc;

use merganser_storage::{Backing, Buffer, Completion, Completions, Storage};

use crate::Result;

/// Bytes of one read.
pub(crate) const READ_BYTES: usize = 1 << 20;

/// About how much of a chunk one thread takes at a time.
pub(crate) const SPAN_BYTES: usize = 1 << 20;

/// After the read area: room for a terminator that the last record lacks.
pub(super) const SLACK_BYTES: usize = 4096;

/// Memory full of whole records.
pub(crate) struct Chunk {
    /// From byte `base` of the chunk on; those before it are with a [`Follower`].
    pub(super) buffer: Buffer,
    pub(super) base: usize,
    /// Stretches of whole records, in input order.
    pub(crate) spans: Vec<Range<usize>>,
    /// Inputs and how much of each is in this chunk or an earlier one.
    pub(crate) taken: Vec<(Arc<dyn Storage>, u64)>,
}

impl Chunk {
    /// Bytes of memory that a chunk that reads `read_bytes` at a time touches at most.
    pub(crate) fn memory_bytes(read_bytes: usize) -> usize {
        carry_liked(read_bytes) + read_bytes + SLACK_BYTES
    }

    /// The longest record that a chunk takes for sure which reads `read_bytes` at a time.
    pub(crate) fn record_bytes_max(read_bytes: usize) -> usize {
        headroom(read_bytes)
    }

    /// An empty chunk that reads `read_bytes` at a time.
    ///
    /// # Errors
    /// When the system has no memory for it.
    pub(crate) fn new(read_bytes: usize) -> Result<Self> {
        let buffer = Buffer::try_new(headroom(read_bytes) + read_bytes + SLACK_BYTES)?;
        Ok(Chunk { buffer, base: 0, spans: Vec::new(), taken: Vec::new() })
    }

    /// Memory that holds whole records in `spans` already.
    pub(crate) fn of_buffer(buffer: Buffer, spans: Vec<Range<usize>>) -> Self {
        Chunk { buffer, base: 0, spans, taken: Vec::new() }
    }

    pub(crate) fn into_buffer(self) -> Buffer {
        self.buffer
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    pub(crate) fn data_bytes(&self) -> usize {
        self.spans.iter().map(Range::len).sum()
    }

    /// The memory that a fill of `read_bytes` reads into.
    pub(crate) fn backing(&self, read_bytes: usize) -> (Backing, Range<usize>) {
        let room = headroom(read_bytes);
        (self.buffer.backing(), room..room + read_bytes)
    }

    /// Joins the buffers that a [`Follower`] got, from the front to the back, with the rest again.
    pub(crate) fn rejoin(&mut self, handed: impl Iterator<Item = Buffer>) {
        let mut whole: Option<Buffer> = None;
        for next in handed {
            match &mut whole {
                Some(whole) => whole.unsplit(next).expect("handed out in this order"),
                None => whole = Some(next),
            }
        }
        if let Some(mut whole) = whole {
            let rest = std::mem::replace(&mut self.buffer, Buffer::empty());
            whole.unsplit(rest).expect("the rest follows what was handed out");
            self.buffer = whole;
            self.base = 0;
        }
    }

    /// Hands `span` to `follower`, with all bytes before it that the follower does not have yet.
    pub(super) fn hand(&mut self, span: Range<usize>, follower: &mut dyn Follower) {
        let rest = self.buffer.split_off(span.end - self.base);
        let handed = std::mem::replace(&mut self.buffer, rest);
        let at = std::mem::replace(&mut self.base, span.end);
        follower.arrived(at, handed, span.start - at);
    }
}

/// Works on a chunk while it is being filled. Files are then read into a few buffers that it lends,
/// and it brings their bytes to their place.
pub(crate) trait Follower {
    /// How many buffers it lends at once, at least one.
    fn lends(&self) -> usize;

    /// A buffer of [`READ_BYTES`] for the chunk's bytes before `end`. It comes back with
    /// [`Follower::keep`].
    fn lend(&mut self, end: usize) -> Buffer;

    /// Has the bytes that were read into `lent` copied to their place.
    fn keep(&mut self, lent: Buffer, keeping: Keeping);

    /// Bytes from `at` on: from `from` of them on, they are whole records. In all calls together
    /// each byte up to the end of the last record comes once, in order; [`Chunk::rejoin`] is to have
    /// them back.
    fn arrived(&mut self, at: usize, bytes: Buffer, from: usize);
}

/// The place of one read's bytes in the chunk. The reader waits until this is dropped.
pub(crate) struct Keeping {
    pub(super) token: u64,
    pub(super) place: Buffer,
    /// Where the place ends in the chunk.
    pub(crate) end: usize,
    /// How many bytes were read.
    pub(super) bytes: usize,
    pub(super) filled: bool,
    pub(super) completions: Completions,
}

impl Keeping {
    /// Copies the bytes that were read from the front of `lent`.
    pub(crate) fn copy(&mut self, lent: &[u8]) {
        self.place[..self.bytes].copy_from_slice(&lent[..self.bytes]);
        self.filled = true;
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        let lost = || std::io::Error::other("the copier is gone before it copied what was read");
        self.completions.post(Completion {
            token: self.token,
            buffer: Some(std::mem::replace(&mut self.place, Buffer::empty())),
            result: if self.filled { Ok(self.bytes) } else { Err(lost()) },
        });
    }
}

/// The longest record that may cross from one chunk to the next. It is address space, not memory: a
/// carry beyond [`carry_liked`] makes the read area shorter by as much.
pub(super) fn headroom(read_bytes: usize) -> usize {
    (read_bytes / 2).next_multiple_of(4096)
}

/// The carry for which memory is set aside.
pub(super) fn carry_liked(read_bytes: usize) -> usize {
    (read_bytes / 16).next_multiple_of(4096)
}
