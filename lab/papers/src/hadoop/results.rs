//! Jobs on Hadoop: runs `lab/bench/hadoop/run.py`, or reads what it kept, for the experiments on them.
//!
//! ```text
//!   --results FILE ──────────────────────────────┐
//!   --bench DIR ──► DIR/run.py SCENARIO --json ──┴─► Results ──► hadoop-elapsed, hadoop-io, ...
//! ```
//!
//! The runner is a program of its own because it starts daemons, disks and control groups; what an
//! experiment needs of it is one JSON file.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::error::ExperimentError;
use crate::folder::ScratchFolder;
use crate::lab::Lab;
use crate::runner;
use crate::statistics::median;

/// The default size of the input.
const DATA_BYTES: u64 = 1 << 30;
const ROUNDS: usize = 3;

/// Results of scenarios, as the runner keeps them.
pub struct ScenarioResults(Vec<HadoopScenario>);

/// One scenario.
#[derive(Debug, Deserialize)]
pub struct HadoopScenario {
    scenario: String,
    /// The intermediate disk: `throttled` or `plain`.
    pub device: String,
    /// One job each, in the scenario's order.
    pub points: Vec<JobPoint>,
}

/// One job, run by several contenders in turn.
#[derive(Debug, Deserialize)]
pub struct JobPoint {
    /// Empty when it is the only one.
    pub name: String,
    /// What decides it.
    pub settings: JobSettings,
    rounds: Vec<PairedRound>,
}

/// What decides a job.
#[derive(Debug, Deserialize)]
pub struct JobSettings {
    /// Of input.
    pub size_bytes: u64,
    /// Of map output.
    pub record_bytes: u64,
    /// NodeManagers.
    pub nodes: u64,
    /// At once on one node.
    pub reduces_at_once: u64,
}

/// Both contenders, minutes apart.
#[derive(Debug, Deserialize)]
struct PairedRound {
    stock: RunCost,
    active: RunCost,
}

/// What a run cost.
#[derive(Debug, Clone, Deserialize)]
pub struct RunCost {
    elapsed_s: f64,
    device_read_bytes: f64,
    device_written_bytes: f64,
}

/// Seconds from a job's submission to its end.
pub const ELAPSED: fn(&RunCost) -> f64 = |run| run.elapsed_s;
/// MiB written to the disks of intermediate data.
pub const WRITTEN: fn(&RunCost) -> f64 = |run| run.device_written_bytes / 1048576.;
/// MiB read from them.
pub const READ: fn(&RunCost) -> f64 = |run| run.device_read_bytes / 1048576.;

impl JobPoint {
    /// The median of a figure over the rounds, of stock and of ours.
    pub fn both(&self, figure: fn(&RunCost) -> f64) -> (f64, f64) {
        let of = |run: fn(&PairedRound) -> &RunCost| {
            median(self.rounds.iter().map(|round| figure(run(round))).collect())
        };
        (of(|round| &round.stock), of(|round| &round.active))
    }

    /// How much less ours is than stock in each round, in percent; the median.
    pub fn less(&self, figure: fn(&RunCost) -> f64) -> f64 {
        let less = |round: &PairedRound| 100. * (1. - figure(&round.active) / figure(&round.stock));
        median(self.rounds.iter().map(less).collect())
    }
}

impl ScenarioResults {
    /// Results of the scenarios, from the file that was given or from a run.
    ///
    /// # Errors
    /// When the runner fails, or there are no results of a scenario in a file.
    pub fn of(lab: &Lab<'_>, scenarios: &[&str]) -> Result<Self, ExperimentError> {
        let results = match &lab.setup.results {
            Some(path) => Self::read(path)?,
            None => Self::run(lab, scenarios)?,
        };
        if let Some(missing) = scenarios.iter().find(|name| results.find(name).is_none()) {
            let place = lab.setup.results.as_deref().unwrap_or(&lab.setup.bench);
            return Err(ExperimentError::NoScenario {
                path: place.to_owned(),
                missing: (*missing).to_owned(),
                scenarios: scenarios.iter().map(|&name| name.to_owned()).collect(),
            });
        }
        Ok(results)
    }

    /// A scenario's result.
    pub fn get(&self, scenario: &str) -> &HadoopScenario {
        self.find(scenario).expect("all that were asked for are there")
    }

    fn find(&self, scenario: &str) -> Option<&HadoopScenario> {
        self.0.iter().find(|one| one.scenario == scenario)
    }

