//! What an experiment works with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_device::profile::{ProfileError, SsdProfile};
use merganser_sort::Progress;

use crate::error::ExperimentError;
use crate::machine::MeasuredMachine;

/// How an experiment is run. Each experiment uses the fields that apply to it.
#[derive(Debug)]
pub struct ExperimentSetup {
    /// Bytes of data; for experiments with several sizes, the largest. `None` is the experiment's own default.
    pub size_bytes: Option<u64>,
    /// How often to measure; `None` is the experiment's own default.
    pub rounds: Option<usize>,
    /// Numbers of files; empty for the experiment's own.
    pub files: Vec<usize>,
    /// Changes of the modelled device, `name=value` each, for experiments that take them
    /// ([`Experiment::takes_settings`](crate::Experiment::takes_settings)). Where there are several SSDs, each is
    /// changed.
    pub settings: Vec<String>,
    /// Another SSD in place of the paper's, by the name of its profile, for experiments that take one
    /// ([`Experiment::takes_device`](crate::Experiment::takes_device)).
    pub device: Option<String>,
    /// The folder for data.
    pub dir: PathBuf,
    /// Memory for bytes that wait to be written; `None` is the experiment's own default.
    pub pool_bytes: Option<u64>,
}

impl ExperimentSetup {
    /// `profile` with the changes that were given.
    pub(crate) fn changed(&self, mut profile: SsdProfile) -> Result<SsdProfile, ExperimentError> {
        for change in &self.settings {
            profile.set(change).map_err(ExperimentError::Setting)?;
        }
        if !self.settings.is_empty() {
            // The whole device is named: its values don't fit together, and the user gave some of them.
            let refused = |error| self.refused(&format!("{}: {error}", profile.name));
            profile.settings.check().map_err(refused)?;
        }
        Ok(profile)
    }

    /// The device that was given, or else `own`, with the changes that were given.
    pub(crate) fn device(&self, own: &str) -> Result<SsdProfile, ExperimentError> {
        let name = self.device.as_deref().unwrap_or(own);
        self.changed(SsdProfile::preset(name).map_err(ExperimentError::device(name))?)
    }

    /// The device or changes that were given make something impossible.
    pub(crate) fn refused(&self, why: &str) -> ExperimentError {
        if let (true, Some(device)) = (self.settings.is_empty(), &self.device) {
            return ExperimentError::device(device)(ProfileError::Together(why.to_owned()));
        }
        ExperimentError::Setting(ProfileError::Together(format!(
            "{}: {why}",
            self.settings.join(", ")
        )))
    }

    /// Refuses changes of parameters that the experiment varies itself.
    pub(crate) fn refuse_settings(&self, own: &[&str]) -> Result<(), ExperimentError> {
        let name = |change: &String| change.split('=').next().unwrap_or_default().trim().to_owned();
        match self.settings.iter().find(|change| own.contains(&&*name(change))) {
            Some(change) => Err(ExperimentError::Setting(ProfileError::Together(format!(
                "{change}: the experiment itself sets {}",
                own.join(", ")
            )))),
            None => Ok(()),
        }
    }

    /// A sentence on the device and the changes that were given.
    pub(crate) fn changes(&self) -> Option<String> {
        let mut changes = self.settings.clone();
        if let Some(device) = &self.device {
            changes.insert(0, format!("the device is {device}"));
        }
        (!changes.is_empty()).then(|| {
            let changes = changes.join(", ");
            format!("Changed of the profile: {changes}. Fitted figures were fitted without these changes: ratios compare another device with the paper's, and the other sentences here are of the paper's own.")
        })
    }
}

/// What an experiment needs of the program that runs it, in addition to [`Progress`].
pub trait Caller: Send + Sync {
    /// A folder with unfinished data was made. A caller that ends without waiting for the
    /// experiment removes it.
    fn folder_made(&self, folder: &Path);

    /// That folder was removed.
    fn folder_removed(&self, folder: &Path);
}

/// What an experiment works with.
pub(crate) struct Lab<'a> {
    /// How it is run.
    pub setup: &'a ExperimentSetup,
    /// Where it runs.
    pub machine: &'a MeasuredMachine,
    /// Gets the progress, and says whether to stop.
    pub progress: &'a dyn Progress,
    /// The program that runs it.
    pub caller: &'a Arc<dyn Caller>,
}

impl Lab<'_> {
    /// Returns [`ExperimentError::Cancelled`] once the end was asked for.
    pub(crate) fn check_cancelled(&self) -> Result<(), ExperimentError> {
        if self.progress.cancelled() { Err(ExperimentError::Cancelled) } else { Ok(()) }
    }
}
