//! Pairs of jobs that `lab/bench/hadoop/isc.py` measured.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::OutcomeSection;
use crate::statistics::{mean, median};

/// One line of text: a task with nothing to do.
pub const LINE_BYTES: u64 = 850;
/// A split.
pub const TASK_BYTES: u64 = 128_000_000;
/// The heap of map tasks, in MB, unless the least one is looked for.
const HEAP_MB: u64 = 260;

/// All that was measured.
#[derive(Debug, Deserialize)]
pub struct StudyResults {
    study: String,
    pairs: Vec<MeasuredPair>,
    /// The same SSDlet outside of Hadoop.
    #[serde(default)]
    pub calls: Vec<DirectCall>,
}

/// What decides a pair, but its round.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PairSettings {
    /// The job.
    pub job: String,
    /// Of each file; a file is one map.
    pub file_bytes: u64,
    /// Maps.
    pub files: u64,
    /// DataNodes with the files, and maps at once.
    pub devices: u64,
    /// `own`, or `slow` and `fast` for a disk per DataNode.
    pub disk: String,
    /// The heap of map tasks, in MB.
    pub heap_mb: u64,
    /// The only contender, for the least heap.
    pub only: String,
}

#[derive(Debug, Clone, Deserialize)]
struct MeasuredPair {
    cell: PairSettings,
    stock: Option<JobEnd>,
    node: Option<JobEnd>,
}

/// How a job of a contender ended.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum JobEnd {
    Well(Box<JobCost>),
    Failed {
        #[expect(dead_code, reason = "the field tells a failure from a result")]
        failed: String,
    },
}

/// What a job cost.
#[derive(Debug, Clone, Deserialize)]
pub struct JobCost {
    /// Seconds from submission to the end.
    pub elapsed_s: f64,
    /// From the client's start to its end: longer than `elapsed_s`.
    pub wall_s: f64,
    /// From the start of the first map task to the end of the last.
    pub maps_s: f64,
    /// Of each map task.
    pub task_s: Vec<f64>,
    /// Of processors.
    pub cpu_s: Cpu,
    /// By map tasks.
    pub read_bytes: TaskReads,
    /// The largest resident memory of a map task's JVM.
    pub map_rss_bytes: f64,
    /// Processor seconds by time, if the file is young enough to have them.
    #[serde(default)]
    pub series: Option<ProcessorSeries>,
}

/// Processor seconds in each step of time, from before the client starts.
#[derive(Debug, Clone, Deserialize)]
pub struct ProcessorSeries {
    /// Seconds of a step.
    pub every_s: f64,
    /// The JVMs of map and reduce tasks.
    pub tasks: Vec<f64>,
    /// The process that maps.
    pub node: Vec<f64>,
    /// All programs of the machine.
    pub machine: Vec<f64>,
}

/// Seconds of processors.
#[derive(Debug, Clone, Deserialize)]
pub struct Cpu {
    /// The JVMs of map tasks.
    pub maps: f64,
    /// Those of reduce tasks.
    pub reduces: f64,
    /// That of the job's master.
    pub master: f64,
    /// The process that maps.
    pub node: f64,
    /// All DataNodes.
    pub datanodes: f64,
    /// All programs of the machine.
    pub machine: f64,
}

/// Bytes that map tasks read.
#[derive(Debug, Clone, Deserialize)]
pub struct TaskReads {
    /// From HDFS, by Hadoop's counter.
    pub hdfs: f64,
    /// By system calls, jars and sockets included.
    pub calls: f64,
}

/// The SSDlet, called without Hadoop.
#[derive(Debug, Clone, Deserialize)]
pub struct DirectCall {
    /// How.
    pub name: String,
    /// Seconds of each round.
    pub wall_s: Vec<f64>,
    /// Of the program that calls.
    pub cpu_s: Vec<f64>,
    /// Of the process that answers; 0 if it is the same one.
    pub node_cpu_s: Vec<f64>,
}

/// Seconds of a map task.
pub const TASK: fn(&JobCost) -> f64 = |run| mean(&run.task_s);
/// Seconds of a job.
pub const ELAPSED: fn(&JobCost) -> f64 = |run| run.elapsed_s;
/// Seconds of the maps of a job.
pub const MAPS: fn(&JobCost) -> f64 = |run| run.maps_s;
/// Processor seconds of the JVMs of map tasks.
pub const MAP_CPU: fn(&JobCost) -> f64 = |run| run.cpu_s.maps;
/// Processor seconds of all JVMs of the job.
pub const JOB_CPU: fn(&JobCost) -> f64 =
    |run| run.cpu_s.maps + run.cpu_s.reduces + run.cpu_s.master;
/// Processor seconds of the whole machine, from the client's start to its end.
pub const MACHINE_CPU: fn(&JobCost) -> f64 = |run| run.cpu_s.machine;
/// Processors of the machine that were busy on average, in the same time.
pub const BUSY: fn(&JobCost) -> f64 = |run| run.cpu_s.machine / run.wall_s;