    /// A list of scenarios, or a single one.
    fn read(path: &Path) -> Result<Self, ExperimentError> {
        let wrong = |reason| ExperimentError::Results { path: path.to_owned(), reason };
        let text = fs::read_to_string(path).map_err(|error| ExperimentError::on(path, error))?;
        let scenarios: Vec<HadoopScenario> = if text.trim_start().starts_with('[') {
            serde_json::from_str(&text)
        } else {
            serde_json::from_str(&text).map(|one| vec![one])
        }
        .map_err(|error| wrong(format!("no result of lab/bench/hadoop/run.py: {error}")))?;
        for point in scenarios.iter().flat_map(|one| &one.points) {
            if point.rounds.is_empty() {
                return Err(wrong("a point without rounds".to_owned()));
            }
        }
        Ok(ScenarioResults(scenarios))
    }

    fn run(lab: &Lab<'_>, scenarios: &[&str]) -> Result<Self, ExperimentError> {
        let setup = lab.setup;
        let script = runner::find(lab, "run.py")?;
        let folder = ScratchFolder::new(lab)?;
        let kept = folder.path().join("results.json");
        let mut command = runner::command(&script);
        command.args(scenarios);
        command.args(["--size", &setup.size_bytes.unwrap_or(DATA_BYTES).to_string()]);
        command.args(["--pairs", &setup.rounds.unwrap_or(ROUNDS).to_string()]);
        command.arg("--dir").arg(folder.path().join("work"));
        command.arg("--results").arg(folder.path().join("results"));
        command.arg("--json").arg(&kept).arg("--merganser").arg(&setup.program);
        runner::run(lab, &script, command)?;
        Self::read(&kept)
    }
}

/// What differs from the paper's method in all experiments on Hadoop.
pub fn differs(scenario: &HadoopScenario) -> Vec<String> {
    let point = &scenario.points[0];
    let disk = match scenario.device.as_str() {
        "throttled" => "held to 140 MB/s read and 65 MB/s write",
        _ => "with no limit",
    };
    vec![
        "Theirs: Hadoop 1.1.2, HiBench, a server with 8 cores and 8 GB, HDFS on a hard disk, \
         intermediate data on a Jasmine board that merges. Here: Hadoop 3.4.2, daemons and tasks as \
         processes on one machine, the merge in a process beside the NodeManager."
            .into(),
        format!(
            "Intermediate data lies on a loop device of its own, {disk}; bytes are that device's. \
             Daemons, tasks and the page cache are held to a control group."
        ),
        format!(
            "The input has {} MiB instead of 7.6 GB, in as many splits with as many spills.",
            point.settings.size_bytes >> 20
        ),
        "Each output is checked to be stock Hadoop's, byte for byte; a join's but for the order of a \
         key's lines, which Hadoop leaves to chance."
            .into(),
    ]
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A result with `points` of name, and seconds and MiB written of stock and ours.
    pub fn scenario(name: &str, points: &[(&str, f64, f64)]) -> HadoopScenario {
        let run = |figure: f64| RunCost {
            elapsed_s: figure,
            device_read_bytes: figure * 1048576.,
            device_written_bytes: figure * 1048576.,
        };
        let point = |&(name, stock, active): &(&str, f64, f64)| JobPoint {
            name: name.into(),
            settings: JobSettings {
                size_bytes: 1 << 30,
                record_bytes: 4096,
                nodes: 1,
                reduces_at_once: 1,
            },
            rounds: vec![PairedRound { stock: run(stock), active: run(active) }],
        };
        HadoopScenario {
            scenario: name.into(),
            device: "throttled".into(),
            points: points.iter().map(point).collect(),
        }
    }

    /// Results of one scenario.
    pub fn results(scenarios: Vec<HadoopScenario>) -> ScenarioResults {
        ScenarioResults(scenarios)
    }

    #[test]
    fn a_file_holds_one_result_or_a_list() {
        let one = r#"{"scenario": "sort-4k", "device": "plain", "points": [{"name": "", "settings":
            {"size_bytes": 1048576, "record_bytes": 4096, "nodes": 1, "reduces_at_once": 2},
            "rounds": [{"stock": {"elapsed_s": 4, "device_read_bytes": 0, "device_written_bytes": 2097152},
            "active": {"elapsed_s": 3, "device_read_bytes": 0, "device_written_bytes": 1048576}}]}]}"#;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("r.json");
        for text in [one.to_owned(), format!("[{one}]")] {
            fs::write(&path, text).expect("written");
            let results = ScenarioResults::read(&path).unwrap_or_else(|_| panic!("read"));
            let point = &results.get("sort-4k").points[0];
            assert_eq!(point.both(WRITTEN), (2., 1.));
            assert_eq!(point.less(ELAPSED), 25.);
        }
        fs::write(&path, "{}").expect("written");
        let Err(error) = ScenarioResults::read(&path) else { panic!("read") };
        let sentence = error.to_string();
        assert!(sentence.contains("no result of lab/bench/hadoop/run.py"), "{sentence}");
    }
}
