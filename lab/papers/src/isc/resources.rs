//! Figures 13 and 14: what the host spends on 1 GB with two devices.

use super::job::{HEAP_BYTES, PlacedJob};
use super::paper::{self, MEMORY, PROCESSOR_MAPS, PROCESSOR_TOTAL, READ, RIDGES};
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
    let of = |place| PlacedJob::new(place, 1, 2);
    let [isc, hadoop, native] = [task.isc, task.hadoop, task.native].map(of);
    let mut processor =
        OutcomeSection::new("follows: processor of the host, times less (13a, 14a)");
    processor.both("average over the job", PROCESSOR_TOTAL, hadoop.cores() / isc.cores());
    processor.both(
        "average while a map task runs",
        PROCESSOR_MAPS,
        hadoop.cores_of_task() / isc.cores_of_task(),
    );
    processor.ours("seconds of a core for all of it", hadoop.processor() / isc.processor());
    processor
        .ours("the same, the same SSDlet on the host", hadoop.processor() / native.processor());
    let mut read = OutcomeSection::new("predicted: read by the host (13b, 14b)");
    read.both("times less", READ, hadoop.read_bytes() / isc.read_bytes());
    read.both("Hadoop's mapper, over the input", 1., hadoop.read_bytes() / f64::from(1 << 30));
    read.ours("in the device, MB", isc.read_bytes() / 1e6);
    read.ours("the same SSDlet on the host, times less", hadoop.read_bytes() / native.read_bytes());
    let mut memory = OutcomeSection::new("follows: memory of the host (13c, 14c)");
    memory.both("times less", MEMORY, hadoop.memory_bytes() / isc.memory_bytes());
    memory.ours("chosen: heaps of four tasks, MB", HEAP_BYTES / 1e6);
    let implied = (hadoop.read_bytes() - MEMORY * isc.read_bytes()) / (MEMORY - 1.);
    memory.ours("heaps with which it would be 3 times, MB", implied / 1e6);
    let mut ridges = OutcomeSection::new("follows: rounds of tasks (13)");
    ridges.both("ridges", RIDGES, isc.rounds() as f64);
    let bars = vec![
        ("the paper's, processor in all".to_owned(), PROCESSOR_TOTAL, true),
        ("processor in all".to_owned(), hadoop.cores() / isc.cores(), false),
        ("the paper's, processor in maps".to_owned(), PROCESSOR_MAPS, true),
        ("processor in maps".to_owned(), hadoop.cores_of_task() / isc.cores_of_task(), false),
        ("the paper's, memory".to_owned(), MEMORY, true),
        ("memory".to_owned(), hadoop.memory_bytes() / isc.memory_bytes(), false),
        ("the paper's, reads".to_owned(), READ, true),
        ("reads".to_owned(), hadoop.read_bytes() / isc.read_bytes(), false),
    ];
    task.differs.push(
        "The host's processor works in a task's setup and cleanup, in Hadoop's pure map, and for polls \
         (20 us every 50 ms, assumed). Reduce tasks and daemons are left out on all sides, because the \
         paper does not tell theirs apart."
            .to_owned(),
    );
    task.differs.push(
        "Memory is heaps (Hadoop 0.20's default, 200 MB a task) and what was read, which stays in the page \
         cache. The paper's daemons and system are not known."
            .to_owned(),
    );
    Outcome {
        sections: vec![paper::constants(), processor, read, memory, ridges],
        differs: task.differs,
        chart: Chart::Bars {
            title: "Times less of the host, 1 GB, two devices".into(),
            unit: "times less".into(),
            bars,
        },
    }
}
