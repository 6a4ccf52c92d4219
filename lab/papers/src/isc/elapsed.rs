//! Figures 9, 11 and 12a: how long jobs take on one node.

use super::job::PlacedJob;
use super::paper::{self, JOB_GAIN};
use super::task::{SplitTask, TaskPlace};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::{Chart, ChartSeries};

/// GB of the jobs.
const SIZES: [u64; 4] = [1, 2, 4, 8];

/// Runs a task.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(SplitTask::measure(lab)?))
}

fn outcome(task: SplitTask) -> Outcome {
    let SplitTask { isc, hadoop, native, .. } = task;
    let gain = |seconds: fn(&PlacedJob) -> f64, place: TaskPlace, size, devices| {
        let of = |place| seconds(&PlacedJob::new(place, size, devices));
        of(hadoop) / of(place)
    };
    let mut total = OutcomeSection::new("follows: the job, times as fast as Hadoop's mapper (11a)");
    let mut maps = OutcomeSection::new("follows: all maps, times as fast (11b)");
    for size in SIZES {
        total.both(format!("{size} GB"), JOB_GAIN, gain(PlacedJob::total, isc, size, 1));
        maps.both(format!("{size} GB"), JOB_GAIN, gain(PlacedJob::maps, isc, size, 1));
    }
    total.ours("1 GB, the same SSDlet on the host", gain(PlacedJob::total, native, 1, 1));
    let mut devices = OutcomeSection::new("follows: two devices over one, times as fast (9, 12a)");
    let both = |place| PlacedJob::new(place, 10, 1).total() / PlacedJob::new(place, 10, 2).total();
    devices.both("in the devices", 2., both(isc));
    devices.both("Hadoop's mapper", 2., both(hadoop));
    devices.both(
        "two datanodes, in the devices over Hadoop's mapper (9)",
        JOB_GAIN,
        gain(PlacedJob::total, isc, 10, 2),
    );
    let mut seconds = OutcomeSection::new("follows: seconds; the paper has them in plots only");
    for size in SIZES {
        seconds
            .ours(format!("{size} GB, Hadoop's mapper"), PlacedJob::new(hadoop, size, 1).total());
        seconds.ours(format!("{size} GB, in the device"), PlacedJob::new(isc, size, 1).total());
        seconds.ours(
            format!("{size} GB, the same SSDlet on the host"),
            PlacedJob::new(native, size, 1).total(),
        );
    }
    let line = |name: &str, place| ChartSeries {
        name: name.to_owned(),
        paper: false,
        points: SIZES.map(|size| (size as f64, PlacedJob::new(place, size, 1).total())).into(),
    };
    Outcome {
        sections: vec![paper::constants(), total, maps, devices, seconds, paper::contradictions()],
        differs: task.differs,
        chart: Chart::Lines {
            title: "Word count on one node".into(),
            axes: ["GB".into(), "s".into()],
            series: vec![
                line("Hadoop's mapper", hadoop),
                line("in the device", isc),
                line("the same SSDlet on the host", native),
            ],
        },
    }
}
