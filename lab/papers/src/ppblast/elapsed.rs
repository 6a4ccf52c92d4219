//! Figures 4.6 to 4.8: the time of a database that is formatted and searched, by its size: whole, in
//! partitions one after the other, and in partitions that are pipelined.
//!
//! The paper compares pp-mpiBLAST on 12 + 1 nodes with mpiBLAST on 12 (Figure 4.7) and on 13 (Figure 4.8).
//! Here there are 1 + 1 processors, compared with a search on one and on both.

use super::bed::Bed;
use super::line::FittedLine;
use super::paper::{self, count_of, name_of};
use super::results::{PartitionedDatabase, WholeDatabase};
use super::runs::{PartitionFlow, Runs};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use crate::statistics::mean;
use merganser_pages::{Chart, ChartSeries};

/// The size of partitions.
const PARTITION_MB: f64 = paper::PARTITIONS[paper::BEST_PARTITION];

/// One size.
struct ElapsedPoint {
    megabytes: f64,
    whole: WholeDatabase,
    serial: PartitionedDatabase,
    pipelined: PartitionedDatabase,
}

/// Measures all sizes.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let largest = paper::SIZES[paper::SIZES.len() - 1];
    let mut runs = Runs::new(Bed::new(lab, "ppblast-elapsed", largest)?)?;
    let mut points = Vec::new();
    for megabytes in paper::SIZES.into_iter().rev() {
        runs.bed.cut(megabytes)?;
        let whole = runs.whole()?;
        let count = count_of(megabytes, PARTITION_MB);
        let serial = runs.parts(count, PartitionFlow::Serial)?;
        let pipelined = runs.parts(count, PartitionFlow::Pipelined)?;
        runs.compare(&whole, &[serial, pipelined], &name_of(megabytes));
        points.push(ElapsedPoint { megabytes, whole, serial, pipelined });
    }
    points.reverse();
    Ok(outcome(&points, runs.differs()))
}

fn outcome(points: &[ElapsedPoint], mut differs: Vec<String>) -> Outcome {
    let mut seconds =
        OutcomeSection::new("seconds, measured (Figures 4.7 and 4.8; paper: plots only)");
    let mut causes = OutcomeSection::new(
        "why: partitions alone, then overlap; their product is the gain over one processor",
    );
    for point in points {
        let ElapsedPoint { whole, serial, pipelined, .. } = point;
        let name = name_of(point.megabytes);
        seconds.ours(format!("{name}, whole: makeblastdb"), whole.format.seconds);
        seconds.ours(format!("{name}, whole: search, one processor"), whole.search.seconds);
        seconds.ours(format!("{name}, whole: search, both processors"), whole.both.seconds);
        if let Some((ranks, _)) = whole.ranks {
            seconds.ours(format!("{name}, whole: search, two ranks"), ranks.seconds);
        }
        let count = serial.count;
        seconds.ours(format!("{name}, {count} partitions, serial"), serial.seconds);
        let count = pipelined.count;
        seconds.ours(format!("{name}, {count} partitions, pipelined"), pipelined.seconds);
        causes.ours(format!("{name}, whole over serial"), whole.seconds() / serial.seconds);
        let overlap = serial.seconds / pipelined.seconds;
        causes.ours(format!("{name}, serial over pipelined"), overlap);
    }
    let over = |of: fn(&WholeDatabase) -> f64| -> Vec<f64> {
        points.iter().map(|point| of(&point.whole) / point.pipelined.seconds).collect()
    };
    let controls = [
        ("one processor for the search (12 nodes, Figure 4.7)", over(WholeDatabase::seconds)),
        ("both for the search (13 nodes, Figure 4.8)", over(WholeDatabase::both_seconds)),
    ];
    let mut gain = OutcomeSection::new("whole over pipelined, mean of all sizes, measured (4.5.3)");
    let mut saved = OutcomeSection::new("time saved, percent, measured (4.5.3, 4.1.2, 4.6)");
    for (name, speedups) in &controls {
        gain.both(*name, paper::SPEEDUP_MEAN, mean(speedups));
        let percents: Vec<f64> = speedups.iter().map(|speedup| 100.0 - 100.0 / speedup).collect();
        let most = percents.iter().copied().fold(f64::MIN, f64::max);
        saved.both(format!("{name}, mean"), paper::SAVED_MEAN, mean(&percents));
        saved.both(format!("{name}, most: \"up to 75%\""), paper::SAVED_CLAIMED, most);
        saved.both(format!("{name}, most: \"up to 50%\""), paper::SAVED_MOST, most);
    }
    let (crossing, sentence) = crossing(points);
    differs.extend(sentence);
    differs.push(paper::BOUND.to_owned());
    differs.push(
        "Twelve and thirteen nodes differ by a twelfth, one and two processors by a factor of 2: the second control is much stronger here than in Figure 4.8."
            .to_owned(),
    );
    differs.push(format!(
        "Partitions of {}, which the paper finds best; it has figures for 250 and 750 MB as well, see ppblast-partition. The last partition of the paper is smaller, ours are equal.",
        name_of(PARTITION_MB)
    ));
    Outcome {
        sections: vec![seconds, gain, causes, saved, crossing],
        differs,
        chart: chart(points),
    }
}

