//! The settings of `merganser simulate array`.

use merganser_array::Migration;
use merganser_device::hdd::HddProfile;
use merganser_device::profile::SsdProfile;
use merganser_papers::hcdd::{Arrangement, NodeSetup};
use merganser_shell::args::MigrationName;
use merganser_shell::failure::Failure;
use merganser_shell::input::Input;

use super::trace_reading::{TraceReading, reading};
use crate::args::{ArrangementName, SimulateArrayArgs};

/// The SSDs of the dissertation, whose write buffer the preset lacks.
const PAPER_SSD: &str = "msr";

/// Traces, and the node that serves them.
#[derive(Debug)]
pub(crate) struct SimulateArray {
    /// The node.
    pub setup: NodeSetup,
    /// The traces to play.
    pub traces: Vec<Input>,
    /// How they are read; the size of the volume is still to be filled in.
    pub reading: TraceReading,
    /// Share of writes that are duplicates, if the traces don't decide.
    pub duplicates: Option<f64>,
    /// Requests in flight, instead of the traces' own times.
    pub depth: Option<u32>,
    /// Data, not a table.
    pub json: bool,
}

/// Reads what was typed.
pub(super) fn simulate_array(typed: &SimulateArrayArgs) -> Result<SimulateArray, Failure> {
    let refuse = |why: String| Err(Failure::from(why));
    let arrangement = match typed.config {
        ArrangementName::Hcdd => Arrangement::Hcdd,
        ArrangementName::Hybrid => Arrangement::Hybrid,
        ArrangementName::Ssds => Arrangement::Ssds,
        ArrangementName::Hdds => Arrangement::Hdds,
    };
    let paper = NodeSetup::paper(arrangement).map_err(|error| Failure::from(error.to_string()))?;
    let mut ssd = match &*typed.ssd {
        PAPER_SSD => paper.ssd.clone(),
        name => SsdProfile::preset(name).map_err(|error| format!("--ssd: {error}"))?,
    };
    for change in &typed.set_ssd {
        ssd.set(change).map_err(|error| format!("--set-ssd {error}"))?;
    }
    let mut hdd = HddProfile::preset(&typed.hdd).map_err(|error| format!("--hdd: {error}"))?;
    for change in &typed.set_hdd {
        hdd.set(change).map_err(|error| format!("--set-hdd {error}"))?;
    }
    for (flag, number) in [("--ssds", typed.ssds), ("--hdds", typed.hdds)] {
        if !(1..=64).contains(&number) {
            return refuse(format!("{flag}: from 1 to 64, not {number}"));
        }
    }
    if !(1..=100).contains(&typed.high_water) {
        return refuse(format!("--high-water: from 1 to 100 percent, not {}", typed.high_water));
    }
    let buffer_bytes = typed.buffer_size.0;
    if buffer_bytes < 16 << 20 {
        return refuse(format!("--buffer-size: at least 16M, not {buffer_bytes} bytes"));
    }
    if let Some(percent) = typed.duplicates
        && !(0. ..=100.).contains(&percent)
    {
        return refuse(format!("--duplicates: from 0 to 100 percent, not {percent}"));
    }
    if typed.depth == Some(0) {
        return refuse("--depth: at least 1".to_owned());
    }
    let setup = NodeSetup {
        ssd,
        hdd,
        members: (typed.ssds, typed.hdds),
        buffer_bytes,
        migration: match typed.migration {
            MigrationName::Idle => Migration::Idle,
            MigrationName::Immediate => Migration::Immediate,
            MigrationName::HighWater => Migration::HighWater,
        },
        high_water_percent: typed.high_water,
        seed: typed.seed,
        ..paper
    };
    Ok(SimulateArray {
        setup,
        traces: typed.traces.iter().map(|path| Input::named(path)).collect(),
        reading: reading(&typed.reading)?,
        duplicates: typed.duplicates.map(|percent| percent / 100.),
        depth: typed.depth,
        json: typed.json,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::refusal;

    #[test]
    fn refusals_name_the_flag() {
        let words = ["simulate", "array", "--config", "hcdd", "--trace", "x"];
        let refused = |more: &[&str]| refusal(&[&words, more].concat());
        assert!(refused(&["--ssd", "cheetah"]).starts_with("--ssd: "));
        assert!(refused(&["--hdd", "nvme"]).starts_with("--hdd: "));
        assert!(refused(&["--set-ssd", "x=1"]).starts_with("--set-ssd "));
        assert_eq!(refused(&["--ssds", "0"]), "--ssds: from 1 to 64, not 0");
        assert!(refused(&["--buffer-size", "1M"]).starts_with("--buffer-size: at least 16M"));
        let percent = "--duplicates: from 0 to 100 percent, not 101";
        assert_eq!(refused(&["--duplicates", "101"]), percent);
        assert_eq!(refused(&["--depth", "0"]), "--depth: at least 1");
        assert!(refused(&["--high-water", "0"]).starts_with("--high-water: from 1"));
    }
}
