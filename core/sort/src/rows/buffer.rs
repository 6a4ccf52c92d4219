//! Rows in memory: as they were pushed, and then in order.
//!
//! ```text
//!   rows    ├ key length u32 ┼ value length u32 ┼ key ┼ value ┤├ ...      end to end, as length-prefixed records
//!   tags    first eight bytes of the key, and where the row is              only if the rows did not come in order
//! ```

use merganser_storage::prefetch::prefetch;

use super::{RowStream, RowsBy};
use crate::budget::Reservation;
use crate::prefix::prefix_at;
use crate::run::tag::Tag;
use crate::run::ties::{Tagged, sort_tagged};
use crate::run::word::KeyAlphabet;
use crate::{Budget, Error, Result};

/// Bytes in front of a row: the lengths of key and value.
pub(super) const LENGTHS: usize = 8;
/// The longest key and value together, in bytes: a block that has the row alone gives its length in 32 bits.
const ROW_BYTES_MAX: usize = u32::MAX as usize - LENGTHS;
/// Memory of a row while rows are sorted, in addition to its bytes: a tag, and room to sort it.
const SORTED_BYTES: u64 = 2 * size_of::<Tag>() as u64;
/// Tags whose memory is reserved at once.
const TAGS_AHEAD: u64 = 4096;
/// Memory that a buffer begins with.
const FIRST_BYTES: usize = 64 << 10;
/// Rows are asked for this many tags before they are handed out.
const AHEAD: usize = 12;
/// Keys that an alphabet is learned from.
const LEARNED: usize = 1024;

/// The row at the beginning of `bytes`: key, value.
#[inline]
pub(super) fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (key_len, value_len) = lengths(bytes);
    let key_end = LENGTHS + key_len;
    (&bytes[LENGTHS..key_end], &bytes[key_end..key_end + value_len])
}

/// The lengths of the key and of the value at the beginning of `bytes`.
#[inline]
pub(super) fn lengths(bytes: &[u8]) -> (usize, usize) {
    let both: [u8; LENGTHS] = *bytes.first_chunk().expect("a row has its lengths");
    let both = u64::from_le_bytes(both);
    ((both & u64::from(u32::MAX)) as usize, (both >> 32) as usize)
}

/// Whether a row has lengths that a record can give.
#[inline]
pub(super) fn has_length(key: &[u8], value: &[u8]) -> bool {
    key.len().saturating_add(value.len()) <= ROW_BYTES_MAX
}

/// Appends the lengths that are in front of a row.
#[inline]
pub(super) fn frame_lengths(key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let both = key.len() as u64 | (value.len() as u64) << 32;
    out.extend_from_slice(&both.to_le_bytes());
}

