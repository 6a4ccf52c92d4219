//! The sort of a bucket whose records have one length and contain their keys unencoded.
//!
//! ```text
//!   bucket ──► tags ──► parts of some hundred ──► groups of less than one ──insertion sort──► gather
//! ```
//!
//! A bucket's bounds say which bits of its keys differ. So two radix passes with as many digits as
//! there are records leave almost nothing to compare where keys are spread evenly, and the second
//! pass stays in the first-level cache. Parts that are spread unevenly are sorted by comparing.
//! Bounds also make tags small: eight bytes hold a record's number and the key bits after those
//! that all keys have in common.

use merganser_storage::Buffer;

use crate::key::{DirectKey, Place};
use crate::prefix::prefix_at;
use merganser_storage::prefetch::prefetch_at;

/// Tags that a part should have. They, their counts and their destinations fit into the first-level
/// cache.
const PART_TAGS: usize = 512;
/// Parts at most: a cache line of each is being written.
const PARTS_MAX: usize = 4096;
/// Digits of the pass over one part.
const DIGITS: usize = 1024;
/// Parts with more tags than this are sorted by comparing.
const PART_TAGS_MAX: usize = 4096;
/// So are parts in which more than this many tags have the same digit.
const FEW: u16 = 16;
/// Bytes of memory that sorting takes for each record, in addition to the record.
pub(super) const TAG_BYTES: u64 = 2 * size_of::<u64>() as u64;
/// The gather prefetches records this many tags ahead.
const AHEAD: usize = 24;

/// Records to be sorted.
pub(super) struct FixedBucket<'a> {
    /// Whole records.
    pub(super) bytes: &'a [u8],
    pub(super) record_bytes: usize,
    /// A [`Place::Range`].
    pub(super) key: DirectKey,
    /// No full key is below the first bound or above the second. Both are cut to eight bytes.
    pub(super) bounds: (u64, u64),
}

/// How tags are made: key bits above, the record's number below. So tags with equal key bits are in
/// input order.
#[derive(Clone, Copy)]
struct TagLayout {
    low: u64,
    spread: u64,
    /// Leading zeros of all distances from `low`.
    zeros: u32,
    /// The bits of a number.
    numbers: u64,
}

impl TagLayout {
    fn new(bounds: (u64, u64), count: usize) -> Self {
        let (low, high) = bounds;
        let spread = high.saturating_sub(low).max(1);
        let numbers = (count as u64).next_power_of_two() - 1;
        TagLayout { low, spread, zeros: spread.leading_zeros(), numbers }
    }

    #[inline]
    fn tag(&self, prefix: u64, number: usize) -> u64 {
        let distance = prefix.saturating_sub(self.low).min(self.spread);
        distance << self.zeros & !self.numbers | number as u64
    }

    /// Whether two tags have the same key bits.
    #[inline]
    fn tied(&self, a: u64, b: u64) -> bool {
        a ^ b <= self.numbers
    }
}

impl FixedBucket<'_> {
    /// Sorts into `out`, which is as long; `memory` holds [`TAG_BYTES`] for each record.
    pub(super) fn sort(&self, memory: &mut Buffer, counts: &mut Vec<u32>, out: &mut [u8]) {
        let count = self.bytes.len() / self.record_bytes;
        let parts = (count / PART_TAGS).next_power_of_two().min(PARTS_MAX);
        let layout = TagLayout::new(self.bounds, count);
        let (tags, grouped) = as_words(memory).split_at_mut(count);
        let grouped = &mut grouped[..count];
        counts.clear();
        counts.resize(parts, 0);
        // Twice, by one bit less each time, because a shift by 64 shifts by nothing.
        let shift = u64::BITS - 1 - parts.ilog2();
        let part = |tag: u64| (tag >> 1 >> shift) as usize;
        let records = self.bytes.chunks_exact(self.record_bytes);
        for (number, (record, tag)) in records.zip(&mut *tags).enumerate() {
            *tag = layout.tag(self.prefix(record), number);
            counts[part(*tag)] += 1;
        }
        let mut start = 0;
        for count in &mut *counts {
            start += std::mem::replace(count, start);
        }
        for tag in &*tags {
            let place = &mut counts[part(*tag)];
            grouped[*place as usize] = *tag;
            *place += 1;
        }
        let mut from = 0;
        for end in counts.iter() {
            let end = *end as usize;
            sort_part(&mut grouped[from..end], &mut tags[from..end], parts.ilog2());
            from = end;
        }
        self.order_ties(layout, tags);
        let numbers = layout.numbers;
        match self.record_bytes {
            8 => self.gather(tags, numbers, out, 8),
            16 => self.gather(tags, numbers, out, 16),
            32 => self.gather(tags, numbers, out, 32),
            100 => self.gather(tags, numbers, out, 100),
            other => self.gather(tags, numbers, out, other),
        }
    }

    #[inline]
    fn key<'r>(&self, record: &'r [u8]) -> &'r [u8] {
        match self.key.place {
            Place::Range { offset, len } => &record[offset..offset + len],
            Place::Line | Place::Prefixed | Place::Header | Place::Id => {
                unreachable!("records of one length")
            }
        }
    }

    #[inline]
    fn prefix(&self, record: &[u8]) -> u64 {
        let prefix = prefix_at(self.key(record), 0);
        if self.key.descending { !prefix } else { prefix }
    }

    /// Orders tags of equal key bits by whole keys; `tags` are sorted.
    fn order_ties(&self, layout: TagLayout, tags: &mut [u64]) {
        let mut from = 0;
        while let Some(tied) = tags[from..].windows(2).position(|two| layout.tied(two[0], two[1])) {
            from += tied;
            let first = tags[from];
            let more = tags[from..].iter().take_while(|tag| layout.tied(first, **tag)).count();
            let key = |tag: u64| {
                let at = (tag & layout.numbers) as usize * self.record_bytes;
                self.key(&self.bytes[at..at + self.record_bytes])
            };
            tags[from..from + more].sort_unstable_by(|a, b| {
                let order = key(*a).cmp(key(*b));
                let order = if self.key.descending { order.reverse() } else { order };
                order.then(a.cmp(b))
            });
            from += more;
        }
    }

    /// Copies records in tag order; inlined where their length is a constant.
    #[inline(always)]
    fn gather(&self, tags: &[u64], numbers: u64, out: &mut [u8], record_bytes: usize) {
        let base = self.bytes.as_ptr();
        for (i, out) in out.chunks_exact_mut(record_bytes).enumerate() {
            if let Some(tag) = tags.get(i + AHEAD) {
                let address = base.wrapping_add((tag & numbers) as usize * record_bytes);
                prefetch_at(address);
                if record_bytes > 32 {
                    prefetch_at(address.wrapping_add(record_bytes - 1));
                }
            }
            let at = (tags[i] & numbers) as usize * record_bytes;
            out.copy_from_slice(&self.bytes[at..at + record_bytes]);
        }
    }
}

