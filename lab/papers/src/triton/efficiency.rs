//! TritonSort 6.3 and 6.4, Tables 13 to 18, computed again from their inputs (Table 12), with the
//! metrics that 4.4.2 takes from Anderson and Tucek; and the same metrics of a sort on this machine,
//! its disk's speed measured in the same run.

use super::disk_speed;
use super::systems::{DEMSORT, GRAY, HADOOP, MINUTE, PublishedSort, TRITONSORT};
use super::whole_sort::WholeSort;
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use crate::statistics::median;
use merganser_pages::Chart;

/// Without `--size`.
const BYTES: u64 = 1_000_000_000;
/// As much of the disk's speed is measured.
const DISK_BYTES_MAX: u64 = 1 << 30;

/// Table 13: MB/s, a node, a core, a disk; and the exponent of bytes/s/$, which is an input.
const TABLE_13: [([f64; 4], f64); 5] = [
    ([46040.5, 11.5, 1.4, 1.0], 3.5),
    ([17094.0, 4.7, 0.6, 1.2], 3.2),
    ([9633.9, 2.8, 0.3, 0.7], 3.2),
    ([9409.1, 48.3, 6.0, 12.1], 4.1),
    ([9691.8, 206.2, 25.8, 12.9], 4.4),
];
/// Table 14: percent of DEMSort's, a node, a core, a disk, a dollar.
const TABLE_14: [[f64; 4]; 5] = [
    [23.9, 23.9, 8.0, 25.1],
    [9.7, 9.7, 9.7, 12.6],
    [5.8, 5.8, 5.8, 12.6],
    [100.0, 100.0, 100.0, 100.0],
    [427.4, 427.4, 106.8, 199.5],
];

/// A comparison of Tritonsort with another system: Tables 15 to 18.
struct Comparison {
    table: &'static str,
    triton: PublishedSort,
    other: PublishedSort,
    /// MB/s of both.
    throughput: [f64; 2],
    /// Tritonsort's share of the other's nodes, cores and disks.
    ratios: [f64; 3],
    /// Of cores and disks.
    efficiency: [f64; 2],
    /// Of cost, and the exponents of bytes/s/$ that it is computed from. Table 18's is illegible.
    cost: Option<(f64, [f64; 2])>,
}

const COMPARISONS: [Comparison; 4] = [
    Comparison {
        table: "Table 15, Gray Sort, Tritonsort against DEMSort",
        triton: GRAY[TRITONSORT],
        other: GRAY[DEMSORT],
        throughput: [9691.8, 9409.1],
        ratios: [0.241, 0.241, 0.964],
        efficiency: [4.275, 1.069],
        cost: Some((1.995, [4.4, 4.1])),
    },
    Comparison {
        table: "Table 16, Gray Sort, Tritonsort against Hadoop",
        triton: GRAY[TRITONSORT],
        other: GRAY[HADOOP],
        throughput: [9691.8, 9633.9],
        ratios: [0.0136, 0.0136, 0.0545],
        efficiency: [73.66, 18.41],
        cost: Some((15.85, [4.4, 3.2])),
    },
    Comparison {
        table: "Table 17, Minute Sort, Tritonsort against DEMSort",
        triton: MINUTE[2],
        other: MINUTE[1],
        throughput: [17482.8, 15916.7],
        ratios: [0.267, 0.267, 1.067],
        efficiency: [4.12, 1.03],
        cost: Some((1.92, [4.6, 4.3])),
    },
    Comparison {
        table: "Table 18, Minute Sort, Tritonsort against Hadoop",
        triton: MINUTE[2],
        other: MINUTE[0],
        throughput: [17482.8, 8474.6],
        ratios: [0.0370, 0.0370, 0.1479],
        efficiency: [55.78, 13.94],
        cost: None,
    },
];

/// Throughput a node, a core and a disk, in MB/s.
fn relative(system: &PublishedSort) -> [f64; 3] {
    [system.nodes, system.cores, system.disks].map(|count| system.throughput() / count)
}

