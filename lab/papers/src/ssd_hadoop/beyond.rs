//! Beyond the paper: Merganser's shuffle on both devices. How much of the SSD's gain does a hard disk get when
//! map outputs are never merged on disk?

use super::study::{self, HDD, SSD, Study, StudyCell};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::Chart;

/// Three spills per map of the sort, and as many or more of the join.
const SORT_MB: u64 = 64;
const BLOCK_MB: u64 = 128;
/// More than any segment: nothing is deferred.
const BOUND: &str = "1073741824";

/// A flavour: its name here and in the runner, and the bound for segments.
type Flavour = (&'static str, &'static str, &'static str);

const FLAVOURS: [Flavour; 3] = [
    ("stock", "stock", ""),
    ("Merganser", "active", ""),
    ("Merganser, segments of less than 1 GiB merged", "active", BOUND),
];

/// Job, GB in the paper, the ratio of Table 2's times, and the flavours.
type RatedJob = (&'static str, f64, f64, &'static [Flavour]);

const JOBS: [RatedJob; 2] =
    [("sort", 10., 1235. / 479., &FLAVOURS), ("join", 15., 1768. / 1030., FLAVOURS.split_at(2).0)];

/// Runs the cells, or reads their results.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(&Study::of(lab, &["beyond"])?))
}

fn outcome(study: &Study) -> Outcome {
    let mut gains = OutcomeSection::new("gains");
    let mut seconds = OutcomeSection::new("seconds, buffers of 64 MB and blocks of 128 MiB");
    let mut bars = Vec::new();
    for (job, gigabytes, paper_gain, flavours) in JOBS {
        let cell = |device: &str, flavour: &str, bound: &str| StudyCell {
            flavour: flavour.into(),
            sort_mb: SORT_MB,
            block_mb: BLOCK_MB,
            least_segment: bound.into(),
            ..StudyCell::stock(job, gigabytes, device, study.scale)
        };
        for (device, of) in [(HDD, "HDD"), (SSD, "SSD")] {
            for &(name, flavour, bound) in flavours {
                let one = study.get(&cell(device, flavour, bound));
                let name = format!("{job}, {of}, {name}");
                seconds.seconds_of(&name, one);
                bars.extend(study::seconds(one).map(|seconds| (name, seconds, flavour == "stock")));
            }
        }
        let time =
            |device, flavour, bound| study::seconds(study.get(&cell(device, flavour, bound)));
        let stock = cell(HDD, "stock", "");
        let what = study.with_rounds(&format!("{job}, stock: HDD's seconds over SSD's"), &stock);
        gains.gain(&what, Some(paper_gain), study.gain(&stock));
        for (device, of) in [(HDD, "HDD"), (SSD, "SSD")] {
            let gain = time(device, "stock", "").zip(time(device, "active", ""));
            gains.gain(
                &format!("{job}, {of}: stock's seconds over Merganser's"),
                None,
                gain.map(|(a, b)| a / b),
            );
        }
        let kept = time(HDD, "stock", "").zip(time(HDD, "active", "")).zip(time(SSD, "stock", ""));
        let what = format!("{job}: of the SSD's gain, a hard disk gets by deferring, percent");
        match kept {
            Some(((hdd, _), ssd)) if hdd <= ssd => {
                gains.neither(format!("{what}: the SSD is not faster"));
            }
            _ => {
                let share =
                    kept.map(|((hdd, deferred), ssd)| 100. * (hdd - deferred) / (hdd - ssd));
                gains.gain(&what, None, share);
            }
        }
    }
    Outcome {
        sections: vec![gains, seconds],
        differs: study.differs(),
        chart: Chart::Bars {
            title: "Sort and join with Merganser".into(),
            unit: "seconds".into(),
            bars,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::study::tests::{measured, study};
    use super::*;

    fn cell(device: &str, flavour: &str) -> StudyCell {
        StudyCell {
            flavour: flavour.into(),
            sort_mb: SORT_MB,
            block_mb: BLOCK_MB,
            ..StudyCell::stock("sort", 10., device, 0.1)
        }
    }

    #[test]
    fn the_part_of_the_gain_is_that_of_the_hard_disk() {
        let cells = vec![
            measured(cell(HDD, "stock"), 100.),
            measured(cell(HDD, "active"), 70.),
            measured(cell(SSD, "stock"), 40.),
        ];
        let json = crate::report::tests::json(outcome(&study(cells)));
        let rows = &json["sections"][0]["rows"];
        assert_eq!(rows[0]["ours"], 2.5);
        assert!((rows[1]["ours"].as_f64().expect("a ratio") - 100. / 70.).abs() < 1e-9);
        assert!(rows[2]["ours"].is_null());
        assert_eq!(rows[3]["ours"], 50.0);
        assert!(rows[7]["ours"].is_null(), "no join was measured");
    }

    #[test]
    fn the_join_has_gains_of_its_own() {
        let join = |device, flavour| StudyCell {
            job: "join".into(),
            paper_gb: 15.,
            ..cell(device, flavour)
        };
        let cells = vec![
            measured(cell(HDD, "stock"), 1.),
            measured(join(HDD, "stock"), 100.),
            measured(join(HDD, "active"), 80.),
            measured(join(SSD, "stock"), 20.),
            measured(join(SSD, "active"), 16.),
        ];
        let json = crate::report::tests::json(outcome(&study(cells)));
        let rows = json["sections"][0]["rows"].as_array().expect("rows");
        let ours: Vec<_> = rows[4..].iter().map(|row| row["ours"].as_f64()).collect();
        assert_eq!(ours, [Some(5.), Some(1.25), Some(1.25), Some(25.)]);
        let seconds = json["sections"][1]["rows"].as_array().expect("rows");
        assert_eq!(seconds.len(), 10, "a join has no bound for segments");
    }

    #[test]
    fn an_ssd_that_is_not_faster_has_no_gain_to_share() {
        let cells = vec![
            measured(cell(HDD, "stock"), 40.),
            measured(cell(HDD, "active"), 30.),
            measured(cell(SSD, "stock"), 40.),
        ];
        let json = crate::report::tests::json(outcome(&study(cells)));
        let row = &json["sections"][0]["rows"][3];
        assert!(row["ours"].is_null());
        assert!(row["what"].to_string().contains("the SSD is not faster"), "{row}");
    }
}
