//! Straight lines through figures, by least squares.

/// `at_zero + slope x`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FittedLine {
    pub at_zero: f64,
    pub slope: f64,
}

impl FittedLine {
    /// The line with the least squares of vertical distances; `None` for fewer than two places.
    pub(super) fn fitted(points: &[(f64, f64)]) -> Option<FittedLine> {
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
        let both: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
        let slope = both / spread;
        slope.is_finite().then_some(FittedLine { at_zero: y - slope * x, slope })
    }

    /// Where the two lines meet; `None` if they are parallel.
    pub(super) fn meets(&self, other: &FittedLine) -> Option<f64> {
        let x = (other.at_zero - self.at_zero) / (self.slope - other.slope);
        x.is_finite().then_some(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_again_and_meets_another_one() {
        let points = [1.0, 2.0, 5.0].map(|x| (x, 3.0 + 2.0 * x));
        let line = FittedLine::fitted(&points).expect("three places");
        assert!((line.at_zero - 3.0).abs() < 1e-12 && (line.slope - 2.0).abs() < 1e-12);
        let other = FittedLine { at_zero: 9.0, slope: 0.5 };
        assert!((line.meets(&other).expect("they do") - 4.0).abs() < 1e-12);
        assert_eq!(line.meets(&FittedLine { at_zero: 7.0, ..line }), None);
        for few in [&[][..], &[(1.0, 2.0)], &[(1.0, 2.0), (1.0, 3.0)]] {
            assert_eq!(FittedLine::fitted(few), None, "{few:?}");
        }
    }
}
