//! The examples of the help texts are command lines that this program takes: each is parsed, and its
//! settings are made.

use std::ffi::OsString;

use clap::{CommandFactory, Parser};
use merganser_shell::failure::Failure;
use merganser_testkit::examples;

use crate::args::{NearCommand, NearLine};
use crate::config::{BlastConfig, MapConfig, PipelineConfig, ServeConfig, SsdletConfig};

/// Makes the settings of a command.
fn meant(command: NearCommand) -> Result<(), Failure> {
    match command {
        NearCommand::Map(typed) => MapConfig::try_from(typed).map(drop),
        NearCommand::Pipeline(typed) => PipelineConfig::try_from(typed).map(drop),
        NearCommand::Blast(typed) => BlastConfig::try_from(typed).map(drop),
        NearCommand::Ssdlet(typed) => SsdletConfig::try_from(typed).map(drop),
        NearCommand::Serve(typed) => ServeConfig::try_from(typed).map(drop),
    }
}

/// A command line, parsed, with its settings.
fn taken(words: &[String]) -> Result<(), String> {
    let words = words.iter().map(OsString::from);
    let typed = NearLine::try_parse_from(words).map_err(|error| error.to_string())?;
    meant(typed.command).map_err(|failure| failure.sentence().unwrap_or("cancelled").to_owned())
}

#[test]
fn every_example_of_the_help_is_taken() {
    let found = examples::check(&NearLine::command(), taken);
    assert!(found.seen >= 25 && found.seen - found.without_files <= 5, "{found:?}");
}
