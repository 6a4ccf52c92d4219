//! The result of every way to make ordered bytes: a portion of the output in a buffer, and the
//! stream that it comes from.
//!
//! ```text
//!   merge::stream        windows of sorted runs, merged      ─┐
//!   distribute::stream   pieces of unsorted buckets, sorted  ─┼─► Portions ──► output::copy, view::stream
//!   view::stream         both, bucket after bucket           ─┘   ▲                  │
//!                                                                 └── buffer, ticket ┘
//! ```

use std::ops::Range;

use merganser_storage::Buffer;

use crate::Result;
use crate::bound::Bound;

/// Ordered bytes in a buffer.
pub(crate) struct Portion {
    /// The bytes: `len` from `pad` on.
    pub(crate) buffer: Buffer,
    pub(crate) pad: usize,
    pub(crate) len: usize,
    /// Where in the output it begins, if no duplicates were removed.
    pub(crate) output_offset: u64,
    /// Gives the buffer back.
    pub(crate) ticket: Ticket,
    /// Where a stream can begin again here.
    pub(crate) start: Start,
}

/// How a stream can begin at a portion again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Start {
    /// At the portion's place; nothing else is needed.
    Here,
    /// A place in the order of its runs; `None` is their start. For each run, `needed` is the
    /// position before which neither this portion nor a later one reads.
    Merge { bound: Option<Bound>, needed: Vec<u64> },
}

/// Goes back to the stream together with the buffer that it came with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ticket {
    /// Memory that the buffer has claimed of the stream, in bytes.
    pub(crate) claimed: u64,
    /// Which of the streams that were chained made the portion.
    pub(crate) link: u32,
}

impl Portion {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.pad..self.pad + self.len]
    }

    /// Where it is in the output.
    pub(crate) fn range(&self) -> Range<u64> {
        self.output_offset..self.output_offset + self.len as u64
    }
}

/// A stream of portions, in order and without gaps.
pub(crate) trait Portions: Send {
    /// The next portion; `None` at the end. Its buffer goes back by [`Portions::recycle`].
    fn next(&mut self) -> Result<Option<Portion>>;

    /// Takes the buffer of a portion back, or an empty one when the caller keeps the bytes as they are.
    fn recycle(&mut self, buffer: Buffer, ticket: Ticket);

    /// Whether [`Portions::next`] may wait for buffers that the caller holds.
    fn wants_buffers(&self) -> bool;

    /// Whether it is known that no portion comes any more.
    fn is_at_end(&self) -> bool;
}
