//! The sort of a bucket whose records have one length and whose keys lie in them as they are.
//!
//! ```text
//!   bucket ──count by leading bits──► starts ──tags──► groups of a few ──insertion sort──► gather
//! ```
//!
//! A bucket's bounds say which bits of its keys differ, so one radix pass with as many digits as
//! half its records leaves groups of about two, where keys are spread evenly; others are larger and
//! sorted by comparing. That is a third of the passes that a chunk of unknown keys takes.

use storage::Buffer;

use crate::key::{DirectKey, Place};
use crate::run::form::{as_tags, prefetch_at};
use crate::run::tag::{Tag, prefix_at};

/// The most digits of the radix pass: their counts stay in the second-level cache.
const DIGITS_MAX: usize = 1 << 16;
const DIGITS_MIN: usize = 256;
/// Groups up to this many tags are sorted by insertion.
const FEW: usize = 24;
/// How many tags ahead the gather asks for records.
const AHEAD: usize = 24;

/// Records to be sorted.
pub(super) struct FixedBucket<'a> {
    /// Whole records.
    pub(super) bytes: &'a [u8],
    pub(super) record_bytes: usize,
    /// A [`Place::Range`].
    pub(super) key: DirectKey,
    /// No full key is below the first nor above the second, both cut to eight bytes.
    pub(super) bounds: (u64, u64),
}

impl FixedBucket<'_> {
    /// Sorts into `out`, which is as long; `tags` holds a tag for each record.
    pub(super) fn sort(&self, tags: &mut Buffer, counts: &mut Vec<u32>, out: &mut [u8]) {
        let count = self.bytes.len() / self.record_bytes;
        let digits = (count / 2).next_power_of_two().clamp(DIGITS_MIN, DIGITS_MAX);
        let (low, high) = self.bounds;
        let spread = high.saturating_sub(low);
        let shift = (u64::BITS - spread.leading_zeros()).saturating_sub(digits.ilog2());
        let digit = |prefix: u64| ((prefix.saturating_sub(low) >> shift) as usize).min(digits - 1);
        counts.clear();
        counts.resize(digits, 0);
        let records = || self.bytes.chunks_exact(self.record_bytes);
        for record in records() {
            counts[digit(self.prefix(record))] += 1;
        }
        let mut start = 0;
        for count in counts.iter_mut() {
            start += std::mem::replace(count, start);
        }
        let tags = &mut as_tags(tags)[..count];
        for (number, record) in records().enumerate() {
            let prefix = self.prefix(record);
            let place = &mut counts[digit(prefix)];
            tags[*place as usize] = Tag::new(prefix, number as u64, 0);
            *place += 1;
        }
        let mut from = 0;
        for end in counts.iter() {
            let end = *end as usize;
            self.sort_group(&mut tags[from..end]);
            from = end;
        }
        match self.record_bytes {
            8 => self.gather(tags, out, 8),
            16 => self.gather(tags, out, 16),
            32 => self.gather(tags, out, 32),
            100 => self.gather(tags, out, 100),
            other => self.gather(tags, out, other),
        }
    }

    #[inline]
    fn key<'r>(&self, record: &'r [u8]) -> &'r [u8] {
        match self.key.place {
            Place::Range { offset, len } => &record[offset..offset + len],
            Place::Line | Place::Prefixed => unreachable!("records of one length"),
        }
    }

    #[inline]
    fn prefix(&self, record: &[u8]) -> u64 {
        let prefix = prefix_at(self.key(record), 0);
        if self.key.descending { !prefix } else { prefix }
    }

    fn record(&self, tag: Tag) -> &[u8] {
        let at = tag.place() as usize * self.record_bytes;
        &self.bytes[at..at + self.record_bytes]
    }

    /// Whether `a` comes before `b`; equal keys are in input order, which is that of places.
    #[inline]
    fn before(&self, a: Tag, b: Tag) -> bool {
        if a.prefix() != b.prefix() { a < b } else { self.settle(a, b) }
    }

    #[cold]
    fn settle(&self, a: Tag, b: Tag) -> bool {
        let order = self.key(self.record(a)).cmp(self.key(self.record(b)));
        let order = if self.key.descending { order.reverse() } else { order };
        order.then(a.cmp(&b)).is_lt()
    }

    #[inline]
    fn sort_group(&self, tags: &mut [Tag]) {
        if tags.len() > FEW {
            return tags.sort_unstable_by(|a, b| {
                if a == b {
                    return std::cmp::Ordering::Equal;
                }
                if self.before(*a, *b) {
                    std::cmp::Ordering::Less
                } else {
                    std::cmp::Ordering::Greater
                }
            });
        }
        for i in 1..tags.len() {
            let tag = tags[i];
            let mut at = i;
            while at > 0 && self.before(tag, tags[at - 1]) {
                tags[at] = tags[at - 1];
                at -= 1;
            }
            tags[at] = tag;
        }
    }

    /// Copies records in tag order; inlined where their length is a constant.
    #[inline(always)]
    fn gather(&self, tags: &[Tag], out: &mut [u8], record_bytes: usize) {
        let base = self.bytes.as_ptr();
        for (i, out) in out.chunks_exact_mut(record_bytes).enumerate() {
            if let Some(tag) = tags.get(i + AHEAD) {
                let address = base.wrapping_add(tag.place() as usize * record_bytes);
                prefetch_at(address);
                if record_bytes > 32 {
                    prefetch_at(address.wrapping_add(record_bytes - 1));
                }
            }
            let at = tags[i].place() as usize * record_bytes;
            out.copy_from_slice(&self.bytes[at..at + record_bytes]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Order, OrderSpec};
    use crate::record::Format;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_stable_sort(
            keys in prop::collection::vec(prop::collection::vec(0u8..3, 10), 0..600),
            spread in any::<bool>(),
            descending in any::<bool>(),
            len in 1usize..11,
        ) {
            let mut bytes = Vec::new();
            for (number, key) in (0u32..).zip(&keys) {
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
            let mut tags = Buffer::new(keys.len() * size_of::<Tag>());
            bucket.sort(&mut tags, &mut Vec::new(), &mut out);
            prop_assert_eq!(out, expected.concat());
        }
    }
}
