//! The command of merganser that makes and serves volumes of hard disks and SSDs: `array`.
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

use args::{VolumeCommand, VolumeLine};

fn main() -> ExitCode {
    Program::<VolumeCommand> {
        parse: |words| VolumeLine::try_parse_from(words).map(|typed| typed.command),
        commands: VolumeLine::command,
        run: command::run,
        programs: None,
    }
    .main()
}
