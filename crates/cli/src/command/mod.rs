//! One file a subcommand: what it means (from [`crate::config`]) in, what happened out.

mod generate;
mod manual;
mod sort;
mod verify;

use crate::args::Command;
use crate::failure::Failure;
use crate::signals::Cancel;

/// Runs a subcommand to its end.
///
/// # Errors
/// Whatever keeps it from doing what was asked.
pub fn run(command: Command, cancel: &Cancel) -> Result<(), Failure> {
    match command {
        Command::Sort(typed) => sort::run(typed.try_into()?, cancel),
        Command::Verify(typed) => verify::run(typed.try_into()?, cancel),
        Command::Generate(typed) => generate::run(typed.try_into()?, cancel),
        Command::Completions(typed) => manual::completions(&typed),
        Command::Man(typed) => manual::pages(&typed),
        _ => Err("not yet".to_owned().into()),
    }
}
