//! Figure 4.9 and Equations 4.1 to 4.8: speedup by the size of the database and of partitions, and what the
//! equations and the recurrence say of the same runs.

use super::bed::Bed;
use super::paper::{self, count_of, name_of};
use super::results::{PartitionedDatabase, WholeDatabase};
use super::runs::{PartitionFlow, Runs};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use crate::statistics::mean;
use merganser_pages::{Chart, ChartSeries};

/// The partitions of the run that is compared with the bar for two pools.
const POOL_PARTITIONS: u32 = 8;

/// The project's own bars.
const RECURRENCE_MOST: f64 = 1.05;
const POOLS_LEAST: f64 = 1.45;

/// One size.
struct SpeedupPoint {
    megabytes: f64,
    whole: WholeDatabase,
    /// For each of [`paper::PARTITIONS`].
    pipelined: Vec<PartitionedDatabase>,
    /// [`POOL_PARTITIONS`] one after the other, for the size whose pipeline has as many.
    serial: Option<PartitionedDatabase>,
}

/// Measures all sizes.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let largest = paper::SIZES[paper::SIZES.len() - 1];
    let mut runs = Runs::new(Bed::new(lab, "ppblast-speedup", largest)?)?;
    let mut points = Vec::new();
    for megabytes in paper::SIZES.into_iter().rev() {
        runs.bed.cut(megabytes)?;
        let whole = runs.whole()?;
        let mut pipelined = Vec::new();
        for partition in paper::PARTITIONS {
            pipelined.push(runs.parts(count_of(megabytes, partition), PartitionFlow::Pipelined)?);
        }
        let serial = match pipelined.iter().any(|parts| parts.count == POOL_PARTITIONS) {
            true => Some(runs.parts(POOL_PARTITIONS, PartitionFlow::Serial)?),
            false => None,
        };
        let all: Vec<PartitionedDatabase> = pipelined.iter().copied().chain(serial).collect();
        runs.compare(&whole, &all, &name_of(megabytes));
        points.push(SpeedupPoint { megabytes, whole, pipelined, serial });
    }
    points.reverse();
    Ok(outcome(&points, runs.differs()))
}

fn outcome(points: &[SpeedupPoint], mut differs: Vec<String>) -> Outcome {
    let mut sections = vec![ends(points)];
    sections.extend(controls(points));
    sections.push(bound(points));
    sections.extend(predictions(points));
    sections.push(bars(points));
    differs.push(paper::BOUND.to_owned());
    differs.push(
        "Figure 4.9 has axes and no numbers: the ends of its axes stand for its least and its greatest speedup."
            .to_owned(),
    );
    differs.push(
        "The printed Equation 4.8 has s_u, the unformatted size, in its first term; its arguments and the sentence before it have s_f, the formatted size. It has no term for the network, and gives the nodes the storage node's bandwidth. Computing in 4.7 and 4.8 is processor time, and the bandwidths are those at which partitions were cut on this machine."
            .to_owned(),
    );
    differs.push(
        "Equation 4.5 takes mean times, so it is a little low where partitions differ. The recurrence takes each partition as it was. \"Ahead\" is the recurrence from the first two partitions; with only two there is nothing to predict. The real sequences are at the front of the database, so its first partitions are not quite like the others."
            .to_owned(),
    );
    Outcome { sections, differs, chart: chart(points) }
}

/// Seconds of a whole database, with one or another search.
type Seconds = fn(&WholeDatabase) -> f64;

/// Speedups over the search on one processor and on both.
const CONTROLS: [(&str, Seconds); 2] = [
    ("one processor for the search (12 nodes)", WholeDatabase::seconds),
    ("both for the search (13 nodes)", WholeDatabase::both_seconds),
];

fn speedups(points: &[SpeedupPoint], of: Seconds) -> Vec<f64> {
    let each = |point: &SpeedupPoint| {
        let whole = of(&point.whole);
        point.pipelined.iter().map(move |parts| whole / parts.seconds).collect::<Vec<_>>()
    };
    points.iter().flat_map(each).collect()
}

fn ends(points: &[SpeedupPoint]) -> OutcomeSection {
    let mut section =
        OutcomeSection::new("speedup, measured (4.5.3; ends of the axes of Figure 4.9)");
    for ((name, of), (least, most)) in CONTROLS.into_iter().zip(paper::SPEEDUP_AXIS) {
        let all = speedups(points, of);
        section.both(format!("{name}, mean"), paper::SPEEDUP_MEAN, mean(&all));
        let end = |fold: fn(f64, f64) -> f64| all.iter().copied().reduce(fold).unwrap_or(f64::NAN);
        section.both(format!("{name}, least"), least, end(f64::min));
        section.both(format!("{name}, most"), most, end(f64::max));
    }
    section
}