/// Computes all tables, and measures a sort.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let mut work = WholeSort::new(lab)?;
    let bytes = work.generate(lab.setup.size_bytes.unwrap_or(BYTES))?;
    let rounds = lab.setup.rounds.unwrap_or(1);
    let sorts = (0..rounds).map(|_| work.sort()).collect::<Result<Vec<_>, _>>()?;
    let seconds = median(sorts.iter().map(|sort| sort.seconds).collect());
    let moved = median(sorts.iter().map(|sort| sort.device_bytes as f64).collect());
    let speed = disk_speed::measure(lab, work.folder(), bytes.min(DISK_BYTES_MAX))?;
    drop(work);

    let here = PublishedSort {
        name: "here",
        nodes: 1.,
        cores: lab.machine.cores as f64,
        disks: 1.,
        megabytes: bytes as f64 / 1e6,
        seconds,
    };
    let mut sections = vec![table_13(&here, lab.setup.cost_dollars), table_14(&here)];
    sections.extend(COMPARISONS.iter().map(compare));
    let mut disk = OutcomeSection::new("here: the disk, in the same run as the sort");
    disk.ours("sorted, MB", here.megabytes);
    disk.ours("seconds", seconds);
    disk.ours("raw read, MB/s", speed.read / 1e6);
    disk.ours("raw write with sync, MB/s", speed.write / 1e6);
    disk.ours("bytes the sort read and wrote on the disk, over the data's", moved / bytes as f64);
    // Half of them read, half written, one after the other.
    let floor = moved / 2. / speed.read + moved / 2. / speed.write;
    disk.ours(
        "share of the disk used: seconds for those bytes at its speed, over the sort's",
        floor / seconds,
    );
    sections.push(disk);

    let mut bars: Vec<(String, f64, bool)> =
        GRAY.iter().map(|s| (format!("{}, a core", s.name), relative(s)[1], true)).collect();
    bars.push(("here, a core".to_owned(), relative(&here)[1], false));
    bars.extend(GRAY.iter().map(|s| (format!("{}, a disk", s.name), relative(s)[2], true)));
    bars.push(("here, a disk".to_owned(), relative(&here)[2], false));
    Ok(Outcome {
        sections,
        differs: vec![
            "\"Ours\" beside a paper's figure is its own formula applied to its own inputs; rows \
             named \"here\" are measured."
                .into(),
            "Theirs: clusters of 47 to 4,000 nodes that sort 100 TB and more through a network, from \
             hard disks. Here: one node, one disk, no network, a data set that may fit in the \
             disk's cache. Only the orders of magnitude compare."
                .into(),
            "efficiency of cores and disks is the ratio of total throughputs over the ratio of \
             hardware, as the tables have it; the formula in 4.4.2 divides by the ratio of nodes \
             twice, and would give 17.7 instead of Table 15's 4.275."
                .into(),
            "Table 16's efficiencies are 0.3 % below what its own counts and throughputs give; Table \
             17's cost efficiency is 1.995 by its own powers of ten; the text next to it says 18107 \
             MB/s where the table's data over time give 17482.8."
                .into(),
            "The share of the disk is of a disk that does one thing after another; one that reads and \
             writes at once can give more than 1."
                .into(),
            "Cost efficiencies are powers of ten that the paper estimates; they are inputs here. \
             Ours needs the price of this machine."
                .into(),
        ],
        chart: Chart::Bars {
            title: "Throughput of sorting".into(),
            unit: "MB/s".into(),
            bars,
        },
    })
}

