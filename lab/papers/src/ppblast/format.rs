//! Table 4.3 and one half of Figure 4.6: the time of formatting by the size of the database, on hard disks and
//! on an SSD.
//!
//! Today's makeblastdb keeps the order of the input, so the table's reason is gone with formatdb. Three
//! answers, each in sections of its own:
//!
//! - fitted and predicted: a model of formatdb's reads in order of length, on modelled disks;
//! - measured: makeblastdb, and `merganser sort` by length before it, which is the same reorder as an
//!   external sort;
//! - computed: Equation 4.7 from what was measured, with the bandwidths of the modelled disks.

use std::fs;
use std::path::Path;

use merganser_generate::SequenceAlphabet;
use serde_json::Value;

use super::bed::{Bed, BedNode, ProgramTime};
use super::paper::{self, name_of};
use super::reorder::{self, Reorder, Speed};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::{Chart, ChartSeries};

/// The largest size of the table.
const LARGEST_MB: f64 = paper::FORMAT[paper::FORMAT.len() - 1].0;

/// Measurements of one size.
#[derive(Debug, Clone, Copy)]
struct FormatTimes {
    megabytes: f64,
    bytes: u64,
    /// makeblastdb, from the database as it is.
    format: ProgramTime,
    /// Of its output.
    formatted_bytes: u64,
    /// The sort by length.
    sort: ProgramTime,
    /// What it read from and wrote to devices.
    sort_read_bytes: u64,
    sort_written_bytes: u64,
    /// makeblastdb, from its result.
    sorted: ProgramTime,
}

/// The two modelled disks: hard disk and SSD.
type Speeds = [Speed; 2];

/// Measures all sizes of the table.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let mut bed = Bed::new(lab, "ppblast-format", LARGEST_MB)?;
    lab.progress.phase("modelled disks", None);
    let speeds = [Speed::of_disk()?, Speed::of_ssd()?];
    let mut measured = Vec::new();
    for (megabytes, ..) in paper::FORMAT.iter().rev() {
        bed.cut(*megabytes)?;
        measured.push(bed.median(
            || measure(&bed, *megabytes),
            |found: &FormatTimes| found.format.seconds + found.sort.seconds + found.sorted.seconds,
        )?);
    }
    measured.reverse();
    let mut differs = bed.differs();
    bed.make(SequenceAlphabet::Dna)?;
    let bytes = bed.database.bytes;
    let dna = bed.median(|| format(&bed, "nucl", "database.fa"), |(timed, _)| timed.seconds)?;
    differs.push(format!(
        "DNA was measured at the largest size, {} MiB: the real genes that are installed, and generated sequences.",
        bytes >> 20
    ));
    Ok(outcome(&measured, (bytes, dna.0, dna.1), &speeds, differs))
}

/// Formats a file of the bed's folder. Returns the bytes of the result, too.
fn format(bed: &Bed<'_>, kind: &str, file: &str) -> Result<(ProgramTime, u64), ExperimentError> {
    let folder = bed.path("formatted");
    fs::create_dir(&folder).map_err(|error| ExperimentError::on(&folder, error))?;
    if file == "database.fa" {
        bed.forget()?;
    }
    let script =
        format!("exec makeblastdb -in - -dbtype {kind} -title t -out formatted/db < {file}");
    let mut command = bed.command(BedNode::Storage, Path::new("sh"));
    let timed = bed.time("makeblastdb", command.args(["-c", &script]))?;
    let entries = fs::read_dir(&folder).map_err(|error| ExperimentError::on(&folder, error))?;
    let bytes =
        entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|about| about.len());
    let bytes = bytes.sum();
    fs::remove_dir_all(&folder).map_err(|error| ExperimentError::on(&folder, error))?;
    Ok((timed, bytes))
}

fn measure(bed: &Bed<'_>, megabytes: f64) -> Result<FormatTimes, ExperimentError> {
    let (timed, formatted_bytes) = format(bed, "prot", "database.fa")?;
    bed.forget()?;
    let mut command = bed.command(BedNode::Storage, bed.merganser());
    command.args(["sort", "--quiet", "--format", "fasta", "--key", "length:r", "--threads", "1"]);
    // Half of the group is the sort's own, the rest is for the page cache.
    command.args(["--memory", &(bed.memory_bytes / 2).to_string(), "--temp-dir", "."]);
    command.args(["--report", "report.json", "-o", "sorted.fa", "database.fa"]);
    let sort = bed.time("merganser sort", &mut command)?;
    let report = bed.path("report.json");
    let said = fs::read(&report).map_err(|error| ExperimentError::on(&report, error))?;
    let said: Value = serde_json::from_slice(&said).unwrap_or_default();
    let (sorted, _) = format(bed, "prot", "sorted.fa")?;
    let result = bed.path("sorted.fa");
    fs::remove_file(&result).map_err(|error| ExperimentError::on(&result, error))?;
    Ok(FormatTimes {
        megabytes,
        bytes: bed.database.bytes,
        format: timed,
        formatted_bytes,
        sort,
        sort_read_bytes: said["device_read_bytes"].as_u64().unwrap_or(0),
        sort_written_bytes: said["device_written_bytes"].as_u64().unwrap_or(0),
        sorted,
    })
}

