//! The meaning of the arguments.
//!
//! The one conversion from [`crate::args`]: defaults are filled in, conflicts are found, and every
//! refusal names the flag. The types here have no options left that contradict one another.

mod advise;
mod array;
mod blast;
mod emulate;
mod export;
mod generate;
mod guest;
mod list;
mod map;
mod memory;
mod nbd;
mod order;
mod pipeline;
mod report;
mod reproduce;
mod serve;
mod simulate;
mod simulate_array;
mod sort;
mod ssdlet;
mod verify;
mod view;
mod workload;

pub use advise::{
    AdviseConfig, AdviseJob, AdviseMaps, AdviseOn, HadoopJob, TaskStart, assumed as assumed_of_job,
};
pub use array::{ArrayConfig, ArrayCreate, ArrayServe};
pub use blast::{BlastConfig, VOLUME};
pub use emulate::{BackingConfig, DoorConfig, EmulateConfig};
pub use export::ExportConfig;
pub use generate::GenerateConfig;
pub use map::{Choice, MapConfig, Nodes, Program, ProgramName};
pub use memory::machine_bytes;
pub use nbd::NbdConfig;
pub use order::{flags as order_flags, words as order_words};
pub use pipeline::PipelineConfig;
pub use report::{ReportConfig, ReportForm};
pub use reproduce::ReproduceConfig;
pub use serve::{CallsConfig, HdfsConfig, NodeConfig, ServeConfig, ShuffleConfig};
pub use simulate::{
    DeviceChoice, Load, Reading, RecordOf, SimulateConfig, SimulateRecord, SimulateRun,
    SimulateSort,
};
pub use simulate_array::SimulateArray;
pub use sort::{Destination, SortConfig, Sorting, Task};
#[cfg(feature = "wasm")]
pub use ssdlet::SsdletCheck;
pub use ssdlet::SsdletConfig;
pub use verify::{Subject, VerifyConfig};
pub use view::{CatConfig, InfoConfig, MaterializeConfig, MountConfig, Part, view_name};
pub use workload::{Made, StreamChoice};

use crate::args::Size;
use crate::failure::Failure;
use order::order;

/// The memory budget: as much as was asked for, or a share of the memory that is available.
fn memory_bytes(typed: Option<Size>) -> Result<u64, Failure> {
    match typed {
        Some(Size(0)) => Err("--memory: at least 1 byte".to_owned().into()),
        Some(Size(bytes)) => Ok(bytes),
        None => Ok(memory::default_bytes()),
    }
}

/// The number of threads: as many as were asked for, or one per processor.
fn threads(typed: Option<usize>) -> Result<usize, Failure> {
    match typed {
        Some(0) => Err("--threads: at least 1".to_owned().into()),
        Some(threads) => Ok(threads),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Command, Typed};

    /// The command of these words.
    pub fn config(words: &[&str]) -> Command {
        let words = [&["merganser"], words].concat();
        Typed::try_parse_from(words).expect("parses").command
    }

    /// The sentence of the refusal of these words.
    pub fn refusal(words: &[&str]) -> String {
        let refused = match config(words) {
            Command::Sort(typed) => SortConfig::try_from(typed).err(),
            Command::Cat(typed) => CatConfig::try_from(typed).err(),
            Command::Mount(typed) => MountConfig::try_from(typed).err(),
            Command::Export(typed) => ExportConfig::try_from(typed).err(),
            Command::Materialize(typed) => MaterializeConfig::try_from(typed).err(),
            Command::Verify(typed) => VerifyConfig::try_from(typed).err(),
            Command::Map(typed) => MapConfig::try_from(typed).err(),
            Command::Pipeline(typed) => PipelineConfig::try_from(typed).err(),
            Command::Blast(typed) => BlastConfig::try_from(typed).err(),
            Command::Generate(typed) => GenerateConfig::try_from(typed).err(),
            Command::Simulate(typed) => SimulateConfig::try_from(typed).err(),
            Command::Reproduce(typed) => ReproduceConfig::try_from(typed).err(),
            Command::Emulate(typed) => EmulateConfig::try_from(typed).err(),
            Command::Serve(typed) => ServeConfig::try_from(typed).err(),
            Command::Ssdlet(typed) => SsdletConfig::try_from(typed).err(),
            Command::Array(typed) => ArrayConfig::try_from(typed).err(),
            Command::Info(typed) => InfoConfig::try_from(typed).err(),
            Command::Advise(typed) => AdviseConfig::try_from(typed).err(),
            Command::Recover(_) | Command::Completions(_) | Command::Man(_) => None,
        };
        refused.as_ref().and_then(Failure::sentence).expect("refused").to_owned()
    }
}
