//! The settings of a node.

use std::path::PathBuf;
use std::sync::Arc;

use merganser_map::ssdlet::Installed;
use merganser_storage::Directory;

use super::wait::PollIntervals;

/// What a node serves.
pub struct Serve {
    /// The folder of the protocol.
    pub folder: PathBuf,
    /// Inputs are files below it.
    pub data: PathBuf,
    /// The SSDlets that may be called; a folder is made for each.
    pub modules: Vec<String>,
    /// Opens them.
    pub installed: Installed,
    /// Memory of a map, in bytes.
    pub memory_bytes: u64,
    /// Workers of a map.
    pub threads: usize,
    /// Where a map puts what does not fit into memory. Without any, that is an error.
    pub temp: Vec<Arc<dyn Directory>>,
    /// How it waits for requests.
    pub waiting: PollIntervals,
}
