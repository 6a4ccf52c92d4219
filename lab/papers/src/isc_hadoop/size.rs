//! Figure 11: a job and its maps by the size of the data.

use super::results::{ELAPSED, MACHINE_CPU, MAPS, PairSettings, StudyResults, TASK_BYTES};
use crate::error::ExperimentError;
use crate::isc::paper::JOB_GAIN;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::{Chart, ChartSeries};

/// Maps of 128 MB.
const FILES: [u64; 3] = [2, 4, 8];

/// Reads the results.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(&StudyResults::of(lab, "isc-hadoop-size", "size")?))
}

fn outcome(results: &StudyResults) -> Outcome {
    let mut gains = OutcomeSection::new("stock's seconds over the node's, wordcount (Figure 11)");
    let mut seconds = OutcomeSection::new("seconds");
    let mut processor =
        OutcomeSection::new("stock's processor seconds of the machine over the node's");
    let mut series = Vec::new();
    for (what, figure) in [("job", ELAPSED), ("maps", MAPS)] {
        let mut points = [Vec::new(), Vec::new()];
        for files in FILES {
            let pair = PairSettings::new("wordcount", TASK_BYTES, files);
            let name = format!("{what}, {} MB", 128 * files);
            gains.reach(&name, Some(JOB_GAIN), JOB_GAIN, results.gain(&pair, figure));
            let both = results.both(&pair, figure);
            seconds.medians(&name, both);
            if let Some((stock, node)) = both {
                points[0].push(((128 * files) as f64, stock));
                points[1].push(((128 * files) as f64, node));
            }
        }
        for (who, points) in ["stock", "node"].into_iter().zip(points) {
            series.push(ChartSeries { name: format!("{what}, {who}"), paper: false, points });
        }
    }
    for files in FILES {
        let pair = PairSettings::new("wordcount", TASK_BYTES, files);
        let gain = results.gain(&pair, MACHINE_CPU);
        processor.told(&format!("{} MB, {} rounds", 128 * files, results.count(&pair)), gain);
    }
    let mut differs = results.differs();
    differs.push(
        "One DataNode, one map at a time, two reducers, as the paper's single node. The maps' time is from the start of the \
         first map task to the end of the last."
            .into(),
    );
    Outcome {
        sections: vec![gains, seconds, processor],
        differs,
        chart: Chart::Lines {
            title: "Word count by data".into(),
            axes: ["data, MB".into(), "seconds".into()],
            series,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::results;
    use super::*;

    #[test]
    fn sizes_that_are_missing_are_told() {
        let rounds = [(PairSettings::new("wordcount", TASK_BYTES, 8), 1.5, 1.)];
        let json = crate::report::tests::json(outcome(&results(&rounds)));
        let gains = &json["sections"][0]["rows"];
        assert_eq!(gains[0]["what"], "job, 256 MB: not measured");
        assert_eq!(gains[2]["what"], "job, 1024 MB; at least 2: missed");
        assert_eq!(gains[2]["ours"], 1.5);
        assert_eq!(json["sections"][2]["rows"][2]["ours"], 1.5);
    }
}
