//! The Sort Benchmark's random numbers.

use merganser_random::Random;

/// The Sort Benchmark's 128-bit linear congruential generator: `f(x) = A x + C` modulo 2^128, from
/// 0 on.
///
/// `C` begins with the letters `JimGrayRIP` and is odd, `A` is from L'Ecuyer's tables (Mathematics
/// of Computation 68, 1999): the period is 2^128.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lcg {
    state: u128,
}

impl Lcg {
    const A: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;
    const C: u128 = 0x4A69_6D47_7261_7952_4950_2020_2020_2001;

    /// The generator as it stands after `steps` numbers of the sequence of `seed`.
    ///
    /// `f` is affine and so is `f` after `f`: squaring the map reaches any step in 64 rounds.
    pub(crate) fn after(seed: u64, steps: u64) -> Self {
        let mut state = match seed {
            0 => 0,
            _ => {
                let mut random = Random::new(seed);
                (u128::from(random.bits()) << 64) | u128::from(random.bits())
            }
        };
        let (mut a, mut c) = (Self::A, Self::C);
        let mut left = steps;
        while left > 0 {
            if left & 1 == 1 {
                state = state.wrapping_mul(a).wrapping_add(c);
            }
            (a, c) = (a.wrapping_mul(a), c.wrapping_mul(a).wrapping_add(c));
            left >>= 1;
        }
        Lcg { state }
    }

    /// The next number.
    #[inline]
    pub(crate) fn number(&mut self) -> u128 {
        self.state = self.state.wrapping_mul(Self::A).wrapping_add(Self::C);
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::Lcg;

    #[test]
    fn skipping_ahead_is_stepping() {
        for seed in [0, 1, 77] {
            let mut stepped = Lcg::after(seed, 0);
            for steps in 0..300 {
                assert_eq!(
                    Lcg::after(seed, steps).number(),
                    stepped.number(),
                    "seed {seed}, {steps} steps"
                );
            }
        }
        let mut far = Lcg::after(0, u64::MAX - 1);
        far.number();
        assert_eq!(Lcg::after(0, u64::MAX).number(), far.number());
    }

    #[test]
    fn the_sequence_begins_with_the_constant() {
        assert_eq!(Lcg::after(0, 0).number().to_be_bytes()[..10], *b"JimGrayRIP");
    }
}
