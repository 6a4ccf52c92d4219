//! The command `merganser`: sorts data that does not fit in memory, into a file or a sorted view.
//!
//! ```text
//!   args      what was typed        clap structs, whose comments are the help
//!   config    what it means         defaults, conflicts
//!   command   doing it              one file a subcommand, over the engine
//!   sentences what failed, with the flags and commands that help
//!   help      `merganser help COMMAND`, `merganser version`
//!   wings     commands that other programs have: they are run from the folder of this one
//!   tables    inputs that such a program reads
//! ```
//!
//! What it shares with these programs is in `merganser_shell`.

mod advised;
mod args;
mod command;
mod config;
mod generate;
mod help;
mod sentences;
mod tables;
mod temp_folder;
mod wings;

use std::process::ExitCode;

use clap::CommandFactory;
use merganser_shell::failure;
use merganser_shell::program::Program;

use args::{CliCommand, CommandLine};

fn main() -> ExitCode {
    let mut words: Vec<_> = std::env::args_os().collect();
    if words.first().is_some_and(|program| args::is_sort(program)) {
        failure::call("sort");
    } else {
        help::asked(&mut words);
        if let Some(of_table) = tables::words(&words, CommandLine::command) {
            words = of_table;
        }
        if let Some(ended) = wings::run(&words) {
            return ended;
        }
    }
    Program::<CliCommand> {
        parse: |mut words| {
            help::asked(&mut words);
            CommandLine::of_words(words).map(|typed| typed.command)
        },
        commands: CommandLine::command,
        run: command::run,
        programs: Some(wings::installed),
    }
    .main()
}
