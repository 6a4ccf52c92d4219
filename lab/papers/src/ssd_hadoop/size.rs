//! Figure 5: a sort and a join by the size of the data, on both devices.

use super::study::{self, HDD, Study, StudyCell};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::{Chart, ChartSeries};

/// Sizes of the sort, in GB of the paper. A join has one and a half times as much.
const SIZES: [f64; 4] = [2.5, 5., 10., 20.];
/// Job, its data over the sort's, the largest ratio of the text, and the ratio of Table 2's times.
const JOBS: [(&str, f64, f64, f64); 2] =
    [("sort", 1., 3.0, 1235. / 479.), ("join", 1.5, 2.3, 1768. / 1030.)];

/// Runs the cells, or reads their results.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(&Study::of(lab, &["size"])?))
}

fn outcome(study: &Study) -> Outcome {
    let mut best = OutcomeSection::new("HDD's seconds over SSD's, the largest (4.2)");
    let mut gains =
        OutcomeSection::new("HDD's seconds over SSD's, by data of the paper (Figure 5)");
    let mut seconds = OutcomeSection::new("seconds");
    let mut series = Vec::new();
    for (job, times, paper_best, paper_ten) in JOBS {
        let cell = |size: f64| StudyCell::stock(job, size * times, HDD, study.scale);
        let found = SIZES.iter().filter_map(|&size| study.gain(&cell(size)));
        let largest = found.reduce(f64::max);
        best.gain(job, Some(paper_best), largest);
        for size in SIZES {
            let paper = (size == 10.).then_some(paper_ten);
            let name = study.with_rounds(&format!("{job}, {} GB", size * times), &cell(size));
            gains.gain(&name, paper, study.gain(&cell(size)));
        }
        for (device, name) in ["HDD", "SSD"].into_iter().enumerate() {
            let mut points = Vec::new();
            for size in SIZES {
                let one = study.both(&cell(size))[device];
                seconds.seconds_of(&format!("{job}, {} GB, {name}", size * times), one);
                points.extend(study::seconds(one).map(|seconds| (size * times, seconds)));
            }
            let name = format!("{job}, {name}");
            series.push(ChartSeries { name, paper: false, points });
        }
    }
    let mut differs = study.differs();
    differs.push(
        "The text has no values of Figure 5's axis. The paper's ratios at 10 and 15 GB are those of Table 2's times.".into(),
    );
    Outcome {
        sections: vec![best, gains, seconds],
        differs,
        chart: Chart::Lines {
            title: "Sort and join by data".into(),
            axes: ["data in the paper, GB".into(), "seconds".into()],
            series,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::study::SSD;
    use super::super::study::tests::{late, measured, study};
    use super::*;

    #[test]
    fn the_largest_ratio_is_that_of_valid_cells() {
        let cell = |size, device| StudyCell::stock("sort", size, device, 0.1);
        let cells = vec![
            measured(cell(10., HDD), 90.),
            measured(cell(10., SSD), 45.),
            measured(cell(20., HDD), 200.),
            late(cell(20., SSD), 20.),
        ];
        let json = crate::report::tests::json(outcome(&study(cells)));
        assert_eq!(json["sections"][0]["rows"][0]["ours"], 2.0);
        assert_eq!(json["sections"][0]["rows"][0]["paper"], 3.0);
        assert!(json["sections"][0]["rows"][1]["ours"].is_null(), "no join");
        assert_eq!(json["sections"][1]["rows"][2]["ours"], 2.0);
        assert!(json["sections"].to_string().contains("sort, 20 GB, SSD: not valid, 2.5 % late"));
    }
}
