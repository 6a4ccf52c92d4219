//! ActiveSort 5.4.1, Figure 10: how long jobs take on Hadoop, stock and with deferred merges.

use super::results::{self, ELAPSED, ScenarioResults};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::Chart;

/// Scenarios of the runner, and the paper's workloads that they are held against.
pub const WORKLOADS: [(&str, &str); 3] =
    [("sort-4k", "Sort"), ("terasort-4k", "TeraSort"), ("join", "join (Hive-join)")];
/// The best workload's, percent less than the original's.
const BEST: f64 = 36.1;

/// Runs the workloads, or reads their results.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(&ScenarioResults::of(lab, &WORKLOADS.map(|workload| workload.0))?))
}

fn outcome(results: &ScenarioResults) -> Outcome {
    let points = WORKLOADS.map(|(scenario, name)| (name, &results.get(scenario).points[0]));
    let mut less = OutcomeSection::new("elapsed, less than stock, percent (Figure 10)");
    let best = points.iter().map(|(_, point)| point.less(ELAPSED)).fold(f64::MIN, f64::max);
    less.both("the best workload", BEST, best);
    for (name, point) in &points {
        less.ours(*name, point.less(ELAPSED));
    }
    let mut text = OutcomeSection::new("what the text says: 1 holds, 0 does not");
    let all = points.iter().all(|(_, point)| point.less(ELAPSED) > 0.);
    text.both("faster for all workloads", 1., f64::from(u8::from(all)));
    let mut seconds = OutcomeSection::new("seconds");
    let mut bars = Vec::new();
    for (name, point) in &points {
        let (stock, ours) = point.both(ELAPSED);
        for (who, figure) in [("stock", stock), ("ours", ours)] {
            seconds.ours(format!("{name}, {who}"), figure);
            bars.push((format!("{name}, {who}"), figure, who == "stock"));
        }
    }
    Outcome {
        sections: vec![less, text, seconds],
        differs: results::differs(results.get(WORKLOADS[0].0)),
        chart: Chart::Bars { title: "Jobs on Hadoop".into(), unit: "seconds".into(), bars },
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{results, scenario};
    use super::*;

    #[test]
    fn the_best_workload_stands_beside_the_papers() {
        let scenarios = [("sort-4k", 100., 60.), ("terasort-4k", 100., 70.), ("join", 50., 55.)];
        let scenarios = scenarios.map(|(name, stock, ours)| scenario(name, &[("", stock, ours)]));
        let outcome = outcome(&results(scenarios.into()));
        let json = crate::report::tests::json(outcome);
        assert_eq!(json["sections"][0]["rows"][0]["paper"], 36.1);
        assert_eq!(json["sections"][0]["rows"][0]["ours"], 40.0);
        assert_eq!(json["sections"][1]["rows"][0]["ours"], 0.0, "the join was slower");
        assert_eq!(json["sections"][2]["rows"].as_array().map(Vec::len), Some(6));
    }
}
