//! TritonSort 6.2, Tables 10 and 11: many files written at once on one disk, by writers that differ in
//! how they keep what waits, and read one after the other.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use merganser_sort::trial::{StoreTimes, StoreTrial, WritePolicy};
use merganser_storage::file::FileDirectory;
use merganser_storage::{Directory, Storage};

use crate::error::ExperimentError;
use crate::folder::ScratchFolder;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use crate::statistics::median;
use merganser_pages::{Chart, ChartSeries};

/// Without `--size`.
const BYTES: u64 = 1_000_000_000;
/// Without `--memory`: the pool is so small a part of the data.
const POOL_SHARE: u64 = 16;
/// But not smaller, in bytes: buffers of two blocks for each of 512 files.
const POOL_BYTES_MIN: u64 = 8 << 20;
/// Bytes per append: about as many as a batch of many buckets has for one bucket.
const APPEND_BYTES: usize = 8192;
/// Of one read of a file that went through the page cache.
const READ_BYTES: usize = 1 << 20;

/// Table 10 and Table 11: files, then MB/s of buffered, double direct and dynamic direct, written and
/// read.
const PAPER: [(usize, [f64; 3], [f64; 3]); 10] = [
    (1, [57.0, 100.0, 100.0], [65.2, 68.7, 54.9]),
    (2, [62.3, 98.1, 98.0], [49.1, 67.9, 52.8]),
    (4, [92.4, 95.7, 95.7], [47.6, 66.0, 46.4]),
    (8, [90.4, 92.8, 92.5], [48.5, 67.6, 39.9]),
    (16, [89.5, 91.7, 91.7], [47.0, 64.3, 43.0]),
    (32, [87.4, 86.3, 86.7], [45.9, 62.7, 80.8]),
    (64, [84.8, 81.6, 83.2], [45.3, 61.8, 76.6]),
    (128, [80.9, 65.8, 79.8], [43.5, 59.5, 71.3]),
    (256, [76.0, 67.5, 76.3], [45.6, 58.4, 67.7]),
    (512, [62.3, 63.8, 72.2], [48.4, 55.9, 63.9]),
];

/// A writer, and which column of the paper's tables it is held against.
struct ComparedWriter {
    name: &'static str,
    column: Option<usize>,
    /// `None` leaves it all to the page cache.
    policy: Option<WritePolicy>,
}

const WRITERS: [ComparedWriter; 4] = [
    ComparedWriter { name: "buffered", column: Some(0), policy: None },
    ComparedWriter { name: "double direct", column: Some(1), policy: Some(WritePolicy::Double) },
    ComparedWriter { name: "dynamic direct", column: Some(2), policy: Some(WritePolicy::Demand) },
    ComparedWriter {
        name: "dynamic, round-robin",
        column: None,
        policy: Some(WritePolicy::RoundRobin),
    },
];
const DOUBLE: usize = 1;
const DYNAMIC: usize = 2;

/// One number of files: what each writer did, MB/s written and read, and the mean stretch in bytes.
struct FileCountSpeeds {
    files: usize,
    write: [f64; WRITERS.len()],
    read: [f64; WRITERS.len()],
    stretch: [f64; WRITERS.len()],
}

/// Measures all writers at every number of files of the paper, or at those asked for.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let bytes = lab.setup.size_bytes.unwrap_or(BYTES);
    let pool_bytes = lab.setup.pool_bytes.unwrap_or((bytes / POOL_SHARE).max(POOL_BYTES_MIN));
    let files = match &lab.setup.files[..] {
        [] => PAPER.iter().map(|(files, ..)| *files).collect(),
        asked => asked.to_vec(),
    };
    let folder = ScratchFolder::new(lab)?;
    let measured = files
        .iter()
        .map(|files| measure(lab, folder.path(), *files, bytes, pool_bytes))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(outcome(&measured, bytes, pool_bytes))
}

