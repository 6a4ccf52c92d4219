//! Table 1 and Figure 6: a sort and a join by sort buffer and block, and what `hadoop advise --job` makes of the sort.

use super::study::{self, Combination, HDD, JobAdvice, MeasuredCell, SAYS, SSD, Study, StudyCell};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::{Chart, HeatTable};

const SORT_MB: [u64; 3] = [64, 100, 192];
const BLOCK_MB: [u64; 3] = [32, 64, 128];
const FACTOR: u64 = 200;
const DEVICES: [(&str, &str); 2] = [(HDD, "HDD"), (SSD, "SSD")];
/// An advised cell is good if it is within this of the best.
const NEAR: f64 = 1.1;
/// "Larger is better" allows for the noise of one measurement.
const NOISE: f64 = 1.03;

/// A job of the figure, and its data in the paper, in GB.
type SizedJob = (&'static str, f64);

const SORT: SizedJob = ("sort", 10.);
/// "5GB join", which Table 2 calls "5GB X 3".
const JOIN: SizedJob = ("join", 15.);

/// Runs the cells, or reads their results.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(&Study::of(lab, &["settings", "settings-advised", "settings-join"])?))
}

fn cell(
    study: &Study,
    (job, gb): SizedJob,
    device: &str,
    block_mb: u64,
    sort_mb: u64,
) -> StudyCell {
    StudyCell { sort_mb, block_mb, ..StudyCell::stock(job, gb, device, study.scale) }
}

/// Usable seconds of a job on a device, by block and then by buffer.
fn figures(study: &Study, job: SizedJob, device: &str) -> Vec<Vec<Option<f64>>> {
    let one = |block, sort| study::seconds(study.get(&cell(study, job, device, block, sort)));
    BLOCK_MB.map(|block| SORT_MB.map(|sort| one(block, sort)).to_vec()).to_vec()
}

/// The same; `None` if one is missing or not valid.
fn grid(study: &Study, job: SizedJob, device: &str) -> Option<Vec<Vec<f64>>> {
    figures(study, job, device).into_iter().map(|row| row.into_iter().collect()).collect()
}

fn outcome(study: &Study) -> Outcome {
    let mut sections = swept(study, SORT);
    sections.extend(advised(study));
    sections.extend(swept(study, JOIN));
    let mut tables = Vec::new();
    for job in [SORT, JOIN] {
        for (device, of) in DEVICES {
            let cells = figures(study, job, device);
            if job == SORT || cells.iter().flatten().any(Option::is_some) {
                tables.push(HeatTable { name: format!("{}, {of}", job.0), cells });
            }
        }
    }
    let mut differs = study.differs();
    differs.push(
        "The text has no values of Figure 6's axes; its statements are held against this sweep. The fan-in is 200, as there."
            .into(),
    );
    differs.push(
        "The prediction assumes 352 MiB of heap for the reducer, too; it has 256 MiB.".into(),
    );
    Outcome {
        sections,
        differs,
        chart: Chart::Heat {
            title: "Seconds of a job".into(),
            rows: BLOCK_MB.map(|block| format!("{block} MiB")).to_vec(),
            columns: SORT_MB.map(|sort| format!("{sort} MB")).to_vec(),
            axes: ["io.sort.mb".into(), "dfs.blocksize".into()],
            tables,
        },
    }
}

/// What the text says of a job, and its seconds.
fn swept(study: &Study, job: SizedJob) -> Vec<OutcomeSection> {
    let mut sections = vec![statements(study, job)];
    for (device, of) in DEVICES {
        let mut seconds = OutcomeSection::new(format!("seconds of the {}, {of} (Figure 6)", job.0));
        for block in BLOCK_MB {
            for sort in SORT_MB {
                let one = study.get(&cell(study, job, device, block, sort));
                seconds.seconds_of(&format!("blocks of {block} MiB, buffer of {sort} MB"), one);
            }
        }
        sections.push(seconds);
    }
    sections
}

fn statements(study: &Study, job: SizedJob) -> OutcomeSection {
    let [hdd, ssd] = [HDD, SSD].map(|device| grid(study, job, device));
    let least = |rows: &Vec<f64>| rows.iter().copied().fold(f64::MAX, f64::min);
    let mut says = OutcomeSection::new(format!("{}: {SAYS}", job.0));
    let best_block = hdd.as_ref().map(|rows| {
        let best: Vec<f64> = rows.iter().map(least).collect();
        best.iter().all(|seconds| best[1] <= *seconds)
    });
    says.holds("HDD: blocks of 64 MiB are best", best_block);
    let larger = hdd
        .as_ref()
        .map(|rows| rows.iter().all(|row| row.windows(2).all(|pair| pair[1] <= pair[0] * NOISE)));
    says.holds("HDD: a larger buffer is not slower, with any block", larger);
    let spread = |rows: &Vec<Vec<f64>>| {
        let all = || rows.iter().flatten().copied();
        all().fold(f64::MIN, f64::max) / all().fold(f64::MAX, f64::min)
    };
    let spreads = hdd.as_ref().zip(ssd.as_ref()).map(|(hdd, ssd)| (spread(hdd), spread(ssd)));
    says.holds("the SSD changes less than the HDD", spreads.map(|(hdd, ssd)| ssd < hdd));
    says.gain("slowest cell over the fastest, HDD", None, spreads.map(|both| both.0));
    says.gain("slowest cell over the fastest, SSD", None, spreads.map(|both| both.1));
    says
}

