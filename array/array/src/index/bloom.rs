//! A Bloom filter over tags, which are hashes already.

use merganser_storage::numbers::{u64_of, usize_of};

/// Bits for each entry: one wrong answer in about forty.
const BITS_PER_ENTRY: u64 = 8;
const PROBES: u32 = 5;

/// The filter of one run.
pub(crate) struct Bloom {
    words: Vec<u64>,
}

impl Bloom {
    /// Bytes of a filter of `entries` entries.
    pub(crate) fn bytes_of(entries: u64) -> u64 {
        (entries * BITS_PER_ENTRY).div_ceil(64).max(1) * 8
    }

    pub(crate) fn new(entries: u64) -> Bloom {
        Bloom { words: vec![0; usize_of(Self::bytes_of(entries) / 8)] }
    }

    pub(crate) fn bytes(&self) -> u64 {
        u64_of(self.words.len()) * 8
    }

    /// The bits of `tag`: double hashing on two halves of a mixed tag.
    fn bits(&self, tag: u64) -> impl Iterator<Item = u64> {
        let mixed = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (first, step) = (mixed >> 32, (mixed & 0xffff_ffff) | 1);
        let bits = u64_of(self.words.len()) * 64;
        (0..PROBES).map(move |i| {
            // Spread over all bits, also where there are more than 2^32.
            let probe = first.wrapping_add(u64::from(i).wrapping_mul(step)) & 0xffff_ffff;
            let wide = (probe << 32) | (mixed.rotate_left(13 * i) & 0xffff_ffff);
            wide.carrying_mul(bits, 0).1
        })
    }

    pub(crate) fn add(&mut self, tag: u64) {
        let bits: Vec<u64> = self.bits(tag).collect();
        for bit in bits {
            self.words[usize_of(bit / 64)] |= 1 << (bit % 64);
        }
    }

    /// False: it was never added. True: it may have been.
    pub(crate) fn may_have(&self, tag: u64) -> bool {
        self.bits(tag).all(|bit| self.words[usize_of(bit / 64)] >> (bit % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use merganser_testkit::Random;

    #[test]
    fn what_was_added_is_there_and_most_else_is_not() {
        let mut random = Random::new(1);
        let mut bloom = Bloom::new(10_000);
        let tags: Vec<u64> = (0..10_000).map(|_| random.bits()).collect();
        tags.iter().for_each(|&tag| bloom.add(tag));
        assert!(tags.iter().all(|&tag| bloom.may_have(tag)));
        let wrong = (0..10_000).filter(|_| bloom.may_have(random.bits())).count();
        assert!(wrong < 400, "{wrong} of 10,000 wrong answers");
        assert_eq!(bloom.bytes(), 10_000);
    }
}
