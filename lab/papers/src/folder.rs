//! A folder for the data of an experiment.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::ExperimentError;
use crate::lab::{Caller, Lab};

/// An empty folder that is removed, with all that is in it, when it is dropped.
pub(crate) struct ScratchFolder {
    path: PathBuf,
    caller: Arc<dyn Caller>,
}

impl ScratchFolder {
    /// Makes it in the lab's folder for data.
    pub(crate) fn new(lab: &Lab<'_>) -> Result<Self, ExperimentError> {
        let path = lab.setup.dir.join(format!(".merganser-reproduce-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| ExperimentError::on(&path, error))?;
        lab.caller.folder_made(&path);
        Ok(ScratchFolder { path, caller: Arc::clone(lab.caller) })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // If it can't be removed, it stays, and its name says which program made it.
        let _ = fs::remove_dir_all(&self.path);
        self.caller.folder_removed(&self.path);
    }
}