fn measure(
    lab: &Lab<'_>,
    folder: &Path,
    files: usize,
    bytes: u64,
    pool_bytes: u64,
) -> Result<FileCountSpeeds, ExperimentError> {
    let mut measured = FileCountSpeeds {
        files,
        write: Default::default(),
        read: Default::default(),
        stretch: Default::default(),
    };
    let mut rounds = [const { Vec::new() }; WRITERS.len()];
    for _ in 0..lab.setup.rounds.unwrap_or(1) {
        for (writer, times) in WRITERS.iter().zip(&mut rounds) {
            lab.check_cancelled()?;
            lab.progress.phase(writer.name, Some(2 * bytes));
            times.push(match writer.policy {
                Some(policy) => {
                    let trial = StoreTrial {
                        buckets: files,
                        bytes,
                        pool_bytes: pool_bytes as usize,
                        append_bytes: APPEND_BYTES,
                        policy,
                    };
                    stored(lab, folder, trial)?
                }
                None => buffered(lab, folder, files, bytes)?,
            });
        }
    }
    for (i, times) in rounds.iter().enumerate() {
        let rate = |seconds: fn(&StoreTimes) -> f64| {
            median(times.iter().map(|t| t.bytes as f64 / 1e6 / seconds(t)).collect())
        };
        measured.write[i] = rate(|times| times.write_seconds);
        measured.read[i] = rate(|times| times.read_seconds);
        let stretches = times.iter().map(|t| t.bytes as f64 / t.extents.max(1) as f64);
        measured.stretch[i] = median(stretches.collect());
    }
    Ok(measured)
}

/// The engine's own store, under one of its policies.
fn stored(lab: &Lab<'_>, folder: &Path, trial: StoreTrial) -> Result<StoreTimes, ExperimentError> {
    let disk = FileDirectory::open(folder).and_then(|folder| folder.create_unnamed());
    let disk: Arc<dyn Storage> = disk.map_err(ExperimentError::Storage)?;
    Ok(trial.run(&[disk], lab.progress)?)
}

/// A program that relies on the page cache: one file per bucket, each append written at
/// once, all synced at the end.
fn buffered(
    lab: &Lab<'_>,
    folder: &Path,
    files: usize,
    bytes: u64,
) -> Result<StoreTimes, ExperimentError> {
    let path = |number: usize| folder.join(number.to_string());
    let failed = |error: io::Error| ExperimentError::on(folder, error);
    let part: Vec<u8> = (0..APPEND_BYTES).map(|i| ((i * 193) >> 3) as u8).collect();
    let started = Instant::now();
    let made = (0..files).map(|number| File::create(path(number)));
    let mut made = made.collect::<io::Result<Vec<_>>>().map_err(failed)?;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for append in 0..bytes / APPEND_BYTES as u64 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        made[(random >> 11) as usize % files].write_all(&part).map_err(failed)?;
        if append % 512 == 0 {
            lab.check_cancelled()?;
        }
        lab.progress.advance(APPEND_BYTES as u64);
    }
    made.iter().try_for_each(File::sync_data).map_err(failed)?;
    let write_seconds = started.elapsed().as_secs_f64();
    for file in &made {
        // From the disk, not from the cache.
        let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    }
    drop(made);
    let mut read = 0;
    let mut out = vec![0; READ_BYTES];
    let started = Instant::now();
    for number in 0..files {
        let mut file = File::open(path(number)).map_err(failed)?;
        loop {
            lab.check_cancelled()?;
            let n = file.read(&mut out).map_err(failed)?;
            if n == 0 {
                break;
            }
            read += n as u64;
            lab.progress.advance(n as u64);
        }
    }
    let read_seconds = started.elapsed().as_secs_f64();
    for number in 0..files {
        fs::remove_file(path(number)).map_err(failed)?;
    }
    Ok(StoreTimes { bytes: read, write_seconds, read_seconds, extents: files })
}

