//! The command line as it was typed: one struct per subcommand, whose doc comments are the help.
//!
//! Nothing is checked here beyond its syntax. [`crate::config`] turns it into settings.

mod emulate;
mod reproduce;
mod simulate;
mod simulate_array;
mod trace;

use clap::{Parser, Subcommand};

pub(crate) use emulate::EmulateArgs;
pub(crate) use reproduce::ReproduceArgs;
pub(crate) use simulate::{
    ArrivalsName, DeviceArgs, Filled, PreconditionName, SimulateArgs, SimulateCommand,
    SimulateRatesArgs, SimulateRecordArgs, SimulateRunArgs, SimulateSortArgs, WorkloadName,
};
pub(crate) use simulate_array::{ArrangementName, SimulateArrayArgs};
pub(crate) use trace::{EventName, TraceArgs, TraceFormatName};

/// Model devices and repeat experiments.
///
/// These commands belong to merganser: `merganser simulate` runs this program.
#[derive(Debug, Parser)]
#[command(name = "merganser-lab", bin_name = "merganser", version, disable_help_subcommand = true)]
#[command(args_override_self = true, max_term_width = 100)]
pub(crate) struct LabLine {
    /// The subcommand.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "parsed once a process")]
pub(crate) enum LabCommand {
    Simulate(SimulateArgs),
    Emulate(EmulateArgs),
    Reproduce(ReproduceArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::LabLine;

    #[test]
    fn the_declaration_is_consistent() {
        LabLine::command().debug_assert();
    }
}
