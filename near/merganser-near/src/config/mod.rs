//! The meaning of the arguments.
//!
//! The one conversion from [`crate::args`]: defaults are filled in, conflicts are found, and every
//! refusal names the flag. The types here have no options left that contradict one another.

mod blast;
mod map;
mod pipeline;
mod serve;
mod ssdlet;

pub(crate) use blast::{BlastConfig, VOLUME};
pub(crate) use map::{Choice, MapConfig, MapProgram, Nodes, ProgramName};
pub(crate) use pipeline::PipelineConfig;
pub(crate) use serve::{CallsConfig, NodeConfig, ServeConfig};
pub(crate) use ssdlet::SsdletCheck;
pub(crate) use ssdlet::SsdletConfig;

#[cfg(test)]
mod tests {
    use clap::Parser;
    use merganser_shell::failure::Failure;

    use super::*;
    use crate::args::{NearCommand, NearLine};

    /// The command of these words.
    pub(super) fn config(words: &[&str]) -> NearCommand {
        let words = [&["merganser"], words].concat();
        NearLine::try_parse_from(words).expect("parses").command
    }

    /// The sentence of the refusal of these words.
    pub(super) fn refusal(words: &[&str]) -> String {
        let refused = match config(words) {
            NearCommand::Map(typed) => MapConfig::try_from(typed).err(),
            NearCommand::Pipeline(typed) => PipelineConfig::try_from(typed).err(),
            NearCommand::Blast(typed) => BlastConfig::try_from(typed).err(),
            NearCommand::Ssdlet(typed) => SsdletConfig::try_from(typed).err(),
            NearCommand::Serve(typed) => ServeConfig::try_from(typed).err(),
        };
        refused.as_ref().and_then(Failure::sentence).expect("refused").to_owned()
    }
}
