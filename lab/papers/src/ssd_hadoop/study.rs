//! Cells that `lab/bench/hadoop/study.py` measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::error::ExperimentError;
use crate::folder::ScratchFolder;
use crate::lab::Lab;
use crate::outcome::OutcomeSection;
use crate::runner;

/// The models of the paper's disks.
pub const HDD: &str = "wd5000aakx";
/// The SSD's.
pub const SSD: &str = "830";
/// The data of the paper's sort in Figures 6 and 8 and in Table 2, in bytes.
const PAPER_BYTES: f64 = 10e9;

/// All that was measured.
#[derive(Debug, Deserialize)]
pub struct Study {
    study: String,
    /// Data here over data in the paper.
    pub scale: f64,
    /// The seconds of the wall clock for one second of the emulated disks.
    #[serde(default = "real_time")]
    pub slower: u32,
    cells: Vec<MeasuredCell>,
    /// Cells that have late attempts alone.
    #[serde(default)]
    not_valid: Vec<Late>,
    /// `merganser hadoop advise --job` on the sorts of the sweep, by device.
    #[serde(default)]
    pub predicted: BTreeMap<String, JobAdvice>,
}

const fn real_time() -> u32 {
    1
}

/// What decides a cell.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StudyCell {
    /// The job's name in the runner.
    pub job: String,
    /// Its data in the paper, in GB of 10^9 bytes.
    pub paper_gb: f64,
    /// The model.
    pub device: String,
    /// Data here over data in the paper.
    pub scale: f64,
    /// `stock`, or `active` with Merganser's shuffle.
    pub flavour: String,
    /// `mapreduce.task.io.sort.mb`.
    pub sort_mb: u64,
    /// `mapreduce.task.io.sort.factor`.
    pub factor: u64,
    /// `dfs.blocksize`, in MiB.
    pub block_mb: u64,
    /// `merganser.shuffle.defer.min-segment-bytes`; empty for the default.
    pub least_segment: String,
}

/// A cell, and its result: the median round's by time.
#[derive(Debug, Clone, Deserialize)]
pub struct MeasuredCell {
    /// What decides it.
    pub cell: StudyCell,
    /// Seconds from submission to the end.
    pub elapsed_s: f64,
    /// Whether the emulation kept its time.
    pub valid: bool,
    /// How late it was.
    pub lag: AnswerLag,
    /// Joules of the device in the emulation.
    pub device_joules: f64,
    /// Seconds of the emulation.
    pub device_seconds: f64,
    /// What the disk did, by the job's phase.
    pub phases: BTreeMap<String, DiskPhase>,
    /// Some requests.
    pub points: Points,
    /// All valid rounds; empty in a file that is older than rounds.
    #[serde(default)]
    rounds: Vec<RoundTime>,
}

/// The time of a round.
#[derive(Debug, Clone, Copy, Deserialize)]
struct RoundTime {
    round: u32,
    elapsed_s: f64,
}

/// A cell that has late attempts alone, and how late the last one was.
#[derive(Debug, Deserialize)]
struct Late {
    cell: StudyCell,
    lag: AnswerLag,
}

/// How late answers were.
#[derive(Debug, Clone, Deserialize)]
pub struct AnswerLag {
    /// The share of requests that were late.
    pub late_share: f64,
    /// All lag over the busy time.
    pub time_share: f64,
}

/// What the disk did in a phase.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct DiskPhase {
    /// Reads.
    pub reads: RequestFlow,
    /// Writes.
    pub writes: RequestFlow,
}

/// Requests of one kind.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub struct RequestFlow {
    /// All.
    pub requests: u64,
    /// Those that continue the one before.
    pub in_order: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Requests for a plot: nanoseconds, `R` or `W`, first byte.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Points {
    /// The points.
    pub list: Vec<(u64, String, u64)>,
}

/// What `merganser hadoop advise --job --json` says.
#[derive(Debug, Clone, Deserialize)]
pub struct JobAdvice {
    /// The settings that it prints, by name; empty in an older file.
    #[serde(default)]
    pub advice: BTreeMap<String, String>,
    /// Every combination that it tried.
    pub combinations: Vec<Combination>,
}

/// One combination.
#[derive(Debug, Clone, Deserialize)]
pub struct Combination {
    /// `mapreduce.task.io.sort.mb`.
    pub sort_mb: f64,
    /// `mapreduce.task.io.sort.factor`.
    pub factor: u64,
    /// `dfs.blocksize`, in MiB.
    pub block_mb: f64,
    /// Whether the merge is deferred.
    pub defer: bool,
    /// Seconds of the job.
    pub seconds: f64,
}