fn controls(points: &[SpeedupPoint]) -> [OutcomeSection; 2] {
    CONTROLS.map(|(name, of)| {
        let mut section =
            OutcomeSection::new(format!("speedup over {name}, measured (Figure 4.9: plot only)"));
        for point in points {
            for (parts, partition) in point.pipelined.iter().zip(paper::PARTITIONS) {
                let name = format!("{}, partitions of {partition} MB", name_of(point.megabytes));
                section.ours(name, of(&point.whole) / parts.seconds);
            }
        }
        section
    })
}

/// The name of a run in tables.
fn run_name(point: &SpeedupPoint, parts: &PartitionedDatabase) -> String {
    format!("{}, {} partitions", name_of(point.megabytes), parts.count)
}

/// Runs with different numbers of partitions.
fn distinct(
    points: &[SpeedupPoint],
) -> impl Iterator<Item = (&SpeedupPoint, &PartitionedDatabase)> {
    points.iter().flat_map(|point| {
        let is_first = move |(at, parts): &(usize, &PartitionedDatabase)| {
            point.pipelined[..*at].iter().all(|before| before.count != parts.count)
        };
        let parts = point.pipelined.iter().enumerate().filter(is_first);
        parts.map(move |(_, parts)| (point, parts))
    })
}

fn bound(points: &[SpeedupPoint]) -> OutcomeSection {
    let mut section = OutcomeSection::new(
        "overlap alone: 2n/(n+1) in the paper's column, Equation 4.4 over measured seconds in ours",
    );
    for (point, parts) in distinct(points) {
        let n = f64::from(parts.count);
        let overlap = parts.model.unpipelined / parts.model.measured;
        section.both(run_name(point, parts), 2.0 * n / (n + 1.0), overlap);
    }
    section
}

fn predictions(points: &[SpeedupPoint]) -> Vec<OutcomeSection> {
    let mut equation =
        OutcomeSection::new("seconds: Equation 4.5 in the paper's column, measured in ours");
    let mut recurrence =
        OutcomeSection::new("seconds: the recurrence in the paper's column, measured in ours");
    let mut ahead = OutcomeSection::new(
        "seconds: predicted after two partitions in the paper's column, measured in ours",
    );
    let mut stages = OutcomeSection::new(
        "seconds per partition: Equations 4.7 and 4.8 in the paper's column, measured in ours",
    );
    for (point, parts) in distinct(points) {
        let (name, model) = (run_name(point, parts), parts.model);
        equation.both(&name, model.pipelined, model.measured);
        recurrence.both(&name, model.recurrence, model.measured);
        if let Some(predicted) = model.ahead {
            ahead.both(&name, predicted, model.measured);
        }
        if let Some(first) = model.first {
            stages.both(format!("{name}, 4.7"), first, model.stages[0]);
        }
        if let Some([with_formatted, as_printed]) = model.second {
            stages.both(format!("{name}, 4.8 with s_f"), with_formatted, model.stages[1]);
            stages.both(format!("{name}, 4.8 as printed, s_u"), as_printed, model.stages[1]);
        }
    }
    vec![equation, recurrence, ahead, stages]
}

/// The worst of all runs against the project's own bars.
fn bars(points: &[SpeedupPoint]) -> OutcomeSection {
    let mut section =
        OutcomeSection::new("this project's own bars in the paper's column, measured");
    let models = || distinct(points).map(|(_, parts)| parts.model);
    let worst = |quotients: Vec<f64>| {
        quotients.into_iter().max_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs()))
    };
    let recurrence = models().map(|model| model.measured / model.recurrence);
    if let Some(most) = recurrence.reduce(f64::max) {
        section.both("measured over the recurrence, most", RECURRENCE_MOST, most);
    }
    let ahead = models().filter_map(|model| Some(model.measured / model.ahead?));
    if let Some(found) = worst(ahead.collect()) {
        section.both("measured over predicted ahead, farthest from 1 (0.9 to 1.1)", 1.0, found);
    }
    for (point, parts) in distinct(points).filter(|(_, parts)| parts.count == POOL_PARTITIONS) {
        let run = run_name(point, parts);
        let mut pools = |name: &str, seconds: f64| {
            let name = format!("{name} over pipelined, {run}, at least");
            section.both(name, POOLS_LEAST, seconds / parts.seconds);
        };
        // Two meanings of "one after the other": the partitions, or two commands over the whole database.
        if let Some(serial) = point.serial {
            pools("one partition after the other", serial.seconds);
        }
        pools("whole", point.whole.seconds());
        let [first, second] = parts.model.stages;
        section.ours("the same run, T1 over T2 (balanced: 0.5 to 2)", first / second);
    }
    section
}

