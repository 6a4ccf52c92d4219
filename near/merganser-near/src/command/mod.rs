//! One folder or file per subcommand. Each takes its settings from [`crate::config`] and returns its result.

mod blast;
#[cfg(test)]
mod examples;
mod map;
mod pipeline;
mod serve;
mod ssdlet;

use merganser_shell::failure::Failure;
use merganser_shell::signals::Cancel;

use crate::args::NearCommand;

/// Runs a subcommand to its end.
///
/// # Errors
/// Any failure that keeps the command from its work.
pub(crate) fn run(command: NearCommand, cancel: &Cancel) -> Result<(), Failure> {
    match command {
        NearCommand::Map(typed) => map::run(&typed.try_into()?, cancel),
        NearCommand::Pipeline(typed) => pipeline::run(&typed.try_into()?, cancel),
        NearCommand::Blast(typed) => blast::run(&typed.try_into()?, cancel),
        NearCommand::Ssdlet(typed) => ssdlet::run(&typed.try_into()?),
        NearCommand::Serve(typed) => serve::run(typed.try_into()?, cancel),
    }
}