impl StudyCell {
    /// Stock Hadoop with the paper's defaults on a device.
    pub fn stock(job: &str, paper_gb: f64, device: &str, scale: f64) -> Self {
        StudyCell {
            job: job.into(),
            paper_gb,
            device: device.into(),
            scale,
            flavour: "stock".into(),
            sort_mb: 100,
            factor: 200,
            block_mb: 64,
            least_segment: String::new(),
        }
    }
}

impl MeasuredCell {
    /// A cell without a figure that may be used.
    fn late(Late { cell, lag }: Late) -> Self {
        MeasuredCell {
            cell,
            elapsed_s: f64::NAN,
            valid: false,
            lag,
            device_joules: f64::NAN,
            device_seconds: f64::NAN,
            phases: BTreeMap::new(),
            points: Points::default(),
            rounds: Vec::new(),
        }
    }
}

impl Study {
    /// The cells of figures, from the file that was given or from a run.
    ///
    /// # Errors
    /// When the runner fails, or the file is not what it writes.
    pub fn of(lab: &Lab<'_>, figures: &[&str]) -> Result<Self, ExperimentError> {
        if let Some(path) = &lab.setup.results {
            return Self::read(path);
        }
        let script = runner::find(lab, "study.py")?;
        let folder = ScratchFolder::new(lab)?;
        let kept = folder.path().join("study.json");
        let mut command = runner::command(&script);
        command.args(figures);
        if let Some(bytes) = lab.setup.size_bytes {
            command.args(["--scale", &(bytes as f64 / PAPER_BYTES).min(1.).to_string()]);
        }
        if let Some(slower) = lab.setup.slower {
            command.args(["--slower", &slower.to_string()]);
        }
        if let Some(rounds) = lab.setup.rounds {
            command.args(["--rounds", &rounds.to_string()]);
        }
        // Its inputs and cells stay in its own folders: after a cell that failed, the next run has the others.
        command.arg("--json").arg(&kept).arg("--merganser").arg(&lab.setup.program);
        runner::run(lab, &script, command)?;
        Self::read(&kept)
    }

    /// Reads what the runner wrote.
    ///
    /// # Errors
    /// When it is something else.
    pub fn read(path: &Path) -> Result<Self, ExperimentError> {
        let text = fs::read_to_string(path).map_err(|error| ExperimentError::on(path, error))?;
        let wrong = |reason| ExperimentError::Results { path: path.to_owned(), reason };
        let mut study: Study = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("no file of lab/bench/hadoop/study.py: {error}")))?;
        if study.study != "ssd-hadoop" {
            return Err(wrong(format!("is of the study '{}', not ssd-hadoop", study.study)));
        }
        let late = std::mem::take(&mut study.not_valid);
        study.cells.extend(late.into_iter().map(MeasuredCell::late));
        Ok(study)
    }

    /// A cell's result, if it was measured.
    pub fn get(&self, cell: &StudyCell) -> Option<&MeasuredCell> {
        self.cells.iter().find(|one| one.cell == *cell)
    }

    /// The results of a cell on the hard disk and on the SSD.
    pub fn both(&self, cell: &StudyCell) -> [Option<&MeasuredCell>; 2] {
        [HDD, SSD].map(|device| self.get(&StudyCell { device: device.into(), ..cell.clone() }))
    }

    /// How many times as fast a cell is on the SSD, if both were measured and are valid.
    pub fn gain(&self, cell: &StudyCell) -> Option<f64> {
        let [hdd, ssd] = self.both(cell).map(seconds);
        Some(hdd? / ssd?)
    }

    /// A ratio's name, with the ratios of the rounds that both devices have, if there are several.
    pub fn with_rounds(&self, what: &str, cell: &StudyCell) -> String {
        let [Some(hdd), Some(ssd)] = self.both(cell) else { return what.to_owned() };
        let of =
            |one: &RoundTime| ssd.rounds.iter().find(|other| other.round == one.round).copied();
        let ratios = hdd.rounds.iter().filter_map(|one| Some(one.elapsed_s / of(one)?.elapsed_s));
        range(ratios).map_or(what.to_owned(), |(count, least, most)| {
            format!("{what}; {count} rounds, {least:.2} to {most:.2}")
        })
    }

    /// How often cells were measured, in a sentence.
    fn rounds_told(&self) -> String {
        let counts = self.cells.iter().filter(|one| one.valid).map(|one| one.rounds.len().max(1));
        let (least, most) = counts.fold((usize::MAX, 1), |(a, b), n| (a.min(n), b.max(n)));
        match (least, most) {
            (_, 1) => "Each cell was measured once.".into(),
            (least, most) if least == most => {
                format!(
                    "Each cell was measured {most} times; figures are those of its median round."
                )
            }
            _ => format!(
                "Cells were measured up to {most} times, some once; figures are those of a cell's median round (of two, the \
                 faster one)."
            ),
        }
    }

    /// How the machine and the method differ from the paper's.
    pub fn differs(&self) -> Vec<String> {
        let clock = match self.slower {
            1 => "The disks are emulated in real time.".to_owned(),
            slower => format!(
                "The disks are emulated {slower} times as slow, and all times are divided by {slower}. So, next to these disks, the \
                 processor counts as {slower} times as fast as it is, and Hadoop's fixed waits (heartbeats, for example) are \
                 {slower} times as short."
            ),
        };
        vec![
            format!(
                "Theirs: Hadoop 0.20.2, four cores of 3.3 GHz, 3.2 GB, a WD 500 GB disk and a Samsung 830. Here: Hadoop \
                 3.4.2 on this machine, both disks emulated from their data sheets; the data are {:.3} of the paper's \
                 (traces: all of it), blocks, sort buffers and heaps are not scaled.",
                self.scale
            ),
            "HDFS and local folders are on one emulated disk of 64 GiB, ext4 on a loop device. Page cache is held to 3.2 GB \
             times the scale, in addition to what processes take; the paper's cache was smaller by the memory of its daemons \
             and tasks. So the hard disk looks better here."
                .into(),
            format!(
                "Times on the devices are predictions: no parameter is fitted to the paper's ratios. {}",
                self.rounds_told()
            ),
            format!(
                "{clock} The emulation has a processor of its own where there are two, and Hadoop has the others. A cell \
                 with more than 1 % of late answers is shown as not valid."
            ),
        ]
    }
}

