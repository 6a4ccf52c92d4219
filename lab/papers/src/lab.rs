//! What an experiment works with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    /// ([`Experiment::takes_settings`](crate::Experiment::takes_settings)).
    pub settings: Vec<String>,
    /// The folder for data.
    pub dir: PathBuf,
    /// Memory for bytes that wait to be written; `None` is the experiment's own default.
    pub pool_bytes: Option<u64>,
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
