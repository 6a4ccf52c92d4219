//! The examples of the help texts are command lines that this program takes: each is parsed, and its
//! settings are made. Devices and their parameters must exist, too.

use std::ffi::OsString;

use clap::{CommandFactory, Parser};
use merganser_shell::failure::Failure;
use merganser_testkit::examples;

use super::simulate::model::ModelledDevice;
use crate::args::{LabCommand, LabLine};
use crate::config::{
    AdviseConfig, AdviseOn, DeviceChoice, EmulateConfig, ReproduceConfig, SimulateConfig,
};

/// Whether there is such a model, with these parameters.
fn exists(choice: &DeviceChoice) -> Result<(), Failure> {
    ModelledDevice::chosen(choice)?.device(choice.seed, 0).map(drop)
}

fn of_advice(on: &AdviseOn) -> Result<(), Failure> {
    match on {
        AdviseOn::Device(choice) => exists(choice),
        AdviseOn::Dir(_) => Ok(()),
    }
}

/// Makes the settings of a command.
fn meant(command: LabCommand) -> Result<(), Failure> {
    match command {
        LabCommand::Reproduce(typed) => ReproduceConfig::try_from(typed).map(drop),
        LabCommand::Advise(typed) => match AdviseConfig::try_from(typed)? {
            AdviseConfig::Job(job) => of_advice(&job.on),
            AdviseConfig::Maps(maps) => of_advice(&maps.on),
            AdviseConfig::Deferring { .. } => Ok(()),
        },
        LabCommand::Simulate(typed) => match SimulateConfig::try_from(typed)? {
            SimulateConfig::Run(run) => exists(&run.device),
            SimulateConfig::Sort(sort) => exists(&sort.device),
            _ => Ok(()),
        },
        LabCommand::Emulate(typed) => {
            super::emulate::check(&EmulateConfig::try_from(typed)?).map(drop)
        }
    }
}

/// A command line, parsed, with its settings.
fn taken(words: &[String]) -> Result<(), String> {
    let words = words.iter().map(OsString::from);
    let typed = LabLine::try_parse_from(words).map_err(|error| error.to_string())?;
    meant(typed.command).map_err(|failure| failure.sentence().unwrap_or("cancelled").to_owned())
}

#[test]
fn every_example_of_the_help_is_taken() {
    let (mut seen, mut without_files) = (0, 0);
    let commands = LabLine::command();
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
    assert!(seen >= 20 && seen - without_files <= 4, "{without_files} of {seen} were made");
}

/// The command line of the issue that asked for emulated disks (16).
#[test]
fn an_emulated_disk_needs_no_size_in_memory() {
    let line = "merganser emulate --device 830 --memory-backed --nbd disk.sock --set channels=4 \
                --trace run.trace --report run.html";
    assert_eq!(
        examples::commands(line).iter().map(|words| taken(words)).collect::<Vec<_>>(),
        [Ok(())]
    );
    let null = "merganser emulate --device null --memory-backed --nbd disk.sock";
    let said = taken(&examples::commands(null)[0]).expect_err("a model without a size");
    assert!(said.starts_with("--memory-backed: the device null has no size; say how"), "{said}");
    let large = "merganser emulate --device 830 --memory-backed --nbd s --size 1T";
    let said = taken(&examples::commands(large)[0]).expect_err("it has 256 GB");
    assert!(said.ends_with("give a smaller --size"), "{said}");
}