/// Figure 4.6: where the line of formatting crosses that of the search.
fn crossing(points: &[ElapsedPoint]) -> (OutcomeSection, Option<String>) {
    let fitted = |of: fn(&WholeDatabase) -> f64| {
        let places: Vec<_> = points.iter().map(|p| (p.megabytes, of(&p.whole))).collect();
        FittedLine::fitted(&places)
    };
    let format = fitted(|whole| whole.format.seconds);
    let search = fitted(|whole| whole.search.seconds);
    let mut section = OutcomeSection::new(
        "seconds per GB: lines fitted to what was measured (Figure 4.6; Table 4.3)",
    );
    let paper_slope = |of: fn(&(f64, f64, f64)) -> f64| {
        let places: Vec<_> = paper::FORMAT.iter().map(|row| (row.0, of(row))).collect();
        FittedLine::fitted(&places).map_or(f64::NAN, |line| line.slope * 1000.0)
    };
    let (Some(format), Some(search)) = (format, search) else {
        return (section, None);
    };
    section.both("makeblastdb (paper: SSD)", paper_slope(|row| row.2), format.slope * 1000.0);
    section.paper("mpiformatdb on hard disks", paper_slope(|row| row.1));
    section.ours("search, one processor", search.slope * 1000.0);
    let meets = format.meets(&search).filter(|at| (0.0..paper::CROSSING_AXIS_MB).contains(at));
    let sentence = match meets {
        Some(at) => {
            section.ours("MB at which formatting takes as long as the search", at);
            format!(
                "Formatting and search take equally long at {at:.0} MB of the paper's scale. Beyond it, the one that grows faster is the bottleneck: {}.",
                if format.slope > search.slope { "formatting" } else { "the search" }
            )
        }
        None => {
            let format_longer = |p: &ElapsedPoint| p.whole.format.seconds > p.whole.search.seconds;
            let longer = points.iter().filter(|point| format_longer(point)).count();
            format!(
                "The lines of formatting and search do not cross between 0 and {} MB here; formatting takes longer at {longer} of {} sizes.",
                paper::CROSSING_AXIS_MB,
                points.len()
            )
        }
    };
    let sentence = format!(
        "{sentence} Figure 4.6 shows the search of 12 nodes as well, without numbers; Table 4.3 has those of mpiformatdb."
    );
    (section, Some(sentence))
}

fn chart(points: &[ElapsedPoint]) -> Chart {
    type Of = fn(&ElapsedPoint) -> f64;
    let lines: [(&str, Of); 6] = [
        ("whole, search on one processor", |point| point.whole.seconds()),
        ("whole, search on both processors", |point| point.whole.both_seconds()),
        ("partitions, serial", |point| point.serial.seconds),
        ("partitions, pipelined", |point| point.pipelined.seconds),
        ("makeblastdb alone", |point| point.whole.format.seconds),
        ("search alone, one processor", |point| point.whole.search.seconds),
    ];
    let series = lines.into_iter().map(|(name, of)| ChartSeries {
        name: name.to_owned(),
        paper: false,
        points: points.iter().map(|point| (point.megabytes, of(point))).collect(),
    });
    Chart::Lines {
        title: "A database formatted and searched, by its size".into(),
        axes: ["MB, of nodes with 2 GB".into(), "seconds".into()],
        series: series.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{parts, whole};
    use super::*;

    fn points() -> Vec<ElapsedPoint> {
        let point = |megabytes| {
            let count = count_of(megabytes, PARTITION_MB);
            ElapsedPoint {
                megabytes,
                whole: whole(megabytes),
                serial: parts(megabytes, count, PartitionFlow::Serial),
                pipelined: parts(megabytes, count, PartitionFlow::Pipelined),
            }
        };
        paper::SIZES.into_iter().map(point).collect()
    }

    #[test]
    fn the_three_ways_are_apart_and_their_quotients_multiply() {
        let outcome = outcome(&points(), Vec::new());
        let [seconds, gain, causes, saved, crossing] = &outcome.sections[..] else {
            panic!("five")
        };
        assert_eq!(seconds.rows.len(), 5 * 5);
        let product: Vec<f64> = causes
            .rows
            .chunks(2)
            .map(|pair| pair.iter().filter_map(|row| row.ours).product())
            .collect();
        let mean_gain = product.iter().sum::<f64>() / 5.0;
        assert!((gain.rows[0].ours.expect("ours") - mean_gain).abs() < 1e-9);
        // Partitions alone lose: each has a fixed part.
        assert!(causes.rows.iter().step_by(2).all(|row| row.ours.expect("ours") < 1.0));
        assert_eq!(saved.rows.len(), 6);
        // x/100 meets x/200 + 6 at 1,200.
        let at = crossing.rows.last().and_then(|row| row.ours).expect("they cross");
        assert!((at - 1200.0).abs() < 1e-6, "{at}");
        assert!(outcome.differs[0].starts_with("Formatting and search take equally long at 1200"));
    }

    #[test]
    fn lines_that_do_not_cross_are_said_to_be_so() {
        let mut points = points();
        for point in &mut points {
            point.whole.search.seconds = point.whole.format.seconds * 3.0 + 1.0;
        }
        let outcome = outcome(&points, Vec::new());
        assert_eq!(outcome.sections[4].rows.len(), 3);
        assert!(outcome.differs[0].contains(
            "do not cross between 0 and 2500 MB here; formatting takes longer at 0 of 5"
        ));
    }
}