impl FormatTimes {
    /// Seconds of the sort and of makeblastdb after it.
    fn reordered(&self) -> f64 {
        self.sort.seconds + self.sorted.seconds
    }

    /// Equation 4.7 for makeblastdb on a disk.
    fn on(&self, disk: &Speed) -> f64 {
        let (input, output) = (self.bytes as f64, self.formatted_bytes as f64);
        let computing = self.format.processor_seconds;
        first_stage(input, output, disk, computing)
    }

    /// The same with the sort before it.
    fn reordered_on(&self, disk: &Speed) -> f64 {
        let input = (self.sort_read_bytes + self.bytes) as f64;
        let output = (self.sort_written_bytes + self.formatted_bytes) as f64;
        let computing = self.sort.processor_seconds + self.sorted.processor_seconds;
        first_stage(input, output, disk, computing)
    }
}

fn first_stage(input: f64, output: f64, disk: &Speed, computing: f64) -> f64 {
    let Speed { read_rate, write_rate, .. } = *disk;
    merganser_pipeline::model::first_stage(input, output, read_rate, write_rate, computing)
}

fn outcome(
    measured: &[FormatTimes],
    (dna_bytes, dna, dna_formatted): (u64, ProgramTime, u64),
    [disk, ssd]: &Speeds,
    mut differs: Vec<String>,
) -> Outcome {
    let reorder = Reorder::fitted(disk.random_seconds);
    let mut fitted =
        OutcomeSection::new("formatdb on hard disks, seconds, fitted to the same row (Table 4.3)");
    let mut predicted = OutcomeSection::new("formatdb on the SSD, seconds, predicted (Table 4.3)");
    for (megabytes, hdd, paper_ssd) in paper::FORMAT {
        let name = name_of(megabytes);
        fitted.both(&name, hdd, reorder.seconds(megabytes, disk.random_seconds));
        predicted.both(&name, paper_ssd, reorder.seconds(megabytes, ssd.random_seconds));
    }
    let mut seconds = OutcomeSection::new(
        "seconds here, measured; the paper's row is the SSD's and of more data",
    );
    let mut growth = OutcomeSection::new(
        "time over data, against 500 MB; 1 is linear, measured (paper: SSD; Table 4.3)",
    );
    let mut sorted = OutcomeSection::new(
        "the same with the reorder, a sort by length, measured (paper: hard disks; Table 4.3)",
    );
    let mut disks = OutcomeSection::new(
        "hard disk over SSD: Equation 4.7 with measured bytes and processor time (Table 4.3)",
    );
    let mut lines: [Vec<(f64, f64)>; 6] = Default::default();
    let first = measured.first();
    for (found, (_, hdd, paper_ssd)) in measured.iter().zip(paper::FORMAT) {
        let name = name_of(found.megabytes);
        seconds.both(format!("{name}, makeblastdb"), paper_ssd, found.format.seconds);
        seconds.ours(format!("{name}, sort by length"), found.sort.seconds);
        seconds.ours(format!("{name}, makeblastdb after it"), found.sorted.seconds);
        if let Some(first) = first.filter(|first| first.megabytes < found.megabytes) {
            let data = found.bytes as f64 / first.bytes as f64;
            let (_, first_hdd, first_ssd) = paper::FORMAT[0];
            let paper_data = found.megabytes / first.megabytes;
            let ours = found.format.seconds / first.format.seconds / data;
            growth.both(&name, paper_ssd / first_ssd / paper_data, ours);
            let ours = found.reordered() / first.reordered() / data;
            sorted.both(&name, hdd / first_hdd / paper_data, ours);
        }
        disks.both(&name, hdd / paper_ssd, found.reordered_on(disk) / found.reordered_on(ssd));
        disks.ours(format!("{name}, without the sort"), found.on(disk) / found.on(ssd));
        let points = [
            hdd,
            paper_ssd,
            reorder.seconds(found.megabytes, disk.random_seconds),
            reorder.seconds(found.megabytes, ssd.random_seconds),
            found.format.seconds,
            found.reordered(),
        ];
        for (line, y) in lines.iter_mut().zip(points) {
            line.push((found.megabytes, y));
        }
    }
    let mut rates = OutcomeSection::new("makeblastdb, measured at the largest size (paper: SSD)");
    if let Some(largest) = measured.last() {
        let per_second = |bytes: u64, timed: ProgramTime| bytes as f64 / 1e6 / timed.seconds;
        let (megabytes, _, paper_ssd) = paper::FORMAT[paper::FORMAT.len() - 1];
        let protein = per_second(largest.bytes, largest.format);
        rates.both("protein, MB/s", megabytes / paper_ssd, protein);
        rates.both("DNA, MB/s", megabytes / paper_ssd, per_second(dna_bytes, dna));
        let share = |formatted: u64, bytes: u64| formatted as f64 / bytes as f64;
        let protein = share(largest.formatted_bytes, largest.bytes);
        rates.ours("protein, formatted over FASTA, bytes", protein);
        rates.ours("DNA, formatted over FASTA, bytes", share(dna_formatted, dna_bytes));
    }
    differs.extend(reasons(&reorder, disk, ssd));
    let names = [
        ("hard disks", true),
        ("SSD", true),
        ("formatdb on a modelled hard disk, fitted", false),
        ("formatdb on a modelled SSD, predicted", false),
        ("makeblastdb here, of less data", false),
        ("sort by length and makeblastdb here", false),
    ];
    let series = names.into_iter().zip(lines).map(|((name, paper), points)| {
        let name = if paper { format!("paper, {name}") } else { name.to_owned() };
        ChartSeries { name, paper, points }
    });
    Outcome {
        sections: vec![fitted, predicted, seconds, growth, sorted, disks, rates],
        differs,
        chart: Chart::Lines {
            title: "Formatting a database by its size".into(),
            axes: ["MB, of a machine with 2 GB".into(), "seconds".into()],
            series: series.collect(),
        },
    }
}

