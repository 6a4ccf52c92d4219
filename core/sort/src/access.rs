//! How hot loops read keys: directly from the record, or encoded into a buffer next to it.
//!
//! [`with_access!`] compiles a loop once for each pair of framing and access.

use std::cmp::Ordering;

use crate::key::{DirectKey, Order};
use crate::prefix::prefix_at;

/// Reads and compares keys without knowing which kind they are.
pub(crate) trait KeyAccess: Copy + Send + Sync {
    /// Data that is kept with a record while it is looked at.
    type Kept: Default + Send;

    /// Reads the key of `record` into `kept`; returns its prefix, ascending in key order.
    fn load(self, record: &[u8], kept: &mut Self::Kept) -> u64;

    /// Bytes of the encoded key that is kept; 0 when the key is read from the record.
    fn kept_bytes(kept: &Self::Kept) -> usize;

    /// The first sixteen bytes of a loaded record's key, ascending in key order. `prefix` is what
    /// [`KeyAccess::load`] returned.
    fn widen(self, record: &[u8], kept: &Self::Kept, prefix: u64) -> u128;

    /// Compares the keys of two loaded records.
    fn compare_keys(self, a: (&[u8], &Self::Kept), b: (&[u8], &Self::Kept)) -> Ordering;

    /// Compares two loaded records in full; `Equal` means input order decides.
    fn compare(self, a: (&[u8], &Self::Kept), b: (&[u8], &Self::Kept)) -> Ordering;
}

/// The record contains the key as it is.
#[derive(Clone, Copy)]
pub(crate) struct DirectAccess(pub(crate) DirectKey);

impl KeyAccess for DirectAccess {
    type Kept = ();

    #[inline]
    fn kept_bytes(_kept: &()) -> usize {
        0
    }

    #[inline]
    fn load(self, record: &[u8], _kept: &mut ()) -> u64 {
        let prefix = prefix_in(record, self.0.place.of_record(record), 0);
        if self.0.descending { !prefix } else { prefix }
    }

    #[inline]
    fn widen(self, record: &[u8], _kept: &(), prefix: u64) -> u128 {
        let next = prefix_in(record, self.0.place.of_record(record), 8);
        join(prefix, if self.0.descending { !next } else { next })
    }

    #[inline]
    fn compare_keys(self, a: (&[u8], &()), b: (&[u8], &())) -> Ordering {
        let order = self.0.place.of_record(a.0).cmp(self.0.place.of_record(b.0));
        if self.0.descending { order.reverse() } else { order }
    }

    #[inline]
    fn compare(self, a: (&[u8], &()), b: (&[u8], &())) -> Ordering {
        self.compare_keys(a, b)
    }
}

/// The key is encoded next to the record.
#[derive(Clone, Copy)]
pub(crate) struct EncodedAccess<'a>(pub(crate) &'a Order);

impl KeyAccess for EncodedAccess<'_> {
    type Kept = Vec<u8>;

    #[inline]
    fn kept_bytes(kept: &Vec<u8>) -> usize {
        kept.len()
    }

    #[inline]
    fn load(self, record: &[u8], kept: &mut Vec<u8>) -> u64 {
        kept.clear();
        self.0.encode(record, kept);
        prefix_at(kept, 0)
    }

    #[inline]
    fn widen(self, _record: &[u8], kept: &Vec<u8>, prefix: u64) -> u128 {
        join(prefix, prefix_at(kept, 8))
    }

    #[inline]
    fn compare_keys(self, a: (&[u8], &Vec<u8>), b: (&[u8], &Vec<u8>)) -> Ordering {
        a.1.cmp(b.1)
    }

    #[inline]
    fn compare(self, a: (&[u8], &Vec<u8>), b: (&[u8], &Vec<u8>)) -> Ordering {
        self.compare_keys(a, b).then_with(|| {
            let (x, y) = (resort_bytes(a.0), resort_bytes(b.0));
            match self.0.last_resort() {
                None => Ordering::Equal,
                Some(false) => x.cmp(y),
                Some(true) => y.cmp(x),
            }
        })
    }
}

/// [`prefix_at`] of a key in `record`. Where the record has enough bytes after the key, one load of
/// eight bytes is enough.
#[inline]
fn prefix_in(record: &[u8], key: &[u8], depth: usize) -> u64 {
    let at = key.as_ptr() as usize - record.as_ptr() as usize + depth;
    let left = key.len().saturating_sub(depth);
    match record.get(at..at + 8) {
        Some(bytes) if left > 0 => {
            let word = u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
            word & u64::MAX << (8 * (8 - left.min(8)))
        }
        _ => prefix_at(key, depth),
    }
}

#[inline]
fn join(first: u64, second: u64) -> u128 {
    u128::from(first) << 64 | u128::from(second)
}

/// The bytes that the last resort compares: the record without its terminator.
#[inline]
pub(crate) fn resort_bytes(record: &[u8]) -> &[u8] {
    &record[..record.len() - 1]
}

/// Runs `$body` with `$framing` and `$access` bound for `$order`, compiled once for each pair.
macro_rules! with_access {
    ($order:expr, $framing:ident, $access:ident => $body:expr) => {{
        let order: &$crate::key::Order = $order;
        $crate::record::with_framing!(order.format(), $framing => match order.direct() {
            Some(key) => {
                let $access = $crate::access::DirectAccess(key);
                $body
            }
            None => {
                let $access = $crate::access::EncodedAccess(order);
                $body
            }
        })
    }};
}
pub(crate) use with_access;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_in_a_record_are_those_of_the_key_alone() {
        let record: Vec<u8> = (1..=40).collect();
        for start in 0..=record.len() {
            for end in start..=record.len() {
                let key = &record[start..end];
                for depth in 0..20 {
                    assert_eq!(prefix_in(&record, key, depth), prefix_at(key, depth));
                }
            }
        }
    }
}
