//! The result of a run of a node.

use merganser_array::VolumeCounters;
use merganser_device::device::{DeviceStatistics, FlashStatistics};
use merganser_device::request::SimTime;
use merganser_device::results::Histogram;

/// Response times and counts.
#[derive(Debug, Clone, Default)]
pub struct ResponseTimes {
    /// Response times of reads, in nanoseconds.
    pub reads: Histogram,
    /// Of writes.
    pub writes: Histogram,
    /// Of trims and flushes.
    pub others: Histogram,
    /// How often writes were found waiting for room in the buffer.
    pub held: u64,
    /// From the first possible arrival to the end of the last request.
    pub elapsed: SimTime,
    /// Until the buffer was empty, too.
    pub drained: SimTime,
    /// Time of the processor for hashes, in nanoseconds.
    pub hashed_ns: u64,
    /// Counts of the volume; `None` for an array without one.
    pub counters: Option<VolumeCounters>,
    /// Counts of all SSDs together.
    pub flash: FlashStatistics,
    /// Write requests to all SSDs together.
    pub ssd_writes: u64,
    /// Bytes written to all disks together.
    pub hdd_bytes: u64,
}

impl ResponseTimes {
    /// Response times of reads and writes together.
    #[must_use]
    pub fn all(&self) -> Histogram {
        let mut all = self.reads.clone();
        all.add(&self.writes);
        all
    }

    /// Mean response of reads and writes, in milliseconds (Figures 5.12 and 5.14).
    #[must_use]
    pub fn mean_ms(&self) -> f64 {
        self.all().mean() / 1e6
    }

    /// Sum of the responses of reads and writes, in seconds (Figures 5.11 and 5.13).
    #[must_use]
    pub fn sum_seconds(&self) -> f64 {
        let all = self.all();
        all.mean() * all.count() as f64 / 1e9
    }

    /// Adds the counts of an SSD between two looks.
    pub(super) fn add_ssd(&mut self, before: &DeviceStatistics, after: &DeviceStatistics) {
        self.ssd_writes += after.writes - before.writes;
        let (Some(before), Some(after)) = (before.flash, after.flash) else { return };
        let sum = &mut self.flash;
        sum.page_reads += after.page_reads - before.page_reads;
        sum.page_programs += after.page_programs - before.page_programs;
        sum.host_programs += after.host_programs - before.host_programs;
        sum.moved_pages += after.moved_pages - before.moved_pages;
        sum.programmed_bytes += after.programmed_bytes - before.programmed_bytes;
        sum.host_bytes += after.host_bytes - before.host_bytes;
        sum.erases += after.erases - before.erases;
        sum.erases_min = after.erases_min;
        sum.erases_max = sum.erases_max.max(after.erases_max);
    }
}