fn table_13(here: &PublishedSort, cost_dollars: Option<f64>) -> OutcomeSection {
    let mut section = OutcomeSection::new("Table 13: MB/s; bytes/s/$");
    for (system, (paper, exponent)) in GRAY.iter().zip(&TABLE_13) {
        let [node, core, disk] = relative(system);
        let ours = [system.throughput(), node, core, disk];
        for ((what, paper), ours) in THROUGHPUTS.iter().zip(paper).zip(ours) {
            section.both(format!("{}, {what}", system.name), *paper, ours);
        }
        section.paper(format!("{}, a dollar (estimate)", system.name), 10f64.powf(*exponent));
    }
    let [node, core, disk] = relative(here);
    for (what, ours) in THROUGHPUTS.iter().zip([here.throughput(), node, core, disk]) {
        section.ours(format!("here, {what}"), ours);
    }
    if let Some(dollars) = cost_dollars {
        section.ours("here, a dollar", here.throughput() * 1e6 / dollars);
    }
    section
}

const THROUGHPUTS: [&str; 4] = ["all", "a node", "a core", "a disk"];

fn table_14(here: &PublishedSort) -> OutcomeSection {
    let mut section = OutcomeSection::new("Table 14: percent of DEMSort's");
    let base = relative(&GRAY[DEMSORT]);
    let percent = |system: &PublishedSort| {
        let own = relative(system);
        [0, 1, 2].map(|i| own[i] / base[i] * 100.)
    };
    for (i, (system, paper)) in GRAY.iter().zip(&TABLE_14).enumerate() {
        for ((what, paper), ours) in THROUGHPUTS[1..].iter().zip(paper).zip(percent(system)) {
            section.both(format!("{}, {what}", system.name), *paper, ours);
        }
        let dollar = 10f64.powf(TABLE_13[i].1 - TABLE_13[DEMSORT].1) * 100.;
        section.both(format!("{}, a dollar", system.name), paper[3], dollar);
    }
    for (what, ours) in THROUGHPUTS[1..].iter().zip(percent(here)) {
        section.ours(format!("here, {what}"), ours);
    }
    section
}

fn compare(comparison: &Comparison) -> OutcomeSection {
    let Comparison { table, triton, other, throughput, ratios, efficiency, cost } = comparison;
    let mut section = OutcomeSection::new(*table);
    let rates = [triton.throughput(), other.throughput()];
    for ((system, paper), rate) in [triton, other].iter().zip(throughput).zip(rates) {
        section.both(format!("{}, MB/s", system.name), *paper, rate);
    }
    let shares =
        [triton.nodes / other.nodes, triton.cores / other.cores, triton.disks / other.disks];
    for ((what, paper), ours) in ["nodes", "cores", "disks"].iter().zip(ratios).zip(shares) {
        section.both(format!("ratio of {what}"), *paper, ours);
    }
    for (i, what) in ["cores", "disks"].iter().enumerate() {
        let ours = rates[0] / rates[1] / shares[i + 1];
        section.both(format!("efficiency of {what}"), efficiency[i], ours);
    }
    if let Some((paper, [own, others])) = cost {
        section.both("efficiency of cost", *paper, 10f64.powf(own - others));
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Within the paper's rounding.
    fn near(paper: f64, ours: f64, tolerance: f64) {
        assert!((paper - ours).abs() <= tolerance, "{paper} in the paper, {ours} here");
    }

    #[test]
    fn the_papers_figures_follow_from_its_inputs() {
        for (system, (paper, _)) in GRAY.iter().zip(&TABLE_13) {
            near(paper[0], system.throughput(), 0.1);
            for (paper, ours) in paper[1..].iter().zip(relative(system)) {
                near(*paper, ours, 0.051);
            }
        }
        for c in &COMPARISONS {
            near(c.throughput[0], c.triton.throughput(), 0.1);
            near(c.throughput[1], c.other.throughput(), 0.1);
            near(c.ratios[0], c.triton.nodes / c.other.nodes, 0.0005);
            near(c.ratios[1], c.triton.cores / c.other.cores, 0.0005);
            near(c.ratios[2], c.triton.disks / c.other.disks, 0.0005);
        }
    }
}