/// The cell with the settings that `hadoop advise --job` prints.
fn chosen(study: &Study, device: &str, advice: &JobAdvice) -> Option<StudyCell> {
    let setting = |name: &str| advice.advice.get(name).map(String::as_str);
    let number = |name: &str| setting(name)?.parse::<u64>().ok();
    let flavour = if setting("merganser.shuffle.defer")? == "true" { "active" } else { "stock" };
    Some(StudyCell {
        flavour: flavour.into(),
        factor: number("mapreduce.task.io.sort.factor")?,
        ..cell(
            study,
            SORT,
            device,
            number("dfs.blocksize")? >> 20,
            number("mapreduce.task.io.sort.mb")?,
        )
    })
}

/// The combination of the sweep that the model of `hadoop advise --job` finds best, all of its times, and the
/// combination that the command itself chooses.
fn advised(study: &Study) -> Vec<OutcomeSection> {
    let mut choice = OutcomeSection::new(
        "measured seconds of the cell that `hadoop advise --job` takes, over the best cell's",
    );
    let mut all = OutcomeSection::new("seconds of `hadoop advise --job`, over the measured ones");
    let mut own = OutcomeSection::new(
        "measured seconds of what `hadoop advise --job` itself chooses, over the best cell's of the sweep",
    );
    for (device, of) in DEVICES {
        let Some(advice) = study.predicted.get(device) else {
            choice.neither(format!("{of}: no prediction"));
            continue;
        };
        let predicted: Vec<(u64, u64, f64)> =
            advice.combinations.iter().filter_map(in_sweep).collect();
        let measured = |block, sort| study.get(&cell(study, SORT, device, block, sort));
        let best = predicted.iter().min_by(|a, b| a.2.total_cmp(&b.2));
        let fastest = grid(study, SORT, device)
            .map(|rows| rows.iter().flatten().copied().fold(f64::MAX, f64::min));
        let ratio = fastest.zip(best).and_then(|(fastest, &(block, sort, _))| {
            Some(study::seconds(measured(block, sort))? / fastest)
        });
        if let Some((block, sort, _)) = best {
            choice.gain(&format!("{of}: blocks of {block} MiB, buffer of {sort} MB"), None, ratio);
        }
        choice
            .holds(&format!("{of}: within a tenth of the best"), ratio.map(|ratio| ratio <= NEAR));
        for (block, sort, seconds) in predicted {
            let of_it = |one: &MeasuredCell| seconds / one.elapsed_s;
            let name = format!("{of}, {block} MiB, {sort} MB: {seconds:.0} s predicted");
            all.of_cell(&name, measured(block, sort), of_it);
        }
        if let Some((cell, fastest)) = chosen(study, device, advice).zip(fastest) {
            let StudyCell { flavour, sort_mb, factor, block_mb, .. } = &cell;
            let name = format!(
                "{of}: {flavour}, blocks of {block_mb} MiB, buffer of {sort_mb} MB, fan-in of {factor}"
            );
            own.of_cell(&name, study.get(&cell), |one| one.elapsed_s / fastest);
        }
    }
    vec![choice, all, own]
}

/// Block and buffer in MiB, and seconds, if the sweep has the combination.
fn in_sweep(one: &Combination) -> Option<(u64, u64, f64)> {
    let (block, sort) = (one.block_mb as u64, one.sort_mb as u64);
    let there = one.factor == FACTOR && !one.defer && BLOCK_MB.contains(&block);
    (there && SORT_MB.contains(&sort)).then_some((block, sort, one.seconds))
}

#[cfg(test)]
mod tests {
    use super::super::study::tests::{late, measured, study};
    use super::*;

