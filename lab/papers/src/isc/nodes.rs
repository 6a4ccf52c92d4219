//! Figure 15: clusters of one to four datanodes, a device each.

use super::job::PlacedJob;
use super::paper::{self, JOB_GAIN};
use super::task::SplitTask;
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::{Chart, ChartSeries};

/// GB of the jobs.
const SIZES: [u64; 4] = [2, 4, 8, 16];
const NODES: [u64; 4] = [1, 2, 3, 4];

/// Runs a task.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(SplitTask::measure(lab)?))
}

fn outcome(mut task: SplitTask) -> Outcome {
    let SplitTask { isc, hadoop, native, .. } = task;
    let mut gain = OutcomeSection::new("follows: times as fast as Hadoop's mapper (15a)");
    for nodes in NODES {
        let of = |place| PlacedJob::new(place, 16, nodes).total();
        gain.both(format!("16 GB, {nodes} nodes"), JOB_GAIN, of(hadoop) / of(isc));
    }
    let native_gain = PlacedJob::new(hadoop, 16, 4).total() / PlacedJob::new(native, 16, 4).total();
    gain.ours("16 GB, 4 nodes, the same SSDlet on the hosts", native_gain);
    let mut linear =
        OutcomeSection::new("follows: 4 nodes over one, times as fast (15: almost linear)");
    for (name, place) in [("in the devices", isc), ("Hadoop's mapper", hadoop)] {
        let of = |nodes| PlacedJob::new(place, 16, nodes).total();
        linear.both(format!("16 GB, {name}"), 4., of(1) / of(4));
    }
    let mut overlap = OutcomeSection::new("follows: 16 GB in devices over 8 GB by Hadoop (15b: 1)");
    for nodes in NODES {
        let over =
            PlacedJob::new(isc, 16, nodes).total() / PlacedJob::new(hadoop, 8, nodes).total();
        overlap.both(format!("{nodes} nodes"), 1., over);
    }
    let half = PlacedJob::new(isc, 16, 2).total() / PlacedJob::new(hadoop, 16, 4).total();
    overlap.both("16 GB, 2 nodes in devices over 4 of Hadoop", 1., half);
    let mut seconds = OutcomeSection::new("follows: seconds; the paper has them in plots only");
    for size in SIZES {
        for nodes in NODES {
            let of = |place| PlacedJob::new(place, size, nodes).total();
            seconds.ours(format!("{size} GB, {nodes} nodes, Hadoop's mapper"), of(hadoop));
            seconds.ours(format!("{size} GB, {nodes} nodes, in the devices"), of(isc));
        }
    }
    let line = |name: String, place, size| ChartSeries {
        name,
        paper: false,
        points: NODES
            .map(|nodes| (nodes as f64, PlacedJob::new(place, size, nodes).total()))
            .into(),
    };
    let lines = [16, 8].into_iter().flat_map(|size| {
        let name = |what: &str| format!("{what}, {size} GB");
        [line(name("Hadoop's mapper"), hadoop, size), line(name("in the devices"), isc, size)]
    });
    task.differs.push(
        "Nodes share nothing but the rounds of tasks: the network carries counts, a thousandth of the \
         input, and is left out."
            .to_owned(),
    );
    Outcome {
        sections: vec![paper::constants(), gain, linear, overlap, seconds],
        differs: task.differs,
        chart: Chart::Lines {
            title: "Word count on clusters".into(),
            axes: ["datanodes".into(), "s".into()],
            series: lines.collect(),
        },
    }
}
