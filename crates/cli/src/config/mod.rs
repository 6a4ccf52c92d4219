//! The meaning of the arguments.
//!
//! The one conversion from [`crate::args`]: defaults are filled in, conflicts are found, and every
//! refusal names the flag. The types here have no options left that contradict one another.

mod advise;
mod array;
mod blast;
mod destination;
mod door;
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
mod threads;
mod verify;
mod view;
mod workload;

pub use advise::{
    AdviseConfig, AdviseJob, AdviseMaps, AdviseOn, HadoopJob, TaskStart, assumed as assumed_of_job,
};
pub use array::{ArrayConfig, ArrayCreate, ArrayServe};
pub use blast::{BlastConfig, VOLUME};
pub use destination::{Destination, view_name};
pub use door::DoorConfig;
pub use emulate::{BackingConfig, EmulateConfig};
pub use export::ExportConfig;
pub use generate::GenerateConfig;
pub use map::{Choice, MapConfig, MapProgram, Nodes, ProgramName};
pub use memory::{machine_bytes, memory_bytes};
pub use nbd::NbdConfig;
pub use order::{flags as order_flags, words as order_words};
pub use pipeline::PipelineConfig;
pub use report::{ReportConfig, ReportForm};
pub use reproduce::ReproduceConfig;
pub use serve::{CallsConfig, HdfsConfig, NodeConfig, ServeConfig, ShuffleConfig};
pub use simulate::{
    DeviceChoice, PlayedLoad, RecordOf, SimulateConfig, SimulateRecord, SimulateRun, SimulateSort,
    TraceReading,
};
pub use simulate_array::SimulateArray;
pub use sort::{SortChoices, SortConfig, SortTask};
#[cfg(feature = "wasm")]
pub use ssdlet::SsdletCheck;
pub use ssdlet::SsdletConfig;
pub use verify::{VerifyConfig, VerifySubject};
pub use view::{CatConfig, CatPart, InfoConfig, MaterializeConfig, MountConfig};
pub use workload::{StreamChoice, SyntheticRequests};

use order::order;
pub use threads::threads;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{CliCommand, CommandLine};
    use crate::failure::Failure;

    /// The command of these words.
    pub fn config(words: &[&str]) -> CliCommand {
        let words = [&["merganser"], words].concat();
        CommandLine::try_parse_from(words).expect("parses").command
    }

    /// The sentence of the refusal of these words.
    pub fn refusal(words: &[&str]) -> String {
        let refused = match config(words) {
            CliCommand::Sort(typed) => SortConfig::try_from(typed).err(),
            CliCommand::Cat(typed) => CatConfig::try_from(typed).err(),
            CliCommand::Mount(typed) => MountConfig::try_from(typed).err(),
            CliCommand::Export(typed) => ExportConfig::try_from(typed).err(),
            CliCommand::Materialize(typed) => MaterializeConfig::try_from(typed).err(),
            CliCommand::Verify(typed) => VerifyConfig::try_from(typed).err(),
            CliCommand::Map(typed) => MapConfig::try_from(typed).err(),
            CliCommand::Pipeline(typed) => PipelineConfig::try_from(typed).err(),
            CliCommand::Blast(typed) => BlastConfig::try_from(typed).err(),
            CliCommand::Generate(typed) => GenerateConfig::try_from(typed).err(),
            CliCommand::Simulate(typed) => SimulateConfig::try_from(typed).err(),
            CliCommand::Reproduce(typed) => ReproduceConfig::try_from(typed).err(),
            CliCommand::Emulate(typed) => EmulateConfig::try_from(typed).err(),
            CliCommand::Serve(typed) => ServeConfig::try_from(typed).err(),
            CliCommand::Ssdlet(typed) => SsdletConfig::try_from(typed).err(),
            CliCommand::Array(typed) => ArrayConfig::try_from(typed).err(),
            CliCommand::Info(typed) => InfoConfig::try_from(typed).err(),
            CliCommand::Advise(typed) => AdviseConfig::try_from(typed).err(),
            CliCommand::Recover(_) | CliCommand::Completions(_) | CliCommand::Man(_) => None,
        };
        refused.as_ref().and_then(Failure::sentence).expect("refused").to_owned()
    }
}
