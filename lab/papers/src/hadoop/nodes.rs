//! ActiveSort 5.4.4, Figure 17: TeraSort on Hadoop by the number of nodes, data growing with them.

use super::results::{self, ELAPSED, ScenarioResults};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::{Chart, ChartSeries};

const SCENARIO: &str = "nodes";
/// Records a second over the original's, "in all experiments using multiple nodes".
const TIMES: f64 = 1.5;

/// Runs the scenario, or reads its result.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(&ScenarioResults::of(lab, &[SCENARIO])?))
}

fn outcome(results: &ScenarioResults) -> Outcome {
    let scenario = results.get(SCENARIO);
    let mut times = OutcomeSection::new("records per second, over stock's (Figure 17)");
    let mut rates = OutcomeSection::new("records a second");
    let (mut stock, mut ours) = (Vec::new(), Vec::new());
    for point in &scenario.points {
        let told = &point.settings;
        let records = told.size_bytes as f64 / told.record_bytes as f64;
        let (theirs, own) = point.both(ELAPSED);
        match told.nodes {
            1 => times.ours(&*point.name, theirs / own),
            _ => times.both(&*point.name, TIMES, theirs / own),
        }
        rates.ours(format!("{}, stock", point.name), records / theirs);
        rates.ours(format!("{}, ours", point.name), records / own);
        stock.push((told.nodes as f64, records / theirs));
        ours.push((told.nodes as f64, records / own));
    }
    let mut differs = results::differs(scenario);
    differs.push(
        "Nodes are NodeManagers on one machine, each with a disk of its own; they share its two \
         cores, so more of them bring more disks and no more processors. The paper has up to 8 servers."
            .into(),
    );
    Outcome {
        sections: vec![times, rates],
        differs,
        chart: Chart::Lines {
            title: "TeraSort by nodes".into(),
            axes: ["nodes".into(), "records a second".into()],
            series: vec![
                ChartSeries { name: "stock".into(), paper: true, points: stock },
                ChartSeries { name: "ours".into(), paper: false, points: ours },
            ],
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{results, scenario};
    use super::*;

    #[test]
    fn several_nodes_stand_beside_the_papers() {
        let mut one = scenario(SCENARIO, &[("1 node", 30., 20.), ("2 nodes", 36., 24.)]);
        one.points[1].settings.nodes = 2;
        let json = crate::report::tests::json(outcome(&results(vec![one])));
        let row = |row: usize| json["sections"][0]["rows"][row].clone();
        assert!(row(0)["paper"].is_null());
        assert_eq!((row(1)["paper"].as_f64(), row(1)["ours"].as_f64()), (Some(1.5), Some(1.5)));
    }
}
