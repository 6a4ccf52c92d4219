//! Sums over time in bounded memory: a fixed number of bins, twice as wide whenever time has
//! outgrown them.
//!
//! ```text
//!   ├─┼─┼─┼─┤ full        a+b, c+d: no amount is lost or split, so that totals stay exact
//!   ├───┼───┼ ─ ┼ ─ ┤     widths are powers of two, so that any two sets of bins can be made equal
//! ```

/// Bins at most.
pub(super) const BINS: usize = 512;
/// Width of the first bins: 2^16 ns, or 66 µs.
pub(super) const FIRST_SHIFT: u32 = 16;

/// `COLUMNS` amounts a bin.
#[derive(Debug, Clone)]
pub(super) struct Bins<const COLUMNS: usize> {
    /// A bin is `1 << shift` nanoseconds wide.
    shift: u32,
    sums: Vec<[u64; COLUMNS]>,
}

impl<const COLUMNS: usize> Bins<COLUMNS> {
    pub(super) fn new() -> Self {
        Bins { shift: FIRST_SHIFT, sums: Vec::new() }
    }

    pub(super) fn shift(&self) -> u32 {
        self.shift
    }

    /// Adds `amount` to the bin of the moment `at_ns`.
    pub(super) fn add(&mut self, column: usize, at_ns: u64, amount: u64) {
        self.reach(at_ns);
        self.sums[(at_ns >> self.shift) as usize][column] += amount;
    }

    /// Adds `rate` for every nanosecond from `from_ns` to `to_ns`.
    pub(super) fn spread(&mut self, column: usize, from_ns: u64, to_ns: u64, rate: u64) {
        if from_ns >= to_ns {
            return;
        }
        self.reach(to_ns - 1);
        let mut at = from_ns;
        while at < to_ns {
            let bin = at >> self.shift;
            let end = to_ns.min((bin + 1) << self.shift);
            self.sums[bin as usize][column] += (end - at) * rate;
            at = end;
        }
    }

    /// Makes bins as wide as `1 << shift` nanoseconds; they never get narrower.
    pub(super) fn widen(&mut self, shift: u32) {
        while self.shift < shift {
            for to in 0..self.sums.len().div_ceil(2) {
                let mut sum = self.sums[2 * to];
                if let Some(other) = self.sums.get(2 * to + 1) {
                    sum.iter_mut().zip(other).for_each(|(sum, other)| *sum += other);
                }
                self.sums[to] = sum;
            }
            self.sums.truncate(self.sums.len().div_ceil(2));
            self.shift += 1;
        }
    }

    /// The amounts of one column, bin by bin, `len` bins long.
    pub(super) fn column(&self, column: usize, len: usize) -> Vec<u64> {
        let sums = self.sums.iter().map(|bin| bin[column]);
        sums.chain(std::iter::repeat(0)).take(len).collect()
    }

    /// Sees to it that there is a bin of the moment `at_ns`.
    fn reach(&mut self, at_ns: u64) {
        let mut shift = self.shift;
        while at_ns >> shift >= BINS as u64 {
            shift += 1;
        }
        self.widen(shift);
        let bin = (at_ns >> self.shift) as usize;
        if bin >= self.sums.len() {
            self.sums.resize(bin + 1, [0; COLUMNS]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_stretch_is_shared_between_the_bins_it_crosses() {
        let mut bins = Bins::<1>::new();
        let width = 1 << FIRST_SHIFT;
        bins.spread(0, width - 1, 2 * width + 5, 3);
        assert_eq!(bins.column(0, 4), [3, 3 * width, 15, 0]);
        bins.widen(FIRST_SHIFT + 1);
        assert_eq!(bins.column(0, 2), [3 + 3 * width, 15]);
    }

    proptest! {
        /// However wide the bins became on the way, each holds exactly what fell into it.
        #[test]
        fn bins_hold_what_a_bin_of_one_nanosecond_would(
            stretches in prop::collection::vec((0u64..1 << 28, 0u64..1 << 26, 1u64..5), 1..40),
        ) {
            let mut bins = Bins::<2>::new();
            for (from, len, rate) in &stretches {
                bins.spread(0, *from, from + len, *rate);
                bins.add(1, *from, *rate);
            }
            prop_assert!(bins.sums.len() <= BINS);
            for (number, bin) in bins.sums.iter().enumerate() {
                let (start, end) = ((number as u64) << bins.shift, (number as u64 + 1) << bins.shift);
                let spread = stretches.iter().map(|(from, len, rate)| {
                    rate * (from + len).min(end).saturating_sub(start.max(*from))
                });
                let added = stretches.iter().filter(|(from, ..)| (start..end).contains(from));
                prop_assert_eq!(*bin, [spread.sum::<u64>(), added.map(|(.., rate)| rate).sum()]);
            }
        }
    }
}
