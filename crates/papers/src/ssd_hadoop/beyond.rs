//! Beyond the paper: Merganser's shuffle on both devices. How much of the SSD's gain does a hard disk get when
//! map outputs are never merged on disk?

use super::study::{self, Cell, HDD, SSD, Study};
use crate::chart::Chart;
use crate::error::Error;
use crate::lab::Lab;
use crate::outcome::{Outcome, Section};

/// Three spills per map.
const SORT_MB: u64 = 64;
const BLOCK_MB: u64 = 128;
/// The ratio of Table 2's times, with the paper's defaults.
const PAPER_GAIN: f64 = 1235. / 479.;
/// More than any segment: nothing is deferred.
const BOUND: &str = "1073741824";

/// Runs the cells, or reads their results.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, Error> {
    Ok(outcome(&Study::of(lab, "beyond")?))
}

fn outcome(study: &Study) -> Outcome {
    let cell = |device: &str, flavour: &str, bound: &str| Cell {
        flavour: flavour.into(),
        sort_mb: SORT_MB,
        block_mb: BLOCK_MB,
        least_segment: bound.into(),
        ..Cell::stock("sort", 10., device, study.scale)
    };
    let rows = [
        ("stock", "stock", ""),
        ("Merganser", "active", ""),
        ("Merganser, segments of less than 1 GiB merged", "active", BOUND),
    ];
    let mut seconds = Section::new("seconds of the sort, three spills per map");
    let mut bars = Vec::new();
    for (device, of) in [(HDD, "HDD"), (SSD, "SSD")] {
        for (name, flavour, bound) in rows {
            let one = study.get(&cell(device, flavour, bound));
            let name = format!("{of}, {name}");
            seconds.of_cell(&name, one, |one| one.elapsed_s);
            bars.extend(study::seconds(one).map(|seconds| (name, seconds, flavour == "stock")));
        }
    }
    let time = |device, flavour, bound| study::seconds(study.get(&cell(device, flavour, bound)));
    let mut gains = Section::new("gains");
    let stock = study.gain(&cell(HDD, "stock", ""));
    gains.gain("stock: HDD's seconds over SSD's", Some(PAPER_GAIN), stock);
    for (device, of) in [(HDD, "HDD"), (SSD, "SSD")] {
        let gain = time(device, "stock", "").zip(time(device, "active", ""));
        gains.gain(
            &format!("{of}: stock's seconds over Merganser's"),
            None,
            gain.map(|(a, b)| a / b),
        );
    }
    let kept = time(HDD, "stock", "").zip(time(HDD, "active", "")).zip(time(SSD, "stock", ""));
    let what = "of the SSD's gain, a hard disk gets by deferring, percent";
    match kept {
        Some(((hdd, _), ssd)) if hdd <= ssd => {
            gains.neither(format!("{what}: the SSD is not faster"));
        }
        _ => {
            let share = kept.map(|((hdd, deferred), ssd)| 100. * (hdd - deferred) / (hdd - ssd));
            gains.gain(what, None, share);
        }
    }
    Outcome {
        sections: vec![gains, seconds],
        differs: study.differs(),
        chart: Chart::Bars {
            title: "The same sort with Merganser".into(),
            unit: "seconds".into(),
            bars,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::study::tests::{measured, study};
    use super::*;

    fn cell(device: &str, flavour: &str) -> Cell {
        Cell {
            flavour: flavour.into(),
            sort_mb: SORT_MB,
            block_mb: BLOCK_MB,
            ..Cell::stock("sort", 10., device, 0.1)
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
