//! Latencies in buckets whose width grows with the latency: 64 buckets per doubling, so that a
//! percentile is at most 1.6 % above the true one. Count, sum, least and greatest value are exact.
//!
//! ```text
//!   values    0 … 63 64 … 127   128 … 255     256 … 511
//!   buckets   1 each 1 each     2 in a bucket 4 in a bucket …
//! ```
//!
//! hdrhistogram would not replace it: it computes mean and deviation from its buckets and rounds the extremes. Our
//! means are compared with published ones within 0.1 %, so the exact sums would stay next to it, and only 20 lines
//! of index arithmetic would go.

/// Buckets per doubling, as a power of two.
const BITS: u32 = 6;
const EACH: usize = 1 << BITS;

/// Counts of values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram {
    /// By bucket, up to the highest that is not empty.
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    /// The sum of squares, for the deviation.
    squares: f64,
    min: u64,
    max: u64,
}

/// One bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistogramBucket {
    /// The least value of the bucket.
    pub low: u64,
    /// The greatest value of the bucket.
    pub high: u64,
    /// The number of values in the bucket.
    pub count: u64,
}

impl Histogram {
    /// Adds a value.
    pub fn record(&mut self, value: u64) {
        let at = index(value);
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += u128::from(value);
        self.squares += (value as f64) * (value as f64);
    }

    /// Adds all values of another.
    pub fn add(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, more) in self.counts.iter_mut().zip(&other.counts) {
            *mine += more;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// The number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all values.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The least value; 0 if there are no values.
    #[must_use]
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The greatest value; 0 if there are no values.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean; 0 if there are no values.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The standard deviation; 0 if there are no values.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let mean = self.mean();
        (self.squares / self.count as f64 - mean * mean).max(0.0).sqrt()
    }

    /// The least value that at least this share of all values does not exceed, or at most 1.6 %
    /// more; 0 if there are no values. The share 0.5 gives the median.
    #[must_use]
    pub fn percentile(&self, share: f64) -> u64 {
        let rank = ((share.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for bucket in self.buckets() {
            seen += bucket.count;
            if seen >= rank {
                return bucket.high.clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// The buckets that are not empty, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = HistogramBucket> + '_ {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(at, count)| {
            let (low, high) = bounds(at);
            HistogramBucket { low, high, count: *count }
        })
    }
}

/// The bucket of a value.
fn index(value: u64) -> usize {
    let bits = u64::BITS - value.leading_zeros();
    let shift = bits.saturating_sub(BITS + 1);
    // Each shift adds EACH buckets; the shifted value is in EACH..2 EACH.
    shift as usize * EACH + (value >> shift) as usize
}

/// The first and the last value of a bucket.
fn bounds(at: usize) -> (u64, u64) {
    let shift = (at / EACH).saturating_sub(1);
    let low = ((at - shift * EACH) as u64) << shift;
    (low, low + ((1 << shift) - 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_lie_side_by_side() {
        let mut next = 0;
        for at in 0..index(u64::MAX) {
            let (low, high) = bounds(at);
            assert_eq!((low, index(low), index(high)), (next, at, at));
            next = high + 1;
        }
        assert_eq!(bounds(index(u64::MAX)).1, u64::MAX);
    }

    #[test]
    fn what_is_empty_is_zero() {
        let empty = Histogram::default();
        assert_eq!((empty.percentile(0.5), empty.mean(), empty.deviation()), (0, 0.0, 0.0));
        let mut one = Histogram::default();
        one.record(0);
        one.add(&empty);
        assert_eq!((one.count(), one.percentile(1.0)), (1, 0));
    }

    proptest! {
        #[test]
        fn percentiles_are_near_and_the_rest_is_exact(
            values in prop::collection::vec(prop_oneof![0..1000_u64, 0..1_u64 << 40, any::<u64>().prop_map(|v| v / 1000)], 1..300),
            share in 0.0..=1.0_f64,
            cut in any::<prop::sample::Index>(),
        ) {
            let mut all = Histogram::default();
            for value in &values {
                all.record(*value);
            }
            let (first, second) = values.split_at(cut.index(values.len()));
            let of = |part: &[u64]| {
                let mut histogram = Histogram::default();
                part.iter().for_each(|value| histogram.record(*value));
                histogram
            };
            let mut both = of(first);
            both.add(&of(second));
            prop_assert_eq!((both.counts.clone(), both.count, both.sum, both.min, both.max), (all.counts.clone(), all.count, all.sum, all.min, all.max));

            let mut sorted = values.clone();
            sorted.sort_unstable();
            let rank = ((share * values.len() as f64).ceil() as usize).max(1);
            let (exact, near) = (sorted[rank - 1], all.percentile(share));
            prop_assert!(exact <= near && near - exact <= exact / 64, "{exact} {near}");
            prop_assert_eq!((all.min(), all.max()), (sorted[0], sorted[values.len() - 1]));
            let mean = values.iter().map(|v| *v as f64).sum::<f64>() / values.len() as f64;
            prop_assert!((all.mean() - mean).abs() <= mean * 1e-9);
        }
    }
}
