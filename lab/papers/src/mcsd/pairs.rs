//! McSD 3.5.3, Figures 3.10 and 3.11: a product of matrices on the host, and word count or string match on
//! the storage node.
//!
//! ```text
//!   McSD             host: product     node: job on two cores, partitions   at the same time
//!   traditional      host: product     node: job on one core                at the same time
//!   no partition     host: product     node: job on two cores, original     at the same time
//!   host only        host: product, then the job on two cores, original
//! ```

use std::path::PathBuf;
use std::time::Instant;

use merganser_random::Random;

use super::contest::{ContestArena, Contestant, SHARES, SIZES, host_command};
use super::job::ContestJob;
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::{Chart, ChartSeries};

/// Rows and columns of the matrices, without `--size`: their product takes about as long as a job.
const SIDE: usize = 1536;
/// The same for small data.
const SIDE_SMALL: usize = 64;
/// Data below this is small.
const SMALL_BYTES: u64 = 64 << 20;

/// The average over a traditional storage node (3.5.3).
const PAPER_TRADITIONAL: f64 = 2.0;
/// At the largest size, Figure 3.10's caption: "16 to 18 times more".
const PAPER_WHOLE: f64 = 16.0;
const PAPER_HOST: f64 = 18.0;
/// String match, in the text: "both averagely 2X".
const PAPER_MATCH: f64 = 2.0;

/// A way to do both.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PairScenario {
    name: &'static str,
    job: Contestant,
    /// Whether the product is done at the same time.
    at_once: bool,
    /// The paper's speed-up of McSD over it: word count at 1.25 GB, string match on average.
    paper: Option<[f64; 2]>,
}

const MCSD: PairScenario =
    PairScenario { name: "McSD", job: Contestant::DuoParts, at_once: true, paper: None };

const RIVALS: [PairScenario; 5] = [
    PairScenario {
        name: "traditional node: ours, one core",
        job: Contestant::Sequential,
        at_once: true,
        paper: Some([PAPER_TRADITIONAL, PAPER_TRADITIONAL]),
    },
    PairScenario {
        name: "node without partitions: Phoenix 2.0",
        job: Contestant::Phoenix,
        at_once: true,
        paper: Some([PAPER_WHOLE, PAPER_MATCH]),
    },
    PairScenario {
        name: "host only: Phoenix 2.0",
        job: Contestant::Phoenix,
        at_once: false,
        paper: Some([PAPER_HOST, PAPER_MATCH]),
    },
    PairScenario {
        name: "node without partitions: ours",
        job: Contestant::DuoWhole,
        at_once: true,
        paper: None,
    },
    PairScenario { name: "host only: ours", job: Contestant::Duo, at_once: false, paper: None },
];

/// Seconds of a scenario.
struct ScenarioSeconds {
    size: usize,
    job: ContestJob,
    scenario: PairScenario,
    seconds: Option<f64>,
}

/// Measures all scenarios at all sizes.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let arena = ContestArena::new(lab, "mcsd-pairs")?;
    let is_small = lab.setup.size_bytes.is_some_and(|bytes| bytes < SMALL_BYTES);
    let side = if is_small { SIDE_SMALL } else { SIDE };
    let factors = ["a.npy", "b.npy"].map(|name| arena.path(name));
    for (seed, path) in factors.iter().enumerate() {
        std::fs::write(path, matrix(side, seed as u64))
            .map_err(|e| ExperimentError::on(path, e))?;
    }
    let mut timed = Vec::new();
    for size in (0..SHARES.len()).rev() {
        arena.cut(size)?;
        for job in ContestJob::BOTH {
            for scenario in [MCSD].into_iter().chain(RIVALS) {
                let seconds = arena.median(|| time(lab, &arena, job, scenario, &factors))?;
                timed.push(ScenarioSeconds { size, job, scenario, seconds });
            }
        }
    }
    let mut differs = arena.differs();
    differs.push(format!(
        "The product is of two matrices of {side} × {side} f64, which the paper doesn't tell. Host and node are one machine with two cores, so they share its processors; the paper's are two machines."
    ));
    Ok(outcome(&timed, differs))
}

/// A square matrix as NumPy saves it.
fn matrix(side: usize, seed: u64) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({side}, {side}), }}");
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(127, b' ');
    bytes.push(b'\n');
    let mut random = Random::new(seed);
    bytes.extend((0..side * side).flat_map(|_| random.fraction().to_le_bytes()));
    bytes
}

/// Seconds until both have ended.
fn time(
    lab: &Lab<'_>,
    arena: &ContestArena<'_>,
    job: ContestJob,
    scenario: PairScenario,
    factors: &[PathBuf; 2],
) -> Result<Option<f64>, ExperimentError> {
    let Some(mut command) = arena.command(job, scenario.job) else { return Ok(None) };
    lab.check_cancelled()?;
    lab.progress.phase("both", None);
    arena.forget_text()?;
    let product = arena.path("c.npy");
    let may_fail = scenario.job == Contestant::Phoenix;
    let words = ["map", "matrix", "--quiet", "--threads", "1", "--memory", "64M", "-o"];
    let mut multiply = host_command(lab, &words, &[&product, &factors[0], &factors[1]]);
    let failed = |error| ExperimentError::on(&lab.setup.program, error);
    let started = Instant::now();
    let mut host = multiply.spawn().map_err(failed)?;
    let first = if scenario.at_once { None } else { Some(host.wait().map_err(failed)?) };
    let ended = arena.wait(&mut command, may_fail);
    // It is waited for whatever became of the job: its files go away with the folder.
    let status = match first {
        Some(status) => status,
        None => host.wait().map_err(failed)?,
    };
    let seconds = started.elapsed().as_secs_f64();
    if !status.success() {
        let message = format!("the product of matrices failed ({status})");
        return Err(ExperimentError::Command { command: "map".to_owned(), message });
    }
    Ok(ended?.then_some(seconds))
}

