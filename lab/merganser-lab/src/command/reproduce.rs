//! `merganser reproduce`.

use std::path::Path;
use std::sync::Arc;

use merganser_papers::{Caller, ExperimentError, ExperimentSetup};
use merganser_results::kept::ReportFile;
use merganser_shell::failure::Failure;
use merganser_shell::signals::Cancel;
use merganser_shell::{progress, signals, standard};

use crate::config::ReproduceConfig;

/// Runs an experiment, or lists them.
pub(super) fn run(config: &ReproduceConfig, cancel: &Cancel) -> Result<(), Failure> {
    let Some(experiment) = config.experiment else {
        let list: String = merganser_papers::list()
            .iter()
            .map(|experiment| format!("{:<22}{}\n", experiment.name, experiment.about))
            .collect();
        return print(&list);
    };
    let progress = progress::on_stderr(config.quiet, cancel);
    let caller: Arc<dyn Caller> = Arc::new(Process);
    let report = experiment.run(&config.setup, &*progress, &caller);
    let report = report.map_err(|error| sentence(error, &config.setup))?;
    drop(progress);
    // Printed before the files are written: the run took long, and a file that can't be written
    // must not lose its result.
    print(&report.text())?;
    if let Some(path) = &config.json {
        let text = format!("{:#}\n", report.json());
        ReportFile::open(path)?.write(&text)?;
    }
    if let Some(path) = &config.plot {
        ReportFile::open(path)?.write(&report.svg())?;
    }
    Ok(())
}

/// This process: signals end an experiment, and remove its folder.
struct Process;

impl Caller for Process {
    fn folder_made(&self, folder: &Path) {
        signals::remember(folder);
    }

    fn folder_removed(&self, folder: &Path) {
        signals::forget(folder);
    }
}

/// The sentence for an error, with the flag that helps.
fn sentence(error: ExperimentError, setup: &ExperimentSetup) -> Failure {
    match error {
        ExperimentError::Cancelled => Failure::Cancelled,
        ExperimentError::File { path, source } => Failure::on(&path, &source),
        ExperimentError::Storage(error) => Failure::named(&error),
        ExperimentError::Sort(error) => error.into(),
        ExperimentError::Key(error) => error.into(),
        // The experiments' own devices exist: it is the given device, or the changes of one, that is impossible.
        error @ ExperimentError::Device { .. } if setup.device.is_some() => {
            Failure::Error(format!("--device: {error}"))
        }
        error @ ExperimentError::Device { .. } if !setup.settings.is_empty() => {
            Failure::Error(format!("--set: {error}"))
        }
        error @ ExperimentError::Memory { .. } => Failure::Error(format!("--size: {error}")),
        ExperimentError::Setting(error) => Failure::Error(format!("--set {error}")),
        error => Failure::Error(error.to_string()),
    }
}

fn print(text: &str) -> Result<(), Failure> {
    standard::print(text)
}
