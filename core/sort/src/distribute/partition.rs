//! Which bucket a record belongs to: splitters chosen from a sample, and the search for them.
//!
//! ```text
//!   keys     ·····│·······│·│······│·····      bucket i: splitter i-1 <= key < splitter i
//!   splitter      a       k k\0    x           a key k that takes more than a bucket's share gets a
//!   bucket     0      1    2   3     4         bucket of its own: k\0 is the least key above k
//! ```
//!
//! A record is found by its key's first eight bytes. A table over their leading bits gives a few
//! candidate splitters, a branch-free search chooses among those, and whole keys are compared only
//! where eight bytes are equal.

use crate::access::KeyAccess;
use crate::key::{Order, Place};
use crate::{Conflict, Result};

/// Slots of the table: 16 KiB, which stay in the first-level cache.
const SLOTS: usize = 4096;
/// The most buckets of one partition.
pub(super) const BUCKETS_MAX: usize = 8192;

/// A key of a sample: its prefix as [`KeyAccess::load`] gives it, and all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SampleKey {
    pub(super) key: Vec<u8>,
    pub(super) prefix: u64,
}

impl SampleKey {
    pub(super) fn of_record<A: KeyAccess>(access: A, order: &Order, record: &[u8]) -> Self {
        let prefix = access.load(record, &mut A::Kept::default());
        let mut key = Vec::new();
        order.encode_full(record, &mut key);
        SampleKey { key, prefix }
    }
}

/// The bucket of each key.
#[derive(Debug, Clone)]
pub(super) struct Partition {
    prefixes: Vec<u64>,
    keys: Vec<Vec<u8>>,
    /// For each bucket, whether one key alone can be in it.
    one_key: Vec<bool>,
    base: u64,
    shift: u32,
    /// For each slot, the splitters in slots before it, and those and its own.
    slots: Vec<(u16, u16)>,
}

impl Partition {
    /// At most `buckets` buckets that hold about as many keys of `sample` each.
    pub(super) fn choose(sample: &mut [SampleKey], buckets: usize) -> Self {
        let buckets = buckets.clamp(1, BUCKETS_MAX);
        sample.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let mut chosen: Vec<SampleKey> = Vec::new();
        let mut one_key = vec![false];
        for i in 1..buckets {
            let Some(candidate) = sample.get(i * sample.len() / buckets) else { break };
            match chosen.last() {
                Some(last) if last.key == candidate.key => {
                    // A second share of the same key: it ends with the bucket that began with it.
                    let mut above = candidate.clone();
                    above.key.push(0);
                    *one_key.last_mut().expect("one a splitter") = true;
                    chosen.push(above);
                    one_key.push(false);
                }
                Some(last) if last.key > candidate.key => {}
                _ => {
                    chosen.push(candidate.clone());
                    one_key.push(false);
                }
            }
        }
        Self::new(chosen, one_key)
    }

    /// Trusts that the leading bits of keys are uniform: no sample is needed.
    ///
    /// # Errors
    /// [`Conflict::UniformKeys`] for keys that are not a fixed number of bytes of the record.
    pub(super) fn uniform(order: &Order, buckets: usize) -> Result<Self> {
        let fixed = order.direct().filter(|key| matches!(key.place, Place::Range { .. }));
        if fixed.is_none() {
            return Err(Conflict::UniformKeys.into());
        }
        let buckets = buckets.clamp(1, BUCKETS_MAX) as u128;
        let splitters: Vec<SampleKey> = (1..buckets)
            .map(|i| ((i << 64) / buckets) as u64)
            .map(|prefix| {
                // Without zeros at the end, for keys may be shorter than eight bytes.
                let len = 8 - prefix.trailing_zeros() as usize / 8;
                SampleKey { key: prefix.to_be_bytes()[..len].to_vec(), prefix }
            })
            .collect();
        let one_key = vec![false; splitters.len() + 1];
        Ok(Self::new(splitters, one_key))
    }

    fn new(splitters: Vec<SampleKey>, one_key: Vec<bool>) -> Self {
        let prefixes: Vec<u64> = splitters.iter().map(|s| s.prefix).collect();
        let base = prefixes.first().copied().unwrap_or(0);
        let spread = prefixes.last().copied().unwrap_or(0) - base;
        let shift = (u64::BITS - spread.leading_zeros()).saturating_sub(SLOTS.ilog2());
        let mut slots = vec![(0, 0); SLOTS];
        let slot = |prefix: u64| ((prefix - base) >> shift) as usize;
        for (number, slot) in slots.iter_mut().enumerate() {
            let before = prefixes.partition_point(|p| ((p - base) >> shift) < number as u64);
            *slot = (before as u16, before as u16);
        }
        for prefix in &prefixes {
            slots[slot(*prefix)].1 += 1;
        }
        let keys = splitters.into_iter().map(|s| s.key).collect();
        Partition { prefixes, keys, one_key, base, shift, slots }
    }

