//! The results of a run: latencies, throughput over time, use of the components, wear, energy.
//!
//! ```text
//!   play ── served(kind, bytes, submitted, ended) ──► Collector ──┐
//!   Device::statistics() before and after ────────────────────────┴──► Results
//! ```

mod energy;
mod fairness;
mod histogram;
mod series;
mod steady;
mod timeline;

pub use energy::{Consumption, DevicePower};
pub use fairness::{Fairness, Share};
pub use histogram::{Histogram, HistogramBucket};
pub use series::{Bin, DeviceSeries};
pub use steady::{RANGE, SLOPE, Steadiness, SteadyWindow, Tracked, WINDOW};
pub use timeline::ByteTimeline;

use crate::device::{Component, Device, DeviceStatistics, FlashBytes, FlashStatistics, Use};
use crate::request::{RequestKind, SimTime};

/// Requests of one kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Class {
    /// The number of requests that were served.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From submission to end, in nanoseconds.
    pub latency: Histogram,
}

impl Class {
    fn served(&mut self, bytes: u64, latency_ns: u64) {
        self.requests += 1;
        self.bytes += bytes;
        self.latency.record(latency_ns);
    }

    /// The sum of both.
    #[must_use]
    pub fn with(&self, other: &Class) -> Class {
        let mut all = self.clone();
        all.requests += other.requests;
        all.bytes += other.bytes;
        all.latency.add(&other.latency);
        all
    }
}

/// The span of time in which a workload was played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlayedSpan {
    /// The number of requests; all of them were served.
    pub requests: u64,
    /// When the first request could have come.
    pub start: SimTime,
    /// When the last request ended.
    pub end: SimTime,
}

/// A request of a stream that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedRequest {
    /// The index of its stream.
    pub stream: usize,
    /// Its number in the stream, counted from 0.
    pub number: u64,
    /// Its number among those of all streams in the order of submission, counted from 0.
    pub order: u64,
    /// Whether all streams had begun when it was submitted, and none had submitted its last request.
    pub together: bool,
    /// The kind of request.
    pub kind: RequestKind,
    /// Its first byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
    /// When it was submitted.
    pub submitted: SimTime,
    /// When it ended.
    pub at: SimTime,
}

/// Counts requests as they end.
#[derive(Debug, Clone)]
pub struct Collector {
    ignores: bool,
    before: DeviceStatistics,
    start: SimTime,
    reads: Class,
    writes: Class,
    others: Class,
    timeline: ByteTimeline,
    series: DeviceSeries,
}

impl Collector {
    /// A collector for the work of `device` from now on.
    #[must_use]
    pub fn new(device: &dyn Device) -> Self {
        Collector {
            ignores: false,
            before: device.statistics(),
            start: device.now(),
            series: DeviceSeries::new(device.flash_bytes().unwrap_or_default()),
            ..Self::ignoring()
        }
    }

    /// A collector that counts nothing.
    #[must_use]
    pub fn ignoring() -> Self {
        Collector {
            ignores: true,
            before: DeviceStatistics::default(),
            start: SimTime(0),
            reads: Class::default(),
            writes: Class::default(),
            others: Class::default(),
            timeline: ByteTimeline::new(),
            series: DeviceSeries::new(FlashBytes::default()),
        }
    }

    /// A request of `bytes` to `device` was submitted, and has ended.
    pub fn served(
        &mut self,
        device: &dyn Device,
        kind: RequestKind,
        bytes: u64,
        submitted: SimTime,
        ended: SimTime,
    ) {
        if self.ignores {
            return;
        }
        let latency_ns = ended.0.saturating_sub(submitted.0);
        match kind {
            RequestKind::Read => self.reads.served(bytes, latency_ns),
            RequestKind::Write => self.writes.served(bytes, latency_ns),
            RequestKind::Trim | RequestKind::Flush => self.others.served(0, latency_ns),
        }
        if matches!(kind, RequestKind::Read | RequestKind::Write) {
            let since_ns = ended.0.saturating_sub(self.start.0);
            let read = kind == RequestKind::Read;
            self.timeline.add(since_ns, read, bytes);
            self.series.add(since_ns, read, latency_ns, device.flash_bytes());
        }
    }

