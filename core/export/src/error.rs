//! Errors, one sentence each.

use std::io;
use std::path::PathBuf;

use merganser_server::{Address, ListenError};

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
    /// A server cannot listen at its address.
    #[error("{address}: {source}")]
    Listen {
        /// The address that was asked for.
        address: Address,
        /// The cause.
        source: ListenError,
    },
    /// The system gives a server no thread.
    #[error("{client}: no thread to serve it: {source}")]
    Thread {
        /// The server's address, or its client.
        client: String,
        /// The system's own error.
        source: io::Error,
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
    /// A request to a writable storage failed; the client got `EIO`, or `ENOSPC` where it is full.
    #[error("{name}: {what} {len} bytes at offset {offset} failed: {source}")]
    Request {
        /// The storage's own name.
        name: String,
        /// The action that failed: "writing".
        what: &'static str,
        /// First byte.
        offset: u64,
        /// How many; 0 for a flush.
        len: u64,
        /// The storage's error.
        source: io::Error,
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
