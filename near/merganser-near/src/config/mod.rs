//! The meaning of the arguments.
//!
//! The one conversion from [`crate::args`]: defaults are filled in, conflicts are found, and every
//! refusal names the flag. The types here have no options left that contradict one another.

mod blast;
mod map;
mod pipeline;
mod serve;
mod ssdlet;

pub use blast::{BlastConfig, VOLUME};
pub use map::{Choice, MapConfig, MapProgram, Nodes, ProgramName};
pub use pipeline::PipelineConfig;
pub use serve::{CallsConfig, NodeConfig, ServeConfig};
pub use ssdlet::SsdletCheck;
pub use ssdlet::SsdletConfig;

#[cfg(test)]
mod tests {
    use clap::Parser;
    use merganser_shell::failure::Failure;

    use super::*;
    use crate::args::{NearCommand, NearLine};

    /// The command of these words.
    pub fn config(words: &[&str]) -> NearCommand {
        let words = [&["merganser"], words].concat();
        NearLine::try_parse_from(words).expect("parses").command
    }

    /// The sentence of the refusal of these words.
    pub fn refusal(words: &[&str]) -> String {
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
