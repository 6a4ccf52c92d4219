//! The commands of merganser that run programs near the data: `map`, `pipeline`, `blast`, `ssdlet`, `serve`.
//!
//! ```text
//!   args      what was typed        clap structs, whose comments are the help
//!   config    what it means         defaults, conflicts
//!   command   doing it              a folder or a file a subcommand
//! ```

mod args;
mod command;
mod config;
mod sentences;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use merganser_shell::program::Program;

use args::{NearCommand, NearLine};

fn main() -> ExitCode {
    Program::<NearCommand> {
        parse: |words| NearLine::try_parse_from(words).map(|typed| typed.command),
        commands: NearLine::command,
        run: command::run,
        programs: None,
    }
    .main()
}
