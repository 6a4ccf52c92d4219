//! The command of merganser that runs next to Hadoop's processes: `hadoop`.
//!
//! ```text
//!   args      what was typed        clap structs, whose comments are the help
//!   config    what it means         defaults, conflicts
//!   command   doing it              a folder a subcommand
//! ```

mod args;
mod command;
mod config;
mod sentences;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use merganser_shell::program::Program;

use args::{HadoopCommand, HadoopLine};

fn main() -> ExitCode {
    Program::<HadoopCommand> {
        parse: |words| HadoopLine::try_parse_from(words).map(|typed| typed.command),
        commands: HadoopLine::command,
        run: command::run,
        programs: None,
    }
    .main()
}
