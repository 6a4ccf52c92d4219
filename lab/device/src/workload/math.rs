//! Logarithm and exponential from the four basic operations alone, which IEEE 754 defines to the
//! last bit. The functions of the standard library may differ between machines, and one bit is
//! enough to change a run.

use std::f64::consts::LN_2;

use merganser_random::Random;

/// The natural logarithm of `x`, which is above 0 and finite.
pub(super) fn ln(x: f64) -> f64 {
    const MANTISSA: u32 = f64::MANTISSA_DIGITS - 1;
    debug_assert!(x.is_normal() && x > 0.0, "the logarithm of {x}");
    let bits = x.to_bits();
    let mut exponent = ((bits >> MANTISSA) & 0x7ff) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << MANTISSA) - 1)) | (1023 << MANTISSA));
    // Scaled to 0.75..1.5, where the series below needs few terms.
    if mantissa > 1.5 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 (z + z^3/3 + z^5/5 + …) with z = (m - 1)/(m + 1), |z| <= 0.2: terms fall by 25.
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let square = z * z;
    let mut sum = 0.0;
    for n in (0..12).rev() {
        sum = sum * square + 1.0 / f64::from(2 * n + 1);
    }
    f64::from(exponent) * LN_2 + 2.0 * z * sum
}

/// e to the power of `x`, for results that a float can represent: |x| up to 700.
pub(super) fn exp(x: f64) -> f64 {
    let x = x.clamp(-700.0, 700.0);
    let exponent = (x / LN_2).round();
    // |rest| <= 0.35: the Taylor series ends after 18 terms.
    let rest = x - exponent * LN_2;
    let mut sum = 1.0;
    for n in (1..18).rev() {
        sum = sum * rest / f64::from(n) + 1.0;
    }
    sum * f64::from_bits(((exponent as i64 + 1023) as u64) << 52)
}

/// Draws from the exponential distribution with mean 1.
pub(super) fn exponential(random: &mut Random) -> f64 {
    -ln(1.0 - random.fraction())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_what_the_library_says() {
        let mut random = Random::new(5);
        for _ in 0..10_000 {
            let x = (random.fraction() - 0.5) * 1200.0;
            let ours = exp(x);
            assert!((ours / x.exp() - 1.0).abs() < 1e-13, "exp {x}");
            assert!((ln(ours) - x).abs() < 1e-12, "ln {ours}");
        }
        assert_eq!((ln(1.0), exp(0.0)), (0.0, 1.0));
        assert!((ln(2.0) - LN_2).abs() < 1e-16);
        assert!((ln(1.0 + 1e-9) / 1e-9 - 1.0).abs() < 1e-7);
    }
}
