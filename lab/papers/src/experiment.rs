//! The list of experiments.

use std::sync::Arc;

use merganser_sort::Progress;

use crate::error::ExperimentError;
use crate::lab::{Caller, ExperimentSetup, Lab};
use crate::machine::MeasuredMachine;
use crate::outcome::Outcome;
use crate::report::ExperimentReport;
use crate::{activesort, hcdd, isc, ssd, triton};

/// The changes of its modelled device that an experiment takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeviceChanges {
    /// It has no modelled device, or compares several with their own figures.
    Nothing,
    /// Parameters.
    Parameters,
    /// Parameters, or the whole device.
    Device,
}

/// An experiment of a paper.
pub struct Experiment {
    /// Its name, as a user types it.
    pub name: &'static str,
    /// What it measures, in one line.
    pub about: &'static str,
    /// The source of the paper's figures.
    pub source: &'static str,
    device: DeviceChanges,
    steps: fn(&Lab<'_>) -> Result<Outcome, ExperimentError>,
}

impl Experiment {
    /// Whether the parameters of its device can be changed ([`ExperimentSetup::settings`]).
    #[must_use]
    pub fn takes_settings(&self) -> bool {
        self.device != DeviceChanges::Nothing
    }

    /// Whether another SSD can take the place of its device ([its field](field@ExperimentSetup::device)).
    #[must_use]
    pub fn takes_device(&self) -> bool {
        self.device == DeviceChanges::Device
    }

    /// Runs it on this machine.
    ///
    /// # Errors
    /// [`ExperimentError::Cancelled`] after `progress` asked for the end, and what goes wrong in the
    /// experiment.
    pub fn run(
        &self,
        setup: &ExperimentSetup,
        progress: &dyn Progress,
        caller: &Arc<dyn Caller>,
    ) -> Result<ExperimentReport, ExperimentError> {
        let machine = MeasuredMachine::here(&setup.dir);
        let outcome = (self.steps)(&Lab { setup, machine: &machine, progress, caller })?;
        let Experiment { name, about, source, .. } = *self;
        Ok(ExperimentReport { name, about, source, machine, outcome })
    }
}

/// All experiments, in the order in which they are listed.
pub fn list() -> &'static [Experiment] {
    &EXPERIMENTS
}

const EXPERIMENTS: [Experiment; 15] = [
    Experiment {
        name: "triton-internal-sort",
        about: "radix tag sort against quicksort in memory, 100 to 1,600 MB, one core",
        source: "TritonSort, Tables 8 and 9",
        device: DeviceChanges::Nothing,
        steps: triton::internal_sort::run,
    },
    Experiment {
        name: "triton-disk",
        about: "1 to 512 files written at once and read again, by four writers, one disk",
        source: "TritonSort, Tables 10 and 11",
        device: DeviceChanges::Nothing,
        steps: triton::many_files::run,
    },
    Experiment {
        name: "ssd-validate",
        about: "modelled SSDs and disks against published figures and closed forms",
        source: "ActiveSort 5.2; DiskSim's SSD extension; data sheets; queueing and collection formulas",
        device: DeviceChanges::Nothing,
        steps: ssd::validate::run,
    },
    Experiment {
        name: "ssd-buffer",
        about: "a write buffer of lists a package against LRU, by size and parallelism",
        source: "McSD/HcDD dissertation, Figures 5.6 to 5.9 and Table 5.2",
        device: DeviceChanges::Parameters,
        steps: ssd::buffer::run,
    },
    Experiment {
        name: "hcdd-dedup",
        about: "writes that a hybrid volume removes, and bytes and erases that it saves, by duplicates",
        source: "McSD/HcDD dissertation, Figure 5.10 and Table 5.2",
        device: DeviceChanges::Parameters,
        steps: hcdd::dedup::run,
    },
    Experiment {
        name: "hcdd-time",
        about: "all responses of a hybrid volume, of SSDs and of disks together",
        source: "McSD/HcDD dissertation, Figures 5.11 and 5.13",
        device: DeviceChanges::Parameters,
        steps: hcdd::time::run,
    },
    Experiment {
        name: "hcdd-response",
        about: "mean responses of the same; and where a buffer of disks pays today",
        source: "McSD/HcDD dissertation, Figures 5.12 and 5.14",
        device: DeviceChanges::Parameters,
        steps: hcdd::response::run,
    },
    Experiment {
        name: "activesort-throughput",
        about: "reading a merge made inside a modelled SSD, against the size of records",
        source: "ActiveSort, Figure 8 and 3.2.3",
        device: DeviceChanges::Device,
        steps: activesort::throughput::run,
    },
    Experiment {
        name: "activesort-sort",
        about: "ActiveSort, merge sort and quicksort of 2 GB on a modelled SSD and host",
        source: "ActiveSort, Figure 9 and Table 3",
        device: DeviceChanges::Device,
        steps: activesort::sort::run,
    },
    Experiment {
        name: "activesort-channels",
        about: "skipping busy channels of a modelled SSD against waiting for them",
        source: "ActiveSort, 4.1.3",
        device: DeviceChanges::Device,
        steps: activesort::channels::run,
    },
    Experiment {
        name: "isc-breakdown",
        about: "a map task inside a modelled SSD, in Hadoop, and on the host: where time goes",
        source: "In-Storage Computing for Hadoop, Figure 10",
        device: DeviceChanges::Parameters,
        steps: isc::breakdown::run,
    },
    Experiment {
        name: "isc-elapsed",
        about: "word counts of 1 to 8 GB on one node with one and two devices: time",
        source: "In-Storage Computing for Hadoop, Figures 9, 11 and 12a",
        device: DeviceChanges::Parameters,
        steps: isc::elapsed::run,
    },
    Experiment {
        name: "isc-resources",
        about: "the same: processor, reads and memory of the host",
        source: "In-Storage Computing for Hadoop, Figures 13 and 14",
        device: DeviceChanges::Parameters,
        steps: isc::resources::run,
    },
    Experiment {
        name: "isc-nodes",
        about: "word counts of 2 to 16 GB on one to four nodes: time",
        source: "In-Storage Computing for Hadoop, Figure 15",
        device: DeviceChanges::Parameters,
        steps: isc::nodes::run,
    },
    Experiment {
        name: "isc-energy",
        about: "the same: energy and power, modelled",
        source: "In-Storage Computing for Hadoop, Figures 12b and 16",
        device: DeviceChanges::Parameters,
        steps: isc::energy::run,
    },
];
