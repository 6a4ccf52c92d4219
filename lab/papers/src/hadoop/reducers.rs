//! ActiveSort 5.4.3, Figure 16: TeraSort on Hadoop by the number of reducers, at once and in all.

use super::results::{self, ELAPSED, ScenarioResults};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::Chart;

const SCENARIO: &str = "reducers";
/// "Steady": the slowest within so much of the fastest.
const STEADY: f64 = 1.2;

/// Runs the scenario, or reads its result.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(&ScenarioResults::of(lab, &[SCENARIO])?))
}

fn outcome(results: &ScenarioResults) -> Outcome {
    let scenario = results.get(SCENARIO);
    let mut seconds = OutcomeSection::new("seconds (Figure 16)");
    let mut bars = Vec::new();
    for point in &scenario.points {
        let (stock, ours) = point.both(ELAPSED);
        for (who, figure) in [("stock", stock), ("ours", ours)] {
            seconds.ours(format!("{}, {who}", point.name), figure);
            bars.push((format!("{}, {who}", point.name), figure, who == "stock"));
        }
    }
    let ours = || scenario.points.iter().map(|point| point.both(ELAPSED).1);
    let steady = ours().fold(f64::MIN, f64::max) < STEADY * ours().fold(f64::MAX, f64::min);
    let best =
        scenario.points.iter().min_by(|a, b| a.both(ELAPSED).0.total_cmp(&b.both(ELAPSED).0));
    let two = best.is_some_and(|point| point.settings.reduces_at_once == 2);
    let faster = scenario.points.iter().all(|point| point.less(ELAPSED) > 0.);
    let mut text = OutcomeSection::new("what the text says: 1 holds, 0 does not");
    let mut says = |what: &str, holds: bool| text.both(what, 1., f64::from(u8::from(holds)));
    says("ours is steady: the slowest within a fifth of the fastest", steady);
    says("the original is best with two reducers at once", two);
    says("ours is faster with any number", faster);
    Outcome {
        sections: vec![seconds, text],
        differs: results::differs(scenario),
        chart: Chart::Bars { title: "TeraSort by reducers".into(), unit: "seconds".into(), bars },
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{results, scenario};
    use super::*;

    #[test]
    fn steadiness_is_judged() {
        for (slowest, steady) in [(110., 1.), (130., 0.)] {
            let points = [("1 at once", 200., 100.), ("2 at once", 220., slowest)];
            let json =
                crate::report::tests::json(outcome(&results(vec![scenario(SCENARIO, &points)])));
            assert_eq!(json["sections"][1]["rows"][0]["ours"], steady);
            assert_eq!(json["sections"][1]["rows"][2]["ours"], 1.0);
        }
    }
}
