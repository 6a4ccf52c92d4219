//! Figures 12b and 16: energy and power beyond idle. Nothing is measured: it is the profile's power times
//! time.

use super::job::{CORE_WATTS, PlacedJob};
use super::paper::{self, ENERGY, POWER};
use super::task::SplitTask;
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::Chart;

/// Runs a task.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(SplitTask::measure(lab)?))
}

fn outcome(mut task: SplitTask) -> Outcome {
    let SplitTask { isc, hadoop, native, .. } = task;
    let energy = |size, devices| {
        let of = |place| PlacedJob::new(place, size, devices).joules();
        of(hadoop) / of(isc)
    };
    let mut less = OutcomeSection::new("follows: energy beyond idle, times less");
    less.both("10 GB, one device (12b)", ENERGY, energy(10, 1));
    less.both("10 GB, two devices (12b)", ENERGY, energy(10, 2));
    less.both("16 GB, 4 nodes (16b)", ENERGY, energy(16, 4));
    let of = |place| PlacedJob::new(place, 16, 4);
    less.ours(
        "16 GB, 4 nodes, the same SSDlet on the hosts",
        of(hadoop).joules() / of(native).joules(),
    );
    let mut alike =
        OutcomeSection::new("follows: energy of two devices over one (12b: almost the same)");
    for (name, place) in [("in the devices", isc), ("Hadoop's mapper", hadoop)] {
        let both = PlacedJob::new(place, 10, 2).joules() / PlacedJob::new(place, 10, 1).joules();
        alike.both(name, 1., both);
    }
    let mut power = OutcomeSection::new("follows: power beyond idle, times less (16a)");
    power.both("16 GB, 4 nodes", POWER, of(hadoop).watts() / of(isc).watts());
    let mut absolute =
        OutcomeSection::new("follows: 10 GB, one device, kJ; the paper has it in plots only");
    for (name, place) in [
        ("Hadoop's mapper", hadoop),
        ("in the device", isc),
        ("the same SSDlet on the host", native),
    ] {
        absolute.ours(name, PlacedJob::new(place, 10, 1).joules() / 1e3);
    }
    let mut parts = OutcomeSection::new("predicted: 10 GB, one device, kJ of the device's parts");
    parts.ours("in the device", 160. * isc.device_joules / 1e3);
    let mut watts = OutcomeSection::new("chosen and given: watts");
    watts.ours("chosen: a busy core of the host beyond idle", CORE_WATTS);
    watts.paper("idle, one device; subtracted", 40.5);
    watts.paper("idle, two devices; subtracted", 45.5);
    let bars = vec![
        ("the paper's energy".to_owned(), ENERGY, true),
        ("energy".to_owned(), energy(16, 4), false),
        ("the paper's power".to_owned(), POWER, true),
        ("power".to_owned(), of(hadoop).watts() / of(isc).watts(), false),
    ];
    task.differs.insert(
        0,
        "No energy is measured. The paper read a power meter; here it is modelled: busy seconds of the \
         host's cores and of the device's parts times the power of each."
            .to_owned(),
    );
    Outcome {
        sections: vec![paper::constants(), watts, less, alike, power, absolute, parts],
        differs: task.differs,
        chart: Chart::Bars {
            title: "Times less energy and power beyond idle".into(),
            unit: "times less".into(),
            bars,
        },
    }
}
