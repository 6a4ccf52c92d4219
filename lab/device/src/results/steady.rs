//! Whether a run was in a steady state, as SNIA's Solid State Storage Performance Test Specification
//! (SSS PTS) defines it: over five rounds in a row,
//!
//! ```text
//!   range   greatest - least value                      at most 20 % of the mean of the five
//!   slope   rise of the straight line of least squares  at most 10 % of the mean of the five
//! ```
//!
//! A round of the specification is a minute (or a set of tests) in real time. Here it is a 25th of the
//! run, because the specification allows 25 rounds, and a virtual run may last milliseconds or hours.

use super::series::{Bin, DeviceSeries};

/// Rounds that must agree.
pub const WINDOW: usize = 5;
/// The greatest difference of two of them, as a share of their mean.
pub const RANGE: f64 = 0.20;
/// The greatest rise of the line through them, as a share of their mean.
pub const SLOPE: f64 = 0.10;
/// Rounds of a run: this many, or some more.
const ROUNDS: usize = 25;

/// Five rounds in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyWindow {
    /// The mean of the five.
    pub mean: f64,
    /// The greatest less the least, as a share of the mean.
    pub range: f64,
    /// The rise (or fall) of the line of least squares from the first to the last, as a share of the
    /// mean.
    pub slope: f64,
}

impl SteadyWindow {
    /// The window of five values.
    fn of_values(values: &[f64]) -> SteadyWindow {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let middle = (count - 1.0) / 2.0;
        let from_middle = |at: usize| at as f64 - middle;
        let (mut along, mut squares) = (0.0, 0.0);
        for (at, value) in values.iter().enumerate() {
            along += from_middle(at) * (value - mean);
            squares += from_middle(at) * from_middle(at);
        }
        let rise = (along / squares * (count - 1.0)).abs();
        let share = |of: f64| if of == 0.0 { 0.0 } else { of / mean.abs() };
        SteadyWindow { mean, range: share(greatest - least), slope: share(rise) }
    }

    /// Whether they are steady.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.range <= RANGE && self.slope <= SLOPE
    }
}

/// A figure over the rounds of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Tracked {
    /// Its name.
    pub name: &'static str,
    /// Its value in each round.
    pub rounds: Vec<f64>,
    /// The round, counted from 1, that completes the first window that is steady.
    pub reached: Option<usize>,
    /// The last five rounds.
    pub last: SteadyWindow,
}

/// The rounds of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Steadiness {
    /// The duration of a round, in nanoseconds of virtual time.
    pub round_ns: u64,
    /// Requests per second, mean latency, and for a flash device to which the host wrote in every round
    /// the write amplification.
    pub tracked: Vec<Tracked>,
}

impl Steadiness {
    /// The rounds of the requests of `series`, which ended at `end_ns`. `None` if they are too few.
    #[must_use]
    pub fn of_series(series: &DeviceSeries, end_ns: u64) -> Option<Steadiness> {
        let whole = (end_ns / series.bin_ns()) as usize;
        let each = (whole / ROUNDS).max(1);
        if whole / each < WINDOW {
            return None;
        }
        let nothing = Bin::default();
        let bin = |at: usize| series.bins().get(at).unwrap_or(&nothing);
        let round_ns = series.bin_ns() * each as u64;
        let (mut rates, mut latencies, mut amplifications) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..whole / each {
            let bins = || (round * each..(round + 1) * each).map(bin);
            let requests: u64 = bins().map(Bin::requests).sum();
            rates.push(requests as f64 * 1e9 / round_ns as f64);
            if requests > 0 {
                let sum: u128 = bins().map(Bin::latency_sum_ns).sum();
                latencies.push(sum as f64 / requests as f64);
            }
            let host: u64 = bins().map(|bin| bin.flash.host).sum();
            if host > 0 {
                let programmed: u64 = bins().map(|bin| bin.flash.programmed).sum();
                amplifications.push(programmed as f64 / host as f64);
            }
        }
        let count = rates.len();
        let figures = [
            ("requests per second", rates),
            ("mean latency, ns", latencies),
            ("write amplification", amplifications),
        ];
        // A figure that a round lacks can't be compared from round to round.
        let whole = figures.into_iter().filter(|(_, rounds)| rounds.len() == count);
        let tracked = whole.map(|(name, rounds)| {
            let windows: Vec<SteadyWindow> =
                rounds.windows(WINDOW).map(SteadyWindow::of_values).collect();
            let reached = windows.iter().position(SteadyWindow::is_steady).map(|at| at + WINDOW);
            let last = windows[windows.len() - 1];
            Tracked { name, rounds, reached, last }
        });
        Some(Steadiness { round_ns, tracked: tracked.collect() })
    }

