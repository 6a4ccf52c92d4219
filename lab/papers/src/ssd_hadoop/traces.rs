//! Figures 3 and 4: what the disk sees of a sort of 1 GB and of a join of 3 x 1 GB, and which share of it
//! is in order.

use super::study::{HDD, MeasuredCell, RequestFlow, SAYS, SSD, Study, StudyCell};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::{Chart, ChartSeries};

/// Job, GB, and the figure. They are not scaled.
const TRACES: [(&str, f64, &str); 2] = [("sort", 1., "Figure 3"), ("join", 3., "Figure 4")];
const PHASES: [&str; 3] = ["maps", "shuffle", "reduce"];
/// "Generally 128 KB" (4.2).
const PAPER_READ_KIB: f64 = 128.;

/// A figure of a cell's phase.
type Figure = fn(&MeasuredCell, &str) -> f64;

/// Runs the cells, or reads their results.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(&Study::of(lab, &["traces"])?))
}

fn share(flow: RequestFlow) -> f64 {
    if flow.requests == 0 { 0. } else { 100. * flow.in_order as f64 / flow.requests as f64 }
}

fn kibibytes(flow: RequestFlow) -> f64 {
    if flow.requests == 0 { 0. } else { flow.bytes as f64 / flow.requests as f64 / 1024. }
}

fn reads(one: &MeasuredCell, phase: &str) -> RequestFlow {
    one.phases.get(phase).map(|phase| phase.reads).unwrap_or_default()
}

fn all_reads(one: &MeasuredCell) -> RequestFlow {
    one.phases.values().map(|phase| phase.reads).fold(RequestFlow::default(), |sum, flow| {
        RequestFlow {
            requests: sum.requests + flow.requests,
            in_order: sum.in_order + flow.in_order,
            bytes: sum.bytes + flow.bytes,
        }
    })
}

fn outcome(study: &Study) -> Outcome {
    let mut sections = Vec::new();
    let mut says = OutcomeSection::new(SAYS);
    let mut drawn = None;
    for (job, gigabytes, figure) in TRACES {
        for (device, of) in [(HDD, "HDD"), (SSD, "SSD")] {
            let cell = StudyCell::stock(job, gigabytes, device, 1.);
            let one = study.get(&cell);
            let mut section =
                OutcomeSection::new(format!("{job} of {gigabytes} GB, {of} ({figure})"));
            for phase in PHASES {
                let figures: [(&str, Figure); 4] = [
                    ("reads", |one, phase| reads(one, phase).requests as f64),
                    ("reads in order, percent", |one, phase| share(reads(one, phase))),
                    ("mean read, KiB", |one, phase| kibibytes(reads(one, phase))),
                    ("writes in order, percent", |one, phase| {
                        share(one.phases.get(phase).map(|phase| phase.writes).unwrap_or_default())
                    }),
                ];
                for (what, figure) in figures {
                    section.of_cell(&format!("{phase}: {what}"), one, |one| figure(one, phase));
                }
            }
            let usable = one.filter(|one| one.valid);
            let mean = usable.map(|one| kibibytes(all_reads(one)));
            section.gain("all reads: mean, KiB", Some(PAPER_READ_KIB), mean);
            sections.push(section);
            // A reduce that read nothing, because all was in the page cache, says nothing.
            let random = usable.and_then(|one| {
                let flow = reads(one, "reduce");
                (flow.requests > 0).then(|| share(flow) < 50.)
            });
            says.holds(&format!("{job}, {of}: the reduce's reads are not sequential"), random);
            drawn = drawn.or(usable);
        }
    }
    sections.push(says);
    let mut differs = study.differs();
    differs.push(
        "The paper does not say on which disk its traces were taken, and has no shares.".into(),
    );
    differs.push(
        "A read or write is in order if it begins where the last one of its kind ended.".into(),
    );
    Outcome { sections, differs, chart: drawn.map_or_else(empty, plot) }
}

fn empty() -> Chart {
    Chart::Bars { title: "No valid trace".into(), unit: String::new(), bars: Vec::new() }
}

fn plot(one: &MeasuredCell) -> Chart {
    let of_kind = |kind: &str| -> Vec<(f64, f64)> {
        let points = one.points.list.iter().filter(|point| point.1 == kind);
        points.map(|(at, _, offset)| (*at as f64 / 1e9, *offset as f64 / 1e9)).collect()
    };
    let series =
        |name: &str, kind| ChartSeries { name: name.into(), paper: false, points: of_kind(kind) };
    let StudyCell { job, paper_gb, device, .. } = &one.cell;
    Chart::Points {
        title: format!("{job} of {paper_gb} GB on {device}"),
        axes: ["seconds".into(), "first byte, GB".into()],
        series: vec![series("reads", "R"), series("writes", "W")],
    }
}

#[cfg(test)]
mod tests {
    use super::super::study::tests::{measured, study};
    use super::super::study::{DiskPhase, Points};
    use super::*;

    #[test]
    fn shares_are_those_of_a_phase_and_the_mean_is_that_of_all() {
        let flow =
            |requests, in_order, kib: u64| RequestFlow { requests, in_order, bytes: kib * 1024 };
        let mut one = measured(StudyCell::stock("sort", 1., HDD, 1.), 60.);
        one.phases
            .insert("maps".into(), DiskPhase { reads: flow(10, 9, 2000), ..DiskPhase::default() });
        one.phases.insert(
            "reduce".into(),
            DiskPhase { reads: flow(30, 3, 3000), ..DiskPhase::default() },
        );
        one.points = Points { list: vec![(1_000_000_000, "R".into(), 5), (2, "W".into(), 7)] };
        let outcome = outcome(&study(vec![one]));
        assert!(outcome.chart.svg().contains("sort of 1 GB on wd5000aakx"));
        let json = crate::report::tests::json(outcome);
        let rows = json["sections"][0]["rows"].as_array().expect("rows").clone();
        let row =
            |what: &str| rows.iter().find(|row| row["what"] == what).expect(what)["ours"].clone();
        assert_eq!(row("maps: reads in order, percent"), 90.0);
        assert_eq!(row("reduce: reads in order, percent"), 10.0);
        assert_eq!(row("reduce: mean read, KiB"), 100.0);
        assert_eq!(row("all reads: mean, KiB"), 125.0);
        let says = &json["sections"][4]["rows"];
        assert_eq!((&says[0]["ours"], &says[1]["ours"]), (&1.0.into(), &serde_json::Value::Null));
    }

    #[test]
    fn a_reduce_that_read_nothing_leaves_the_statement_open() {
        let mut one = measured(StudyCell::stock("sort", 1., HDD, 1.), 60.);
        one.phases.insert("reduce".into(), DiskPhase::default());
        let json = crate::report::tests::json(outcome(&study(vec![one])));
        let rows = json["sections"][0]["rows"].as_array().expect("rows");
        let reads = rows.iter().find(|row| row["what"] == "reduce: reads").expect("a row");
        assert_eq!(reads["ours"], 0.0);
        assert!(json["sections"][4]["rows"][0]["ours"].is_null());
    }
}
