//! Figures 5.12 and 5.14: mean responses; and where a buffer of disks pays today.

use super::runs::{
    cached, differs, drawn, enhanced, most, play, play_trace, play_traces, table_5_2, traces,
};
use super::setup::Arrangement;
use super::worth;
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::Chart;

/// HcDD's mean over the traditional hybrid's, on average (5.4.4: "13 %").
const HYBRID_RATIO: f64 = 0.87;
/// Upper ends of the axes of Figures 5.12 and 5.14, in ms: no bar is longer.
const AXIS_5_12_MS: f64 = 1.2;
const AXIS_5_14_MS: f64 = 1.8;

/// Requests of each trace with cached disks, at most.
const CACHED_REQUESTS: u64 = 150_000;

/// The same with the disks' write cache on, and no syncs. The axis of Figure 5.14 ends at 1.8 ms, which a
/// random write to the platters of a Cheetah exceeds: the dissertation's disks had a cache, or its
/// writes were mostly in order. This asks which figures depend on it.
fn with_cached_disks(lab: &Lab<'_>) -> Result<OutcomeSection, ExperimentError> {
    let title = "sensitivity: the disks' write cache on and never flushed, mean response, ms";
    let mut section = OutcomeSection::new(title);
    let mut ratio = 0.;
    let traces = traces();
    for trace in &traces {
        let requests = trace.requests(CACHED_REQUESTS.min(most(lab)))?;
        let run = |arrangement| -> Result<f64, ExperimentError> {
            let setup = cached(lab, arrangement)?;
            Ok(play(lab, &setup, &requests, drawn(trace.duplicates()))?.mean_ms())
        };
        let [hcdd, hybrid, ssds, hdds] = Arrangement::ALL.map(run);
        let (hcdd, hybrid, ssds, hdds) = (hcdd?, hybrid?, ssds?, hdds?);
        let name = trace.look.name;
        let below = |mean: f64, most: f64| f64::from(u8::from(mean <= most));
        section.ours(format!("{name}, hcdd"), hcdd);
        section.ours(format!("{name}, hybrid"), hybrid);
        section.ours(format!("{name}, ssds"), ssds);
        section.ours(format!("{name}, hdds"), hdds);
        let what = |of: &str| format!("{name}, {of} ms (1: yes)");
        section.both(what("HcDD below 1.2"), 1., below(hcdd, AXIS_5_12_MS));
        section.both(what("hybrid below 1.2"), 1., below(hybrid, AXIS_5_12_MS));
        section.both(what("HDDs below 1.8"), 1., below(hdds, AXIS_5_14_MS));
        section.ours(format!("{name}, HDDs over HcDD"), hdds / hcdd);
        ratio += hcdd / hybrid / traces.len() as f64;
    }
    section.both("HcDD over Trad.Hybrid, mean of the traces", HYBRID_RATIO, ratio);
    Ok(section)
}

/// The same with HcDD's SSDs in every arrangement, as if the comparison were of arrangements alone.
fn with_enhanced_ssds(lab: &Lab<'_>) -> Result<OutcomeSection, ExperimentError> {
    let title = "sensitivity: the enhanced SSDs in every arrangement, mean response, ms";
    let mut section = OutcomeSection::new(title);
    for trace in &traces() {
        for arrangement in [Arrangement::Hybrid, Arrangement::Ssds] {
            let measured = play_trace(lab, &enhanced(lab, arrangement)?, trace)?;
            let what = format!("{}, {}", trace.look.name, arrangement.name());
            section.ours(what, measured.mean_ms());
        }
    }
    Ok(section)
}

/// Measures everything.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let mut means = OutcomeSection::new("predicted: Figures 5.12 and 5.14, mean response, ms");
    let mut kinds = OutcomeSection::new("predicted: mean response of reads and of writes, ms");
    let mut against = OutcomeSection::new("predicted: text and axes of Figures 5.12 and 5.14");
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
        against.both(format!("{name}, SSDs below 1.8 ms (1: yes)"), 1., inside(2, AXIS_5_14_MS));
        against.both(format!("{name}, HDDs below 1.8 ms (1: yes)"), 1., inside(3, AXIS_5_14_MS));
        ratio += runs[0].mean_ms() / runs[1].mean_ms() * of_mean;
    })?;
    against.both("HcDD over Trad.Hybrid, mean of the traces", HYBRID_RATIO, ratio);
    let cached = with_cached_disks(lab)?;
    let alike = with_enhanced_ssds(lab)?;
    let today = worth::today(lab)?;
    let (maps, series) = worth::map(lab)?;
    let mut differs = differs(lab);
    differs.push(format!("\"Sensitivity\" is not the dissertation's arrangement as far as it is known. With the write cache, each disk has its own on, nothing is synced, and writes are lost in a power cut. The axis of Figure 5.14 suggests such a cache, or writes that are mostly in order. Each look-alike has {CACHED_REQUESTS} requests at most there. With the enhanced SSDs, the hybrid and SSDs alone have HcDD's write buffer, too."));
    differs.extend(worth::differs());
    Ok(Outcome {
        sections: [table_5_2(lab)?, means, kinds, against, cached, alike, today]
            .into_iter()
            .chain(maps)
            .collect(),
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
