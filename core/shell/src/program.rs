//! A program, from the first word to the exit status.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use rustix::process::{Resource, getrlimit};

use crate::failure::Failure;
use crate::outline::{CommandOutline, OUTLINE_WORD};
use crate::signals::Cancel;
use crate::{crash, failure, signals, standard, version};

/// Stack that the first thread needs, in bytes. Threads that are started have as much.
const STACK_BYTES: u64 = 2 << 20;

/// The program that has the commands of the core.
const NAME: &str = "merganser";

/// A program of the project: how its words are read, and what they make it do.
pub struct Program<C> {
    /// Reads the words, the name of the program first. Help is an error, too.
    pub parse: fn(Vec<OsString>) -> Result<C, clap::Error>,
    /// Its commands.
    pub commands: fn() -> clap::Command,
    /// Runs one of them to its end.
    pub run: fn(C, &Cancel) -> Result<(), Failure>,
    /// Programs that it runs and that are installed, for `--version`; `None` if it runs no others.
    pub programs: Option<fn() -> Vec<&'static str>>,
}

impl<C: 'static> Program<C> {
    /// Runs the command that was typed.
    #[must_use]
    pub fn main(self) -> ExitCode {
        crash::install();
        if getrlimit(Resource::Stack).current.is_none_or(|most| most >= STACK_BYTES) {
            return self.command();
        }
        // `ulimit -s` leaves the first thread less, and a process whose stack overflows ends without a sentence.
        match merganser_storage::thread::spawn("main", move || self.command()) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => ended(&Failure::Error(error.to_string())),
        }
    }

    /// The command that was typed, from its first word to its exit status.
    fn command(&self) -> ExitCode {
        let words: Vec<_> = std::env::args_os().collect();
        if words.len() == 2 && words[1] == OUTLINE_WORD {
            let outline = CommandOutline::of_command(&(self.commands)());
            let text = serde_json::to_string(&outline).expect("plain data");
            return match standard::print(format!("{text}\n")) {
                Ok(()) => ExitCode::SUCCESS,
                Err(failure) => ended(&failure),
            };
        }
        let typed = match (self.parse)(words.clone()) {
            Ok(typed) => typed,
            Err(refusal) => return self.refused(&refusal, &words),
        };
        merganser_storage::file::descriptors::raise_limit();
        merganser_storage::thread::prepare();
        if let Err(error) = merganser_storage::thread::check_first() {
            return ended(&Failure::Error(error.to_string()));
        }
        let cancel = match signals::install() {
            Ok(cancel) => cancel,
            Err(error) => return ended(&Failure::Error(format!("signals: {error}"))),
        };
        match (self.run)(typed, &cancel) {
            Ok(()) => ExitCode::SUCCESS,
            Err(Failure::Cancelled) => ExitCode::from(cancel.exit_status().unwrap_or(2)),
            Err(failure) => ended(&failure),
        }
    }

    /// Prints help, or one sentence about arguments that can't be parsed.
    fn refused(&self, refusal: &clap::Error, words: &[OsString]) -> ExitCode {
        let is_sort = failure::called() == "sort";
        if !refusal.use_stderr() {
            // Not styled: clap knows a terminal when it prints itself, and only then.
            let is_version = refusal.kind() == ErrorKind::DisplayVersion;
            if io::stdout().is_terminal() && !is_sort && !is_version {
                let _ = refusal.print();
                return ExitCode::SUCCESS;
            }
            let mut text = refusal.render().to_string();
            if is_version {
                let programs = self.programs.map(|installed| installed());
                text = version::text(text.trim_end(), programs.as_deref());
            }
            if is_sort {
                text = text.replace("merganser-sort ", "sort (merganser) ");
                text = text.replace("merganser sort", "sort");
            }
            return match standard::print(text) {
                Ok(()) => ExitCode::SUCCESS,
                Err(failure) => ended(&failure),
            };
        }
        let (named, commands) = if is_sort { Default::default() } else { self.named_by(words) };
        let sentence = match refusal.kind() {
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                let mut sentence = "no command given".to_owned();
                if !named.is_empty() {
                    sentence =
                        format!("{}: {sentence}; it has {}", named.join(" "), commands.join(", "));
                }
                sentence
            }
            _ => {
                let text = refusal.render().to_string();
                let first = text.split("\n\n").next().unwrap_or_default();
                let words: Vec<_> =
                    first.trim_start_matches("error: ").split_whitespace().collect();
                words.join(" ")
            }
        };
        let near =
            near_words(refusal).map_or_else(String::new, |near| format!("; there is {near}"));
        let program = [failure::called()].into_iter();
        let help: Vec<_> = program.chain(named.iter().map(String::as_str)).collect();
        ended(&Failure::Error(format!("{sentence}{near}; see {} --help", help.join(" "))))
    }

    /// The commands that `words` name, from the outer to the inner one, and the commands of the last.
    fn named_by(&self, words: &[OsString]) -> (Vec<String>, Vec<String>) {
        let mut command = (self.commands)();
        let mut named = Vec::new();
        for word in words.iter().skip(1) {
            let Some(next) = word.to_str().and_then(|word| command.find_subcommand(word)) else {
                break;
            };
            let next = next.clone();
            named.push(next.get_name().to_owned());
            command = next;
        }
        let commands = command.get_subcommands().filter(|command| !command.is_hide_set());
        (named, commands.map(|command| command.get_name().to_owned()).collect())
    }
}

