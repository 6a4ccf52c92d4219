//! The Sort Benchmark's GraySort on this machine: TB per minute, and the papers' (Tables 15 and
//! 16).

use super::systems::{DEMSORT, GRAY, HADOOP, TRITONSORT};
use super::whole_sort::WholeSort;
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use crate::statistics::median;
use merganser_pages::Chart;

/// Without `--size`.
const BYTES: u64 = 1_000_000_000;

/// Sorts one data set.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let mut work = WholeSort::new(lab)?;
    let bytes = work.generate(lab.setup.size_bytes.unwrap_or(BYTES))?;
    let rounds = lab.setup.rounds.unwrap_or(1);
    let sorts = (0..rounds).map(|_| work.sort()).collect::<Result<Vec<_>, _>>()?;
    let seconds = median(sorts.iter().map(|sort| sort.seconds).collect());
    let rate = bytes as f64 / seconds;
    let terabytes_per_minute = rate * 60. / 1e12;

    let triton = &GRAY[TRITONSORT];
    let mut gray = OutcomeSection::new("GraySort, TB/min (Tables 15 and 16)");
    gray.both(
        "here, compared with Tritonsort's 47 nodes",
        triton.terabytes_per_minute(),
        terabytes_per_minute,
    );
    gray.paper("DEMSort, 195 nodes", GRAY[DEMSORT].terabytes_per_minute());
    gray.paper("Hadoop, 3,452 nodes", GRAY[HADOOP].terabytes_per_minute());
    let mut share = OutcomeSection::new("the same as MB/s, compared with Tritonsort's");
    let (cores, rate) = (lab.machine.cores as f64, rate / 1e6);
    share.both("a node", triton.throughput() / triton.nodes, rate);
    share.both("a core", triton.throughput() / triton.cores, rate / cores);
    share.both("a disk", triton.throughput() / triton.disks, rate);
    let mut run = OutcomeSection::new("the run");
    run.both("sorted, TB", triton.megabytes / 1e6, bytes as f64 / 1e12);
    run.both("seconds", triton.seconds, seconds);
    run.ours("memory of the sort, MB", lab.setup.memory_bytes as f64 / 1e6);
    let peak = sorts.iter().map(|sort| sort.peak_rss_bytes).max().unwrap_or(0);
    run.ours("peak memory, MB", peak as f64 / 1e6);
    let moved = median(sorts.iter().map(|sort| sort.device_bytes as f64).collect());
    run.ours("bytes read and written on the disk, over the data's", moved / bytes as f64);

    let mut bars: Vec<(String, f64, bool)> = [TRITONSORT, DEMSORT, HADOOP]
        .map(|i| (format!("{}, a node", GRAY[i].name), GRAY[i].throughput() / GRAY[i].nodes, true))
        .into();
    bars.push(("here, a node".to_owned(), rate, false));
    Ok(Outcome {
        sections: vec![gray, share, run],
        differs: vec![
            "Theirs: 47 nodes with 8 cores and 16 hard disks each, and a network between them. Here: \
             one node with one disk."
                .into(),
            "The rules ask for at least 100 TB, which takes hours; here the size is smaller, so this is no \
             entry to the benchmark. Data that fits into memory is sorted in one pass, which \
             GraySort's never is."
                .into(),
            "By its rules otherwise: the benchmark's own records, input and output are files, the \
             time is that of the whole process from start to end with the result synced, the \
             input is not in the page cache, and order and checksum are verified."
                .into(),
        ],
        chart: Chart::Bars { title: "GraySort, a node".into(), unit: "MB/s".into(), bars },
    })
}
