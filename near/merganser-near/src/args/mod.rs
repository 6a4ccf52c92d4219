//! The command line as it was typed: one struct per subcommand, whose doc comments are the help.
//!
//! Nothing is checked here beyond its syntax. [`crate::config`] turns it into settings.

mod blast;
mod map;
mod pipeline;
mod serve;
mod ssdlet;

use clap::{Parser, Subcommand};

pub use blast::BlastArgs;
pub use map::{MapArgs, PartitionName, ProgramArgs, RawMatrix, RowOrder};
pub use pipeline::{PartitionsName, PieceName, PipelineArgs, StageArgs};
pub use serve::ServeArgs;
pub use ssdlet::{LanguageName, SsdletArgs, SsdletCommand};

/// Run programs near the data.
///
/// These commands belong to merganser: `merganser map` runs this program.
#[derive(Debug, Parser)]
#[command(name = "merganser-near", bin_name = "merganser", version, disable_help_subcommand = true)]
#[command(args_override_self = true, max_term_width = 100)]
pub struct NearLine {
    /// The subcommand.
    #[command(subcommand)]
    pub command: NearCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "parsed once a process")]
pub enum NearCommand {
    Map(MapArgs),
    Pipeline(PipelineArgs),
    Blast(BlastArgs),
    Ssdlet(SsdletArgs),
    Serve(ServeArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::NearLine;

    #[test]
    fn the_declaration_is_consistent() {
        NearLine::command().debug_assert();
    }
}
