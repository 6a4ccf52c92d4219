//! ActiveSort 5.4.2, Figure 15: Sort on Hadoop by the memory that the machine has.

use super::results::{self, ELAPSED, ScenarioResults};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::{Chart, ChartSeries};

const SCENARIO: &str = "memory";
/// "Steady": the slowest within so much of the fastest.
const STEADY: f64 = 1.2;

/// Runs the scenario, or reads its result.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    outcome(&ScenarioResults::of(lab, &[SCENARIO])?)
}

fn outcome(results: &ScenarioResults) -> Result<Outcome, ExperimentError> {
    let scenario = results.get(SCENARIO);
    let mut seconds = OutcomeSection::new("seconds, by memory for 2 GB of data (Figure 15)");
    let (mut stock, mut ours) = (Vec::new(), Vec::new());
    for point in &scenario.points {
        let gigabytes: f64 =
            point.name.split(' ').next().and_then(|number| number.parse().ok()).ok_or_else(
                || ExperimentError::Scenario {
                    scenario: SCENARIO.to_owned(),
                    reason: format!("the point '{}' names no memory", point.name),
                },
            )?;
        let (theirs, own) = point.both(ELAPSED);
        seconds.ours(format!("{}, stock", point.name), theirs);
        seconds.ours(format!("{}, ours", point.name), own);
        stock.push((gigabytes, theirs));
        ours.push((gigabytes, own));
    }
    let spread = |points: &[(f64, f64)]| {
        let most = points.iter().map(|p| p.1).fold(f64::MIN, f64::max);
        let least = points.iter().map(|p| p.1).fold(f64::MAX, f64::min);
        most / least
    };
    let ample: Vec<(f64, f64)> = ours.iter().copied().filter(|p| p.0 >= 2.).collect();
    let mut text = OutcomeSection::new("what the text says: 1 holds, 0 does not");
    let mut says = |what: &str, holds: bool| text.both(what, 1., f64::from(u8::from(holds)));
    says("faster with any memory", stock.iter().zip(&ours).all(|(theirs, own)| own.1 < theirs.1));
    says("steady from 2 GB on: the slowest within a fifth of the fastest", spread(&ample) < STEADY);
    says("the original suffers from too little memory", spread(&stock) > STEADY);
    let mut differs = results::differs(scenario);
    differs.push(
        "Memory is the page cache that a control group leaves beside the processes, in the paper's \
         proportion to the data; nothing is ever swapped."
            .into(),
    );
    Ok(Outcome {
        sections: vec![seconds, text],
        differs,
        chart: Chart::Lines {
            title: "Sort on Hadoop by memory".into(),
            axes: ["memory for 2 GB of data, GB".into(), "seconds".into()],
            series: vec![
                ChartSeries { name: "stock".into(), paper: true, points: stock },
                ChartSeries { name: "ours".into(), paper: false, points: ours },
            ],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{results, scenario};
    use super::*;

    #[test]
    fn the_texts_statements_are_judged() {
        let points =
            [("1 GB", 300., 150.), ("2 GB", 200., 105.), ("4 GB", 130., 100.), ("8 GB", 99., 100.)];
        let outcome = outcome(&results(vec![scenario(SCENARIO, &points)]));
        let json = crate::report::tests::json(outcome.unwrap_or_else(|_| panic!("an outcome")));
        let holds: Vec<_> =
            (0..3).map(|row| json["sections"][1]["rows"][row]["ours"].clone()).collect();
        assert_eq!(holds, [0.0, 1.0, 1.0]);
    }
}
