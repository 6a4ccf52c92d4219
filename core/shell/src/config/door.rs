//! How programs reach a disk that a command shows.

use std::path::PathBuf;

use super::NbdConfig;

/// How programs reach the disk.
#[derive(Debug)]
pub enum DoorConfig {
    /// As a file in this folder.
    Mount {
        /// The folder.
        mountpoint: PathBuf,
        /// Whether other users may use it.
        allow_other: bool,
    },
    /// As a network block device.
    Nbd(NbdConfig),
}
