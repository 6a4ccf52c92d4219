//! The records of a split, as Hadoop's `LineRecordReader` of version 3.4.2 reads them.
//!
//! ```text
//!   file     ..... x LF a a a LF b b b LF c c c c LF d d ...
//!   split          start ┌─────────────────┐ end
//!   of this split        │skipped          │         records that begin at start < place <= end
//!   of the next                            │skipped  (at 0 <= place <= end in the first split)
//!   bytes read here      ├───── body ──────┤─ tail ─┤
//! ```
//!
//! The reader of a split doesn't know whether a record begins at its first byte. So it skips to the next one,
//! and the reader before it reads one record that begins at its end. These are the rules, with all that
//! follows from them:
//!
//! - A CRLF with the CR before `end` ends a record before it. To the next split the LF is an empty record, which
//!   it skips.
//! - A delimiter of several bytes across `end` is not seen by the next split, which skips one record too
//!   many. So this split reads one more.
//! - A record whose bytes, with what ends it, are not fewer than [`SplitSpec::record_bytes_max`] is dropped. A reader
//!   stops within such a record at `end`, and takes the rest of it for a record that begins at `end`. If the
//!   last record of a split is too long, it is cut and not dropped.
//! - U+FEFF at the beginning of the file is dropped.
//!
//! The body comes in pieces, and its whole records leave in batches. Only the record that crosses `end` is
//! put together with the tail.

use merganser_sort::Budget;
use merganser_sort::budget::Reservation;

use super::batch::SplitBatch;
use super::delimiter::{Delimiter, NO_LIMIT};
use super::{HdfsError, HdfsResult};

/// The least `record_bytes_max` of a request. A reader with a smaller one loses count where a file has nothing but
/// U+FEFF and a CR.
pub(super) const RECORD_BYTES_MAX_MIN: u32 = 4;

const BOM: &[u8] = "\u{feff}".as_bytes();

/// Where a split is, and how it is divided.
#[derive(Debug, Clone, Copy)]
pub(super) struct SplitSpec<'a> {
    /// The first byte in the file.
    pub(super) start: u64,
    /// The byte behind the last, less than 2^31 bytes from `start`.
    pub(super) end: u64,
    /// The bytes from `end` on.
    pub(super) tail: &'a [u8],
    /// Whether the file ends with the tail.
    pub(super) tail_at_eof: bool,
    /// What ends a record.
    pub(super) delimiter: &'a Delimiter,
    /// Records of this size, in bytes, are too long.
    pub(super) record_bytes_max: u32,
}

/// The bytes of a split, in order.
pub(super) trait Body {
    /// Appends the next bytes, at most [`Body::step_bytes`].
    fn more(&mut self, to: &mut Vec<u8>) -> HdfsResult<()>;

    /// Bytes that were not appended yet.
    fn left_bytes(&self) -> u64;

    /// The most that is appended at once, in bytes.
    fn step_bytes(&self) -> usize;
}

/// The part of the split that is read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SplitPosition {
    /// The end of the record that another split has.
    Skip,
    /// The first record of the file.
    First,
    /// Whole records before the end of the split.
    Body,
    /// Records that reach the end of the split, or begin there.
    Tail,
    Done,
}

/// Reads the records of a split.
pub(super) struct SplitReader<'a, B> {
    spec: SplitSpec<'a>,
    body: B,
    buffer: Vec<u8>,
    /// The buffer grows up to this.
    buffer_bytes_max: usize,
    memory: Reservation,
    /// Bytes of the buffer that have left in batches.
    at: usize,
    /// Bytes from there on in which no record ends, so that a long one is searched once.
    searched: usize,
    /// The place of `buffer[at]` in the file.
    pos: u64,
    state: SplitPosition,
    /// One more record is this split's, wherever it begins.
    additional: bool,
    /// Bytes of records that were read, with what ends them.
    consumed: u64,
}

/// One record at the end of a split.
struct SplitRecord {
    content: usize,
    size: usize,
}

impl<'a, B: Body> SplitReader<'a, B> {
    /// Reads `body`, in a buffer of `budget` for the tail and `record_bytes` more: a record and a step of the body.
    ///
    /// # Errors
    /// Too little memory.
    pub(super) fn new(
        spec: SplitSpec<'a>,
        body: B,
        budget: &Budget,
        record_bytes: usize,
    ) -> HdfsResult<Self> {
        let buffer_bytes_max = record_bytes.max(body.step_bytes()) + spec.tail.len();
        let memory = budget.reserve(buffer_bytes_max as u64, "records")?;
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(buffer_bytes_max)?;
        let state = if spec.start == 0 { SplitPosition::First } else { SplitPosition::Skip };
        Ok(SplitReader {
            spec,
            body,
            buffer,
            buffer_bytes_max,
            memory,
            at: 0,
            searched: 0,
            pos: spec.start,
            state,
            additional: false,
            consumed: 0,
        })
    }

