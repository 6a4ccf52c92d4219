//! Figures 5.11 and 5.13: the sum of all responses.

use super::load::Contents;
use super::recorded;
use super::runs::{differs, most, play_paper, play_traces, table_5_2};
use super::setup::Arrangement;
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::Chart;

/// HcDD's sum over the traditional hybrid's, on average (5.4.4: "saved 12 %").
const HYBRID_RATIO: f64 = 0.88;
/// Disks alone are "almost 3 times" as slow (5.4.4).
const HDDS_RATIO: f64 = 3.;

/// The same of the traces that were recorded here, with their own contents.
fn own(lab: &Lab<'_>) -> Result<OutcomeSection, ExperimentError> {
    let mut section = OutcomeSection::new("recorded here: all responses together, s");
    for trace in recorded::all() {
        let requests = trace.requests(most(lab))?;
        let play = |arrangement| play_paper(lab, arrangement, &requests, Contents::Trace);
        let [hcdd, hybrid, ssds, hdds] = Arrangement::ALL.map(play);
        let [hcdd, hybrid, ssds, hdds] =
            [hcdd?, hybrid?, ssds?, hdds?].map(|measured| measured.sum_seconds());
        for (arrangement, sum) in Arrangement::ALL.iter().zip([hcdd, hybrid, ssds, hdds]) {
            section.ours(format!("{}, {}", trace.name, arrangement.name()), sum);
        }
        section.both(format!("{}, HcDD over Trad.Hybrid", trace.name), HYBRID_RATIO, hcdd / hybrid);
        section.both(format!("{}, HDDs over HcDD", trace.name), HDDS_RATIO, hdds / hcdd);
    }
    Ok(section)
}

/// Measures everything.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let mut sums =
        OutcomeSection::new("predicted: Figures 5.11 and 5.13, all responses together, s");
    let mut against = OutcomeSection::new("predicted: text to Figures 5.11 and 5.13");
    let mut end =
        OutcomeSection::new("predicted: time to the last response, and to an empty buffer, s");
    let mut bars = Vec::new();
    let (mut hybrid_ratio, mut hdds_ratio) = (0., 0.);
    play_traces(lab, |trace, runs, of_mean| {
        let name = trace.look.name;
        for (arrangement, measured) in Arrangement::ALL.iter().zip(runs) {
            let what = format!("{name}, {}", arrangement.name());
            let sum = measured.sum_seconds();
            sums.ours(what.clone(), sum);
            bars.push((what.clone(), sum.max(1e-3), false));
            end.ours(what.clone(), measured.elapsed.0 as f64 / 1e9);
            if arrangement.has_buffer() {
                end.ours(format!("{what}, buffer empty"), measured.drained.0 as f64 / 1e9);
            }
        }
        let [hcdd, hybrid, ssds, hdds] = [0, 1, 2, 3].map(|at| runs[at].sum_seconds());
        against.ours(format!("{name}, HcDD over Trad.Hybrid"), hcdd / hybrid);
        against.both(format!("{name}, HcDD less SSDs, s"), trace.longer_seconds, hcdd - ssds);
        against.ours(format!("{name}, HDDs over HcDD"), hdds / hcdd);
        hybrid_ratio += hcdd / hybrid * of_mean;
        hdds_ratio += hdds / hcdd * of_mean;
    })?;
    against.both("HcDD over Trad.Hybrid, mean of the traces", HYBRID_RATIO, hybrid_ratio);
    against.both("HDDs over HcDD, mean of the traces", HDDS_RATIO, hdds_ratio);
    let own = own(lab)?;
    let mut differs = differs(lab);
    differs.push(recorded::DIFFERS.to_owned());
    differs.push("\"Processing time\" of Figure 5.11 is the sum of the response times, by its axis and by Figure 5.12, which shows the same as a mean.".to_owned());
    if most(lab) < 3_000_000 {
        differs.push(
            "Sums in seconds can't be compared with the paper's: the traces are cut.".to_owned(),
        );
    }
    Ok(Outcome {
        sections: vec![table_5_2(lab)?, sums, against, own, end],
        differs,
        chart: Chart::Bars {
            title: "All responses together".to_owned(),
            unit: "seconds".to_owned(),
            bars,
        },
    })
}
