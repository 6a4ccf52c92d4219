//! Where a buffer of disks in front of SSDs pays: write rate, duplicates, SSD.

use merganser_device::hdd::HddProfile;
use merganser_device::profile::{ProfileError, SsdProfile};
use merganser_device::request::{DeviceRequest, SimTime};
use merganser_device::workload::{AccessPattern, Arrivals, Sizes, Workload};

use super::measured::ResponseTimes;
use super::runs::{changed, drawn, enhanced, most, paper, play, traces};
use super::setup::{Arrangement, NodeSetup};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::OutcomeSection;
use merganser_pages::ChartSeries;

/// Writes per second.
const RATES: [u64; 6] = [50, 200, 800, 3200, 12_800, 51_200];
/// Duplicates, in percent.
const DUPLICATES: [u32; 3] = [0, 50, 90];
/// Writes of each point, at most.
const REQUESTS: u64 = 20_000;

/// Requests of each trace that the devices of today play, at most.
const TODAY_REQUESTS: u64 = 150_000;

/// A pair of devices.
struct DevicePair {
    name: &'static str,
    devices: Devices,
}

enum Devices {
    /// The dissertation's: HcDD's SSDs have a write buffer, the others none.
    Paper,
    /// Those of today.
    Today { ssd: &'static str, hdd: &'static str, change: &'static str },
}

const PAIRS: [DevicePair; 2] = [
    DevicePair { name: "msr and cheetah (2009)", devices: Devices::Paper },
    DevicePair {
        name: "nvme and barracuda",
        // Smaller than the real one, so that its map takes less memory.
        devices: Devices::Today { ssd: "nvme", hdd: "barracuda", change: "blocks_per_plane=512" },
    },
];

fn writes(lab: &Lab<'_>, rate: u64) -> Result<Vec<DeviceRequest>, ExperimentError> {
    let workload = Workload {
        pattern: AccessPattern::Random,
        read_share: 0.,
        sizes: Sizes::Fixed(4096),
        arrivals: Arrivals::Exponential(SimTime(1_000_000_000 / rate)),
        requests: REQUESTS.min(most(lab)),
        start: 0,
        span_bytes: 4 << 30,
        align_bytes: 4096,
        seed: 5,
    };
    let drawn = workload.requests().map_err(|error| ExperimentError::Model(error.to_string()))?;
    Ok(drawn.collect())
}

fn setup(
    lab: &Lab<'_>,
    pair: &DevicePair,
    arrangement: Arrangement,
) -> Result<NodeSetup, ExperimentError> {
    let Devices::Today { ssd, hdd, change } = pair.devices else {
        return paper(lab, arrangement);
    };
    let make = || -> Result<NodeSetup, ProfileError> {
        let mut ssd = SsdProfile::preset(ssd)?;
        ssd.set(change)?;
        Ok(NodeSetup { ssd, hdd: HddProfile::preset(hdd)?, ..NodeSetup::paper(arrangement)? })
    };
    changed(lab, make().map_err(|error| ExperimentError::Model(error.to_string()))?)
}

/// SSDs alone at each rate.
fn alone(lab: &Lab<'_>, setup: &NodeSetup) -> Result<Vec<ResponseTimes>, ExperimentError> {
    RATES.into_iter().map(|rate| play(lab, setup, &writes(lab, rate)?, drawn(0.))).collect()
}

/// The map, as tables and as lines. The second table compares with SSDs alone that have HcDD's write buffer.
pub(super) fn map(
    lab: &Lab<'_>,
) -> Result<([OutcomeSection; 2], Vec<ChartSeries>), ExperimentError> {
    let mut section =
        OutcomeSection::new("predicted: HcDD over SSDs alone; pays where both are below 1");
    let mut alike =
        OutcomeSection::new("sensitivity: HcDD over SSDs alone, which are enhanced, too");
    let mut series = Vec::new();
    for pair in &PAIRS {
        let plain = alone(lab, &setup(lab, pair, Arrangement::Ssds)?)?;
        let buffered = match pair.devices {
            Devices::Paper => alone(lab, &enhanced(lab, Arrangement::Ssds)?)?,
            Devices::Today { .. } => Vec::new(),
        };
        for percent in DUPLICATES {
            let mut points = Vec::new();
            for (at, rate) in RATES.into_iter().enumerate() {
                let setup = setup(lab, pair, Arrangement::Hcdd)?;
                let share = f64::from(percent) / 100.;
                let hcdd = play(lab, &setup, &writes(lab, rate)?, drawn(share))?;
                let what = format!("{}, {percent} % duplicates, {rate}/s", pair.name);
                let compare = |section: &mut OutcomeSection, alone: &ResponseTimes| {
                    let response = hcdd.writes.mean() / alone.writes.mean();
                    let bytes = hcdd.flash.host_bytes as f64 / alone.flash.host_bytes.max(1) as f64;
                    section.ours(format!("{what}: response"), response);
                    section.ours(format!("{what}: bytes to the SSDs"), bytes);
                    response
                };
                points.push((rate as f64, compare(&mut section, &plain[at])));
                if let Some(buffered) = buffered.get(at) {
                    compare(&mut alike, buffered);
                }
            }
            let name = format!("{}, {percent} % duplicates", pair.name);
            series.push(ChartSeries { name, paper: false, points });
        }
    }
    Ok(([section, alike], series))
}

/// The four arrangements on the three traces, with the devices of today.
pub(super) fn today(lab: &Lab<'_>) -> Result<OutcomeSection, ExperimentError> {
    let [_, pair] = &PAIRS;
    let mut section =
        OutcomeSection::new(format!("predicted: mean response with {}, microseconds", pair.name));
    for trace in traces() {
        let requests = trace.requests(TODAY_REQUESTS.min(most(lab)))?;
        for arrangement in Arrangement::ALL {
            let setup = setup(lab, pair, arrangement)?;
            let measured = play(lab, &setup, &requests, drawn(trace.duplicates()))?;
            let what = format!("{}, {}", trace.look.name, arrangement.name());
            section.ours(what.clone(), measured.mean_ms() * 1e3);
            section.ours(format!("{what}, writes"), measured.writes.mean() / 1e3);
        }
    }
    Ok(section)
}

/// The method of the map, in sentences.
pub(super) fn differs() -> Vec<String> {
    vec![
        format!(
            "On the devices of today, each look-alike has {TODAY_REQUESTS} requests at most, at the rate of the traces of 2009."
        ),
        format!(
            "The map plays {REQUESTS} random writes of 4 KiB to 4 GiB at random times. The SSDs hold data everywhere, and are not worn: the less they collect, the better they look. The nvme devices are cut to 28 GB each."
        ),
    ]
}