fn chart(points: &[SpeedupPoint]) -> Chart {
    let mut series: Vec<ChartSeries> = paper::PARTITIONS
        .iter()
        .enumerate()
        .map(|(at, partition)| ChartSeries {
            name: format!("over one processor, partitions of {partition} MB"),
            paper: false,
            points: points
                .iter()
                .map(|p| (p.megabytes, p.whole.seconds() / p.pipelined[at].seconds))
                .collect(),
        })
        .collect();
    for (at, partition) in paper::PARTITIONS.iter().enumerate() {
        let bound = |point: &SpeedupPoint| {
            let n = f64::from(point.pipelined[at].count);
            (point.megabytes, 2.0 * n / (n + 1.0))
        };
        series.push(ChartSeries {
            name: format!("2n/(n+1), partitions of {partition} MB"),
            paper: true,
            points: points.iter().map(bound).collect(),
        });
    }
    Chart::Lines {
        title: "Speedup of the pipeline by the size of the database".into(),
        axes: ["MB, of nodes with 2 GB".into(), "whole over pipelined".into()],
        series,
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{parts, whole};
    use super::*;

    fn points() -> Vec<SpeedupPoint> {
        let point = |megabytes| SpeedupPoint {
            megabytes,
            whole: whole(megabytes),
            pipelined: paper::PARTITIONS
                .map(|size| parts(megabytes, count_of(megabytes, size), PartitionFlow::Pipelined))
                .to_vec(),
            serial: (megabytes == 2000.0)
                .then(|| parts(megabytes, POOL_PARTITIONS, PartitionFlow::Serial)),
        };
        paper::SIZES.into_iter().map(point).collect()
    }

    fn section<'a>(outcome: &'a Outcome, begins: &str) -> &'a OutcomeSection {
        let found = outcome.sections.iter().find(|section| section.title.starts_with(begins));
        found.expect(begins)
    }

    #[test]
    fn every_run_is_below_the_bound_and_runs_are_listed_once() {
        let outcome = outcome(&points(), Vec::new());
        let bound = section(&outcome, "overlap alone");
        // 1 GB: 4 and 2 partitions; 1.25 GB: 5, 3, 2; and so on.
        assert_eq!(bound.rows.len(), 2 + 3 + 3 + 3 + 3);
        for row in &bound.rows {
            assert!(
                row.ours.expect("ours") <= row.paper.expect("the bound") + 1e-9,
                "{}",
                row.what
            );
        }
        assert_eq!(section(&outcome, "speedup over one").rows.len(), 15);
    }

    #[test]
    fn predictions_stand_next_to_what_was_measured() {
        let outcome = outcome(&points(), Vec::new());
        for begins in ["seconds: Equation 4.5", "seconds: the recurrence"] {
            let rows = &section(&outcome, begins).rows;
            assert!(rows.iter().all(|row| (row.ratio().expect("both") - 1.0).abs() < 1e-9));
        }
        // With two partitions nothing is predicted ahead.
        assert_eq!(section(&outcome, "seconds: predicted").rows.len(), 14 - 3);
        let bars = section(&outcome, "this project's own bars");
        assert_eq!(bars.rows.len(), 5);
        assert!((bars.rows[1].ours.expect("ours") - 1.0 / 1.1).abs() < 1e-9);
        // 2 GB: 20 + 16 s, in eight partitions 8 (2.5 + 0.5) + 2 + 0.5, and one after the other 8 (2.5 + 0.5 + 2 + 0.5).
        let [serial, whole] = [2, 3].map(|row| bars.rows[row].ours.expect("ours"));
        assert!((serial - 44.0 / 26.5).abs() < 1e-9, "{serial}");
        assert!((whole - 36.0 / 26.5).abs() < 1e-9, "{whole}");
        assert!((bars.rows[4].ours.expect("ours") - 3.0 / 2.5).abs() < 1e-9);
    }
}