/// The words that look like the wrong one, in quotes, if there are any.
fn near_words(refusal: &clap::Error) -> Option<String> {
    let kinds =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    let words = match kinds.into_iter().find_map(|kind| refusal.get(kind))? {
        ContextValue::String(word) => vec![word],
        ContextValue::Strings(words) => words.iter().collect(),
        _ => return None,
    };
    let words: Vec<_> = words.into_iter().map(|word| format!("'{word}'")).collect();
    (!words.is_empty()).then(|| words.join(" or "))
}

/// The program `merganser`, which runs all commands: this one, or next to it, or in `../../bin` where this one is in
/// `libexec/merganser`. It is the first of these places where no such file exists.
///
/// # Errors
/// The system's own.
pub fn core() -> io::Result<PathBuf> {
    // The file itself, not a link to it.
    core_of(&std::env::current_exe()?)
}

/// The folder of the program at `own`. A folder that is not known is an error: a program in the folder where a user happens
/// to work may be anybody's, and is never run.
///
/// # Errors
/// `own` has no folder, or not from the root.
pub fn folder_of(own: &Path) -> io::Result<&Path> {
    own.parent()
        .filter(|folder| folder.is_absolute())
        .ok_or_else(|| io::Error::other("the system does not say where this program is"))
}

fn core_of(own: &Path) -> io::Result<PathBuf> {
    let folder = folder_of(own)?;
    let (next, apart) = (folder.join(NAME), folder.join("../../bin").join(NAME));
    Ok(if apart.is_file() && !next.is_file() { apart } else { next })
}

/// Prints the reason of a failure and returns its exit status.
#[must_use]
pub fn ended(failure: &Failure) -> ExitCode {
    failure.tell();
    ExitCode::from(failure.status())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_run_from_the_folder_of_the_user() {
        for unknown in ["", "merganser", "./merganser-hadoop", "bin/merganser-hadoop"] {
            assert!(core_of(Path::new(unknown)).is_err(), "{unknown}");
        }
        let next = core_of(Path::new("/absent/bin/merganser-hadoop")).expect("known");
        assert_eq!(next, Path::new("/absent/bin/merganser"));
    }

    #[test]
    fn the_core_is_next_to_a_program_or_in_bin() {
        let dir = tempfile::tempdir().expect("a folder");
        let (bin, apart) = (dir.path().join("bin"), dir.path().join("libexec/merganser"));
        for folder in [&bin, &apart] {
            std::fs::create_dir_all(folder).expect("made");
        }
        let near = apart.join("merganser-near");
        std::fs::write(bin.join("merganser"), "").expect("written");
        assert_eq!(core_of(&near).expect("known"), apart.join("../../bin/merganser"));
        std::fs::write(apart.join("merganser"), "").expect("written");
        assert_eq!(core_of(&near).expect("known"), apart.join("merganser"));
    }
}
