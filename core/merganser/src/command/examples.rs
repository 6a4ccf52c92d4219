//! The examples of the help texts are command lines that this program takes: each is parsed, and its
//! settings are made.

use std::ffi::OsString;

use clap::CommandFactory;
use merganser_shell::failure::Failure;
use merganser_testkit::examples;

use crate::args::{CliCommand, CommandLine};
use crate::config::{
    CatConfig, CountConfig, ExportConfig, GenerateConfig, InfoConfig, MaterializeConfig,
    MountConfig, SortConfig, VerifyConfig,
};

/// Makes the settings of a command.
fn meant(command: CliCommand) -> Result<(), Failure> {
    match command {
        CliCommand::Sort(typed) => SortConfig::try_from(typed).map(drop),
        CliCommand::Count(typed) => CountConfig::try_from(typed).map(drop),
        CliCommand::Cat(typed) => CatConfig::try_from(typed).map(drop),
        CliCommand::Mount(typed) => MountConfig::try_from(typed).map(drop),
        CliCommand::Export(typed) => ExportConfig::try_from(typed).map(drop),
        CliCommand::Materialize(typed) => MaterializeConfig::try_from(typed).map(drop),
        CliCommand::Info(typed) => InfoConfig::try_from(typed).map(drop),
        CliCommand::Verify(typed) => VerifyConfig::try_from(typed).map(drop),
        CliCommand::Generate(typed) => GenerateConfig::try_from(typed).map(drop),
        CliCommand::Recover(_) | CliCommand::Completions(_) | CliCommand::Man(_) => Ok(()),
    }
}

/// A command line, parsed, with its settings.
fn taken(words: &[String]) -> Result<(), String> {
    let words = words.iter().map(OsString::from);
    let typed = CommandLine::of_words(words).map_err(|error| error.to_string())?;
    meant(typed.command).map_err(|failure| failure.sentence().unwrap_or("cancelled").to_owned())
}

#[test]
fn every_example_of_the_help_is_taken() {
    let found = examples::check(&CommandLine::command(), taken);
    assert!(found.seen >= 40 && found.seen - found.without_files <= 4, "{found:?}");
}
