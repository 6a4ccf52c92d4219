//! Why an experiment has no result.

use std::io;
use std::path::{Path, PathBuf};

use merganser_device::profile::ProfileError;
use merganser_sort::key::KeyError;

/// Why an experiment has no result.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The caller asked for the end.
    #[error("cancelled")]
    Cancelled,
    /// A file or folder could not be used.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A storage failed; the text of the error names it.
    #[error(transparent)]
    Storage(io::Error),
    /// The engine failed.
    #[error(transparent)]
    Sort(#[from] merganser_sort::Error),
    /// A key that an experiment uses was refused.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A modelled device does not exist, or does not have the parameters that an experiment sets.
    #[error("{device}: {source}")]
    Device {
        /// The profile's name.
        device: String,
        /// The reason.
        source: ProfileError,
    },
    /// A change of a modelled device ([`ExperimentSetup::settings`](crate::ExperimentSetup::settings)) was refused.
    #[error(transparent)]
    Setting(ProfileError),
    /// A modelled device or host did not do what a real one would.
    #[error("{0}")]
    Model(String),
    /// The machine has too little memory for the data of an experiment in memory.
    #[error(
        "comparing sorts of {bytes} bytes takes {needed_bytes} bytes of memory, more than there are"
    )]
    Memory {
        /// Bytes of the data set.
        bytes: u64,
        /// Bytes for all its copies.
        needed_bytes: u64,
    },
}

impl ExperimentError {
    /// An error of a file or folder.
    pub(crate) fn on(path: &Path, source: io::Error) -> Self {
        ExperimentError::File { path: path.to_owned(), source }
    }

    /// An error of a modelled device's profile.
    pub(crate) fn device(device: &str) -> impl FnOnce(ProfileError) -> Self {
        move |source| ExperimentError::Device { device: device.to_owned(), source }
    }
}
