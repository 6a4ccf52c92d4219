//! ActiveSort 5.4.1, Figure 11: what jobs on Hadoop read from and write to the disk of intermediate
//! data, stock and with deferred merges.

use super::elapsed::WORKLOADS;
use super::results::{self, READ, ScenarioResults, WRITTEN};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::Chart;

/// The best workload's, percent less than the original's.
const BEST: f64 = 40.4;

/// Runs the workloads, or reads their results.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(&ScenarioResults::of(lab, &WORKLOADS.map(|workload| workload.0))?))
}

fn outcome(results: &ScenarioResults) -> Outcome {
    let points = WORKLOADS.map(|(scenario, name)| (name, &results.get(scenario).points[0]));
    let mut less = OutcomeSection::new("bytes written, less than stock, percent (Figure 11)");
    let best = points.iter().map(|(_, point)| point.less(WRITTEN)).fold(f64::MIN, f64::max);
    less.both("the best workload", BEST, best);
    for (name, point) in &points {
        less.ours(*name, point.less(WRITTEN));
    }
    let mut times = OutcomeSection::new("bytes over the input's");
    let mut bars = Vec::new();
    for (name, point) in &points {
        let input = point.settings.size_bytes as f64 / f64::from(1 << 20);
        for (what, figure) in [("written", WRITTEN), ("read", READ)] {
            let (stock, ours) = point.both(figure);
            times.ours(format!("{name}, {what}, stock"), stock / input);
            times.ours(format!("{name}, {what}, ours"), ours / input);
            for (who, mebibytes) in [("stock", stock), ("ours", ours)] {
                // A logarithmic scale has no 0, and a page cache may leave nothing to read.
                bars.push((format!("{name}, {what}, {who}"), mebibytes.max(1.), who == "stock"));
            }
        }
    }
    Outcome {
        sections: vec![less, times],
        differs: results::differs(results.get(WORKLOADS[0].0)),
        chart: Chart::Bars { title: "Intermediate data".into(), unit: "MiB".into(), bars },
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{results, scenario};
    use super::*;

    #[test]
    fn bytes_are_held_against_stock_and_against_the_input() {
        let scenarios = WORKLOADS.map(|(name, _)| scenario(name, &[("", 3072., 2048.)]));
        let json = crate::report::tests::json(outcome(&results(scenarios.into())));
        let best = json["sections"][0]["rows"][0]["ours"].as_f64().expect("a figure");
        assert!((best - 100. / 3.).abs() < 1e-9);
        assert_eq!(json["sections"][1]["rows"][0]["ours"], 3.0);
        assert_eq!(json["sections"][1]["rows"][1]["ours"], 2.0);
    }
}
