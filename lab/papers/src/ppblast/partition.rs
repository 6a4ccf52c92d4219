//! Figure 4.10: time by the size of partitions, and the "partition-size-threshold" that the chapter leaves
//! open.
//!
//! With a fixed part c_b per partition of the slower stage, and S_o the other stage's time for all data, the
//! best number of partitions is n* = sqrt(S_o / c_b). Both are taken from runs with few and with many
//! partitions; the other runs are predicted by Equation 4.5.

use merganser_pipeline::model::{self, StageLine};

use super::bed::Bed;
use super::paper::{self, count_of, name_of};
use super::results::PartitionedDatabase;
use super::runs::{PartitionFlow, Runs};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::{Chart, ChartSeries};

/// Sizes at which all of the paper's partitions are run, by their place in [`paper::SIZES`]. The largest is
/// among the others.
const SIZES: [usize; 3] = [0, 2, 4];

/// Numbers of partitions of the largest database.
const COUNTS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// The fixed parts are taken from the runs with these.
const FEW: u32 = 2;
const MANY: u32 = 32;

/// One run with the paper's partitions.
struct PartitionPoint {
    megabytes: f64,
    partition_mb: f64,
    parts: PartitionedDatabase,
}

/// Measures all of it.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let largest = paper::SIZES[paper::SIZES.len() - 1];
    let mut runs = Runs::new(Bed::new(lab, "ppblast-partition", largest)?)?;
    let bytes = runs.bed.database.bytes;
    let whole = runs.whole()?;
    let mut sweep = Vec::new();
    for count in COUNTS {
        sweep.push(runs.parts(count, PartitionFlow::Pipelined)?);
    }
    runs.compare(&whole, &sweep, &name_of(largest));
    let mut points = Vec::new();
    for size in SIZES.into_iter().rev() {
        let megabytes = paper::SIZES[size];
        runs.bed.cut(megabytes)?;
        for partition_mb in paper::PARTITIONS {
            let parts = runs.parts(count_of(megabytes, partition_mb), PartitionFlow::Pipelined)?;
            points.push(PartitionPoint { megabytes, partition_mb, parts });
        }
    }
    points.reverse();
    Ok(outcome(&points, &sweep, bytes as f64, runs.differs()))
}

/// The lines of both stages' times over the bytes of a partition.
fn lines(sweep: &[PartitionedDatabase], bytes: f64) -> Option<[StageLine; 2]> {
    // Long records make fewer partitions than were asked for.
    let few = sweep.iter().rfind(|parts| parts.count <= FEW)?;
    let many = sweep.iter().rfind(|parts| parts.count <= MANY).filter(|p| p.count > few.count)?;
    let point = |parts: &PartitionedDatabase, stage: usize| {
        (bytes / f64::from(parts.count), parts.model.stages[stage])
    };
    Some([0, 1].map(|stage| StageLine::through(point(many, stage), point(few, stage))))
}

fn outcome(
    points: &[PartitionPoint],
    sweep: &[PartitionedDatabase],
    bytes: f64,
    mut differs: Vec<String>,
) -> Outcome {
    let mut paper_sizes =
        OutcomeSection::new("seconds by the paper's partitions, measured (Figure 4.10: plot only)");
    for point in points {
        let PartitionPoint { megabytes, partition_mb, parts } = point;
        let name = format!("{}, partitions of {partition_mb} MB", name_of(*megabytes));
        paper_sizes.ours(name, parts.seconds);
    }
    let (least, most) = paper::PARTITION_AXIS;
    paper_sizes.paper("the axis begins at", least);
    paper_sizes.paper("the axis ends at", most);

    let mut best = OutcomeSection::new("the best of the paper's partitions, MB, measured (4.5.3)");
    for size in SIZES {
        let megabytes = paper::SIZES[size];
        let of_size = points.iter().filter(|point| point.megabytes == megabytes);
        let fastest = of_size.min_by(|a, b| a.parts.seconds.total_cmp(&b.parts.seconds));
        if let Some(fastest) = fastest {
            let paper = paper::PARTITIONS[paper::BEST_PARTITION];
            best.both(name_of(megabytes), paper, fastest.partition_mb);
        }
    }
    let fitted = lines(sweep, bytes);
    let predicted = |count: u32| {
        let n = f64::from(count);
        let stages = fitted?.map(|line| line.seconds(bytes / n));
        Some(model::pipelined(n, &stages))
    };
    let mut by_count = OutcomeSection::new(
        "seconds of 2 GB by the number of partitions: Equation 4.5 in the paper's column, measured in ours",
    );
    for parts in sweep {
        let kind = if [FEW, MANY].contains(&parts.count) { "fitted" } else { "predicted" };
        let name = format!("{} partitions, {kind}", parts.count);
        match predicted(parts.count) {
            Some(seconds) => by_count.both(name, seconds, parts.model.measured),
            None => by_count.ours(name, parts.model.measured),
        }
    }
    let mut optimum = OutcomeSection::new("the best number of partitions (open in 4.5.3)");
    let fastest = sweep.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds));
    if let (Some(fastest), Some(lines)) = (fastest, fitted) {
        let star = model::best_partitions(bytes, &lines, &[0, 1], &[1, 1]);
        optimum.both(
            "n*: sqrt(S_o/c_b) in the paper's column, the fastest run in ours",
            star,
            f64::from(fastest.count),
        );
        let nearest = sweep.iter().min_by(|a, b| {
            let far = |parts: &PartitionedDatabase| (f64::from(parts.count) / star).ln().abs();
            far(a).total_cmp(&far(b))
        });
        if let Some(nearest) = nearest {
            let name =
                format!("the run nearest to n*, {} partitions, over the fastest", nearest.count);
            optimum.ours(name, nearest.seconds / fastest.seconds);
        }
        optimum.ours("fixed part of formatting a partition, seconds", lines[0].fixed_seconds);
        optimum.ours("fixed part of searching a partition, seconds", lines[1].fixed_seconds);
        let is_inside = fastest.count > COUNTS[0] && fastest.count < COUNTS[COUNTS.len() - 1];
        differs.push(format!(
            "The fastest run has {} partitions, {} of the range that was measured.",
            fastest.count,
            if is_inside { "inside" } else { "at an end" }
        ));
    }
    differs.push(
        "The paper explains the optimum by overheads of small partitions and, for large ones, breaks off: \"the larger the better is also not convinced since the .\" The model's answer is that nothing overlaps with the first format and the last search, whose time falls with n."
            .to_owned(),
    );
    differs.push(format!(
        "The fixed parts are taken from the runs of {FEW} and {MANY} partitions; the other runs are predicted with them."
    ));
    Outcome {
        sections: vec![paper_sizes, best, by_count, optimum],
        differs,
        chart: chart(sweep, &predicted),
    }
}