    /// Whether all figures were steady in the last five rounds.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.tracked.iter().all(|tracked| tracked.last.is_steady())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::FlashBytes;

    #[test]
    fn a_window_has_the_range_and_the_slope_of_the_specification() {
        let window = SteadyWindow::of_values(&[90.0, 110.0, 100.0, 90.0, 110.0]);
        assert_eq!((window.mean, window.range), (100.0, 0.2));
        // Least squares: (-2*-10 + -1*10 + 1*-10 + 2*10) / 10 = 2 per round, 8 over the window.
        assert!((window.slope - 0.08).abs() < 1e-12, "{window:?}");
        assert!(window.is_steady());
        assert!(!SteadyWindow::of_values(&[90.0, 110.0, 100.0, 90.0, 111.0]).is_steady(), "range");
        // A line that rises by 12 % is in the range, and is not steady.
        let rising = SteadyWindow::of_values(&[94.0, 97.0, 100.0, 103.0, 106.0]);
        assert!(rising.range < RANGE && (rising.slope - 0.12).abs() < 1e-12 && !rising.is_steady());
        let falling = SteadyWindow::of_values(&[106.0, 103.0, 100.0, 97.0, 94.0]);
        assert_eq!(falling.slope, rising.slope);
        assert!(SteadyWindow::of_values(&[0.0; 5]).is_steady(), "nothing is steady, too");
    }

    /// Requests that take longer and longer, then as long as the last: in rounds of 1 ms.
    fn series(rounds: &[u64]) -> (DeviceSeries, u64) {
        let mut series = DeviceSeries::new(FlashBytes::default());
        let mut flash = FlashBytes::default();
        for (round, latency) in rounds.iter().enumerate() {
            for request in 0..100 {
                flash.host += 4096;
                flash.programmed += 4096 * (1 + latency / 100);
                let at = round as u64 * 1_024_000 + request * 10_000;
                series.add(at, false, *latency, Some(flash));
            }
        }
        (series, rounds.len() as u64 * 1_024_000)
    }

    #[test]
    fn a_run_is_steady_from_the_first_five_rounds_that_agree() {
        let latencies: Vec<u64> =
            (0..10).map(|round| 100 * (round + 1)).chain([1000; 15]).collect();
        let (series, end_ns) = series(&latencies);
        let found = Steadiness::of_series(&series, end_ns).expect("enough rounds");
        assert_eq!(found.round_ns, 1_024_000);
        let [rate, latency, amplification] = &found.tracked[..] else { panic!("{found:?}") };
        assert_eq!((rate.name, rate.reached), ("requests per second", Some(5)));
        assert_eq!(latency.rounds, latencies.iter().map(|l| *l as f64).collect::<Vec<_>>());
        // 800, 900 and three times 1000: a line that rises by 200 of 940; 900 and four: by 80 of 980.
        assert_eq!((latency.reached, latency.last.range), (Some(13), 0.0));
        assert_eq!(amplification.rounds[24], 11.0);
        assert!(found.is_steady());
    }

    #[test]
    fn a_run_that_changes_to_its_end_is_not_steady() {
        let (series, end_ns) = series(&(0..25).map(|round| 100 << (round / 2)).collect::<Vec<_>>());
        let found = Steadiness::of_series(&series, end_ns).expect("enough rounds");
        assert!(!found.is_steady());
        assert_eq!(found.tracked[1].reached, None);
    }

    #[test]
    fn too_few_rounds_say_nothing() {
        let mut few = DeviceSeries::new(FlashBytes::default());
        few.add(3000, true, 5, None);
        assert_eq!(Steadiness::of_series(&few, 4000), None);
        // A round without requests has no latency.
        few.add(9000, true, 5, None);
        let found = Steadiness::of_series(&few, 10_000).expect("ten rounds of 1 us");
        assert_eq!(found.tracked.len(), 1, "{found:?}");
        assert!(!found.is_steady());
    }
}