fn reasons(reorder: &Reorder, disk: &Speed, ssd: &Speed) -> Vec<String> {
    vec![
        "makeblastdb keeps the order of its input and reads it once, so the growth of the table's hard disks, whose reason is formatdb's reorder by length, does not exist with it. The reorder is shown as a sort by length before it, which reads and writes in order, too.".to_owned(),
        format!(
            "The disks of the first two tables and of \"hard disk over SSD\" are modelled ({} and {}): a random read takes {:.1} and {:.3} ms, reads in order {:.0} and {:.0} MB/s, writes {:.0} and {:.0} MB/s. Seconds that are measured are of this machine's own disk.",
            reorder::DISK,
            reorder::SSD,
            disk.random_seconds * 1e3,
            ssd.random_seconds * 1e3,
            disk.read_rate / 1e6,
            ssd.read_rate / 1e6,
            disk.write_rate / 1e6,
            ssd.write_rate / 1e6,
        ),
        format!(
            "Fitted: {:.0} MB of the 2 GB keep the database, and beyond them one read at a random place misses per {:.1} KB. With these two numbers and the time of a random read, the SSD's row is predicted. Four disks as RAID 0 read no faster for a program that waits for each read, so one is modelled.",
            reorder.cache_mb,
            reorder.gap_bytes / 1e3,
        ),
        "The SSD's times of the table include moving the data there from the disks (4.5.2).".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Speed = Speed { read_rate: 100e6, write_rate: 100e6, random_seconds: 0.012 };
    const SSD: Speed = Speed { read_rate: 500e6, write_rate: 250e6, random_seconds: 0.0002 };

    fn measured() -> Vec<FormatTimes> {
        let timed = |seconds| ProgramTime { seconds, processor_seconds: seconds };
        let one = |megabytes: f64| FormatTimes {
            megabytes,
            bytes: (megabytes * 1e5) as u64,
            format: timed(megabytes / 100.0),
            formatted_bytes: (megabytes * 1.2e5) as u64,
            sort: timed(megabytes / 1000.0),
            sort_read_bytes: (megabytes * 1e5) as u64,
            sort_written_bytes: (megabytes * 1e5) as u64,
            sorted: timed(megabytes / 100.0),
        };
        paper::FORMAT.iter().map(|(megabytes, ..)| one(*megabytes)).collect()
    }

    #[test]
    fn what_is_fitted_predicted_and_measured_is_apart() {
        let timed = ProgramTime { seconds: 2.0, processor_seconds: 2.0 };
        let dna = (100_000_000, timed, 25_000_000);
        let outcome = outcome(&measured(), dna, &[DISK, SSD], Vec::new());
        let [fitted, predicted, seconds, growth, sorted, disks, rates] = &outcome.sections[..]
        else {
            panic!("seven")
        };
        assert_eq!((fitted.rows.len(), predicted.rows.len()), (6, 6));
        assert_eq!(seconds.rows.len(), 18);
        // Ours is linear; the paper's quotients are those of the table.
        assert!(growth.rows.iter().all(|row| (row.ours.expect("ours") - 1.0).abs() < 1e-9));
        let last = |section: &OutcomeSection| section.rows.last().and_then(|row| row.paper);
        assert!((last(growth).expect("paper") - 1.24).abs() < 0.01);
        assert!((last(sorted).expect("paper") - 4.86).abs() < 0.01);
        // 4.7: 0.5 s for reading 50 MB, 0.6 for writing 60, and 5 of computing, against 0.1, 0.24 and 5.
        let without = disks.rows[1].ours.expect("ours");
        assert!((without - 6.1 / 5.34).abs() < 1e-9, "{without}");
        assert_eq!(rates.rows[1].ours, Some(50.0));
        assert_eq!(rates.rows[3].ours, Some(0.25));
        assert!(matches!(&outcome.chart, Chart::Lines { series, .. } if series.len() == 6));
    }
}
