//! The command line as it was typed: one struct per subcommand, whose doc comments are the help.
//!
//! Nothing is checked here beyond its syntax. [`crate::config`] turns it into settings.

mod advise;
mod serve;

use clap::{Args, Parser, Subcommand};

pub(crate) use advise::HadoopAdviseArgs;
pub(crate) use serve::HadoopServeArgs;

/// Run next to Hadoop's processes.
///
/// These commands belong to merganser: `merganser hadoop` runs this program.
#[derive(Debug, Parser)]
#[command(
    name = "merganser-hadoop",
    bin_name = "merganser",
    version,
    disable_help_subcommand = true
)]
#[command(args_override_self = true, max_term_width = 100)]
pub(crate) struct HadoopLine {
    /// The subcommand.
    #[command(subcommand)]
    pub command: HadoopCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "parsed once a process")]
pub(crate) enum HadoopCommand {
    Hadoop(HadoopArgs),
}

/// Run next to Hadoop: merge map outputs, map blocks, advise on settings
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # next to a NodeManager, and next to a DataNode
  merganser hadoop serve --shuffle /run/merganser/shuffle.sock --local-dir /data/1/yarn
  merganser hadoop serve --hdfs /run/merganser/map.sock --hdfs-data-dir /data/1/dfs
  merganser hadoop advise --dir /data/1/yarn       when map tasks of this node should defer
  merganser hadoop advise --job 10G --device 830   settings for a job on a modelled disk")]
pub(crate) struct HadoopArgs {
    /// What to do
    #[command(subcommand)]
    pub what: HadoopTask,
}

/// What follows `hadoop`.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "parsed once a process")]
pub(crate) enum HadoopTask {
    Serve(HadoopServeArgs),
    Advise(HadoopAdviseArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::HadoopLine;

    #[test]
    fn the_declaration_is_consistent() {
        HadoopLine::command().debug_assert();
    }
}
