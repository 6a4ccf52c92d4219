//! Experiments of the papers, repeated here: what the paper says, what we measure, and the ratio.
//!
//! ```text
//!   experiment ──► Outcome ──► table   for people: paper / ours / ratio, and what differs
//!   (one file)                ├► json   for programs
//!                             └► plot   SVG
//! ```
//!
//! An experiment is a file with a function `run` that takes a [`Lab`] and gives an [`Outcome`], and
//! a line in [`EXPERIMENTS`]. Figures of a paper stand in the experiment's file, with their table.

mod active_data;
mod active_host;
mod active_swap;
mod activesort_channels;
mod activesort_sort;
mod activesort_throughput;
mod disk;
mod efficiency;
mod gray_sort;
mod hadoop;
mod hadoop_elapsed;
mod hadoop_io;
mod hadoop_memory;
mod hadoop_nodes;
mod hadoop_reducers;
mod internal_sort;
mod machine;
mod minute_sort;
mod outcome;
mod plot;
mod quicksort;
mod ssd_buffer;
mod ssd_validate;
mod systems;
mod triton_disk;
mod whole_sort;

use sort::Progress;

pub use machine::Machine;
pub use outcome::{Outcome, Section};
pub use plot::{Plot, Series};

use crate::args::ExperimentName;
use crate::config::Setup;
use crate::failure::Failure;
use crate::signals::Cancel;

/// An experiment, by name.
pub struct Experiment {
    /// As it is typed.
    pub typed: ExperimentName,
    /// The same, as text.
    pub name: &'static str,
    /// What it measures, in a line.
    pub about: &'static str,
    /// Where the paper's figures are from.
    pub source: &'static str,
    /// Runs it.
    pub run: fn(&Lab<'_>) -> Result<Outcome, Failure>,
}

/// All experiments.
pub const EXPERIMENTS: [Experiment; 15] = [
    Experiment {
        typed: ExperimentName::TritonInternalSort,
        name: "triton-internal-sort",
        about: "radix tag sort against quicksort in memory, 100 to 1,600 MB, one core",
        source: "TritonSort, Tables 8 and 9",
        run: internal_sort::run,
    },
    Experiment {
        typed: ExperimentName::TritonDisk,
        name: "triton-disk",
        about: "1 to 512 files written at once and read again, by four writers, one disk",
        source: "TritonSort, Tables 10 and 11",
        run: triton_disk::run,
    },
    Experiment {
        typed: ExperimentName::TritonEfficiency,
        name: "triton-efficiency",
        about: "throughput per node, core, disk and dollar of large sorts, and of a sort here",
        source: "TritonSort, Tables 12 to 18",
        run: efficiency::run,
    },
    Experiment {
        typed: ExperimentName::MinuteSort,
        name: "minute-sort",
        about: "the most data that is sorted in a minute, from file to file",
        source: "TritonSort, Tables 17 and 18; Sort Benchmark, MinuteSort Indy",
        run: minute_sort::run,
    },
    Experiment {
        typed: ExperimentName::GraySort,
        name: "gray-sort",
        about: "TB sorted a minute, from file to file",
        source: "TritonSort, Tables 15 and 16; Sort Benchmark, GraySort Indy",
        run: gray_sort::run,
    },
    Experiment {
        typed: ExperimentName::SsdValidate,
        name: "ssd-validate",
        about: "modelled SSDs and disks against published figures and closed forms",
        source: "ActiveSort 5.2; DiskSim's SSD extension; data sheets; queueing and collection formulas",
        run: ssd_validate::run,
    },
    Experiment {
        typed: ExperimentName::SsdBuffer,
        name: "ssd-buffer",
        about: "a write buffer of lists a package against LRU, by size and parallelism",
        source: "McSD/HcDD dissertation, Figures 5.6 to 5.9 and Table 5.2",
        run: ssd_buffer::run,
    },
    Experiment {
        typed: ExperimentName::ActivesortThroughput,
        name: "activesort-throughput",
        about: "reading a merge made inside a modelled SSD, against the size of records",
        source: "ActiveSort, Figure 8 and 3.2.3",
        run: activesort_throughput::run,
    },
    Experiment {
        typed: ExperimentName::ActivesortSort,
        name: "activesort-sort",
        about: "ActiveSort, merge sort and quicksort of 2 GB on a modelled SSD and host",
        source: "ActiveSort, Figure 9 and Table 3",
        run: activesort_sort::run,
    },
    Experiment {
        typed: ExperimentName::ActivesortChannels,
        name: "activesort-channels",
        about: "skipping busy channels of a modelled SSD against waiting for them",
        source: "ActiveSort, 4.1.3",
        run: activesort_channels::run,
    },
    Experiment {
        typed: ExperimentName::HadoopElapsed,
        name: "hadoop-elapsed",
        about: "sorts and a join on Hadoop, stock and with deferred merges: time",
        source: "ActiveSort, Figure 10",
        run: hadoop_elapsed::run,
    },
    Experiment {
        typed: ExperimentName::HadoopIo,
        name: "hadoop-io",
        about: "the same: bytes read from and written to the disk of intermediate data",
        source: "ActiveSort, Figure 11",
        run: hadoop_io::run,
    },
    Experiment {
        typed: ExperimentName::HadoopMemory,
        name: "hadoop-memory",
        about: "a sort on Hadoop by the machine's memory",
        source: "ActiveSort, Figure 15",
        run: hadoop_memory::run,
    },
    Experiment {
        typed: ExperimentName::HadoopReducers,
        name: "hadoop-reducers",
        about: "TeraSort on Hadoop by the number of reducers, at once and in all",
        source: "ActiveSort, Figure 16",
        run: hadoop_reducers::run,
    },
    Experiment {
        typed: ExperimentName::HadoopNodes,
        name: "hadoop-nodes",
        about: "TeraSort on Hadoop by the number of nodes",
        source: "ActiveSort, Figure 17",
        run: hadoop_nodes::run,
    },
];

/// What an experiment works with.
pub struct Lab<'a> {
    /// How it was asked to run.
    pub setup: &'a Setup,
    /// Where it runs.
    pub machine: &'a Machine,
    /// Who is told how far it is.
    pub progress: &'a dyn Progress,
    /// Whether it is to end.
    pub cancel: &'a Cancel,
}

impl Lab<'_> {
    /// Fails once the end was asked for.
    fn go_on(&self) -> Result<(), Failure> {
        if self.cancel.is_set() { Err(Failure::Cancelled) } else { Ok(()) }
    }
}

/// The middle one; the lower of the two middle ones.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[(figures.len() - 1) / 2]
}

/// The arithmetic mean.
fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

#[cfg(test)]
mod tests {
    use super::{EXPERIMENTS, Machine, Outcome};

    /// An outcome as programs get it.
    pub fn json(outcome: &Outcome) -> serde_json::Value {
        let machine = Machine {
            processor: "a processor".into(),
            cores: 2,
            memory_bytes: 3 << 30,
            file_system: "ext4".into(),
            kernel: "6".into(),
        };
        outcome.json(&EXPERIMENTS[0], &machine)
    }
}
