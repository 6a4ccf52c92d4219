//! Table 4.1 of the dissertation, which is McSD's own experiment: word count and string match with and
//! without partitions of 600 MB, on a machine of 2 GB.

use super::contest::{ContestArena, ContestResults, Contestant, SIZES};
use super::job::ContestJob;
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::Chart;

const CONTESTANTS: [Contestant; 5] = [
    Contestant::DuoParts,
    Contestant::Duo,
    Contestant::DuoWhole,
    Contestant::Phoenix,
    Contestant::PhoenixPlusPlus,
];

/// Job, place of the size in [`SIZES`], seconds with and without partitions.
const PAPER: [(ContestJob, usize, f64, f64); 4] = [
    (ContestJob::WordCount, 2, 40.50, 85.71),
    (ContestJob::WordCount, 3, 50.91, 139.54),
    (ContestJob::StringMatch, 2, 17.76, 17.62),
    (ContestJob::StringMatch, 3, 20.61, 21.00),
];

/// Measures both sizes of the table.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    run_as(lab, "mcsd-partition")
}

/// [`run`] for an experiment of this name.
pub(crate) fn run_as(lab: &Lab<'_>, experiment: &'static str) -> Result<Outcome, ExperimentError> {
    let arena = ContestArena::new(lab, experiment)?;
    let results = arena.measure(&[2, 3], &CONTESTANTS)?;
    Ok(outcome(&results, arena.differs()))
}

fn outcome(results: &ContestResults, mut differs: Vec<String>) -> Outcome {
    let mut seconds = OutcomeSection::new("seconds, measured (Table 4.1); ours is of less data");
    let mut control =
        OutcomeSection::new("Phoenix 2.0 over ours with partitions, measured (Table 4.1)");
    let mut own =
        OutcomeSection::new("ours without over ours with partitions, measured (Table 4.1)");
    let mut bars = Vec::new();
    for (job, size, with, without) in PAPER {
        let name = format!("{}, {}", job.name(), SIZES[size]);
        bars.push((format!("{name}, paper"), without / with, true));
        seconds.paper(format!("{name}, with partitions"), with);
        seconds.paper(format!("{name}, without"), without);
        for contestant in CONTESTANTS {
            if let Some(found) = results.seconds(size, job, contestant) {
                seconds.ours(format!("{name}, {}", contestant.name()), found);
            }
        }
        match results.ratio(size, job, Contestant::Phoenix, Contestant::DuoParts) {
            Some(found) => {
                control.both(&name, without / with, found);
                bars.push((format!("{name}, Phoenix 2.0 over ours"), found, false));
            }
            None => control.paper(&name, without / with),
        }
        if let Some(found) = results.ratio(size, job, Contestant::DuoWhole, Contestant::DuoParts) {
            own.both(&name, without / with, found);
            bars.push((format!("{name}, ours"), found, false));
        }
    }
    differs.push(
        "The table's quotients for word count are 2.1 and 2.7, and its text says \"an average 2.4X\"; McSD's own chapter says 6 for the same experiment."
            .to_owned(),
    );
    Outcome {
        sections: vec![seconds, control, own],
        differs,
        chart: Chart::Bars {
            title: "Without partitions over with them".into(),
            unit: "times as long".into(),
            bars,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::contest::tests::results;
    use super::*;

    #[test]
    fn quotients_are_compared_with_the_tables() {
        let outcome = outcome(&results(), Vec::new());
        let [seconds, control, own] = &outcome.sections[..] else { panic!("three") };
        assert_eq!(seconds.rows.len(), 4 * (2 + 4));
        let rounded: Vec<_> = control
            .rows
            .iter()
            .map(|row| row.paper.map(|paper| (paper * 10.0).round() / 10.0))
            .collect();
        assert_eq!(rounded, [Some(2.1), Some(2.7), Some(1.0), Some(1.0)]);
        assert_eq!(control.rows[1].ours, Some(6.0));
        assert!(own.rows.iter().all(|row| row.ours == Some(1.0)));
    }
}
