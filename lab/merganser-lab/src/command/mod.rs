//! One folder or file per subcommand. Each takes its settings from [`crate::config`] and returns its result.

mod emulate;
#[cfg(test)]
mod examples;
mod reproduce;
mod simulate;

use merganser_shell::failure::Failure;
use merganser_shell::signals::Cancel;

use crate::args::LabCommand;

/// Runs a subcommand to its end.
///
/// # Errors
/// Any failure that keeps the command from its work.
pub(crate) fn run(command: LabCommand, cancel: &Cancel) -> Result<(), Failure> {
    match command {
        LabCommand::Simulate(typed) => simulate::run(&typed.try_into()?, cancel),
        LabCommand::Emulate(typed) => emulate::run(&typed.try_into()?, cancel),
        LabCommand::Reproduce(typed) => reproduce::run(&typed.try_into()?, cancel),
    }
}
