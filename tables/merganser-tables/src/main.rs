//! The commands of merganser on Parquet and Arrow: `table`.
//!
//! `merganser sort FILE.parquet` runs `table sort`, and `merganser cat` of a view of a table runs `table cat`.
//!
//! ```text
//!   args      what was typed        clap structs, whose comments are the help
//!   config    what it means         defaults, conflicts
//!   command   doing it              a file a subcommand
//! ```

mod args;
mod command;
mod config;
mod inputs;
mod output;
mod sentences;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use merganser_shell::program::Program;

use args::{TablesCommand, TablesLine};

fn main() -> ExitCode {
    Program::<TablesCommand> {
        parse: |words| TablesLine::try_parse_from(words).map(|typed| typed.command),
        commands: TablesLine::command,
        run: command::run,
        programs: None,
    }
    .main()
}
