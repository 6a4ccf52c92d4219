//! The command line as it was typed: one struct per subcommand, whose doc comments are the help.
//!
//! Nothing is checked here beyond its syntax. [`crate::config`] turns it into settings.

mod blast;
mod map;
mod pipeline;
mod serve;
mod ssdlet;

use clap::{Parser, Subcommand};

pub(crate) use blast::BlastArgs;
pub(crate) use map::{MapArgs, PartitionName, ProgramArgs, RawMatrix, RowOrder};
pub(crate) use pipeline::{PartitionsName, PieceName, PipelineArgs, StageArgs};
pub(crate) use serve::ServeArgs;
pub(crate) use ssdlet::{LanguageName, SsdletArgs, SsdletCommand};

/// Run programs near the data.
///
/// These commands belong to merganser: `merganser map` runs this program.
#[derive(Debug, Parser)]
#[command(name = "merganser-near", bin_name = "merganser", version, disable_help_subcommand = true)]
#[command(args_override_self = true, max_term_width = 100)]
pub(crate) struct NearLine {
    /// The subcommand.
    #[command(subcommand)]
    pub command: NearCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "parsed once a process")]
pub(crate) enum NearCommand {
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
