//! The command line as it was typed: one struct per subcommand, whose doc comments are the help.
//!
//! Nothing is checked here beyond its syntax. [`crate::config`] turns it into settings.

mod array;

use clap::{Parser, Subcommand};

pub(crate) use array::{
    ArrayArgs, ArrayCheckArgs, ArrayCommand, ArrayCreateArgs, ArrayInfoArgs, ArrayReportArgs,
    ArraySalvageArgs, ArrayServeArgs, HashName,
};

/// Make and serve volumes of hard disks and SSDs.
///
/// These commands belong to merganser: `merganser array` runs this program.
#[derive(Debug, Parser)]
#[command(
    name = "merganser-array",
    bin_name = "merganser",
    version,
    disable_help_subcommand = true
)]
#[command(args_override_self = true, max_term_width = 100)]
pub(crate) struct VolumeLine {
    /// The subcommand.
    #[command(subcommand)]
    pub command: VolumeCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "parsed once a process")]
pub(crate) enum VolumeCommand {
    Array(ArrayArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::VolumeLine;

    #[test]
    fn the_declaration_is_consistent() {
        VolumeLine::command().debug_assert();
    }
}
