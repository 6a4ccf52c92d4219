//! The commands of merganser that model devices, repeat the experiments of papers and advise: `simulate`, `emulate`,
//! `reproduce`, `advise`.
//!
//! ```text
//!   args      what was typed        clap structs, whose comments are the help
//!   config    what it means         defaults, conflicts
//!   command   doing it              a folder or a file a subcommand
//! ```

mod args;
mod command;
mod config;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use merganser_shell::program::Program;

use args::{LabCommand, LabLine};

fn main() -> ExitCode {
    Program::<LabCommand> {
        parse: |words| LabLine::try_parse_from(words).map(|typed| typed.command),
        commands: LabLine::command,
        run: command::run,
        programs: None,
    }
    .main()
}