    /// As [`Collector::finish`], for requests that only the device has seen: their numbers and
    /// bytes are the counts of the device, and their latencies are not known.
    #[must_use]
    pub fn counted(
        mut self,
        device: &dyn Device,
        played: PlayedSpan,
        power: &DevicePower,
    ) -> DeviceResults {
        let (before, after) = (&self.before, device.statistics());
        let class = |requests: u64, bytes: u64| Class { requests, bytes, ..Class::default() };
        self.reads = class(
            after.reads.saturating_sub(before.reads),
            after.read_bytes.saturating_sub(before.read_bytes),
        );
        self.writes = class(
            after.writes.saturating_sub(before.writes),
            after.written_bytes.saturating_sub(before.written_bytes),
        );
        self.others = class(after.others.saturating_sub(before.others), 0);
        self.finish(device, played, power)
    }

    /// The counts until the end of `played`, with the counts of `device`.
    #[must_use]
    pub fn finish(
        self,
        device: &dyn Device,
        played: PlayedSpan,
        power: &DevicePower,
    ) -> DeviceResults {
        let elapsed_ns = played.end.0.saturating_sub(self.start.0);
        let after = device.statistics();
        let uses = differences(&self.before.uses, &after.uses);
        let flash = after.flash.map(|after| flash(self.before.flash.unwrap_or_default(), after));
        let energy = power.consumed(elapsed_ns, &uses);
        DeviceResults {
            device: device.name().to_owned(),
            capacity_bytes: device.capacity_bytes(),
            elapsed_ns,
            reads: self.reads,
            writes: self.writes,
            others: self.others,
            timeline: self.timeline,
            series: self.series,
            uses,
            flash,
            energy,
            events: after.events.saturating_sub(self.before.events),
            digest: after.digest,
        }
    }
}

/// The work of a device in a span of time.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceResults {
    /// The device's name.
    pub device: String,
    /// Bytes that the host can address.
    pub capacity_bytes: u64,
    /// From the start to the end of the last request, in nanoseconds of virtual time.
    pub elapsed_ns: u64,
    /// Reads.
    pub reads: Class,
    /// Writes.
    pub writes: Class,
    /// Trims and flushes.
    pub others: Class,
    /// Bytes over time.
    pub timeline: ByteTimeline,
    /// Requests, latencies and flash bytes over time; empty if only the device has seen the requests.
    pub series: DeviceSeries,
    /// The work of each component.
    pub uses: Vec<Use>,
    /// The counts of flash in this span; erases per block since the device was made.
    pub flash: Option<FlashStatistics>,
    /// The energy of each component.
    pub energy: Vec<Consumption>,
    /// Events of the simulation.
    pub events: u64,
    /// The digest of all events since the device was made: equal for equal runs.
    pub digest: u64,
}

impl DeviceResults {
    /// Whether the run was in a steady state; `None` if it was too short.
    #[must_use]
    pub fn steadiness(&self) -> Option<Steadiness> {
        Steadiness::of_series(&self.series, self.elapsed_ns)
    }