    /// A sweep with these seconds by block and buffer on the HDD, and 50 everywhere on the SSD.
    fn sweep(hdd: [[f64; 3]; 3]) -> Study {
        let empty = study(Vec::new());
        let mut cells = Vec::new();
        for (b, block) in BLOCK_MB.into_iter().enumerate() {
            for (s, sort) in SORT_MB.into_iter().enumerate() {
                cells.push(measured(cell(&empty, SORT, HDD, block, sort), hdd[b][s]));
                cells.push(measured(cell(&empty, SORT, SSD, block, sort), 50.));
            }
        }
        let mut study = study(cells);
        let combination = |block_mb, sort_mb, defer, seconds| Combination {
            sort_mb,
            factor: 200,
            block_mb,
            defer,
            seconds,
        };
        let combinations = vec![
            combination(64., 100., false, 80.),
            combination(128., 192., false, 70.),
            // Not in the sweep.
            combination(128., 192., true, 10.),
            combination(512., 192., false, 20.),
        ];
        let advice = [
            ("mapreduce.task.io.sort.mb", "32"),
            ("mapreduce.task.io.sort.factor", "10"),
            ("dfs.blocksize", "268435456"),
            ("merganser.shuffle.defer", "true"),
        ];
        let advice = advice.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        study.predicted.insert(HDD.into(), JobAdvice { advice, combinations });
        study
    }

    #[test]
    fn statements_and_advice_are_held_against_the_sweep() {
        let study = sweep([[120., 119., 118.], [110., 100., 90.], [130., 120., 108.]]);
        let json = crate::report::tests::json(outcome(&study));
        let says: Vec<_> =
            (0..3).map(|row| json["sections"][0]["rows"][row]["ours"].clone()).collect();
        assert_eq!(says, [1.0, 1.0, 1.0]);
        let choice = &json["sections"][3]["rows"];
        assert_eq!((&choice[0]["ours"], &choice[1]["ours"]), (&1.2.into(), &0.0.into()));
        assert_eq!(choice[2]["what"], "SSD: no prediction");
        let all = json["sections"][4]["rows"].as_array().expect("rows");
        assert_eq!(all.len(), 2, "the sweep's own: {all:?}");
    }

    #[test]
    fn what_the_command_itself_chooses_is_held_against_the_best_of_the_sweep() {
        let seconds = [[120., 119., 118.], [110., 100., 90.], [130., 120., 108.]];
        let mut study = sweep(seconds);
        let row = |study: &Study| {
            let json = crate::report::tests::json(outcome(study));
            json["sections"][5]["rows"][0].clone()
        };
        let name = "HDD: active, blocks of 256 MiB, buffer of 32 MB, fan-in of 10";
        assert_eq!(row(&study)["what"], format!("{name}: not measured"));
        let own =
            StudyCell { flavour: "active".into(), factor: 10, ..cell(&study, SORT, HDD, 256, 32) };
        let more = measured(own, 99.);
        let predicted = std::mem::take(&mut study.predicted);
        let mut cells = vec![more];
        for (rows, block) in seconds.iter().zip(BLOCK_MB) {
            for (&seconds, sort) in rows.iter().zip(SORT_MB) {
                cells.push(measured(cell(&study, SORT, HDD, block, sort), seconds));
            }
        }
        study = study::tests::study(cells);
        study.predicted = predicted;
        assert_eq!(row(&study)["what"], name);
        assert_eq!(row(&study)["ours"], 1.1);
    }

    #[test]
    fn the_join_is_judged_by_its_own_sweep_and_drawn_if_it_was_measured() {
        let mut study = sweep([[1.; 3]; 3]);
        assert!(!outcome(&study).chart.svg().contains("join, HDD"));
        // The join of Figure 5 and of Table 2, so that they share a cell.
        assert_eq!(cell(&study, JOIN, SSD, 64, 100), StudyCell::stock("join", 15., SSD, 0.1));
        let mut cells = Vec::new();
        for block in BLOCK_MB {
            for sort in SORT_MB {
                let seconds = if block == 64 { 90. } else { 100. };
                cells.push(measured(cell(&study, JOIN, HDD, block, sort), seconds));
                cells.push(measured(cell(&study, JOIN, SSD, block, sort), 50.));
            }
        }
        study = study::tests::study(cells);
        let outcome = outcome(&study);
        assert!(outcome.chart.svg().contains("join, HDD"));
        let json = crate::report::tests::json(outcome);
        assert!(json["sections"][0]["rows"][0]["ours"].is_null(), "no sort");
        let says = &json["sections"][6];
        assert!(says["title"].as_str().is_some_and(|title| title.starts_with("join: ")), "{says}");
        let ours: Vec<_> = (0..3).map(|row| says["rows"][row]["ours"].clone()).collect();
        assert_eq!(ours, [1.0, 1.0, 1.0]);
        assert_eq!(json["sections"][7]["rows"][3]["ours"], 90.);
    }

    #[test]
    fn a_late_cell_leaves_the_statements_open() {
        let mut cells = vec![late(StudyCell::stock("sort", 10., HDD, 0.1), 1.)];
        cells.push(measured(StudyCell::stock("sort", 10., SSD, 0.1), 50.));
        let json = crate::report::tests::json(outcome(&study(cells)));
        for row in 0..3 {
            assert!(json["sections"][0]["rows"][row]["ours"].is_null());
        }
        assert!(json["sections"][1].to_string().contains("not valid"));
    }
}