/// Appends a row.
#[inline]
pub(super) fn frame(key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    frame_lengths(key, value, out);
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// Takes rows.
pub(super) struct RowBuffer {
    rows: Vec<u8>,
    count: u64,
    by: RowsBy,
    /// Whether each row so far is not less than the one before.
    in_order: bool,
    /// Where the last row begins.
    last: usize,
    memory: Reservation,
    /// Its part of the budget, and its part while it has a row that is longer.
    share_bytes: u64,
    most_bytes: u64,
}

impl RowBuffer {
    /// An empty buffer, which takes up to `share_bytes` of the budget; it takes nothing of it yet.
    pub(super) fn new(by: RowsBy, share_bytes: u64, budget: &Budget) -> Result<Self> {
        let memory = budget.reserve(0, "rows")?;
        Ok(RowBuffer {
            rows: Vec::new(),
            count: 0,
            by,
            in_order: true,
            last: 0,
            memory,
            share_bytes,
            most_bytes: share_bytes,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Its part of the budget, in bytes.
    pub(super) fn share_bytes(&self) -> u64 {
        self.share_bytes
    }

    /// How many rows it has.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of its keys and values.
    pub(super) fn bytes(&self) -> u64 {
        self.rows.len() as u64 - self.count * LENGTHS as u64
    }

    /// Appends a row; false if there is no room for it. An empty buffer makes room for any row.
    ///
    /// # Errors
    /// Too little memory for a long row.
    #[inline]
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let at = self.rows.len();
        let end = at + LENGTHS + key.len() + value.len();
        let is_known = end <= self.rows.capacity()
            && self.rows.capacity() as u64 + (self.count + 1) * SORTED_BYTES <= self.memory.bytes();
        if !is_known && !self.makes_room(end)? {
            return Ok(false);
        }
        if self.in_order && at > 0 {
            self.in_order = self.by.is_ordered(split(&self.rows[self.last..]), (key, value));
        }
        frame(key, value, &mut self.rows);
        self.last = at;
        self.count += 1;
        Ok(true)
    }

    /// Makes room for one more row, so that the rows end at `end`; false if there isn't any.
    #[cold]
    fn makes_room(&mut self, end: usize) -> Result<bool> {
        let tags_bytes = (self.count + 1) * SORTED_BYTES;
        let least = end as u64 + tags_bytes;
        if self.is_empty() {
            self.most_bytes = self.most_bytes.max(least);
        }
        let capacity = self.rows.capacity();
        let wanted = if end <= capacity {
            capacity
        } else {
            // All that there is, where rows like these leave room for their tags.
            let most = self.most_bytes as f64 * (end as f64 / least as f64);
            (2 * capacity).max(FIRST_BYTES).min(most as usize).max(end)
        };
        let bytes = wanted as u64 + tags_bytes;
        if bytes > self.most_bytes {
            return Ok(false);
        }
        let ahead = (bytes + TAGS_AHEAD * SORTED_BYTES).min(self.most_bytes);
        if let Err(error) = self.memory.grow_to(ahead).or_else(|_| self.memory.grow_to(bytes)) {
            return if self.is_empty() { Err(error) } else { Ok(false) };
        }
        let more = wanted - self.rows.len();
        self.rows.try_reserve_exact(more).map_err(|_| out_of_memory(wanted))?;
        Ok(true)
    }

    /// Puts its rows in order. Rows that are equal stay as they came.
    pub(super) fn sort(mut self, threads: usize) -> SortedRowBuffer {
        let tags = if self.in_order { Vec::new() } else { self.sorted_tags(threads) };
        // The room in which tags were sorted is free again.
        let held = self.rows.capacity() + size_of_val(&tags[..]);
        self.memory.shrink_to(held as u64);
        SortedRowBuffer { buffer: self, tags, at: 0, begun: 0, end: 0 }
    }

    /// A tag of each row, in order.
    fn sorted_tags(&self, threads: usize) -> Vec<Tag> {
        let (rows, count) = (&self.rows[..], self.count as usize);
        let mut tagged = TaggedRows { rows, by: self.by, one_length: true, alphabet: None };
        let mut tags = Vec::with_capacity(count);
        let (mut at, mut first_len) = (0, None);
        while at < rows.len() {
            let (key_len, value_len) = lengths(&rows[at..]);
            let key = &rows[at + LENGTHS..at + LENGTHS + key_len];
            tags.push(Tag::new(prefix_at(key, 0), at as u64, key_len));
            tagged.one_length &= key_len == *first_len.get_or_insert(key_len) && key_len <= 8;
            at += LENGTHS + key_len + value_len;
        }
        if !tagged.one_length {
            let step = (count / LEARNED).max(1);
            let some: Vec<&[u8]> = tags.iter().step_by(step).map(|tag| tagged.key(*tag)).collect();
            if let Some(alphabet) = KeyAlphabet::learn(&some) {
                for tag in &mut tags {
                    *tag = Tag::new(alphabet.word(tagged.key(*tag), 0), tag.place(), tag.length());
                }
                tagged.alphabet = Some(alphabet);
            }
        }
        let mut scratch = vec![Tag::new(0, 0, 0); count];
        sort_tagged(&mut tags, &mut scratch, &tagged, threads);
        tags
    }
}

fn out_of_memory(bytes: usize) -> Error {
    let why = format!("the system has no memory for rows of {bytes} bytes");
    std::io::Error::new(std::io::ErrorKind::OutOfMemory, why).into()
}

/// Rows that tags point to.
struct TaggedRows<'a> {
    rows: &'a [u8],
    by: RowsBy,
    /// Whether all keys are equally long, and no longer than a tag's prefix.
    one_length: bool,
    alphabet: Option<KeyAlphabet>,
}

impl Tagged for TaggedRows<'_> {
    #[inline]
    fn key(&self, tag: Tag) -> &[u8] {
        let at = tag.place() as usize;
        match tag.length() {
            Tag::LONG => split(&self.rows[at..]).0,
            len => &self.rows[at + LENGTHS..at + LENGTHS + len],
        }
    }

    fn descending(&self) -> bool {
        false
    }

    fn position(&self, tag: Tag) -> u64 {
        tag.place()
    }

    fn last_resort(&self, tag: Tag) -> Option<(&[u8], bool)> {
        let value = || (split(&self.rows[tag.place() as usize..]).1, false);
        (self.by == RowsBy::KeyAndValue).then(value)
    }

    fn prefix_decides(&self) -> bool {
        self.one_length
    }

    fn alphabet(&self) -> Option<&KeyAlphabet> {
        self.alphabet.as_ref()
    }

    fn prefetch(&self, tag: Tag, depth: usize) {
        prefetch(self.rows, tag.place() as usize + LENGTHS + depth);
    }

    fn as_dyn(&self) -> &dyn Tagged {
        self
    }
}

/// Rows in order.
pub(super) struct SortedRowBuffer {
    buffer: RowBuffer,
    /// A tag of each row, in order; empty if the rows are in order as they are.
    tags: Vec<Tag>,
    /// How many rows were handed out.
    at: usize,
    /// Where the row that was handed out last begins and ends.
    begun: usize,
    end: usize,
}

impl SortedRowBuffer {
    /// Its first row, if the rows came in order.
    pub(super) fn first_in_order(&self) -> Option<(&[u8], &[u8])> {
        let is_so = self.buffer.in_order && !self.buffer.is_empty();
        is_so.then(|| split(&self.buffer.rows))
    }

    /// Its last row, if the rows came in order.
    pub(super) fn last_in_order(&self) -> Option<(&[u8], &[u8])> {
        let is_so = self.buffer.in_order && !self.buffer.is_empty();
        is_so.then(|| split(&self.buffer.rows[self.buffer.last..]))
    }

    /// Bytes of its rows.
    pub(super) fn bytes(&self) -> u64 {
        self.buffer.rows.len() as u64
    }

    /// All rows end to end, if they came in order.
    pub(super) fn all_in_order(&self) -> Option<&[u8]> {
        self.buffer.in_order.then_some(&self.buffer.rows[..])
    }

    /// An empty buffer with its memory.
    pub(super) fn into_empty(self) -> RowBuffer {
        let mut buffer = self.buffer;
        buffer.rows.clear();
        if buffer.rows.capacity() as u64 > buffer.share_bytes {
            buffer.rows = Vec::new();
        }
        buffer.memory.shrink_to(buffer.rows.capacity() as u64);
        (buffer.count, buffer.in_order, buffer.last) = (0, true, 0);
        buffer.most_bytes = buffer.share_bytes;
        buffer
    }
}

impl RowStream for SortedRowBuffer {
    type Error = Error;

    #[inline]
    fn advance(&mut self) -> Result<bool> {
        let RowBuffer { rows, count, in_order, .. } = &self.buffer;
        if self.at as u64 == *count {
            return Ok(false);
        }
        self.begun = if *in_order {
            self.end
        } else {
            if let Some(tag) = self.tags.get(self.at + AHEAD) {
                prefetch(rows, tag.place() as usize);
            }
            self.tags[self.at].place() as usize
        };
        let (key, value) = lengths(&rows[self.begun..]);
        self.end = self.begun + LENGTHS + key + value;
        self.at += 1;
        Ok(true)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        split(&self.buffer.rows[self.begun..self.end]).0
    }

    #[inline]
    fn value(&self) -> &[u8] {
        split(&self.buffer.rows[self.begun..self.end]).1
    }
}