    /// Seconds of virtual time.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.elapsed_ns as f64 / 1e9
    }

    /// Bytes per second of this kind; 0 if no time has passed.
    #[must_use]
    pub fn rate(&self, class: &Class) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { class.bytes as f64 / self.seconds() }
    }

    /// Requests per second of this kind.
    #[must_use]
    pub fn requests_per_second(&self, class: &Class) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { class.requests as f64 / self.seconds() }
    }

    /// The share of the time in which a component was busy.
    #[must_use]
    pub fn utilisation(&self, part: &Use) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { part.busy.0 as f64 / self.elapsed_ns as f64 }
    }

    /// For each kind of component, in the order in which a request passes them: their number, and
    /// their mean and highest utilisation.
    #[must_use]
    pub fn utilisations(&self) -> Vec<(Component, u32, f64, f64)> {
        let mut kinds: Vec<Component> = self.uses.iter().map(|part| part.part).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let of = |kind: Component| {
            let shares = self.uses.iter().filter(|part| part.part == kind);
            let shares: Vec<f64> = shares.map(|part| self.utilisation(part)).collect();
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            let most = shares.iter().copied().fold(0.0, f64::max);
            (kind, shares.len() as u32, mean, most)
        };
        kinds.into_iter().map(of).collect()
    }

    /// The sum of all energy, in joules.
    #[must_use]
    pub fn joules(&self) -> f64 {
        self.energy.iter().map(|part| part.joules).sum()
    }
}

/// The work of the components since `before`.
fn differences(before: &[Use], after: &[Use]) -> Vec<Use> {
    let since = |now: &Use| {
        let same = |old: &&Use| (old.part, old.index) == (now.part, now.index);
        let old = before.iter().find(same);
        let (busy, services) = old.map_or((0, 0), |old| (old.busy.0, old.services));
        Use {
            busy: SimTime(now.busy.0.saturating_sub(busy)),
            services: now.services.saturating_sub(services),
            ..*now
        }
    };
    after.iter().map(since).collect()
}

/// The counts of flash since `before`. Erases per block count from the start of the device's life,
/// because wear does not start again with a run.
fn flash(before: FlashStatistics, after: FlashStatistics) -> FlashStatistics {
    FlashStatistics {
        page_reads: after.page_reads.saturating_sub(before.page_reads),
        page_programs: after.page_programs.saturating_sub(before.page_programs),
        host_programs: after.host_programs.saturating_sub(before.host_programs),
        programmed_bytes: after.programmed_bytes.saturating_sub(before.programmed_bytes),
        host_bytes: after.host_bytes.saturating_sub(before.host_bytes),
        moved_pages: after.moved_pages.saturating_sub(before.moved_pages),
        erases: after.erases.saturating_sub(before.erases),
        buffered_pages: after.buffered_pages.saturating_sub(before.buffered_pages),
        cached_pages: after.cached_pages.saturating_sub(before.cached_pages),
        map_hits: after.map_hits.saturating_sub(before.map_hits),
        map_misses: after.map_misses.saturating_sub(before.map_misses),
        map_reads: after.map_reads.saturating_sub(before.map_reads),
        map_programs: after.map_programs.saturating_sub(before.map_programs),
        ..after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_count_from_where_they_were() {
        let used = |index, busy, services| Use {
            part: Component::Die,
            index,
            busy: SimTime(busy),
            services,
        };
        let before = [used(0, 10, 1), used(1, 20, 2)];
        let after = [used(1, 50, 4), used(0, 10, 1), used(2, 5, 1)];
        assert_eq!(differences(&before, &after), [used(1, 30, 2), used(0, 0, 0), used(2, 5, 1)]);
    }

    #[test]
    fn wear_is_of_a_life_and_writes_are_of_a_span() {
        let before = FlashStatistics {
            page_programs: 100,
            host_programs: 50,
            programmed_bytes: 100 * 4096,
            host_bytes: 50 * 4096,
            erases: 3,
            erases_max: 2,
            ..FlashStatistics::default()
        };
        let after = FlashStatistics {
            page_programs: 160,
            host_programs: 80,
            programmed_bytes: 160 * 4096,
            host_bytes: 80 * 4096,
            erases: 7,
            erases_min: 1,
            erases_max: 4,
            ..before
        };
        let since = flash(before, after);
        assert_eq!((since.erases, since.erases_min, since.erases_max), (4, 1, 4));
        assert_eq!(since.write_amplification(), 2.0);
    }
}
