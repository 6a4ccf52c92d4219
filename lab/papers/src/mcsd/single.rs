//! McSD 3.5.2, Figures 3.8 and 3.9: word count and string match alone, by the size of the data.

use super::contest::{ContestArena, ContestResults, Contestant, SHARES, SIZES};
use super::job::ContestJob;
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::{Chart, ChartSeries};

const CONTESTANTS: [Contestant; 5] = [
    Contestant::Sequential,
    Contestant::Duo,
    Contestant::DuoWhole,
    Contestant::Phoenix,
    Contestant::PhoenixPlusPlus,
];

/// "Both the benchmarks can achieve a 2X speedup" over the sequential approach.
const PAPER_DUO: f64 = 2.0;
/// "The elapsed time of Partition-enabled approach is only 1/6 of the traditional one."
const PAPER_PARTITIONED: f64 = 6.0;
/// Below half of memory "the traditional parallel approach provides almost the same performance".
const PAPER_SMALL: f64 = 1.0;

/// Measures all sizes.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let arena = ContestArena::new(lab, "mcsd-single")?;
    let results = arena.measure(&[0, 1, 2, 3], &CONTESTANTS)?;
    Ok(outcome(&results, arena.differs()))
}

/// The largest size.
const LARGEST: usize = SHARES.len() - 1;

fn outcome(results: &ContestResults, mut differs: Vec<String>) -> Outcome {
    let mut seconds =
        OutcomeSection::new("seconds, measured (Figures 3.8 and 3.9; paper: figure only)");
    for job in ContestJob::BOTH {
        for (size, name) in SIZES.iter().enumerate() {
            for contestant in CONTESTANTS {
                if let Some(own) = results.seconds(size, job, contestant) {
                    let what = format!("{}, {name} of 2 GB, {}", job.name(), contestant.name());
                    seconds.ours(what, own);
                }
            }
        }
    }
    let mut duo = OutcomeSection::new("one core over two cores, measured (3.5.2)");
    let mut original =
        OutcomeSection::new("Phoenix 2.0 over ours with partitions, measured (3.5.2)");
    let mut growth =
        OutcomeSection::new("time over data, 1.25 GB over 500 MB; 1 is linear, measured (3.5.2)");
    for job in ContestJob::BOTH {
        for (size, name) in SIZES.iter().enumerate() {
            let what = format!("{}, {name}", job.name());
            let ratio = |slow| results.ratio(size, job, slow, Contestant::Duo);
            if let Some(own) = ratio(Contestant::Sequential) {
                duo.both(&what, PAPER_DUO, own);
            }
            match (ratio(Contestant::Phoenix), job) {
                (Some(own), _) if SHARES[size] < 0.5 => original.both(&what, PAPER_SMALL, own),
                (Some(own), ContestJob::WordCount) if size == LARGEST => {
                    original.both(&what, PAPER_PARTITIONED, own);
                }
                (Some(own), _) => original.ours(&what, own),
                (None, _) => {}
            }
        }
        let ends = [LARGEST, 0].map(|size| results.seconds(size, job, Contestant::Duo));
        if let [Some(large), Some(small)] = ends {
            growth.both(job.name(), 1.0, large / small / (SHARES[LARGEST] / SHARES[0]));
        }
    }
    if original.rows.is_empty() {
        original.paper("word count, 1.25 GB", PAPER_PARTITIONED);
    }
    differs.push(
        "The paper says 1/6 here, 16 to 18 times in the caption of its Figure 3.10, 6.8 and 17.4 times in the text on that figure, and 2.7 times in Table 4.1, all for word count at 1.25 GB. Its Figure 3.9 is captioned with time and described as speed-up, which Figure 3.8 has."
            .to_owned(),
    );
    differs.push(
        "Theirs compares partitions of Phoenix with Phoenix alone. Ours is another program, so \"almost the same\" below half of memory is compared with its speed, too."
            .to_owned(),
    );
    differs.push("The paper has a quad-core host as well; here are two cores.".to_owned());
    Outcome { sections: vec![seconds, duo, original, growth], differs, chart: chart(results) }
}

fn chart(results: &ContestResults) -> Chart {
    let line = |job: ContestJob, contestant: Contestant| {
        let point = |size: usize| {
            results.seconds(size, job, contestant).map(|seconds| (SHARES[size] * 100.0, seconds))
        };
        let points: Vec<_> = (0..SHARES.len()).filter_map(point).collect();
        let name = format!("{}, {}", job.name(), contestant.name());
        (!points.is_empty()).then_some(ChartSeries { name, paper: false, points })
    };
    let lines = ContestJob::BOTH.into_iter().flat_map(|job| CONTESTANTS.map(|c| line(job, c)));
    Chart::Lines {
        title: "Word count and string match by the size of the data".into(),
        axes: ["data, percent of memory".into(), "seconds".into()],
        series: lines.flatten().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::contest::tests::results;
    use super::*;

    #[test]
    fn the_papers_statements_are_compared_where_they_hold() {
        let outcome = outcome(&results(), Vec::new());
        let [seconds, duo, original, growth] = &outcome.sections[..] else { panic!("four") };
        assert_eq!(seconds.rows.len(), 2 * 4 * 4);
        assert!(duo.rows.iter().all(|row| row.ratio() == Some(1.0)));
        assert_eq!(growth.rows.len(), 2);
        assert!(growth.rows.iter().all(|row| row.ours == Some(1.0)));
        let papers: Vec<_> = original.rows.iter().map(|row| row.paper).collect();
        let (small, large) = (Some(PAPER_SMALL), Some(PAPER_PARTITIONED));
        assert_eq!(papers, [small, small, None, large, small, small, None, None]);
        assert_eq!(original.rows[3].ours, Some(6.0));
    }

    #[test]
    fn without_controls_the_papers_figure_stands_alone() {
        let mut results = results();
        results.0.retain(|measured| measured.contestant != Contestant::Phoenix);
        let outcome = outcome(&results, Vec::new());
        let rows = &outcome.sections[2].rows;
        assert_eq!((rows.len(), rows[0].ours), (1, None));
    }
}