fn chart(sweep: &[PartitionedDatabase], predicted: &dyn Fn(u32) -> Option<f64>) -> Chart {
    let line = |name: &str, is_model: bool, of: &dyn Fn(&PartitionedDatabase) -> Option<f64>| {
        ChartSeries {
            name: name.to_owned(),
            paper: is_model,
            points: sweep
                .iter()
                .filter_map(|parts| Some((f64::from(parts.count), of(parts)?)))
                .collect(),
        }
    };
    Chart::Lines {
        title: "2 GB of the paper's, by the number of partitions".into(),
        axes: ["partitions".into(), "seconds".into()],
        series: vec![
            line("measured", false, &|parts| Some(parts.model.measured)),
            line("Equation 4.5, fitted to 2 and 32 partitions", true, &|parts| {
                predicted(parts.count)
            }),
            line("formatting alone", false, &|parts| {
                Some(parts.model.stages[0] * f64::from(parts.count))
            }),
            line("searches alone", false, &|parts| {
                Some(parts.model.stages[1] * f64::from(parts.count))
            }),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::parts;
    use super::*;

    const BYTES: f64 = 2e8;

    fn sweep() -> Vec<PartitionedDatabase> {
        COUNTS.iter().map(|count| parts(2000.0, *count, PartitionFlow::Pipelined)).collect()
    }

    fn points() -> Vec<PartitionPoint> {
        let mut points = Vec::new();
        for size in SIZES {
            let megabytes = paper::SIZES[size];
            for partition_mb in paper::PARTITIONS {
                let count = count_of(megabytes, partition_mb);
                let parts = parts(megabytes, count, PartitionFlow::Pipelined);
                points.push(PartitionPoint { megabytes, partition_mb, parts });
            }
        }
        points
    }

    /// 20 s of formatting and 16 s of searching, half a second per partition and stage:
    /// n* = sqrt(16 / 0.5), T(n) = 20 + 0.5 n + 16/n + 0.5.
    #[test]
    fn the_optimum_of_the_model_is_found_again() {
        let outcome = outcome(&points(), &sweep(), BYTES, Vec::new());
        let [_, best, by_count, optimum] = &outcome.sections[..] else { panic!("four") };
        for (row, count) in by_count.rows.iter().zip(COUNTS) {
            let n = f64::from(count);
            let expected = 20.0 + 0.5 * n + 16.0 / n + 0.5;
            assert!((row.paper.expect("predicted") - expected).abs() < 1e-6, "{}", row.what);
            assert!((row.ratio().expect("both") - 1.0).abs() < 1e-6);
        }
        let star = optimum.rows[0].paper.expect("a number");
        assert!((star - 32f64.sqrt()).abs() < 1e-6, "{star}");
        // Four and eight take equally long.
        assert!([4.0, 8.0].contains(&optimum.rows[0].ours.expect("a number")));
        let fixed = optimum.rows[2].ours.expect("a number");
        assert!((fixed - 0.5).abs() < 1e-9, "{fixed}");
        assert!(outcome.differs[0].ends_with("partitions, inside of the range that was measured."));
        assert_eq!(best.rows.len(), 3);
    }

    #[test]
    fn a_database_of_one_record_has_no_optimum() {
        let sweep: Vec<PartitionedDatabase> =
            COUNTS.iter().map(|_| parts(2000.0, 1, PartitionFlow::Pipelined)).collect();
        let outcome = outcome(&[], &sweep, BYTES, Vec::new());
        assert!(outcome.sections[2].rows.iter().all(|row| row.paper.is_none()));
        assert!(outcome.sections[3].rows.is_empty());
    }
}
