//! The examples of the help texts are command lines that this program takes: each is parsed, and its
//! settings are made. Devices and their parameters must exist, too.

use std::ffi::OsString;

use clap::{CommandFactory, Parser};
use merganser_shell::failure::Failure;
use merganser_testkit::examples;

use super::simulate::model::ModelledDevice;
use crate::args::{LabCommand, LabLine};
use crate::config::{DeviceChoice, EmulateConfig, ReproduceConfig, SimulateConfig};

/// Whether there is such a model, with these parameters.
fn exists(choice: &DeviceChoice) -> Result<(), Failure> {
    ModelledDevice::chosen(choice)?.device(choice.seed, 0).map(drop)
}

/// Makes the settings of a command.
fn meant(command: LabCommand) -> Result<(), Failure> {
    match command {
        LabCommand::Reproduce(typed) => ReproduceConfig::try_from(typed).map(drop),
        LabCommand::Simulate(typed) => match SimulateConfig::try_from(typed)? {
            SimulateConfig::Run(run) => exists(&run.device),
            SimulateConfig::Sort(sort) => exists(&sort.device),
            SimulateConfig::Rates(rates) => exists(&rates.device),
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
    let found = examples::check(&LabLine::command(), taken);
    assert!(found.seen >= 20 && found.seen - found.without_files <= 4, "{found:?}");
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