impl PairSettings {
    /// A job over files on the machine's own disk.
    pub fn new(job: &str, file_bytes: u64, files: u64) -> Self {
        PairSettings {
            job: job.into(),
            file_bytes,
            files,
            devices: 1,
            disk: "own".into(),
            heap_mb: HEAP_MB,
            only: String::new(),
        }
    }
}

impl StudyResults {
    /// The results that were named.
    ///
    /// # Errors
    /// When none were, or the file is something else.
    pub fn of(
        lab: &Lab<'_>,
        experiment: &'static str,
        figure: &str,
    ) -> Result<Self, ExperimentError> {
        match &lab.setup.results {
            Some(path) => Self::read(path),
            None => Err(ExperimentError::Needs {
                experiment,
                what: format!(
                    "--results FILE; as root, `python3 lab/bench/hadoop/isc.py {figure} --make-inputs` and then \
                     `python3 lab/bench/hadoop/isc.py {figure} --json FILE` measure and write it"
                ),
            }),
        }
    }

    fn read(path: &Path) -> Result<Self, ExperimentError> {
        let text = fs::read_to_string(path).map_err(|error| ExperimentError::on(path, error))?;
        let wrong = |reason| ExperimentError::Results { path: path.to_owned(), reason };
        let results: StudyResults = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("no isc.json of lab/bench/hadoop/isc.py: {error}")))?;
        if results.study != "isc-hadoop" {
            return Err(wrong(format!("is of the study '{}', not isc-hadoop", results.study)));
        }
        Ok(results)
    }

    /// Both runs of each round.
    fn rounds<'a>(
        &'a self,
        pair: &'a PairSettings,
    ) -> impl Iterator<Item = (&'a JobCost, &'a JobCost)> {
        let well = |ended: &'a Option<JobEnd>| match ended {
            Some(JobEnd::Well(run)) => Some(&**run),
            _ => None,
        };
        let same = self.pairs.iter().filter(move |one| one.cell == *pair);
        same.filter_map(move |one| well(&one.stock).zip(well(&one.node)))
    }

    /// The series of stock and of the node in the first round that has both.
    pub fn series<'a>(
        &'a self,
        pair: &'a PairSettings,
    ) -> Option<(&'a ProcessorSeries, &'a ProcessorSeries)> {
        self.rounds(pair).find_map(|(stock, node)| stock.series.as_ref().zip(node.series.as_ref()))
    }

    /// How often a pair was measured.
    pub fn count(&self, pair: &PairSettings) -> usize {
        self.rounds(pair).count()
    }

    /// The medians of a figure, of stock and of the node.
    pub fn both(&self, pair: &PairSettings, figure: fn(&JobCost) -> f64) -> Option<(f64, f64)> {
        let stock: Vec<f64> = self.rounds(pair).map(|(stock, _)| figure(stock)).collect();
        let node: Vec<f64> = self.rounds(pair).map(|(_, node)| figure(node)).collect();
        (!stock.is_empty()).then(|| (median(stock), median(node)))
    }

    /// Stock's figure over the node's in each round; the median.
    pub fn gain(&self, pair: &PairSettings, figure: fn(&JobCost) -> f64) -> Option<f64> {
        let gains: Vec<f64> =
            self.rounds(pair).map(|(stock, node)| figure(stock) / figure(node)).collect();
        (!gains.is_empty()).then(|| median(gains))
    }

    /// The least heap in MB that let a contender's job end well, and its memory then.
    pub fn least_heap(&self, who: &str) -> Option<(u64, f64)> {
        let ran = self.pairs.iter().filter(|one| one.cell.only == who);
        let well = ran.filter_map(|one| {
            let ended = if who == "stock" { &one.stock } else { &one.node };
            match ended {
                Some(JobEnd::Well(run)) => Some((one.cell.heap_mb, run.map_rss_bytes)),
                _ => None,
            }
        });
        well.min_by_key(|(heap, _)| *heap)
    }

    /// How the machine and the method differ from the paper's.
    pub fn differs(&self) -> Vec<String> {
        [
            "Theirs: Hadoop 0.20.205, splits of 64 MB, mappers in the firmware of an SSD, with processors of its own. Here: \
             Hadoop 3.4.2, splits of 128 MB (files of 126,000,000 bytes), mappers in a process on the DataNode's machine. It uses the \
             machine's processors, so the row of the whole machine counts it.",
            "Stock's task has Hadoop's mapper in Java and the node the same program in Rust, so most of the gain is the \
             language. The paper compares Java on the host with C in the device in the same way.",
            "Ratios are medians over rounds of stock's figure over the node's; of an even number of rounds, the lower of the \
             middle two. Both run in turn on one cluster, and their outputs are the same bytes.",
        ]
        .map(String::from)
        .to_vec()
    }
}

/// `held` or `missed`.
fn verdict(held: bool) -> &'static str {
    if held { "held" } else { "missed" }
}

impl OutcomeSection {
    /// A ratio that should be at least `least`.
    pub fn reach(&mut self, what: &str, paper: Option<f64>, least: f64, ours: Option<f64>) {
        let Some(ours) = ours else {
            match paper {
                Some(paper) => self.paper(format!("{what}: not measured"), paper),
                None => self.neither(format!("{what}: not measured")),
            }
            return;
        };
        let what = format!("{what}; at least {least}: {}", verdict(ours >= least));
        match paper {
            Some(paper) => self.both(what, paper, ours),
            None => self.ours(what, ours),
        }
    }

