//! How programs reach an emulated disk: a file in a folder, or a network block device.

use std::sync::Arc;

use merganser_export::fuse::{DiskOptions, Mount};
use merganser_export::nbd::{DEVICE_REPLY_BYTES_USEFUL, Export, NbdOptions, NbdServer};
use merganser_shell::config::DoorConfig;
use merganser_shell::failure::{Failure, export_sentence, notice};
use merganser_shell::signals::Cancel;
use merganser_shell::{mounting, nbd};
use merganser_storage::Storage;

/// The name of the file in the mounted folder, and of the export.
const DISK: &str = "disk";

/// An open way to the disk.
pub(super) enum EmulatedDoor {
    /// The folder with the file.
    Mount(Mount),
    /// The server with the export.
    Nbd(Box<NbdServer>),
}

impl EmulatedDoor {
    /// Shows the disk: from now on, programs can use it.
    pub(super) fn open(config: &DoorConfig, disk: Arc<dyn Storage>) -> Result<Self, Failure> {
        match config {
            DoorConfig::Mount { mountpoint, allow_other } => {
                let mount = Mount::disk(DiskOptions {
                    mountpoint: mountpoint.clone(),
                    name: DISK.into(),
                    storage: disk,
                    allow_other: *allow_other,
                    on_error: Some(Box::new(|error| notice(&export_sentence(error)))),
                })?;
                Ok(EmulatedDoor::Mount(mount))
            }
            DoorConfig::Nbd(config) => {
                let exports = vec![Export::device(DISK, disk)];
                let server = nbd::listen(NbdOptions {
                    reply_bytes: DEVICE_REPLY_BYTES_USEFUL,
                    ..nbd::options(config, exports)
                })?;
                Ok(EmulatedDoor::Nbd(Box::new(server)))
            }
        }
    }

    /// Serves until the folder is unmounted or a signal arrives.
    pub(super) fn serve(self, cancel: &Cancel) -> Result<(), Failure> {
        match self {
            EmulatedDoor::Mount(mount) => mounting::serve(mount, cancel),
            EmulatedDoor::Nbd(server) => nbd::run(*server, cancel),
        }
    }
}
