//! How long reads take on modelled disks: one after the other, and at random places.
//!
//! formatdb writes sequences "in a descending order based on entry length" (4.5.2), so it reads them at random
//! places of the database. As long as the database fits in the page cache, that costs nothing:
//!
//! ```text
//!   seconds(bytes) = rate * bytes + max(0, bytes - cache) / gap * random read
//! ```
//! `rate` is the SSD's row of Table 4.3 where the database fits. `cache` and `gap`, the bytes between two reads
//! that miss, are fitted to the row of the hard disks; the SSD's other figures are predicted.

use merganser_device::device::Device;
use merganser_device::hdd::{Hdd, HddProfile};
use merganser_device::profile::{ProfileError, SsdProfile};
use merganser_device::results::{Collector, DevicePower};
use merganser_device::ssd::Ssd;
use merganser_device::workload::{AccessPattern, Arrivals, Sizes, Workload, play};

use super::line::FittedLine;
use super::paper;
use crate::error::ExperimentError;

/// The profiles nearest to the paper's WD5000AAKS and X25-M.
pub(super) const DISK: &str = "wd5000aakx";
pub(super) const SSD: &str = "830";

/// A page.
const READ_BYTES: u64 = 4096;
/// Sequential requests.
const CALL_BYTES: u64 = 1 << 20;
/// Requests of each kind: enough for a mean within a few percent.
const REQUESTS: u64 = 2000;
const CALLS: u64 = 256;
/// The places that are read: the largest database of the table.
const SPAN_BYTES: u64 = 1_750_000_000 / READ_BYTES * READ_BYTES;

/// Rates and times of a modelled disk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Speed {
    /// Bytes per second, in order: b_i and b_o of Equations 4.7 and 4.8.
    pub read_rate: f64,
    pub write_rate: f64,
    /// The mean time of a read at a random place, one at a time, in seconds.
    pub random_seconds: f64,
}

impl Speed {
    /// Of the hard disk.
    pub(super) fn of_disk() -> Result<Self, ExperimentError> {
        let make = || -> Result<_, ProfileError> { Hdd::new(&HddProfile::preset(DISK)?) };
        let fresh = || make().map_err(ExperimentError::device(DISK));
        Ok(Speed {
            read_rate: sequential(&mut fresh()?, 1.0)?,
            write_rate: sequential(&mut fresh()?, 0.0)?,
            random_seconds: random(&mut fresh()?)?,
        })
    }

    /// Of the SSD.
    pub(super) fn of_ssd() -> Result<Self, ExperimentError> {
        let make = || -> Result<_, ProfileError> {
            let mut ssd = Ssd::new(&SsdProfile::preset(SSD)?, 1)?;
            // Reads of pages that were never written would take no time of flash.
            ssd.precondition(SPAN_BYTES);
            Ok(ssd)
        };
        let fresh = || make().map_err(ExperimentError::device(SSD));
        Ok(Speed {
            read_rate: sequential(&mut fresh()?, 1.0)?,
            write_rate: sequential(&mut fresh()?, 0.0)?,
            random_seconds: random(&mut fresh()?)?,
        })
    }
}

/// Bytes per second of requests in order, eight in flight.
fn sequential(device: &mut dyn Device, read_share: f64) -> Result<f64, ExperimentError> {
    let workload = Workload {
        pattern: AccessPattern::Sequential,
        read_share,
        sizes: Sizes::Fixed(CALL_BYTES),
        arrivals: Arrivals::Closed(8),
        requests: CALLS,
        start: 0,
        span_bytes: SPAN_BYTES,
        align_bytes: 512,
        seed: 1,
    };
    Ok((CALLS * CALL_BYTES) as f64 / seconds_of(device, &workload)?)
}

/// Seconds of a read at a random place.
fn random(device: &mut dyn Device) -> Result<f64, ExperimentError> {
    let workload = Workload {
        pattern: AccessPattern::Random,
        read_share: 1.0,
        sizes: Sizes::Fixed(READ_BYTES),
        arrivals: Arrivals::Closed(1),
        requests: REQUESTS,
        start: 0,
        span_bytes: SPAN_BYTES,
        align_bytes: READ_BYTES,
        seed: 1,
    };
    Ok(seconds_of(device, &workload)? / REQUESTS as f64)
}

fn seconds_of(device: &mut dyn Device, workload: &Workload) -> Result<f64, ExperimentError> {
    let failed = |error: &dyn std::fmt::Display| ExperimentError::Model(error.to_string());
    let mut collector = Collector::new(device);
    let requests = workload.requests().map_err(|error| failed(&error))?.map(Ok);
    let played = play(device, requests, workload.pace(), &mut collector);
    let played = played.map_err(|error| failed(&error))?;
    Ok(collector.finish(device, played, &DevicePower::ssd(0.0, "not asked for")).seconds())
}

/// The model of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reorder {
    /// Seconds per MB while all of it is cached.
    rate: f64,
    /// MB that are cached.
    pub cache_mb: f64,
    /// Bytes between two reads that miss.
    pub gap_bytes: f64,
}

impl Reorder {
    /// Fitted to Table 4.3, where a read at a random place of the hard disk takes `random_seconds`.
    pub(super) fn fitted(random_seconds: f64) -> Self {
        let (first_mb, _, first_ssd) = paper::FORMAT[0];
        let rate = first_ssd / first_mb;
        // What the hard disks add, beyond the first size, which fits.
        let added: Vec<(f64, f64)> =
            paper::FORMAT[1..].iter().map(|(mb, hdd, _)| (*mb, hdd - rate * mb)).collect();
        let line = FittedLine::fitted(&added).expect("several sizes");
        Reorder {
            rate,
            cache_mb: -line.at_zero / line.slope,
            gap_bytes: random_seconds / line.slope * 1e6,
        }
    }

    /// Seconds for a database on a disk.
    pub(super) fn seconds(&self, megabytes: f64, random_seconds: f64) -> f64 {
        let missed = (megabytes - self.cache_mb).max(0.0) * 1e6 / self.gap_bytes;
        self.rate * megabytes + missed * random_seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hard_disks_row_is_fitted_and_the_ssds_is_predicted() {
        let reorder = Reorder::fitted(0.012);
        assert!((550.0..700.0).contains(&reorder.cache_mb), "{reorder:?}");
        assert!((8e3..12e3).contains(&reorder.gap_bytes), "{reorder:?}");
        for (megabytes, hdd, ssd) in paper::FORMAT {
            let fitted = reorder.seconds(megabytes, 0.012);
            assert!((0.4..1.1).contains(&(fitted / hdd)), "{megabytes}: {fitted}");
            let predicted = reorder.seconds(megabytes, 0.0002);
            assert!((0.8..1.05).contains(&(predicted / ssd)), "{megabytes}: {predicted}");
        }
        // Where it fits, the disk doesn't matter.
        for random_seconds in [0.012, 0.0002] {
            assert!((reorder.seconds(500.0, random_seconds) - 101.9).abs() < 1e-9);
        }
    }

    #[test]
    fn modelled_disks_have_the_speeds_of_their_kind() {
        let disk = Speed::of_disk().expect("plays");
        assert!((5e-3..20e-3).contains(&disk.random_seconds), "{disk:?}");
        assert!((80e6..160e6).contains(&disk.read_rate), "{disk:?}");
        let ssd = Speed::of_ssd().expect("plays");
        assert!((50e-6..500e-6).contains(&ssd.random_seconds), "{ssd:?}");
        assert!(ssd.read_rate > disk.read_rate && ssd.write_rate > 50e6, "{ssd:?}");
    }
}
