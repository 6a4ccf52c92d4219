//! The seven jobs that the paper calls favourable (3.4), and a search.

use super::results::{ELAPSED, MACHINE_CPU, MAP_CPU, PairSettings, StudyResults, TASK, TASK_BYTES};
use crate::error::ExperimentError;
use crate::isc::paper::{JOB_GAIN, TASK_GAIN};
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::Chart;

const JOBS: [&str; 8] = [
    "wordcount",
    "term-vector",
    "inverted-index",
    "histogram-movies",
    "histogram-ratings",
    "sequence-count",
    "ranked-inverted-index",
    "grep",
];

/// Reads the results.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(&StudyResults::of(lab, "isc-hadoop-jobs", "jobs")?))
}

fn outcome(results: &StudyResults) -> Outcome {
    let mut tasks = OutcomeSection::new("a map task of 64 MB: stock's seconds over the node's");
    let mut jobs = OutcomeSection::new("the job: stock's seconds over the node's");
    let mut processor =
        OutcomeSection::new("processor of map tasks' JVMs: stock's over the node's");
    let mut machine = OutcomeSection::new("processor of the machine: stock's over the node's");
    let mut seconds = OutcomeSection::new("seconds of a map task of 64 MB");
    let mut bars = Vec::new();
    for job in JOBS {
        let pair = PairSettings::new(job, TASK_BYTES / 2, 1);
        let task = results.gain(&pair, TASK);
        // The paper measured word count alone and expects the same of the others.
        let paper = (job == "wordcount").then_some(TASK_GAIN);
        tasks.reach(job, paper, TASK_GAIN, task);
        let paper = (job == "wordcount").then_some(JOB_GAIN);
        jobs.reach(job, paper, JOB_GAIN, results.gain(&pair, ELAPSED));
        processor.told(job, results.gain(&pair, MAP_CPU));
        machine.told(job, results.gain(&pair, MACHINE_CPU));
        seconds.medians(job, results.both(&pair, TASK));
        bars.extend(task.map(|gain| (job.to_owned(), gain, false)));
    }
    let mut differs = results.differs();
    differs.push(
        "One map task of 64,000,000 bytes per job, so the constant parts of a task and of a job weigh more than in larger \
         jobs. The search is Hadoop's grep for a word, two jobs of which the first one maps the text."
            .into(),
    );
    Outcome {
        sections: vec![tasks, jobs, processor, machine, seconds],
        differs,
        chart: Chart::Bars {
            title: "Map tasks of 64 MB".into(),
            unit: "times as fast".into(),
            bars,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::results;
    use super::*;

    #[test]
    fn a_job_that_loses_is_shown_as_missed() {
        let rounds = [(PairSettings::new("grep", TASK_BYTES / 2, 1), 0.9, 1.)];
        let json = crate::report::tests::json(outcome(&results(&rounds)));
        let rows = &json["sections"][0]["rows"];
        assert_eq!(rows[7]["what"], "grep; at least 2.5: missed");
        assert_eq!(rows[7]["ours"], 0.9);
        assert_eq!(rows[0]["what"], "wordcount: not measured");
    }
}