/// The seconds of a cell that may be used.
pub fn seconds(cell: Option<&MeasuredCell>) -> Option<f64> {
    cell.filter(|cell| cell.valid).map(|cell| cell.elapsed_s)
}

/// The number of figures, the least and the largest, if there are several.
fn range(figures: impl Iterator<Item = f64>) -> Option<(usize, f64, f64)> {
    let wider = |(count, least, most): (usize, f64, f64), figure: f64| {
        (count + 1, least.min(figure), most.max(figure))
    };
    Some(figures.fold((0, f64::MAX, f64::MIN), wider)).filter(|(count, ..)| *count > 1)
}

impl OutcomeSection {
    /// A row with the seconds of a cell, and those of all rounds if there are several.
    pub fn seconds_of(&mut self, what: &str, cell: Option<&MeasuredCell>) {
        let of_rounds = cell.and_then(|cell| range(cell.rounds.iter().map(|one| one.elapsed_s)));
        let what = of_rounds.map_or(what.to_owned(), |(count, least, most)| {
            format!("{what}; {count} rounds, {least:.1} to {most:.1}")
        });
        self.of_cell(&what, cell, |one| one.elapsed_s);
    }

    /// A row with a figure of a cell, or with the reason why it is missing.
    pub fn of_cell(
        &mut self,
        what: &str,
        cell: Option<&MeasuredCell>,
        figure: impl Fn(&MeasuredCell) -> f64,
    ) {
        match cell {
            Some(cell) if cell.valid => self.ours(what, figure(cell)),
            Some(cell) => {
                let late = 100. * cell.lag.late_share.max(cell.lag.time_share);
                self.neither(format!("{what}: not valid, {late:.1} % late"));
            }
            None => self.neither(format!("{what}: not measured")),
        }
    }

    /// A ratio of two cells with the paper's, or the paper's alone.
    pub fn gain(&mut self, what: &str, paper: Option<f64>, ours: Option<f64>) {
        match (paper, ours) {
            (Some(paper), Some(ours)) => self.both(what, paper, ours),
            (Some(paper), None) => self.paper(what, paper),
            (None, Some(ours)) => self.ours(what, ours),
            (None, None) => self.neither(format!("{what}: no two valid cells")),
        }
    }

    /// A statement of the paper, if cells can judge it.
    pub fn holds(&mut self, what: &str, holds: Option<bool>) {
        self.gain(what, Some(1.), holds.map(|holds| f64::from(u8::from(holds))));
    }
}

