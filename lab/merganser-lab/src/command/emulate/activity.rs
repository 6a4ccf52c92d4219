//! The activity of an emulated disk over time: bytes, requests in flight, and where they were.

use merganser_device::emulated::ServedRequest;
use merganser_device::request::RequestKind;

/// The greatest number of bins.
const BINS: usize = 512;
/// The width of a bin at first, in nanoseconds.
const FIRST_NS: u64 = 1_000_000;
/// Most points that are kept. When there are more, every second one goes.
const POINTS: usize = 20_000;

/// One kind of request.
#[derive(Debug, Clone, Default)]
pub(super) struct DiskFlow {
    /// Requests.
    pub requests: u64,
    /// Requests that began where the last one of their kind had ended.
    pub in_order: u64,
    /// Bytes per bin, by the time of the answer.
    pub bytes: Vec<u64>,
    /// For each bin, the sum of the times for which requests were in flight in it.
    pub in_flight_ns: Vec<u64>,
    /// Requests per bin, by the time of the answer.
    pub requests_per_bin: Vec<u64>,
    /// Those of them that began where the last one of their kind had ended.
    pub in_order_per_bin: Vec<u64>,
    /// The end of the last request.
    next: Option<u64>,
}

/// A request in the plot of addresses.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestPoint {
    /// Its arrival.
    pub at_ns: u64,
    /// Whether it is a read.
    pub read: bool,
    /// First byte.
    pub offset: u64,
}

/// All of it.
#[derive(Debug, Clone)]
pub(super) struct DiskActivity {
    /// The width of a bin, in nanoseconds.
    pub bin_ns: u64,
    /// The last answer.
    pub end_ns: u64,
    /// Reads.
    pub reads: DiskFlow,
    /// Writes.
    pub writes: DiskFlow,
    /// Flushes and discards.
    pub others: u64,
    /// The most requests in flight.
    pub depth_max: u32,
    /// Some requests, evenly chosen by their number: one of [`DiskActivity::stride`].
    pub points: Vec<RequestPoint>,
    /// One point stands for this many requests.
    pub stride: u64,
    /// Bytes from the first that was asked for to the last.
    pub range: Option<(u64, u64)>,
    moved: u64,
}

impl Default for DiskActivity {
    fn default() -> Self {
        DiskActivity {
            bin_ns: FIRST_NS,
            end_ns: 0,
            reads: DiskFlow::default(),
            writes: DiskFlow::default(),
            others: 0,
            depth_max: 0,
            points: Vec::new(),
            stride: 1,
            range: None,
            moved: 0,
        }
    }
}

impl DiskActivity {
    /// Adds a request; they come in the order of their arrivals.
    pub(super) fn add(&mut self, served: &ServedRequest) {
        let &ServedRequest { ref request, real_ns, depth, .. } = served;
        let (from, to) = (request.arrival.0, request.arrival.0.saturating_add(real_ns));
        self.end_ns = self.end_ns.max(to);
        self.depth_max = self.depth_max.max(depth);
        self.widen(to);
        let bin_ns = self.bin_ns;
        let flow = match request.kind {
            RequestKind::Read => &mut self.reads,
            RequestKind::Write => &mut self.writes,
            RequestKind::Trim | RequestKind::Flush => {
                self.others += 1;
                return;
            }
        };
        let (offset, end) = (request.offset, request.offset + request.len);
        let in_order = u64::from(flow.next == Some(offset));
        flow.requests += 1;
        flow.in_order += in_order;
        flow.next = Some(end);
        let last = (to / bin_ns) as usize;
        if flow.bytes.len() <= last {
            for one in flow.all_bins() {
                one.resize(last + 1, 0);
            }
        }
        flow.bytes[last] += request.len;
        flow.requests_per_bin[last] += 1;
        flow.in_order_per_bin[last] += in_order;
        for bin in (from / bin_ns) as usize..=last {
            let start = bin as u64 * bin_ns;
            flow.in_flight_ns[bin] += to.min(start + bin_ns) - from.max(start);
        }
        let (low, high) = self.range.unwrap_or((offset, end));
        self.range = Some((low.min(offset), high.max(end)));
        if self.moved.is_multiple_of(self.stride) {
            if self.points.len() == POINTS {
                let mut keep = [true, false].into_iter().cycle();
                self.points.retain(|_| keep.next() == Some(true));
                self.stride *= 2;
            }
            if self.moved.is_multiple_of(self.stride) {
                let read = request.kind == RequestKind::Read;
                self.points.push(RequestPoint { at_ns: from, read, offset });
            }
        }
        self.moved += 1;
    }

