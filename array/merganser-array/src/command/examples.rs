//! The examples of the help texts are command lines that this program takes: each is parsed, and its
//! settings are made.

use std::ffi::OsString;

use clap::{CommandFactory, Parser};
use merganser_shell::failure::Failure;
use merganser_testkit::examples;

use crate::args::{VolumeCommand, VolumeLine};
use crate::config::ArrayConfig;

/// Makes the settings of a command.
fn meant(command: VolumeCommand) -> Result<(), Failure> {
    match command {
        VolumeCommand::Array(typed) => ArrayConfig::try_from(typed).map(drop),
    }
}

/// A command line, parsed, with its settings.
fn taken(words: &[String]) -> Result<(), String> {
    let words = words.iter().map(OsString::from);
    let typed = VolumeLine::try_parse_from(words).map_err(|error| error.to_string())?;
    meant(typed.command).map_err(|failure| failure.sentence().unwrap_or("cancelled").to_owned())
}

#[test]
fn every_example_of_the_help_is_taken() {
    let found = examples::check(&VolumeLine::command(), taken);
    assert!(found.seen >= 5 && found.seen == found.without_files, "{found:?}");
}