    /// Where the next record begins in the file.
    pub(super) fn pos(&self) -> u64 {
        self.pos
    }

    /// Bytes of the records so far, with what ends them.
    pub(super) fn consumed_bytes(&self) -> u64 {
        self.consumed
    }

    /// The body.
    pub(super) fn body(&self) -> &B {
        &self.body
    }

    /// The next records; `None` after the last.
    ///
    /// # Errors
    /// Those of the body; a record that is longer than the memory; a tail that is too short.
    pub(super) fn next_batch(&mut self) -> HdfsResult<Option<SplitBatch<'_>>> {
        loop {
            match self.state {
                SplitPosition::Skip => self.skip()?,
                SplitPosition::First => {
                    let from = self.unsearched();
                    let found = self.spec.delimiter.find(&self.buffer[self.at + from..]);
                    if let Some(end) = found.filter(|end| !end.open) {
                        self.state = SplitPosition::Body;
                        let content = self.at..self.at + from + end.content;
                        let size = from + end.size;
                        let offset = self.take(size);
                        let bom = bom_bytes(&self.buffer[content.clone()]);
                        if ((size - bom) as u64) < u64::from(self.spec.record_bytes_max) {
                            let bytes = &self.buffer[content.start + bom..content.end];
                            return Ok(Some(SplitBatch::single(bytes, offset)));
                        }
                    } else if !self.fill_searched()? {
                        self.state = SplitPosition::Tail;
                    }
                }
                SplitPosition::Body => {
                    let from = self.unsearched();
                    let whole = self.spec.delimiter.whole(&self.buffer[self.at + from..]);
                    if whole > 0 {
                        let begin = self.at;
                        let offset = self.take(from + whole);
                        let bytes = &self.buffer[begin..self.at];
                        let SplitSpec { delimiter, record_bytes_max, .. } = self.spec;
                        return Ok(Some(SplitBatch::whole(
                            bytes,
                            delimiter,
                            record_bytes_max,
                            offset,
                        )));
                    } else if !self.fill_searched()? {
                        self.state = SplitPosition::Tail;
                    }
                }
                SplitPosition::Tail => {
                    self.append_tail();
                    self.state = SplitPosition::Done;
                    if let Some((from, to, offset)) = self.last()? {
                        self.state = SplitPosition::Tail;
                        let bytes = &self.buffer[from..to];
                        return Ok(Some(SplitBatch::single(bytes, offset)));
                    }
                }
                SplitPosition::Done => return Ok(None),
            }
        }
    }

    /// Bytes in the buffer that have not left.
    fn ahead(&self) -> usize {
        self.buffer.len() - self.at
    }

    /// Counts `size` bytes as read; where they begin in the file.
    fn take(&mut self, size: usize) -> u64 {
        let offset = self.pos;
        self.at += size;
        self.searched = 0;
        self.pos += size as u64;
        self.consumed += size as u64;
        offset
    }

    /// Where a search for the end of a record begins, in bytes from the first that has not left: a delimiter that has
    /// begun may end in bytes that came later.
    fn unsearched(&self) -> usize {
        self.searched.saturating_sub(self.spec.delimiter.bytes().len().max(2) - 1)
    }

    /// As [`SplitReader::fill`], where no record ends in what is left.
    fn fill_searched(&mut self) -> HdfsResult<bool> {
        self.searched = self.ahead();
        self.fill()
    }

    /// Reads more of the body behind what is left; false when there is no more.
    fn fill(&mut self) -> HdfsResult<bool> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let step = self.body.left_bytes().min(self.body.step_bytes() as u64) as usize;
        if step == 0 {
            return Ok(false);
        }
        let needed = self.buffer.len() + step + self.spec.tail.len();
        if needed > self.buffer_bytes_max {
            return Err(HdfsError::Record {
                offset: self.pos,
                detail: format!(
                    "a record of more than {} bytes; more memory would hold it",
                    self.buffer.len()
                ),
            });
        }
        self.body.more(&mut self.buffer)?;
        debug_assert!(self.buffer.capacity() as u64 <= self.memory.bytes());
        Ok(true)
    }

    fn append_tail(&mut self) {
        // Once: from then on, the buffer holds all that is left.
        if self.pos + self.ahead() as u64 == self.spec.end {
            self.buffer.drain(..self.at);
            self.at = 0;
            self.buffer.extend_from_slice(self.spec.tail);
        }
    }

    /// Looks for the end of the record that the split before has.
    fn skip(&mut self) -> HdfsResult<()> {
        let delimiter = self.spec.delimiter;
        if let Some(end) = delimiter.find(&self.buffer[self.at..]).filter(|end| !end.open) {
            self.at += end.size;
            self.pos += end.size as u64;
            self.state = SplitPosition::Body;
            return Ok(());
        }
        // Only a delimiter that has begun matters to the rest of a record without an end.
        let kept = delimiter.bytes().len().max(2) - 1;
        let gone = self.ahead().saturating_sub(kept);
        self.at += gone;
        self.pos += gone as u64;
        if self.fill()? {
            return Ok(());
        }
        self.state = SplitPosition::Tail;
        let (start, end) = (self.spec.start, self.spec.end);
        let stops = u64::from(self.spec.record_bytes_max) <= end - start;
        if stops && !self.ends_with_cr(self.ahead()) {
            // The rest of the record counts as one that begins at the end.
            self.at += self.ahead();
            self.pos = end;
            return Ok(());
        }
        self.append_tail();
        let bytes = &self.buffer[self.at..];
        let inside = (end - self.pos) as usize;
        let Some(found) = delimiter.find(bytes) else {
            if !self.spec.tail_at_eof {
                return Err(self.tail_is_short());
            }
            self.at = self.buffer.len();
            self.pos = end + self.spec.tail.len() as u64;
            // At the very end there is nothing left to read.
            self.state = SplitPosition::Done;
            return Ok(());
        };
        if found.open && !self.spec.tail_at_eof {
            return Err(self.tail_is_short());
        }
        self.additional = is_cut(delimiter, found.content, found.size, inside);
        self.at += found.size;
        self.pos += found.size as u64;
        Ok(())
    }

    /// The next record at the end of the split: where it is in the buffer, and in the file.
    fn last(&mut self) -> HdfsResult<Option<(usize, usize, u64)>> {
        let size_max = u64::from(self.spec.record_bytes_max);
        while self.pos <= self.spec.end || self.additional {
            let is_first = self.pos == 0;
            let line = self.line()?;
            let from = self.at;
            let offset = self.take(line.size);
            let most = size_max + if is_first { BOM.len() as u64 } else { 0 };
            let to = from + line.content.min(most.min(u64::from(NO_LIMIT)) as usize);
            let bom = if is_first { bom_bytes(&self.buffer[from..to]) } else { 0 };
            let size = (line.size - bom) as u64;
            if size == 0 {
                return Ok(None);
            }
            let is_last = self.pos > self.spec.end && !self.additional;
            if size < size_max || is_last {
                return Ok(Some((from + bom, to, offset)));
            }
        }
        Ok(None)
    }

    /// The record that begins at the first byte which has not left.
    fn line(&mut self) -> HdfsResult<SplitRecord> {
        let delimiter = self.spec.delimiter;
        let bytes = &self.buffer[self.at..];
        let inside = self.spec.end.saturating_sub(self.pos) as usize;
        let found = delimiter.find(bytes);
        if inside > 0 && self.spec.record_bytes_max as usize <= inside {
            let begins_inside = found.is_some_and(|end| end.content < inside);
            if !begins_inside && !self.ends_with_cr(inside) {
                return Ok(SplitRecord { content: inside, size: inside });
            }
        }
        let line = match found {
            Some(end) if !end.open || self.spec.tail_at_eof => {
                SplitRecord { content: end.content, size: end.size }
            }
            None if self.spec.tail_at_eof => {
                SplitRecord { content: bytes.len(), size: bytes.len() }
            }
            _ => return Err(self.tail_is_short()),
        };
        self.additional = found.is_some_and(|end| is_cut(delimiter, end.content, end.size, inside));
        Ok(line)
    }

    /// Whether the CR of a line is the last of the next `len` bytes: its reader looks at one more. Other
    /// delimiters have one byte where this matters.
    fn ends_with_cr(&self, len: usize) -> bool {
        matches!(self.spec.delimiter, Delimiter::Line)
            && self.buffer[self.at..][..len].ends_with(b"\r")
    }

    #[cold]
    fn tail_is_short(&self) -> HdfsError {
        HdfsError::Tail { end: self.spec.end, bytes: self.spec.tail.len() as u64 }
    }
}

/// Whether the end of the split is within a delimiter that the next split does not see.
fn is_cut(delimiter: &Delimiter, content: usize, size: usize, inside: usize) -> bool {
    matches!(delimiter, Delimiter::Bytes(_)) && content < inside && inside < size
}

/// Bytes of the mark at the beginning of a file.
fn bom_bytes(first: &[u8]) -> usize {
    if first.starts_with(BOM) { BOM.len() } else { 0 }
}

#[cfg(test)]
mod tests;
