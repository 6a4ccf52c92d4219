//! Figures 13 and 14: processor, reads and memory of the host.

use super::results::{
    JOB_CPU, JobCost, MACHINE_CPU, MAP_CPU, PairSettings, ProcessorSeries as Steps, StudyResults,
    TASK_BYTES,
};
use crate::error::ExperimentError;
use crate::isc::paper::{MEMORY, PROCESSOR_MAPS, PROCESSOR_TOTAL, READ};
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::{Chart, ChartSeries};

/// A figure of a run, and its name.
type Named = (&'static str, fn(&JobCost) -> f64);

/// Maps of 128 MB.
const FILES: u64 = 4;
/// Parts of the processor seconds.
const PARTS: [Named; 7] = [
    ("map tasks' JVMs", MAP_CPU),
    ("reduce tasks' JVMs", |run| run.cpu_s.reduces),
    ("the master's JVM", |run| run.cpu_s.master),
    ("the node", |run| run.cpu_s.node),
    ("the DataNode", |run| run.cpu_s.datanodes),
    ("tasks and master together", JOB_CPU),
    ("the whole machine", MACHINE_CPU),
];

/// Reads the results.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(&StudyResults::of(lab, "isc-hadoop-host", "host")?))
}

fn outcome(results: &StudyResults) -> Outcome {
    let pair = PairSettings::new("wordcount", TASK_BYTES, FILES);
    let mut gains = OutcomeSection::new("stock's over the node's, wordcount of 512 MB (14)");
    let maps = results.gain(&pair, MAP_CPU);
    gains.reach("processor of map tasks' JVMs", Some(PROCESSOR_MAPS), PROCESSOR_TOTAL, maps);
    gains.told("processor of tasks and master", results.gain(&pair, JOB_CPU));
    gains.told("processor of the machine, node included", results.gain(&pair, MACHINE_CPU));
    let hdfs = results.gain(&pair, |run| run.read_bytes.hdfs);
    gains.reach("bytes of HDFS read by map tasks (counter)", Some(READ), READ, hdfs);
    let calls = results.gain(&pair, |run| run.read_bytes.calls);
    gains.told("bytes read by system calls of map tasks (rchar)", calls);
    let heaps = [results.least_heap("stock"), results.least_heap("node")];
    let least = heaps[0].zip(heaps[1]);
    let heap = least.map(|(stock, node)| stock.0 as f64 / node.0 as f64);
    gains.reach("the least heap of a map task", None, MEMORY, heap);
    let resident = least.map(|(stock, node)| stock.1 / node.1);
    gains.reach("peak memory of its JVM, with its least heap", Some(MEMORY), MEMORY, resident);
    let same = results.gain(&pair, |run| run.map_rss_bytes);
    gains.told("peak memory of its JVM, with the same heap", same);

    let mut processor = OutcomeSection::new("seconds of processors");
    let mut bars = Vec::new();
    for (name, figure) in PARTS {
        let both = results.both(&pair, figure);
        processor.medians(name, both);
        if let Some((stock, node)) = both {
            for (who, seconds) in [("stock", stock), ("node", node)] {
                if seconds > 0. {
                    bars.push((format!("{name}, {who}"), seconds, false));
                }
            }
        }
    }
    let mut amounts = OutcomeSection::new("amounts");
    amounts.medians("HDFS read by map tasks, MB", results.both(&pair, |r| r.read_bytes.hdfs / 1e6));
    amounts.medians("read by system calls, MB", results.both(&pair, |r| r.read_bytes.calls / 1e6));
    let resident = results.both(&pair, |r| r.map_rss_bytes / 1048576.);
    amounts.medians("peak memory of a map's JVM, same heap, MiB", resident);
    for (who, heap) in ["stock", "node"].into_iter().zip(heaps) {
        amounts.told(&format!("the least heap, {who}, MB"), heap.map(|heap| heap.0 as f64));
        let resident = heap.map(|heap| heap.1 / 1048576.);
        amounts.told(&format!("peak memory with the least heap, {who}, MiB"), resident);
    }
    let mut differs = results.differs();
    differs.push(
        "Processor and memory are those of the tasks' JVMs in /proc, read every 40 ms; the machine's is that of /proc/stat. \
         Reads are Hadoop's counter HDFS_BYTES_READ. System calls (rchar) also read jars, which every JVM does."
            .into(),
    );
    differs.push(
        "The least heap is the smallest -Xmx of a series with which a map task of 128 MB ends well, with the default sort \
         buffer of 100 MB. A task with the node's least heap has no room for that buffer, so it could not map by itself."
            .into(),
    );
    let chart = match results.series(&pair) {
        Some((stock, node)) => over_time(stock, node),
        None => Chart::Bars {
            title: "Word count of 512 MB".into(),
            unit: "s of processors".into(),
            bars,
        },
    };
    Outcome { sections: vec![gains, processor, amounts], differs, chart }
}

/// Figure 13: the processors that are busy, by time. A line for the tasks and one for the machine of each, and one for the
/// node.
fn over_time(stock: &Steps, node: &Steps) -> Chart {
    let line = |name: &str, of: &Steps, seconds: &[f64]| {
        // A step is as wide as its time.
        let step = |(at, busy): (usize, &f64)| {
            [at, at + 1].map(|edge| (edge as f64 * of.every_s, busy / of.every_s))
        };
        let points = seconds.iter().enumerate().flat_map(step).collect();
        ChartSeries { name: name.into(), paper: false, points }
    };
    Chart::Time {
        title: "Word count of 512 MB (Figure 13)".into(),
        axes: ["seconds".into(), "busy processors".into()],
        series: vec![
            line("tasks' JVMs, stock", stock, &stock.tasks),
            line("the machine, stock", stock, &stock.machine),
            line("tasks' JVMs, node", node, &node.tasks),
            line("the machine, node", node, &node.machine),
            line("the node", node, &node.node),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{results, with_series};
    use super::*;

    #[test]
    fn a_file_with_series_is_drawn_over_time() {
        let rounds = [(PairSettings::new("wordcount", TASK_BYTES, FILES), 8., 2.)];
        let chart = outcome(&results(&rounds)).chart;
        assert!(matches!(chart, Chart::Bars { .. }));
        let Chart::Time { series, .. } = outcome(&with_series(results(&rounds), [1., 3.])).chart
        else {
            panic!("no chart over time");
        };
        assert_eq!(series[0].points, [(0., 0.5), (2., 0.5), (2., 1.5), (4., 1.5)]);
        assert_eq!(series.len(), 5);
    }

    #[test]
    fn tasks_and_the_machine_are_apart() {
        let rounds = [(PairSettings::new("wordcount", TASK_BYTES, FILES), 8., 2.)];
        let json = crate::report::tests::json(outcome(&results(&rounds)));
        let gains = &json["sections"][0]["rows"];
        assert_eq!(gains[0]["what"], "processor of map tasks' JVMs; at least 3.7: held");
        assert_eq!(gains[0]["ours"], 4.);
        // Both have a reducer and a master of one second.
        assert_eq!(gains[1]["ours"], 3.);
        assert_eq!(
            gains[3]["what"],
            "bytes of HDFS read by map tasks (counter); at least 100: missed"
        );
        assert!(gains[5]["ours"].is_null(), "no heap was looked for");
    }
}