    /// Doubles the width of the bins until `at_ns` is in one.
    fn widen(&mut self, at_ns: u64) {
        while at_ns / self.bin_ns >= BINS as u64 {
            self.bin_ns *= 2;
            for flow in [&mut self.reads, &mut self.writes] {
                for bins in flow.all_bins() {
                    *bins = bins.chunks(2).map(|pair| pair.iter().sum()).collect();
                }
            }
        }
    }

    /// Reads and writes with equally many bins.
    pub(super) fn flows(&self) -> [DiskFlow; 2] {
        let bins = (self.end_ns / self.bin_ns + 1) as usize;
        [&self.reads, &self.writes].map(|flow| {
            let mut flow = flow.clone();
            for one in flow.all_bins() {
                one.resize(bins, 0);
            }
            flow
        })
    }
}

impl DiskFlow {
    fn all_bins(&mut self) -> [&mut Vec<u64>; 4] {
        let DiskFlow { bytes, in_flight_ns, requests_per_bin, in_order_per_bin, .. } = self;
        [bytes, in_flight_ns, requests_per_bin, in_order_per_bin]
    }
}

#[cfg(test)]
mod tests {
    use merganser_device::request::{DeviceRequest, SimTime};

    use super::*;

    fn served(
        number: u64,
        kind: RequestKind,
        at_ns: u64,
        offset: u64,
        real_ns: u64,
    ) -> ServedRequest {
        let arrival = SimTime(at_ns);
        let request = DeviceRequest { arrival, kind, offset, len: 4096, content: None };
        ServedRequest { number, request, modelled_ns: real_ns, real_ns, depth: 2 }
    }

    #[test]
    fn bytes_and_times_are_kept_when_bins_double() {
        let mut activity = DiskActivity::default();
        for i in 0..3000 {
            let kind = if i % 3 == 0 { RequestKind::Write } else { RequestKind::Read };
            activity.add(&served(i, kind, i * 700_000, i * 4096, 900_000));
        }
        let sum = |bins: &[u64]| bins.iter().sum::<u64>();
        let [reads, writes] = activity.flows();
        assert_eq!((sum(&reads.bytes), sum(&reads.in_flight_ns)), (2000 * 4096, 2000 * 900_000));
        assert_eq!((sum(&writes.bytes), sum(&writes.in_flight_ns)), (1000 * 4096, 1000 * 900_000));
        // 2.1 s in bins of 8 ms.
        assert_eq!((activity.bin_ns, reads.bytes.len()), (8_000_000, writes.bytes.len()));
        let counted = |flow: &DiskFlow| (sum(&flow.requests_per_bin), sum(&flow.in_order_per_bin));
        assert_eq!((counted(&reads), counted(&writes)), ((2000, 1000), (1000, 0)));
        // The requests of a bin are those whose bytes are in it.
        let each =
            |flow: &DiskFlow| flow.requests_per_bin.iter().map(|n| n * 4096).collect::<Vec<_>>();
        assert_eq!((each(&reads), each(&writes)), (reads.bytes.clone(), writes.bytes.clone()));
        // Of two reads in a row the second continues the first.
        assert_eq!((activity.reads.in_order, activity.writes.in_order), (1000, 0));
        assert_eq!(activity.range, Some((0, 3000 * 4096)));
    }

    #[test]
    fn points_are_thinned_evenly() {
        let mut activity = DiskActivity::default();
        for i in 0..50_000 {
            activity.add(&served(i, RequestKind::Read, i, i * 4096, 10));
        }
        assert_eq!(activity.stride, 4);
        assert!(activity.points.iter().zip((0..).step_by(4)).all(|(point, i)| point.at_ns == i));
        assert_eq!(activity.points.len(), 12_500);
    }
}