/// The title of a section of statements.
pub const SAYS: &str = "what the text says: 1 holds, 0 does not";

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A valid cell that took `elapsed_s`.
    pub fn measured(cell: StudyCell, elapsed_s: f64) -> MeasuredCell {
        MeasuredCell {
            cell,
            elapsed_s,
            valid: true,
            lag: AnswerLag { late_share: 0., time_share: 0. },
            device_joules: 10. * elapsed_s,
            device_seconds: 2. * elapsed_s,
            phases: BTreeMap::new(),
            points: Points::default(),
            rounds: Vec::new(),
        }
    }

    /// A valid cell whose rounds took these seconds; the first one is the median.
    pub fn repeated(cell: StudyCell, seconds: &[f64]) -> MeasuredCell {
        let rounds = (1..).zip(seconds).map(|(round, &elapsed_s)| RoundTime { round, elapsed_s });
        MeasuredCell { rounds: rounds.collect(), ..measured(cell, seconds[0]) }
    }

    /// The same, late.
    pub fn late(cell: StudyCell, elapsed_s: f64) -> MeasuredCell {
        let lag = AnswerLag { late_share: 0.025, time_share: 0. };
        MeasuredCell { valid: false, lag, ..measured(cell, elapsed_s) }
    }

    /// A study at a tenth.
    pub fn study(cells: Vec<MeasuredCell>) -> Study {
        let predicted = BTreeMap::new();
        let (study, not_valid) = ("ssd-hadoop".into(), Vec::new());
        Study { study, scale: 0.1, slower: 1, cells, not_valid, predicted }
    }

    #[test]
    fn a_cell_that_was_late_is_in_no_ratio_and_is_told() {
        let cell = StudyCell::stock("sort", 10., HDD, 0.1);
        let ssd = StudyCell { device: SSD.into(), ..cell.clone() };
        let good = study(vec![measured(cell.clone(), 90.), measured(ssd.clone(), 30.)]);
        assert_eq!(good.gain(&cell), Some(3.));
        let bad = study(vec![measured(cell.clone(), 90.), late(ssd.clone(), 30.)]);
        assert_eq!(bad.gain(&cell), None);
        let mut section = OutcomeSection::new("t");
        section.of_cell("ssd", bad.get(&ssd), |one| one.elapsed_s);
        section.of_cell("other", None, |one| one.elapsed_s);
        section.gain("gain", Some(2.), bad.gain(&cell));
        let rows: Vec<_> = section.rows.iter().map(|row| (&*row.what, row.ours)).collect();
        let expected =
            [("ssd: not valid, 2.5 % late", None), ("other: not measured", None), ("gain", None)];
        assert_eq!(rows, expected);
    }

    #[test]
    fn rounds_are_counted_and_their_range_is_told() {
        let cell = |device| StudyCell::stock("sort", 10., device, 0.1);
        let once = vec![measured(cell(HDD), 90.), measured(cell(SSD), 30.)];
        let once = study(once);
        assert_eq!(once.with_rounds("sort", &cell(HDD)), "sort");
        assert!(
            once.differs()[2].ends_with("Each cell was measured once."),
            "{:?}",
            once.differs()
        );
        let several =
            study(vec![repeated(cell(HDD), &[90., 84., 99.]), repeated(cell(SSD), &[30., 40.])]);
        // Of the rounds that both have.
        assert_eq!(several.with_rounds("sort", &cell(HDD)), "sort; 2 rounds, 2.10 to 3.00");
        assert!(several.differs()[2].contains("up to 3 times"), "{:?}", several.differs());
        let mut section = OutcomeSection::new("t");
        section.seconds_of("HDD", several.get(&cell(HDD)));
        section.seconds_of("SSD", once.get(&cell(SSD)));
        let rows: Vec<_> = section.rows.iter().map(|row| (&*row.what, row.ours)).collect();
        assert_eq!(rows, [("HDD; 3 rounds, 84.0 to 99.0", Some(90.)), ("SSD", Some(30.))]);
        let twice = study(vec![repeated(cell(HDD), &[90., 84.]), repeated(cell(SSD), &[30., 40.])]);
        assert!(twice.differs()[2].contains("Each cell was measured 2 times"));
    }

    #[test]
    fn late_attempts_alone_are_told_and_no_figure_is_made_of_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s.json");
        let cell = r#"{"job": "sort", "paper_gb": 10, "device": "830", "scale": 0.1, "flavour": "stock",
            "sort_mb": 100, "factor": 200, "block_mb": 64, "least_segment": "", "slower": 1}"#;
        let text = format!(
            r#"{{"study": "ssd-hadoop", "scale": 0.1, "cells": [], "not_valid":
            [{{"cell": {cell}, "lag": {{"late_share": 0.0, "time_share": 0.031}}, "attempts": 2}}]}}"#
        );
        fs::write(&path, text).expect("written");
        let study = Study::read(&path).expect("a study");
        let mut section = OutcomeSection::new("t");
        section.seconds_of("SSD", study.get(&StudyCell::stock("sort", 10., SSD, 0.1)));
        assert_eq!(section.rows[0].what, "SSD: not valid, 3.1 % late");
        assert_eq!(section.rows[0].ours, None);
        assert!(study.differs()[2].ends_with("Each cell was measured once."));
    }

    #[test]
    fn what_is_no_study_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s.json");
        for (text, expected) in [
            ("[]", "no file of lab/bench/hadoop/study.py"),
            (r#"{"study": "other", "scale": 1, "cells": []}"#, "is of the study 'other'"),
        ] {
            fs::write(&path, text).expect("written");
            let said = Study::read(&path).expect_err("refused").to_string();
            assert!(said.contains(expected), "{said}");
        }
    }
}
