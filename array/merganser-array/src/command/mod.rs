//! One folder or file per subcommand. Each takes its settings from [`crate::config`] and returns its result.

mod array;
#[cfg(test)]
mod examples;

use merganser_shell::failure::Failure;
use merganser_shell::signals::Cancel;

use crate::args::VolumeCommand;

/// Runs a subcommand to its end.
///
/// # Errors
/// Any failure that keeps the command from its work.
pub(crate) fn run(command: VolumeCommand, cancel: &Cancel) -> Result<(), Failure> {
    match command {
        VolumeCommand::Array(typed) => array::run(typed.try_into()?, cancel),
    }
}
