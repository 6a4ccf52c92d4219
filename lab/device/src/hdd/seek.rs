//! The time that the arm takes over a distance.

/// The curve through three figures of a data sheet: to the next track, over the mean distance, over
/// the full stroke (Lee, "Software and performance issues in the implementation of a RAID prototype",
/// 1993; DiskSim's three-point curve):
///
/// ```text
///   t(d) = c + a sqrt(d - 1) + b (d - 1)     d cylinders, 1 to n + 1
///   c = track    a = (15 mean - 10 track - 5 full) / (3 sqrt n)
///                b = (7 track - 15 mean + 8 full) / (3 n)
/// ```
///
/// The distance of two random cylinders has the density 2 (1 - u) over the stroke, so E sqrt u =
/// 8/15 and E u = 1/3, and the mean of t is exactly `mean`.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeekCurve {
    a: f64,
    b: f64,
    track_ns: f64,
}

impl SeekCurve {
    /// The curve for a stroke of `n` cylinders.
    pub(super) fn new(n: u64, track_ns: u64, mean_ns: u64, full_ns: u64) -> Self {
        let (track, mean, full) = (track_ns as f64, mean_ns as f64, full_ns as f64);
        let n = n as f64;
        SeekCurve {
            a: (15.0 * mean - 10.0 * track - 5.0 * full) / (3.0 * n.sqrt()),
            b: (7.0 * track - 15.0 * mean + 8.0 * full) / (3.0 * n),
            track_ns: track,
        }
    }

    /// The time over `distance` cylinders.
    pub(super) fn seek_ns(&self, distance: u64) -> u64 {
        let Some(more) = distance.checked_sub(1) else { return 0 };
        // A conversion from or to a signed number is one instruction, and the search for the nearest job does two for
        // each job. No distance or time comes near 2^63.
        let more = more as i64 as f64;
        let time_ns = self.track_ns + self.a * more.sqrt() + self.b * more;
        // The nearest whole number. `round` is a call on processors without SSE 4.1, and the search spent a tenth of its
        // time there.
        (time_ns + 0.5) as i64 as u64
    }
}

#[cfg(test)]
mod tests {
    use merganser_random::Random;

    use super::*;

    #[test]
    fn the_curve_goes_through_its_three_figures() {
        let n = 80_000;
        let curve = SeekCurve::new(n, 200_000, 3_500_000, 7_400_000);
        assert_eq!((curve.seek_ns(0), curve.seek_ns(1)), (0, 200_000));
        assert!(curve.seek_ns(n + 1).abs_diff(7_400_000) <= 1);
        let mut last = 0;
        for distance in (0..=n).step_by(97) {
            assert!(curve.seek_ns(distance) >= last, "farther is never sooner");
            last = curve.seek_ns(distance);
        }
        let mut random = Random::new(1);
        let draws = 200_000_u32;
        let total: u64 =
            (0..draws).map(|_| curve.seek_ns(random.below(n).abs_diff(random.below(n)))).sum();
        let mean = total as f64 / f64::from(draws);
        assert!((mean / 3_500_000.0 - 1.0).abs() < 0.005, "{mean}");
    }
}
