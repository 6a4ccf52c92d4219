//! The command `merganser`: sorts data that does not fit in memory, into a file or a sorted view.
//!
//! ```text
//!   args      what was typed        clap structs, whose comments are the help
//!   config    what it means         defaults, conflicts
//!   command   doing it              one file a subcommand, over the engine
//!   failure   telling how it ended  one sentence and an exit status
//!   crash     when it ends itself   panics and refused memory: the same
//! ```

mod advised;
mod apart;
mod args;
mod command;
mod config;
mod crash;
mod failure;
mod generate;
mod input;
mod output;
mod progress;
mod removal;
mod shown;
mod signals;
mod standard;
mod temp_folder;
mod unfinished;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use rustix::process::{Resource, getrlimit};

/// Stack that the first thread needs, in bytes. Threads that are started have as much.
const STACK_BYTES: u64 = 2 << 20;

fn main() -> ExitCode {
    crash::install();
    if getrlimit(Resource::Stack).current.is_none_or(|most| most >= STACK_BYTES) {
        return command();
    }
    // `ulimit -s` leaves the first thread less, and a process whose stack overflows ends without a sentence.
    match merganser_storage::thread::spawn("main", command) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Err(error) => ended(&failure::Failure::Error(error.to_string())),
    }
}

/// The command that was typed, from its first word to its exit status.
fn command() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    let is_sort = words.first().is_some_and(|program| args::is_sort(program));
    if is_sort {
        failure::call("sort");
    }
    let typed = match args::CommandLine::of_words(words.iter().cloned()) {
        Ok(typed) => typed,
        Err(refusal) => return refused(&refusal, &words, is_sort),
    };
    merganser_storage::file::descriptors::raise_limit();
    merganser_storage::thread::prepare();
    if let Err(error) = merganser_storage::thread::check_first() {
        return ended(&failure::Failure::Error(error.to_string()));
    }
    let cancel = match signals::install() {
        Ok(cancel) => cancel,
        Err(error) => return ended(&failure::Failure::Error(format!("signals: {error}"))),
    };
    match command::run(typed.command, &cancel) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure::Failure::Cancelled) => ExitCode::from(cancel.exit_status().unwrap_or(2)),
        Err(failure) => ended(&failure),
    }
}

/// Prints the reason of a failure and returns its exit status.
fn ended(failure: &failure::Failure) -> ExitCode {
    failure.tell();
    ExitCode::from(failure.status())
}

/// Prints help, or one sentence about arguments that can't be parsed.
fn refused(refusal: &clap::Error, words: &[OsString], is_sort: bool) -> ExitCode {
    if !refusal.use_stderr() {
        // Not styled: clap knows a terminal when it prints itself, and only then.
        if std::io::stdout().is_terminal() && !is_sort {
            let _ = refusal.print();
            return ExitCode::SUCCESS;
        }
        let mut text = refusal.render().to_string();
        if is_sort {
            text = text.replace("merganser-sort ", "sort (merganser) ");
            text = text.replace("merganser sort", "sort");
        }
        return match standard::print(text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => ended(&failure),
        };
    }
    let sentence = match refusal.kind() {
        clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            match args::commands_of(words) {
                Some((command, its)) => {
                    format!("{command}: no command given; it has {}", its.join(", "))
                }
                None => "no command given".to_owned(),
            }
        }
        _ => {
            let text = refusal.render().to_string();
            let first = text.split("\n\n").next().unwrap_or_default();
            let words: Vec<_> = first.trim_start_matches("error: ").split_whitespace().collect();
            words.join(" ")
        }
    };
    let program = if is_sort { "sort" } else { "merganser" };
    ended(&failure::Failure::Error(format!("{sentence}; see {program} --help")))
}
