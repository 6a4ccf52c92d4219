//! Random numbers from a seed: the same numbers on every machine, in every version.
//!
//! Test data, samples, modelled devices and tests all draw from [`Random`]. Golden files and
//! published figures depend on its numbers, so no function here may change what it returns.
//!
//! ```
//! use merganser_random::Random;
//!
//! let mut random = Random::new(1_234_567);
//! assert_eq!(random.bits(), 6_457_827_717_110_365_317);
//! assert!(random.below(10) < 10);
//! ```
//!
//! The crates rand and rand_xoshiro have the bits of the published SplitMix64, but no range and no fraction by an
//! algorithm that stays.

/// SplitMix64 (Steele, Lea, Flood 2014): a counter and a mixing function, so that any two seeds
/// give unrelated sequences from the first number on.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

/// The odd number that the counter advances by: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// The sequence of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    /// The sequence of record `number` in the data set of `seed`. Each record has its own, so that
    /// records can be made in any order.
    #[must_use]
    pub fn of_record(seed: u64, number: u64) -> Self {
        Random { state: mix(mix(seed.wrapping_add(STEP)) ^ number.wrapping_mul(STEP)) }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A number below `end`. Its bias is below `end` / 2^64.
    ///
    /// # Panics
    /// If `end` is 0.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "no number is below 0");
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// An index below `end`.
    ///
    /// # Panics
    /// If `end` is 0.
    pub fn index(&mut self, end: usize) -> usize {
        self.below(end as u64) as usize
    }

    /// A fraction in `0.0..1.0`.
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True once in `odds` times on average.
    ///
    /// # Panics
    /// If `odds` is 0.
    pub fn one_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }

    /// `len` random bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.bits() as u8).collect()
    }
}

/// A bijection of 64-bit numbers in which every input bit changes about half of the output bits.
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_paper() {
        let mut random = Random::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn bounds_hold() {
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..1000).map(|_| random.below(10)).collect();
        assert!((0..10).all(|n| drawn.contains(&n)) && drawn.iter().all(|&n| n < 10));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.fraction())));
    }

    #[test]
    fn records_and_seeds_have_sequences_of_their_own() {
        let firsts = |seed| (0..1000).map(move |n| Random::of_record(seed, n).bits());
        let mut all: Vec<u64> = (0..4).flat_map(firsts).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 4000);
        assert!((0..1000).all(|n| Random::of_record(9, n).below(7) < 7));
    }
}
