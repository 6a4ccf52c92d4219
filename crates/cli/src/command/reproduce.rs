//! `merganser reproduce`.

use std::fs;

use crate::config::ReproduceConfig;
use crate::failure::Failure;
use crate::progress;
use crate::reproduce::{EXPERIMENTS, Lab, Machine};
use crate::signals::Cancel;
use crate::standard;

/// Runs an experiment, or lists them.
pub fn run(config: &ReproduceConfig, cancel: &Cancel) -> Result<(), Failure> {
    let Some(name) = config.name else {
        let list: String = EXPERIMENTS
            .iter()
            .map(|experiment| format!("{:<22}{}\n", experiment.name, experiment.about))
            .collect();
        return print(&list);
    };
    let experiment = EXPERIMENTS.iter().find(|e| e.typed == name).expect("all are in the list");
    let progress = progress::on_stderr(config.quiet, cancel);
    let machine = Machine::here(&config.setup.dir);
    let lab = Lab { setup: &config.setup, machine: &machine, progress: &*progress, cancel };
    let outcome = (experiment.run)(&lab)?;
    drop(progress);
    // First of all: it took long, and a file that can't be written must not lose it.
    print(&outcome.table(experiment, &machine))?;
    if let Some(path) = &config.json {
        let text = format!("{:#}\n", outcome.json(experiment, &machine));
        fs::write(path, text).map_err(|error| Failure::on(path, &error))?;
    }
    if let Some(path) = &config.plot {
        fs::write(path, outcome.plot.svg()).map_err(|error| Failure::on(path, &error))?;
    }
    Ok(())
}

fn print(text: &str) -> Result<(), Failure> {
    standard::print(text)
}
