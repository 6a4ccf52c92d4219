//! Requests, latencies and flash bytes over time, in bins whose width doubles when the last bin is full:
//! every span of time takes the same memory.

use super::Histogram;
use crate::device::FlashBytes;

/// The greatest number of bins. A bin has two histograms, some 10 KB.
const BINS: usize = 256;
/// The width of a bin at first, in nanoseconds.
const FIRST_NS: u64 = 1000;

/// The requests that ended in a span of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bin {
    /// Latencies of reads, in nanoseconds.
    pub reads: Histogram,
    /// Latencies of writes, in nanoseconds.
    pub writes: Histogram,
    /// Bytes that a flash device took from the host and programmed.
    pub flash: FlashBytes,
}

impl Bin {
    /// The number of reads and writes.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.reads.count() + self.writes.count()
    }

    /// The sum of the latencies of reads and writes, in nanoseconds.
    #[must_use]
    pub fn latency_sum_ns(&self) -> u128 {
        self.reads.sum() + self.writes.sum()
    }

    /// Bytes programmed per byte that the host wrote; `None` if it wrote none.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let FlashBytes { host, programmed } = self.flash;
        (host > 0).then(|| programmed as f64 / host as f64)
    }

    fn add(&mut self, other: &Bin) {
        self.reads.add(&other.reads);
        self.writes.add(&other.writes);
        self.flash.host += other.flash.host;
        self.flash.programmed += other.flash.programmed;
    }
}

/// What happened over time.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceSeries {
    bin_ns: u64,
    bins: Vec<Bin>,
    /// What the device had counted at the last request.
    last: FlashBytes,
}

impl DeviceSeries {
    /// An empty series of a device that has counted `flash` so far.
    #[must_use]
    pub fn new(flash: FlashBytes) -> Self {
        DeviceSeries { bin_ns: FIRST_NS, bins: Vec::new(), last: flash }
    }

    /// Adds a read (or a write) that ended at `at_ns` after the start; the device has counted `flash`.
    pub fn add(&mut self, at_ns: u64, read: bool, latency_ns: u64, flash: Option<FlashBytes>) {
        let mut at = at_ns / self.bin_ns;
        while at >= BINS as u64 {
            self.bin_ns *= 2;
            at = at_ns / self.bin_ns;
            let pairs = self.bins.chunks(2).map(|pair| {
                let mut bin = pair[0].clone();
                pair[1..].iter().for_each(|more| bin.add(more));
                bin
            });
            self.bins = pairs.collect();
        }
        let at = at as usize;
        if self.bins.len() <= at {
            self.bins.resize_with(at + 1, Bin::default);
        }
        let bin = &mut self.bins[at];
        let histogram = if read { &mut bin.reads } else { &mut bin.writes };
        histogram.record(latency_ns);
        if let Some(now) = flash {
            bin.flash.host += now.host.saturating_sub(self.last.host);
            bin.flash.programmed += now.programmed.saturating_sub(self.last.programmed);
            self.last = now;
        }
    }

    /// The width of a bin, in nanoseconds.
    #[must_use]
    pub fn bin_ns(&self) -> u64 {
        self.bin_ns
    }

    /// The bins, up to the last one in which a request ended.
    #[must_use]
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// The nanoseconds of bin `at` before `end_ns`, at least 1.
    #[must_use]
    pub fn covered_ns(&self, at: usize, end_ns: u64) -> u64 {
        self.bin_ns.min(end_ns.saturating_sub(at as u64 * self.bin_ns)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_double_and_lose_nothing() {
        let mut series = DeviceSeries::new(FlashBytes { host: 100, programmed: 50 });
        for at in 0..2000_u64 {
            let flash = FlashBytes { host: 100 + at * 4, programmed: 50 + at * 10 };
            series.add(at * 700, at % 4 == 0, at, Some(flash));
        }
        // 1.4 ms in bins of 8 us.
        assert_eq!((series.bin_ns(), series.bins().len()), (8000, 175));
        let sum = |of: &dyn Fn(&Bin) -> u64| series.bins().iter().map(of).sum::<u64>();
        assert_eq!((sum(&|bin| bin.reads.count()), sum(&|bin| bin.writes.count())), (500, 1500));
        assert_eq!(sum(&|bin| bin.latency_sum_ns() as u64), 2000 * 1999 / 2);
        assert_eq!((sum(&|bin| bin.flash.host), sum(&|bin| bin.flash.programmed)), (7996, 19_990));
        assert_eq!(series.bins()[100].write_amplification(), Some(2.5));
        // From 800 to 808 us, one each 700 ns.
        assert_eq!(series.bins()[100].requests(), 12);
        assert_eq!(
            (series.covered_ns(174, 1_399_300), series.covered_ns(0, 1_399_300)),
            (7300, 8000)
        );
    }

    #[test]
    fn a_disk_amplifies_nothing() {
        let mut series = DeviceSeries::new(FlashBytes::default());
        series.add(1, false, 5, None);
        assert_eq!(series.bins()[0].write_amplification(), None);
    }
}
