//! Figures 5.12 and 5.14: mean responses; and where a buffer of disks pays today.

use super::runs::{differs, play_traces, table_5_2};
use super::setup::Arrangement;
use super::worth;
use crate::chart::Chart;
use crate::error::Error;
use crate::lab::Lab;
use crate::outcome::{Outcome, Section};

/// HcDD's mean over the traditional hybrid's, on average (5.4.4: "13 %").
const HYBRID_RATIO: f64 = 0.87;
/// Upper ends of the axes of Figures 5.12 and 5.14, in ms: no bar is longer.
const AXIS_5_12_MS: f64 = 1.2;
const AXIS_5_14_MS: f64 = 1.8;

/// Measures everything.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, Error> {
    let mut means = Section::new("predicted: Figures 5.12 and 5.14, mean response, ms");
    let mut kinds = Section::new("predicted: mean response of reads and of writes, ms");
    let mut against = Section::new("predicted: text and axes of Figures 5.12 and 5.14");
    let mut ratio = 0.;
    play_traces(lab, |trace, runs, of_mean| {
        let name = trace.look.name;
        for (arrangement, measured) in Arrangement::ALL.iter().zip(runs) {
            let what = format!("{name}, {}", arrangement.name());
            means.ours(what.clone(), measured.mean_ms());
            kinds.ours(format!("{what}, reads"), measured.reads.mean() / 1e6);
            kinds.ours(format!("{what}, writes"), measured.writes.mean() / 1e6);
        }
        let inside = |at: usize, most: f64| f64::from(u8::from(runs[at].mean_ms() <= most));
        against.both(format!("{name}, HcDD below 1.2 ms (1: yes)"), 1., inside(0, AXIS_5_12_MS));
        against.both(format!("{name}, hybrid below 1.2 ms (1: yes)"), 1., inside(1, AXIS_5_12_MS));
        against.both(format!("{name}, HDDs below 1.8 ms (1: yes)"), 1., inside(3, AXIS_5_14_MS));
        ratio += runs[0].mean_ms() / runs[1].mean_ms() * of_mean;
    })?;
    against.both("HcDD over Trad.Hybrid, mean of the traces", HYBRID_RATIO, ratio);
    let today = worth::today(lab)?;
    let (map, series) = worth::map(lab)?;
    let mut differs = differs(lab);
    differs.extend(worth::differs());
    Ok(Outcome {
        sections: vec![table_5_2(lab)?, means, kinds, against, today, map],
        differs,
        chart: Chart::Lines {
            title: "Is a buffer of disks worth it? Mean write, HcDD over SSDs alone".to_owned(),
            axes: [
                "writes per second (logarithmic)".to_owned(),
                "write response, HcDD over SSDs (below 1: it pays)".to_owned(),
            ],
            series,
        },
    })
}
