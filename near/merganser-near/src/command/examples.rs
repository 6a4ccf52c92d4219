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
    let (mut seen, mut without_files) = (0, 0);
    let commands = NearLine::command();
    // An example may continue with a command of another program.
    let own = |words: &Vec<String>| commands.find_subcommand(&words[1]).is_some();
    for words in examples::all(&commands).into_iter().filter(own) {
        seen += 1;
        match taken(&words) {
            Ok(()) => without_files += 1,
            // Its settings are made from files: patterns of grep's, databases, an input.
            Err(why) if why.contains("No such file or directory") => {}
            Err(why) => panic!("{}: {why}", words.join(" ")),
        }
    }
    assert!(seen >= 30 && seen - without_files <= 5, "{without_files} of {seen} were made");
}