/// Sorts `tags`, which agree in their first `known` bits, into `sorted`, which is as long.
fn sort_part(tags: &mut [u64], sorted: &mut [u64], known: u32) {
    let digit = |tag: u64| ((tag << known) >> (u64::BITS - DIGITS.ilog2())) as usize;
    let mut counts = [0u16; DIGITS];
    let mut most = 0;
    if tags.len() <= PART_TAGS_MAX {
        tags.iter().for_each(|tag| counts[digit(*tag)] += 1);
        let mut start = 0;
        for count in &mut counts {
            most = most.max(*count);
            start += std::mem::replace(count, start);
        }
    }
    if tags.len() > PART_TAGS_MAX || most > FEW {
        tags.sort_unstable();
        return sorted.copy_from_slice(tags);
    }
    for tag in tags {
        let place = &mut counts[digit(*tag)];
        sorted[usize::from(*place)] = *tag;
        *place += 1;
    }
    insertion_sort(sorted);
}

/// Sorts tags that are each at most a few places from where they belong.
fn insertion_sort(tags: &mut [u64]) {
    for i in 1..tags.len() {
        let tag = tags[i];
        let mut at = i;
        while at > 0 && tags[at - 1] > tag {
            tags[at] = tags[at - 1];
            at -= 1;
        }
        tags[at] = tag;
    }
}

/// A buffer as words.
fn as_words(buffer: &mut Buffer) -> &mut [u64] {
    // SAFETY: any bytes are valid words.
    let (head, words, _) = unsafe { buffer.align_to_mut::<u64>() };
    assert!(head.is_empty(), "buffers are aligned to pages");
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Order, OrderSpec};
    use crate::record::Format;
    use proptest::prelude::*;

    /// Sorts records of these keys by their first `len` bytes.
    fn check(keys: &[Vec<u8>], spread: bool, descending: bool, len: usize) {
        let mut bytes = Vec::new();
        for (number, key) in (0u32..).zip(keys) {
            let word = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            bytes.extend(if spread { &word[..] } else { &key[..8] });
            bytes.extend(&key[8..]);
            bytes.extend(number.to_le_bytes());
        }
        let key = DirectKey { place: Place::Range { offset: 0, len }, descending };
        let mut spec = OrderSpec::new(Format::Fixed { bytes: 14 });
        spec.keys.push(format!("0:{len}{}", if descending { ":r" } else { "" }));
        let order: Order = spec.compile(None).expect("compiles");
        let mut expected: Vec<&[u8]> = bytes.chunks(14).collect();
        expected.sort_by(|a, b| order.compare(a, b));
        let bucket = FixedBucket { bytes: &bytes, record_bytes: 14, key, bounds: (0, u64::MAX) };
        let mut out = vec![0; bytes.len()];
        let mut tags = Buffer::new(keys.len() * TAG_BYTES as usize);
        bucket.sort(&mut tags, &mut Vec::new(), &mut out);
        assert!(out == expected.concat(), "{} keys, {spread} {descending} {len}", keys.len());
    }

    #[test]
    fn sanitized_records_of_one_length() {
        let keys: Vec<Vec<u8>> =
            (0..150u8).map(|i| vec![i / 50, i % 3, 1, 1, 1, 1, 1, i, 2, 0]).collect();
        for (spread, descending, len) in [(true, false, 10), (false, true, 10), (false, false, 3)] {
            check(&keys, spread, descending, len);
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_stable_sort(
            keys in prop::collection::vec(prop::collection::vec(0u8..3, 10), 0..600),
            spread in any::<bool>(),
            descending in any::<bool>(),
            len in 1usize..11,
        ) {
            check(&keys, spread, descending, len);
        }
    }
}
