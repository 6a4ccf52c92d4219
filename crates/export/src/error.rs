//! What can go wrong, one sentence each.

use std::io;
use std::path::PathBuf;

/// Why a mount or server did not come about, or a read of it failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The mount point cannot carry a mount; `problem` says why and what to do.
    #[error("{}: {problem}", path.display())]
    Mountpoint {
        /// As the caller gave it.
        path: PathBuf,
        /// The rest of the sentence.
        problem: String,
    },
    /// This process or machine cannot mount anything; the sentence says what is missing.
    #[error("{0}")]
    Unavailable(String),
    /// An export cannot bear this name, or two would.
    #[error("'{name}' cannot be the name of an export: {problem}")]
    Name {
        /// The name that was asked for.
        name: String,
        /// The rest of the sentence.
        problem: &'static str,
    },
    /// A server cannot listen at its address, or serve there; `problem` says why.
    #[error("{address}: {problem}")]
    Listen {
        /// As the caller gave it.
        address: String,
        /// The rest of the sentence.
        problem: String,
    },
    /// The connection to the kernel broke, or a thread for it could not be started.
    #[error("{}: serving the mount failed: {source}", path.display())]
    Serve {
        /// Where it is mounted.
        path: PathBuf,
        /// The system's own error.
        source: io::Error,
    },
    /// The mount could not be removed.
    #[error("{}: cannot be unmounted: {problem}", path.display())]
    Unmount {
        /// Where it is mounted.
        path: PathBuf,
        /// The system's or the helper's own words.
        problem: String,
    },
    /// A storage failed; whoever asked for these bytes got `EIO`.
    #[error("{name}: reading {len} bytes at offset {offset} failed: {source}")]
    Read {
        /// The storage's own name.
        name: String,
        /// First byte asked for.
        offset: u64,
        /// How many.
        len: usize,
        /// The storage's error.
        source: io::Error,
    },
}