fn outcome(measured: &[FileCountSpeeds], bytes: u64, pool_bytes: u64) -> Outcome {
    let mut write = OutcomeSection::new("written, MB/s (Table 10)");
    let mut read = OutcomeSection::new("read, MB/s (Table 11)");
    let mut quotient = OutcomeSection::new("dynamic direct, times as fast as double direct");
    let mut stretch = OutcomeSection::new("written at one place, KB in the mean");
    for FileCountSpeeds { files, write: written, read: reads, stretch: stretches } in measured {
        let paper = PAPER.iter().find(|(paper, ..)| paper == files);
        let row = |section: &mut OutcomeSection, rates: &[f64], table: Option<&[f64; 3]>| {
            for (ComparedWriter { name, column, .. }, rate) in WRITERS.iter().zip(rates) {
                let what = format!("{files} files, {name}");
                match column.and_then(|column| Some(table?[column])) {
                    Some(paper) => section.both(what, paper, *rate),
                    None => section.ours(what, *rate),
                }
            }
        };
        row(&mut write, written, paper.map(|(_, write, _)| write));
        row(&mut read, reads, paper.map(|(_, _, read)| read));
        for (what, rates, table) in [
            ("written", written, paper.map(|(_, write, _)| write)),
            ("read", reads, paper.map(|(_, _, read)| read)),
        ] {
            let what = format!("{files} files, {what}");
            let ours = rates[DYNAMIC] / rates[DOUBLE];
            match table {
                Some(table) => quotient.both(what, table[DYNAMIC] / table[DOUBLE], ours),
                None => quotient.ours(what, ours),
            }
        }
        for (ComparedWriter { name, policy, .. }, bytes) in WRITERS.iter().zip(stretches) {
            if policy.is_some() {
                stretch.ours(format!("{files} files, {name}"), bytes / 1e3);
            }
        }
    }
    let mut run = OutcomeSection::new("the run");
    run.ours("data, MB", bytes as f64 / 1e6);
    run.ours("memory of each writer but buffered, MB", pool_bytes as f64 / 1e6);

    let line = |writer: usize| ChartSeries {
        name: WRITERS[writer].name.to_owned(),
        paper: false,
        points: measured.iter().map(|m| (m.files as f64, m.write[writer])).collect(),
    };
    let papers = WRITERS.iter().filter_map(|writer| Some((writer.name, writer.column?)));
    let papers = papers.map(|(name, column)| ChartSeries {
        name: format!("the paper's {name}"),
        paper: true,
        points: PAPER.iter().map(|(files, rates, _)| (*files as f64, rates[column])).collect(),
    });
    let mut series: Vec<ChartSeries> = (0..WRITERS.len()).map(line).collect();
    series.iter_mut().for_each(|line| line.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    series.extend(papers);
    Outcome {
        sections: vec![write, read, quotient, stretch, run],
        differs: vec![
            "Theirs: one 500 GB SATA hard disk of 2009, and up to 24 GB of memory for buffers. Here: \
             one disk, and the memory that was given. What a seek costs is what the table is \
             about, so a disk without seeks shows little of it, unless it counts requests."
                .into(),
            "Double direct and the dynamic writers go past the page cache, so the data need not \
             exceed it. Buffered has the whole page cache as its buffer, which is more memory than \
             the others have unless this command runs in a group with less; its time includes the \
             sync, and the cache is dropped before it reads."
                .into(),
            "Buffered writes a file a bucket. The others write one file, in which a bucket is a list \
             of stretches: each write continues at the end of the last one, so seeks are \
             saved while writing, and reading a bucket has as many as it has stretches."
                .into(),
            "What is read is read with all requests of 16 MB in flight and the next 16 MB under way, \
             and its checksums are compared; theirs is read through one buffer. Buffered is read as \
             theirs."
                .into(),
            "Data comes as fast as one core makes it, in appends of 8 KiB to files drawn at random. \
             Theirs are means over four nodes, with spikes corrected by hand; ours are medians of \
             the rounds."
                .into(),
        ],
        chart: Chart::Lines {
            title: "Many files written at once".into(),
            axes: ["files".into(), "MB/s written".into()],
            series,
        },
    }
}
