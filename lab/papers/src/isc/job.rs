//! Jobs of many map tasks, by the paper's constants.
//!
//! ```text
//!   setup │ task ─ between ─ task ─ between ─ …      one slot per device
//!         │ task ─ between ─ task ─ between ─ …      cleanup │
//!           └ constant + pure
//! ```
//!
//! Reduce tasks run next to the maps and end soon after them (Figure 10a), so they take no time of their
//! own here.

use super::paper::{BETWEEN, CONSTANT, JOB_CLEANUP, JOB_SETUP, SPLIT_BYTES};
use super::task::TaskPlace;

/// Bytes of a GB of the paper's jobs: 16 splits.
const GB: u64 = 1 << 30;

/// The additional power of one busy core of the host, in watts: a quarter of the 77 W that the data
/// sheet of a desktop i7 of the time gives for four.
pub(super) const CORE_WATTS: f64 = 77. / 4.;
/// The heaps of two map and two reduce tasks, by Hadoop 0.20's default of 200 MB each.
pub(super) const HEAP_BYTES: f64 = 4. * 200e6;

/// A job of `gigabytes` in one place.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedJob {
    place: TaskPlace,
    splits: u64,
    devices: u64,
}

impl PlacedJob {
    /// With one slot on each of `devices`.
    pub(super) fn new(place: TaskPlace, gigabytes: u64, devices: u64) -> PlacedJob {
        PlacedJob { place, splits: gigabytes * GB / SPLIT_BYTES, devices }
    }

    /// Rounds of tasks: the ridges of Figure 13.
    pub(super) fn rounds(&self) -> u64 {
        self.splits.div_ceil(self.devices)
    }

    /// Seconds of a map task.
    pub(super) fn task(&self) -> f64 {
        CONSTANT + self.place.pure
    }

    /// Seconds of all maps.
    pub(super) fn maps(&self) -> f64 {
        self.rounds() as f64 * (self.task() + BETWEEN)
    }

    /// Seconds of the job.
    pub(super) fn total(&self) -> f64 {
        JOB_SETUP + self.maps() + JOB_CLEANUP
    }

    /// Seconds in which processors of the hosts work for maps. Setup and cleanup of a task are work on
    /// all sides; the host waits between tasks.
    pub(super) fn processor(&self) -> f64 {
        self.splits as f64 * (CONSTANT + self.place.processor)
    }

    /// Busy cores, on average over the job.
    pub(super) fn cores(&self) -> f64 {
        self.processor() / self.total()
    }

    /// Busy cores of a slot while a map task runs.
    pub(super) fn cores_of_task(&self) -> f64 {
        (CONSTANT + self.place.processor) / self.task()
    }

    /// Bytes that cross the links to the hosts.
    pub(super) fn read_bytes(&self) -> f64 {
        self.splits as f64 * self.place.read_bytes
    }

    /// Memory of the host of one node: heaps, and what was read stays in the page cache.
    pub(super) fn memory_bytes(&self) -> f64 {
        HEAP_BYTES + self.read_bytes()
    }

    /// Energy beyond idle, in joules: cores of the hosts, and the parts of the devices.
    pub(super) fn joules(&self) -> f64 {
        self.processor() * CORE_WATTS + self.splits as f64 * self.place.device_joules
    }

    /// Power beyond idle, in watts, on average over the job.
    pub(super) fn watts(&self) -> f64 {
        self.joules() / self.total()
    }
}

#[cfg(test)]
mod tests {
    use super::super::paper::{JOB_MAPS, PURE_BASELINE};
    use super::*;

    fn place(pure: f64) -> TaskPlace {
        TaskPlace { pure, processor: pure, read_bytes: 100., device_joules: 2. }
    }

    #[test]
    fn the_baseline_is_figure_10a() {
        let job = PlacedJob::new(place(PURE_BASELINE), 1, 1);
        // The constant part is the mean of two percentages: 15 ms off.
        assert!((job.maps() - JOB_MAPS).abs() < 0.3, "{}", job.maps());
        assert!((job.total() - 283.).abs() < 0.3);
        assert_eq!((job.rounds(), PlacedJob::new(place(1.), 1, 2).rounds()), (16, 8));
    }

    #[test]
    fn devices_share_the_time_and_not_the_work() {
        let [one, four] = [1, 4].map(|devices| PlacedJob::new(place(3.), 4, devices));
        assert!((one.maps() / four.maps() - 4.).abs() < 1e-9);
        assert_eq!((one.joules(), one.read_bytes()), (four.joules(), four.read_bytes()));
        assert!(four.watts() > 3.5 * one.watts());
        assert!((one.joules() - 64. * (5.175 * CORE_WATTS + 2.)).abs() < 1e-6);
    }
}
