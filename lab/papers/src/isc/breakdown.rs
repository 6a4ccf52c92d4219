//! Figure 10: where the time of a job, a task and a map goes.

use super::job::PlacedJob;
use super::paper::{
    self, JOB_CLEANUP, JOB_MAPS, JOB_REDUCES, JOB_SETUP, PURE_BASELINE, PURE_GAIN, RATIO_MEASURED,
    RATIO_PARTS, TASK_BASELINE, TASK_GAIN, TASK_ISC,
};
use super::task::SplitTask;
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::Chart;

/// Runs a task.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(SplitTask::measure(lab)?))
}

fn outcome(task: SplitTask) -> Outcome {
    let SplitTask { isc, hadoop, native, .. } = task;
    let of = |place| PlacedJob::new(place, 1, 1);
    let mut fitted = OutcomeSection::new("fitted: each to this very figure by one parameter");
    fitted.both("pure map in the device, s of 64 MB (10c)", PURE_BASELINE / PURE_GAIN, isc.pure);
    fitted.both("bandwidth inside over link, measured", RATIO_MEASURED, task.ratios[1]);
    let mut parameters = OutcomeSection::new("parameters of the profile");
    parameters.both("bandwidth inside over link, by the parts", RATIO_PARTS, task.ratios[0]);
    let mut job = OutcomeSection::new("follows: a job of 1 GB, s (10a is the baseline's)");
    job.paper("reduces, Hadoop's mapper; next to the maps", JOB_REDUCES);
    let total = JOB_SETUP + JOB_MAPS + JOB_CLEANUP;
    job.both("all, Hadoop's mapper (chosen: its constants)", total, of(hadoop).total());
    job.ours("maps, in the device", of(isc).maps());
    job.ours("maps, the same SSDlet on the host", of(native).maps());
    let mut tasks = OutcomeSection::new("follows: a map task, s (10b)");
    tasks.both("Hadoop's mapper (chosen)", TASK_BASELINE, of(hadoop).task());
    tasks.both("in the device", TASK_ISC, of(isc).task());
    tasks.ours("the same SSDlet on the host", of(native).task());
    tasks.both("times as fast, in the device", TASK_GAIN, of(hadoop).task() / of(isc).task());
    tasks.ours("times as fast, the same SSDlet on the host", of(hadoop).task() / of(native).task());
    let mut parts = OutcomeSection::new("follows: constant part of a task, percent (10c)");
    let part = |place| 100. * paper::CONSTANT / of(place).task();
    parts.both("Hadoop's mapper (chosen)", 14.6, part(hadoop));
    parts.both("in the device", 36., part(isc));
    parts.ours("the same SSDlet on the host", part(native));
    let mut inside = OutcomeSection::new("predicted: inside the device");
    inside.ours("busy part of the time, processor", task.busy[0]);
    inside.ours("busy part of the time, memory", task.busy[1]);
    inside.ours("busy part of the time, a die", task.busy[2]);
    inside.ours("s of the link for the same split", task.link);
    inside.ours("a session a range, over one session (SET)", task.sessions);
    let bars =
        [("Hadoop's mapper", hadoop), ("in the device", isc), ("SSDlet on the host", native)];
    let mut chart = vec![
        ("the paper's Hadoop".to_owned(), TASK_BASELINE, true),
        ("the paper's device".to_owned(), TASK_ISC, true),
    ];
    chart.extend(bars.map(|(name, place)| (name.to_owned(), of(place).task(), false)));
    Outcome {
        sections: vec![
            fitted,
            parameters,
            paper::constants(),
            job,
            tasks,
            parts,
            inside,
            paper::contradictions(),
        ],
        differs: task.differs,
        chart: Chart::Bars { title: "A map task of 64 MB".into(), unit: "s".into(), bars: chart },
    }
}
