//! Numbers that follow Zipf's law, for any exponent and without a table.
//!
//! Rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from
//! monotone discrete distributions", ACM TOMACS 6, 1996): x is drawn from the continuous density
//! x^-theta by inverting its integral H, rounded, and kept with a probability that corrects for the
//! rounding; at least 7 of 10 are kept at once.

use merganser_random::Random;

use super::math::{exp, ln};

/// Numbers 1 to n with probabilities proportional to k^-theta.
#[derive(Debug, Clone)]
pub(super) struct Zipf {
    theta: f64,
    n: u64,
    /// H(1.5) - 1 and H(n + 0.5): the range to draw from.
    first: f64,
    last: f64,
    /// A rounded number below this distance is accepted at once.
    sure: f64,
}

impl Zipf {
    pub(super) fn new(n: u64, theta: f64) -> Self {
        let mut zipf = Zipf { theta, n, first: 0.0, last: 0.0, sure: 0.0 };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(n as f64 + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.last + random.fraction() * (self.first - self.last);
            let x = self.inverse(u);
            let k = ((x + 0.5) as u64).clamp(1, self.n);
            let whole = k as f64;
            if whole - x <= self.sure || u >= self.integral(whole + 0.5) - self.density(whole) {
                return k;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        exp(-self.theta * ln(x))
    }

    /// The integral of the density, 0 at 1: (x^(1-theta) - 1) / (1 - theta), or ln x.
    fn integral(&self, x: f64) -> f64 {
        let log = ln(x);
        let t = (1.0 - self.theta) * log;
        // Near theta = 1 the quotient loses its digits; the series does not.
        if t.abs() < 1e-5 {
            log * (1.0 + t / 2.0 + t * t / 6.0)
        } else {
            (exp(t) - 1.0) / (1.0 - self.theta)
        }
    }

    fn inverse(&self, h: f64) -> f64 {
        let t = h * (1.0 - self.theta);
        if t.abs() < 1e-5 {
            exp(h * (1.0 - t / 2.0 + t * t / 3.0))
        } else {
            // Rounding may give 0 at the far end, so the result is clamped.
            exp(ln((1.0 + t).max(f64::MIN_POSITIVE)) / (1.0 - self.theta))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_the_laws() {
        const DRAWS: u32 = 200_000;
        for theta in [0.0, 0.5, 0.99, 1.0, 1.3, 3.0] {
            let n = 20;
            let zipf = Zipf::new(n, theta);
            let mut random = Random::new(11);
            let mut counts = vec![0_u32; n as usize + 1];
            for _ in 0..DRAWS {
                counts[zipf.draw(&mut random) as usize] += 1;
            }
            let total: f64 = (1..=n).map(|k| (k as f64).powf(-theta)).sum();
            for k in 1..=n {
                let expected = (k as f64).powf(-theta) / total * f64::from(DRAWS);
                let found = f64::from(counts[k as usize]);
                // Five standard deviations of a binomial.
                let slack = 5.0 * expected.sqrt() + 1.0;
                assert!((found - expected).abs() < slack, "{theta}, {k}: {found}, {expected}");
            }
        }
    }

    #[test]
    fn any_number_of_numbers() {
        let mut random = Random::new(1);
        for n in [1, 2, 1 << 40] {
            for theta in [0.0, 1.0, 10.0] {
                let zipf = Zipf::new(n, theta);
                assert!((0..1000).all(|_| (1..=n).contains(&zipf.draw(&mut random))));
            }
        }
    }
}
