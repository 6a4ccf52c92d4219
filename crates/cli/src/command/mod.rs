//! One file per subcommand. Each takes its settings from [`crate::config`] and returns its result.

mod advise;
mod array;
mod blast;
mod cat;
mod consume;
mod debug;
mod emulate;
#[cfg(test)]
mod examples;
mod export;
mod generate;
mod in_order;
mod info;
mod kept;
mod manual;
mod map;
mod materialize;
mod mount;
mod mounting;
mod nbd;
mod opened;
mod patience;
mod pipeline;
mod recover;
mod report;
mod reproduce;
mod result;
mod rows;
mod serve;
mod simulate;
mod sort;
mod ssdlet;
mod verify;

use crate::args::CliCommand;
use crate::failure::{Failure, notice};
use crate::signals::Cancel;

/// Runs a subcommand to its end.
///
/// # Errors
/// Any failure that keeps the command from its work.
pub fn run(command: CliCommand, cancel: &Cancel) -> Result<(), Failure> {
    match command {
        CliCommand::Sort(typed) => sort::run(&typed.try_into()?, cancel),
        CliCommand::Cat(typed) => cat::run(&typed.try_into()?, cancel),
        CliCommand::Mount(typed) => mount::run(typed.try_into()?, cancel),
        CliCommand::Export(typed) => export::run(typed.try_into()?, cancel),
        CliCommand::Materialize(typed) => materialize::run(&typed.try_into()?, cancel),
        CliCommand::Info(typed) => info::run(&typed.try_into()?),
        CliCommand::Verify(typed) => verify::run(&typed.try_into()?, cancel),
        CliCommand::Recover(typed) => recover::run(&typed),
        CliCommand::Map(typed) => map::run(&typed.try_into()?, cancel),
        CliCommand::Pipeline(typed) => pipeline::run(&typed.try_into()?, cancel),
        CliCommand::Blast(typed) => blast::run(&typed.try_into()?, cancel),
        CliCommand::Generate(typed) => generate::run(typed.try_into()?, cancel),
        CliCommand::Advise(typed) => {
            let assumed = crate::config::assumed_of_job(&typed);
            let config = typed.try_into()?;
            assumed.iter().for_each(|sentence| notice(sentence));
            advise::run(&config)
        }
        CliCommand::Ssdlet(typed) => ssdlet::run(&typed.try_into()?),
        CliCommand::Array(typed) => array::run(typed.try_into()?, cancel),
        CliCommand::Serve(typed) => serve::run(typed.try_into()?, cancel),
        CliCommand::Simulate(typed) => simulate::run(&typed.try_into()?, cancel),
        CliCommand::Emulate(typed) => emulate::run(&typed.try_into()?, cancel),
        CliCommand::Reproduce(typed) => reproduce::run(&typed.try_into()?, cancel),
        CliCommand::Completions(typed) => manual::completions(&typed),
        CliCommand::Man(typed) => manual::pages(&typed),
    }
}
