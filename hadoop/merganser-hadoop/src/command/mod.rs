//! One folder per subcommand. Each takes its settings from [`crate::config`] and returns its result.

mod advise;
#[cfg(test)]
mod examples;
mod serve;

use merganser_shell::failure::{Failure, notice};
use merganser_shell::signals::Cancel;

use crate::args::{HadoopCommand, HadoopTask};

/// Runs a subcommand to its end.
///
/// # Errors
/// Any failure that keeps the command from its work.
pub(crate) fn run(command: HadoopCommand, cancel: &Cancel) -> Result<(), Failure> {
    let HadoopCommand::Hadoop(typed) = command;
    match typed.what {
        HadoopTask::Advise(typed) => {
            let assumed = crate::config::assumed_of_job(&typed);
            let config = typed.try_into()?;
            assumed.iter().for_each(|sentence| notice(sentence));
            advise::run(&config)
        }
        HadoopTask::Serve(typed) => serve::run(typed.try_into()?, cancel),
    }
}
