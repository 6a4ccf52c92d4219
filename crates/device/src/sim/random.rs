//! Random numbers of one seed.

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers from the same seed, on any machine.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The generator that `seed` fixes.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    ///
    /// # Panics
    /// When `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "nothing is below 0");
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// A fraction in `0.0..1.0`.
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
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
}
