//! Figures 5.11 and 5.13: the sum of all responses.

use super::load::Contents;
use super::measured::ResponseTimes;
use super::recorded;
use super::runs::{
    PaperTrace, cached, differs, enhanced, most, play_paper, play_trace, play_traces, table_5_2,
    traces,
};
use super::setup::{Arrangement, NodeSetup};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::Chart;

/// HcDD's sum over the traditional hybrid's, on average (5.4.4: "saved 12 %").
const HYBRID_RATIO: f64 = 0.88;
/// Disks alone are "almost 3 times" as slow (5.4.4).
const HDDS_RATIO: f64 = 3.;

/// Upper ends of the axes of Figures 5.11 and 5.13, in seconds: no bar is longer.
const AXIS_5_11_S: f64 = 1400.;
const AXIS_5_13_S: f64 = 1000.;

/// Adds whether the sums of HcDD, the hybrid and SSDs alone are inside the axes.
fn axes(section: &mut OutcomeSection, trace: &PaperTrace, runs: [&ResponseTimes; 3]) {
    let [hcdd, hybrid, ssds] = runs.map(|run| trace.whole_seconds(run));
    let name = trace.look.name;
    for (what, figure, seconds, most) in [
        ("HcDD", "5.11", hcdd, AXIS_5_11_S),
        ("hybrid", "5.11", hybrid, AXIS_5_11_S),
        ("HcDD", "5.13", hcdd, AXIS_5_13_S),
        ("SSDs", "5.13", ssds, AXIS_5_13_S),
    ] {
        let what = format!("{name}, {what} below {most} s (Figure {figure}; 1: yes)");
        section.both(what, 1., f64::from(u8::from(seconds <= most)));
    }
}

/// Adds HcDD's sum less that of SSDs alone, for the whole trace and for each of its writes.
fn longer(
    section: &mut OutcomeSection,
    trace: &PaperTrace,
    hcdd: &ResponseTimes,
    ssds: &ResponseTimes,
) {
    let name = trace.look.name;
    let less = trace.whole_seconds(hcdd) - trace.whole_seconds(ssds);
    section.both(format!("{name}, HcDD less SSDs, s"), trace.longer_seconds, less);
    let a_write = |seconds: f64| seconds / trace.look.writes as f64 * 1e3;
    let what = format!("{name}, the same for each write, ms");
    section.both(what, a_write(trace.longer_seconds), a_write(less));
}

/// A part of the experiment with other devices: rows as of "text", for nodes of `setup`.
fn sensitivity(
    lab: &Lab<'_>,
    title: &str,
    setup: fn(&Lab<'_>, Arrangement) -> Result<NodeSetup, ExperimentError>,
) -> Result<OutcomeSection, ExperimentError> {
    let mut section = OutcomeSection::new(title);
    let traces = traces();
    let (mut hybrid_ratio, mut hdds_ratio) = (0., 0.);
    for trace in &traces {
        let play = |arrangement| play_trace(lab, &setup(lab, arrangement)?, trace);
        let [hcdd, hybrid, ssds, hdds] = Arrangement::ALL.map(play);
        let [hcdd, hybrid, ssds, hdds] = [hcdd?, hybrid?, ssds?, hdds?];
        let name = trace.look.name;
        for (of, run) in Arrangement::ALL.iter().zip([&hcdd, &hybrid, &ssds, &hdds]) {
            section.ours(format!("{name}, {}", of.name()), trace.whole_seconds(run));
        }
        let over = |one: &ResponseTimes, other: &ResponseTimes| one.mean_ms() / other.mean_ms();
        section.ours(format!("{name}, HcDD over Trad.Hybrid"), over(&hcdd, &hybrid));
        longer(&mut section, trace, &hcdd, &ssds);
        section.ours(format!("{name}, HDDs over HcDD"), over(&hdds, &hcdd));
        axes(&mut section, trace, [&hcdd, &hybrid, &ssds]);
        hybrid_ratio += over(&hcdd, &hybrid) / traces.len() as f64;
        hdds_ratio += over(&hdds, &hcdd) / traces.len() as f64;
    }
    section.both("HcDD over Trad.Hybrid, mean of the traces", HYBRID_RATIO, hybrid_ratio);
    section.both("HDDs over HcDD, mean of the traces", HDDS_RATIO, hdds_ratio);
    Ok(section)
}

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
        let [hcdd, hybrid, hdds] = [0, 1, 3].map(|at| runs[at].sum_seconds());
        against.ours(format!("{name}, HcDD over Trad.Hybrid"), hcdd / hybrid);
        longer(&mut against, trace, &runs[0], &runs[2]);
        against.ours(format!("{name}, HDDs over HcDD"), hdds / hcdd);
        axes(&mut against, trace, [&runs[0], &runs[1], &runs[2]]);
        hybrid_ratio += hcdd / hybrid * of_mean;
        hdds_ratio += hdds / hcdd * of_mean;
    })?;
    against.both("HcDD over Trad.Hybrid, mean of the traces", HYBRID_RATIO, hybrid_ratio);
    against.both("HDDs over HcDD, mean of the traces", HDDS_RATIO, hdds_ratio);
    let own = own(lab)?;
    let alike = sensitivity(
        lab,
        "sensitivity: the enhanced SSDs in every arrangement, all responses together, s",
        enhanced,
    )?;
    let cached = sensitivity(
        lab,
        "sensitivity: the disks' write cache on and never flushed, all responses together, s",
        cached,
    )?;
    let mut differs = differs(lab);
    differs.push("\"Sensitivity\" is not the dissertation's arrangement as far as it is known. In the first, the hybrid and SSDs alone have HcDD's write buffer in their SSDs, too. In the second, each disk has its write cache on, nothing is synced, and writes are lost in a power cut: +54 s and +123 s over the writes of Table 5.2 are 0.8 ms for each, which no write to the platters of a Cheetah takes.".to_owned());
    differs.push(recorded::DIFFERS.to_owned());
    differs.push("\"Processing time\" of Figure 5.11 is the sum of the response times, by its axis and by Figure 5.12, which shows the same as a mean.".to_owned());
    if most(lab) < 3_000_000 {
        differs.push(
            "The traces are cut. Sums that stand next to a figure or an axis of the paper are the mean response times the number of requests of Table 5.2; the others are of the requests that were played.".to_owned(),
        );
    }
    Ok(Outcome {
        sections: vec![table_5_2(lab)?, sums, against, alike, cached, own, end],
        differs,
        chart: Chart::Bars {
            title: "All responses together".to_owned(),
            unit: "seconds".to_owned(),
            bars,
        },
    })
}
