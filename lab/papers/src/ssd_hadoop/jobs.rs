//! Figures 7 and 8: jobs that wait for the processor, and jobs that wait for the disk.

use super::study::{HDD, SAYS, Study, StudyCell};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::Chart;

/// Up to this ratio there is "almost no gap".
const NO_GAP: f64 = 1.1;

/// Name in the runner, GB in the paper, and its name there.
type NamedJob = (&'static str, f64, &'static str);

const CPU_BOUND: [NamedJob; 3] = [
    ("wordcount", 10., "WordCount"),
    ("wordmean", 10., "mean length of words"),
    ("aggregate-words", 10., "aggregated word count"),
];
const IO_BOUND: [NamedJob; 6] = [
    ("sort", 10., "Sort"),
    ("random-writer", 10., "RandomWriter"),
    ("grep", 10., "Grep"),
    ("dfsio-write", 10., "DFSIO, writing"),
    ("dfsio-read", 10., "DFSIO, reading"),
    ("join", 15., "Join"),
];

/// Figure 7.
pub fn cpu_bound(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let mut outcome = outcome(&Study::of(lab, &["cpu-bound"])?, &CPU_BOUND, "Figure 7", false);
    outcome.differs.push(
        "Bayes and LDA are programs of Mahout and CloudSuite. Two other jobs of Hadoop's examples that compute take their \
         place, and not jobs of our own: all programs of the figure are those of stock Hadoop."
            .into(),
    );
    Ok(outcome)
}

/// Figure 8.
pub fn io_bound(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(&Study::of(lab, &["io-bound"])?, &IO_BOUND, "Figure 8", true))
}

fn outcome(study: &Study, jobs: &[NamedJob], figure: &str, gap: bool) -> Outcome {
    let mut gains = OutcomeSection::new(format!("HDD's seconds over SSD's ({figure})"));
    let mut seconds = OutcomeSection::new("seconds");
    let mut says = OutcomeSection::new(SAYS);
    let mut bars = Vec::new();
    for &(job, gigabytes, name) in jobs {
        let cell = StudyCell::stock(job, gigabytes, HDD, study.scale);
        let gain = study.gain(&cell);
        gains.gain(&study.with_rounds(name, &cell), None, gain);
        for (one, device) in study.both(&cell).into_iter().zip(["HDD", "SSD"]) {
            seconds.seconds_of(&format!("{name}, {device}"), one);
        }
        let statement = if gap { "a gap" } else { "almost no gap" };
        says.holds(&format!("{name}: {statement}"), gain.map(|gain| (gain > NO_GAP) == gap));
        bars.extend(gain.map(|gain| (name.to_owned(), gain, false)));
    }
    let mut differs = study.differs();
    differs.push(format!(
        "The text has no values of {figure}. A ratio above {NO_GAP} counts as a gap."
    ));
    Outcome {
        sections: vec![gains, says, seconds],
        differs,
        chart: Chart::Bars {
            title: format!("HDD over SSD ({figure})"),
            unit: "times as long".into(),
            bars,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::study::SSD;
    use super::super::study::tests::{measured, study};
    use super::*;

    #[test]
    fn gaps_are_judged_and_missing_ones_are_not() {
        let cell = |device| StudyCell::stock("wordcount", 10., device, 0.1);
        for (hdd, no_gap) in [(52., 1.), (56., 0.)] {
            let study = study(vec![measured(cell(HDD), hdd), measured(cell(SSD), 50.)]);
            let json = crate::report::tests::json(outcome(&study, &CPU_BOUND, "Figure 7", false));
            assert_eq!(json["sections"][1]["rows"][0]["ours"], no_gap);
            assert!(json["sections"][1]["rows"][1]["ours"].is_null());
            let json = crate::report::tests::json(outcome(&study, &CPU_BOUND, "Figure 7", true));
            assert_eq!(json["sections"][1]["rows"][0]["ours"], 1. - no_gap);
        }
    }
}
