//! Bytes over time, in bins whose width doubles when the last bin is full: every span of time takes
//! the same memory.

/// The greatest number of bins.
const BINS: usize = 512;
/// The width of a bin at first, in nanoseconds.
const FIRST_NS: u64 = 1000;

/// Bytes read and written over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteTimeline {
    bin_ns: u64,
    read: Vec<u64>,
    written: Vec<u64>,
}

impl Default for ByteTimeline {
    fn default() -> Self {
        Self::new()
    }
}

impl ByteTimeline {
    /// An empty timeline.
    #[must_use]
    pub fn new() -> Self {
        ByteTimeline { bin_ns: FIRST_NS, read: Vec::new(), written: Vec::new() }
    }

    /// Adds `bytes` that were read (or written) at `at_ns` after the start.
    pub fn add(&mut self, at_ns: u64, read: bool, bytes: u64) {
        let mut at = at_ns / self.bin_ns;
        while at >= BINS as u64 {
            self.bin_ns *= 2;
            at = at_ns / self.bin_ns;
            for bins in [&mut self.read, &mut self.written] {
                *bins = bins.chunks(2).map(|pair| pair.iter().sum()).collect();
            }
        }
        let at = at as usize;
        if self.read.len() <= at {
            self.read.resize(at + 1, 0);
            self.written.resize(at + 1, 0);
        }
        let bins = if read { &mut self.read } else { &mut self.written };
        bins[at] += bytes;
    }

    /// The width of a bin, in nanoseconds.
    #[must_use]
    pub fn bin_ns(&self) -> u64 {
        self.bin_ns
    }

    /// Bytes read, per bin; it has as many bins as [`ByteTimeline::written`].
    #[must_use]
    pub fn read(&self) -> &[u64] {
        &self.read
    }

    /// Bytes written, per bin.
    #[must_use]
    pub fn written(&self) -> &[u64] {
        &self.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_double_and_lose_nothing() {
        let mut timeline = ByteTimeline::new();
        for at in 0..5000_u64 {
            timeline.add(at * 700, at % 3 == 0, at);
        }
        let sum: u64 = timeline.read().iter().chain(timeline.written()).sum();
        assert_eq!(sum, 5000 * 4999 / 2);
        // 3.5 ms in bins of 8 us.
        assert_eq!((timeline.bin_ns(), timeline.read().len()), (8000, 438));
        assert_eq!(timeline.read()[0], 3 + 6 + 9);
        assert_eq!(timeline.written().len(), timeline.read().len());
    }
}