fn outcome(timed: &[ScenarioSeconds], mut differs: Vec<String>) -> Outcome {
    let seconds_of = |size: usize, job: ContestJob, scenario: PairScenario| {
        let found = timed.iter().find(|t| (t.size, t.job, t.scenario) == (size, job, scenario));
        found.and_then(|timed| timed.seconds)
    };
    let mut sections = Vec::new();
    let mut series = Vec::new();
    for (place, job) in ContestJob::BOTH.into_iter().enumerate() {
        let figure = ["Figure 3.10", "Figure 3.11"][place];
        let mut speed_up = OutcomeSection::new(format!(
            "product and {}: over McSD's, measured ({figure})",
            job.name()
        ));
        for rival in RIVALS {
            let mut points = Vec::new();
            for (size, name) in SIZES.iter().enumerate() {
                let (slow, fast) = (seconds_of(size, job, rival), seconds_of(size, job, MCSD));
                let (Some(slow), Some(fast)) = (slow, fast) else { continue };
                let what = format!("{name}, {}", rival.name);
                points.push((SHARES[size] * 100.0, slow / fast));
                match rival.paper {
                    Some(paper) if has_figure(size, job, rival) => {
                        speed_up.both(what, paper[place], slow / fast);
                    }
                    Some(_) => {
                        speed_up.ours(format!("{what} (paper: figure only)"), slow / fast);
                    }
                    None => speed_up.ours(what, slow / fast),
                }
            }
            if let (true, Some(paper)) = (points.is_empty(), rival.paper) {
                speed_up.paper(rival.name, paper[place]);
            } else {
                let name = format!("{}, {}", job.name(), rival.name);
                series.push(ChartSeries { name, paper: false, points });
            }
        }
        sections.push(speed_up);
    }
    let mut seconds = OutcomeSection::new("seconds of both, measured (paper: no figure)");
    for timed in timed {
        if let Some(own) = timed.seconds {
            let ScenarioSeconds { size, job, scenario, .. } = timed;
            seconds.ours(format!("{}, {}, {}", job.name(), SIZES[*size], scenario.name), own);
        }
    }
    sections.push(seconds);
    differs.push(
        "For word count without partitions the paper gives 16 to 18 times (caption of Figure 3.10), and averages of 6.8 and 17.4 above a threshold (text). For string match its caption of Figure 3.11 says 1.5 over the traditional node, its text 2."
            .to_owned(),
    );
    Outcome {
        sections,
        differs,
        chart: Chart::Lines {
            title: "A product of matrices and a job, speed-up of McSD".into(),
            axes: ["data, percent of memory".into(), "times as long as McSD".into()],
            series,
        },
    }
}

/// Whether the paper gives a number for this point, or only a plot.
fn has_figure(size: usize, job: ContestJob, rival: PairScenario) -> bool {
    let is_largest = size == SHARES.len() - 1;
    is_largest || job == ContestJob::StringMatch || rival.job == Contestant::Sequential
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(controls: bool) -> Vec<ScenarioSeconds> {
        let mut timed = Vec::new();
        for size in 0..SHARES.len() {
            for job in ContestJob::BOTH {
                for scenario in [MCSD].into_iter().chain(RIVALS) {
                    let seconds = match scenario.job {
                        Contestant::DuoParts => Some(2.0),
                        Contestant::Phoenix if controls => Some(32.0),
                        Contestant::Phoenix => None,
                        _ => Some(4.0),
                    };
                    timed.push(ScenarioSeconds { size, job, scenario, seconds });
                }
            }
        }
        timed
    }

    #[test]
    fn speed_ups_are_compared_where_the_paper_has_a_number() {
        let outcome = outcome(&timed(true), Vec::new());
        let count = &outcome.sections[0];
        assert_eq!(count.rows.len(), 5 * 4);
        let compared: Vec<_> = count.rows.iter().filter_map(|row| row.ratio()).collect();
        assert_eq!(compared, [1.0, 1.0, 1.0, 1.0, 1.0, 16.0 / 18.0]);
        let plots = count.rows.iter().filter(|row| row.what.ends_with("(paper: figure only)"));
        assert_eq!(plots.count(), 6);
    }

    #[test]
    fn without_controls_the_papers_figures_stand_alone() {
        let outcome = outcome(&timed(false), Vec::new());
        let alone = |row: &&crate::outcome::OutcomeRow| row.paper.is_some() && row.ours.is_none();
        assert_eq!(outcome.sections[0].rows.iter().filter(alone).count(), 2);
    }

    #[test]
    fn a_matrix_is_what_the_product_reads() {
        use merganser_map::matrix::{Matrix, MatrixShape};
        use merganser_storage::{StorageExt, memory::MemoryStorage};
        let storage = MemoryStorage::new("a.npy");
        storage.write_at(0, &matrix(3, 1)).expect("writes");
        let matrix = Matrix::open(storage).expect("a matrix");
        assert_eq!(matrix.shape(), MatrixShape { rows: 3, columns: 3 });
    }
}
