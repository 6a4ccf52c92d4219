//! One file a subcommand: what it does.

mod cat;
mod info;
mod sort;
mod verify;

use merganser_shell::failure::Failure;
use merganser_shell::signals::Cancel;

use crate::args::{TableArgs, TableTask, TablesCommand};
use crate::config::TableSortConfig;

/// Runs a command to its end.
pub(crate) fn run(command: TablesCommand, cancel: &Cancel) -> Result<(), Failure> {
    let TablesCommand::Table(TableArgs { what }) = command;
    match what {
        TableTask::Sort(typed) => sort::run(&TableSortConfig::try_from(typed)?, cancel),
        TableTask::Cat(typed) => cat::run(&typed, cancel),
        TableTask::Info(typed) => info::run(&typed, cancel),
        TableTask::Verify(typed) => verify::run(&typed, cancel),
    }
}