    /// A figure of ours, or that it was not measured.
    pub fn told(&mut self, what: &str, ours: Option<f64>) {
        match ours {
            Some(ours) => self.ours(what, ours),
            None => self.neither(format!("{what}: not measured")),
        }
    }

    /// The medians of stock and of the node.
    pub fn medians(&mut self, what: &str, both: Option<(f64, f64)>) {
        self.told(&format!("{what}, stock"), both.map(|both| both.0));
        self.told(&format!("{what}, node"), both.map(|both| both.1));
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A run with all times and amounts multiplied by a factor.
    pub fn run(times: f64) -> JobCost {
        JobCost {
            elapsed_s: 10. * times,
            wall_s: 12. * times,
            maps_s: 8. * times,
            task_s: vec![3. * times, 5. * times],
            cpu_s: Cpu {
                maps: 2. * times,
                reduces: 1.,
                master: 1.,
                node: 1.,
                datanodes: 0.5,
                machine: 6. * times,
            },
            read_bytes: TaskReads { hdfs: 1e3 * times, calls: 1e6 * times },
            map_rss_bytes: 1e8 * times,
            series: None,
        }
    }

    /// Results with a round for each pair of numbers.
    pub fn results(rounds: &[(PairSettings, f64, f64)]) -> StudyResults {
        let pairs = rounds.iter().map(|(pair, stock, node)| MeasuredPair {
            cell: pair.clone(),
            stock: Some(JobEnd::Well(Box::new(run(*stock)))),
            node: Some(JobEnd::Well(Box::new(run(*node)))),
        });
        StudyResults { study: "isc-hadoop".into(), pairs: pairs.collect(), calls: Vec::new() }
    }

    /// The same results, where each run took these processor seconds in two steps.
    pub fn with_series(mut results: StudyResults, tasks: [f64; 2]) -> StudyResults {
        let series = ProcessorSeries {
            every_s: 2.,
            tasks: tasks.into(),
            node: vec![0.; 2],
            machine: vec![2.; 2],
        };
        for one in &mut results.pairs {
            for ended in [&mut one.stock, &mut one.node] {
                if let Some(JobEnd::Well(run)) = ended {
                    run.series = Some(series.clone());
                }
            }
        }
        results
    }

    #[test]
    fn a_gain_is_the_median_of_the_rounds_and_not_of_other_pairs() {
        let pair = PairSettings::new("wordcount", TASK_BYTES, 1);
        let other = PairSettings { files: 2, ..pair.clone() };
        let rounds = [
            (pair.clone(), 4., 1.),
            (pair.clone(), 9., 3.),
            (pair.clone(), 2., 2.),
            (other, 100., 1.),
        ];
        let results = results(&rounds);
        assert_eq!(results.gain(&pair, ELAPSED), Some(3.));
        assert_eq!(results.both(&pair, TASK), Some((16., 8.)));
        assert_eq!(results.count(&pair), 3);
        assert_eq!(results.gain(&PairSettings::new("grep", TASK_BYTES, 1), ELAPSED), None);
    }

    #[test]
    fn the_least_heap_is_that_of_a_job_that_ended_well() {
        let mut results = results(&[]);
        for (heap_mb, ended) in [
            (64, JobEnd::Failed { failed: "no heap".into() }),
            (160, JobEnd::Well(Box::new(run(3.)))),
            (128, JobEnd::Well(Box::new(run(2.)))),
        ] {
            let cell = PairSettings {
                heap_mb,
                only: "stock".into(),
                ..PairSettings::new("wordcount", TASK_BYTES, 1)
            };
            results.pairs.push(MeasuredPair { cell, stock: Some(ended), node: None });
        }
        assert_eq!(results.least_heap("stock"), Some((128, 2e8)));
        assert_eq!(results.least_heap("node"), None);
    }

    #[test]
    fn a_target_is_held_or_missed_or_not_measured() {
        let mut section = OutcomeSection::new("t");
        section.reach("a", Some(2.), 2., Some(2.));
        section.reach("b", None, 2., Some(1.9));
        section.reach("c", Some(2.), 2., None);
        let rows: Vec<_> =
            section.rows.iter().map(|row| (&*row.what, row.paper, row.ours)).collect();
        let expected = [
            ("a; at least 2: held", Some(2.), Some(2.)),
            ("b; at least 2: missed", None, Some(1.9)),
            ("c: not measured", Some(2.), None),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn what_is_something_else_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("i.json");
        for (text, expected) in [
            ("[]", "no isc.json of lab/bench/hadoop/isc.py"),
            (r#"{"study": "ssd-hadoop", "pairs": []}"#, "is of the study 'ssd-hadoop'"),
        ] {
            fs::write(&path, text).expect("written");
            let said = StudyResults::read(&path).expect_err("refused").to_string();
            assert!(said.contains(expected), "{said}");
        }
    }
}