    /// Number of buckets.
    pub(super) fn buckets(&self) -> usize {
        self.one_key.len()
    }

    /// The least full key of bucket `bucket`, and whether it is the only one.
    pub(super) fn lower(&self, bucket: usize) -> (&[u8], bool) {
        let lower = bucket.checked_sub(1).map_or(&[][..], |i| &self.keys[i]);
        (lower, self.one_key[bucket])
    }

    /// Bytes of memory it holds.
    pub(super) fn memory_bytes(&self) -> u64 {
        let keys: usize = self.keys.iter().map(|key| key.len() + size_of::<Vec<u8>>()).sum();
        (keys + self.prefixes.len() * 8 + SLOTS * 4) as u64
    }

    /// The bucket of a record whose key begins with `prefix`; `full` gives all of the key.
    #[inline]
    pub(super) fn bucket_of<'k>(&self, prefix: u64, full: impl FnOnce() -> &'k [u8]) -> usize {
        let slot = (prefix.saturating_sub(self.base) >> self.shift).min(SLOTS as u64 - 1);
        let (low, high) = self.slots[slot as usize];
        let (mut low, high) = (usize::from(low), usize::from(high));
        let mut left = high - low;
        while left > 1 {
            let half = left / 2;
            low = if self.prefixes[low + half - 1] < prefix { low + half } else { low };
            left -= half;
        }
        if left == 1 && self.prefixes[low] < prefix {
            low += 1;
        }
        if low < high && self.prefixes[low] == prefix {
            return self.bucket_of_tie(low, prefix, full());
        }
        low
    }

    /// Splitters from `low` on begin with the same eight bytes as the key.
    #[inline(never)]
    fn bucket_of_tie(&self, low: usize, prefix: u64, key: &[u8]) -> usize {
        let same = self.prefixes[low..].partition_point(|p| *p == prefix);
        low + self.keys[low..low + same].partition_point(|splitter| &splitter[..] <= key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prefix::prefix_at;
    use proptest::prelude::*;

    fn sample_key(key: &[u8]) -> SampleKey {
        SampleKey { key: key.to_vec(), prefix: prefix_at(key, 0) }
    }

    fn bucket(partition: &Partition, key: &[u8]) -> usize {
        partition.bucket_of(prefix_at(key, 0), || key)
    }

    #[test]
    fn a_heavy_key_gets_a_bucket_of_its_own() {
        let mut sample: Vec<SampleKey> = (0..30u8)
            .flat_map(|i| [vec![b'a', i], b"heavy".to_vec(), b"heavy".to_vec(), vec![b'z', i]])
            .map(|key| sample_key(&key))
            .collect();
        let partition = Partition::choose(&mut sample, 8);
        let of_heavy = bucket(&partition, b"heavy");
        assert_eq!(partition.lower(of_heavy), (&b"heavy"[..], true));
        assert!(bucket(&partition, b"heavy\0") > of_heavy);
        assert!(bucket(&partition, b"heavx") < of_heavy);
    }

    #[test]
    fn uniform_keys_need_no_sample() {
        let spec = crate::key::OrderSpec {
            keys: vec!["0:2".to_owned()],
            ..crate::key::OrderSpec::new(crate::record::Format::Fixed { bytes: 4 })
        };
        let order = spec.compile(None).expect("compiles");
        let partition = Partition::uniform(&order, 4).expect("fixed");
        for (key, expected) in [([0, 0], 0), ([63, 255], 0), ([64, 0], 1), ([255, 255], 3)] {
            assert_eq!(bucket(&partition, &key), expected);
        }
        let lines = crate::key::OrderSpec::new(crate::record::Format::Lines { delimiter: b'\n' });
        assert!(Partition::uniform(&lines.compile(None).expect("compiles"), 4).is_err());
    }

    proptest! {
        #[test]
        fn the_search_agrees_with_counting_splitters(
            sample in prop::collection::vec(prop::collection::vec(0u8..3, 0..11), 0..200),
            keys in prop::collection::vec(prop::collection::vec(0u8..3, 0..11), 50),
            stem in prop::collection::vec(any::<u8>(), 0..10),
            buckets in 1usize..40,
        ) {
            let with_stem = |key: &Vec<u8>| [&stem[..], key].concat();
            let mut sample: Vec<SampleKey> =
                sample.iter().map(|key| sample_key(&with_stem(key))).collect();
            let partition = Partition::choose(&mut sample, buckets);
            prop_assert!(partition.buckets() <= buckets);
            prop_assert!(partition.keys.is_sorted_by(|a, b| a < b));
            for key in keys.iter().map(with_stem).chain(keys.clone()) {
                let expected = partition.keys.iter().filter(|s| **s <= key).count();
                prop_assert_eq!(bucket(&partition, &key), expected);
                let (lower, one_key) = partition.lower(expected);
                prop_assert!(lower <= &key[..] && (!one_key || lower == key));
            }
        }
    }
}
