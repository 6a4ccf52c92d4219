//! One file per subcommand. Each takes its settings from [`crate::config`] and returns its result.

mod cat;
mod consume;
mod count;
mod debug;
#[cfg(test)]
mod examples;
mod export;
mod generate;
mod info;
mod manual;
mod materialize;
mod mount;
mod recover;
mod result;
mod sort;
mod space;
mod verify;

use merganser_shell::failure::Failure;
use merganser_shell::signals::Cancel;

use crate::args::CliCommand;

/// Runs a subcommand to its end.
///
/// # Errors
/// Any failure that keeps the command from its work.
pub(crate) fn run(command: CliCommand, cancel: &Cancel) -> Result<(), Failure> {
    match command {
        CliCommand::Sort(typed) => sort::run(&typed.try_into()?, cancel),
        CliCommand::Count(typed) => count::run(&typed.try_into()?, cancel),
        CliCommand::Cat(typed) => cat::run(&typed.try_into()?, cancel),
        CliCommand::Mount(typed) => mount::run(typed.try_into()?, cancel),
        CliCommand::Export(typed) => export::run(typed.try_into()?, cancel),
        CliCommand::Materialize(typed) => materialize::run(&typed.try_into()?, cancel),
        CliCommand::Info(typed) => info::run(&typed.try_into()?),
        CliCommand::Verify(typed) => verify::run(&typed.try_into()?, cancel),
        CliCommand::Recover(typed) => recover::run(&typed),
        CliCommand::Generate(typed) => generate::run(typed.try_into()?, cancel),
        CliCommand::Completions(typed) => manual::completions(&typed),
        CliCommand::Man(typed) => manual::pages(&typed),
    }
}
