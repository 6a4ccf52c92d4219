//! How programs reach an emulated disk: a file in a folder, or a network block device.

use std::sync::Arc;

use merganser_export::fuse::{DiskOptions, Mount};
use merganser_export::nbd::{Address, DEVICE_REPLY_BYTES_USEFUL, Export, Server, ServerOptions};
use merganser_storage::Storage;
use merganser_storage::thread::spawn;

use crate::config::DoorConfig;
use crate::failure::{Failure, export_sentence, notice};
use crate::signals::Cancel;
use crate::standard;

/// The name of the file in the mounted folder, and of the export.
const DISK: &str = "disk";

/// Shows the disk until it is unmounted or a signal arrives.
pub fn serve(door: &DoorConfig, disk: Arc<dyn Storage>, cancel: &Cancel) -> Result<(), Failure> {
    match door {
        DoorConfig::Mount { mountpoint, allow_other } => {
            let mount = Mount::disk(DiskOptions {
                mountpoint: mountpoint.clone(),
                name: DISK.into(),
                storage: disk,
                allow_other: *allow_other,
                on_error: Some(Box::new(|error| notice(&export_sentence(error)))),
            })?;
            let unmounter = mount.unmounter();
            on_cancel(cancel, move || {
                if let Err(error) = unmounter.unmount() {
                    notice(&error.to_string());
                }
            })?;
            Ok(mount.run()?)
        }
        DoorConfig::Nbd(address) => {
            let port_is_chosen = matches!(address, Address::Tcp(at) if at.ends_with(":0"));
            let server = Server::new(ServerOptions {
                reply_bytes: DEVICE_REPLY_BYTES_USEFUL,
                on_error: Some(Box::new(|error| notice(&export_sentence(error)))),
                ..ServerOptions::new(address.clone(), vec![Export::device(DISK, disk)])
            })?;
            if port_is_chosen {
                standard::print(format!("{}\n", server.address()))?;
            }
            let stopper = server.stopper();
            on_cancel(cancel, move || stopper.stop())?;
            Ok(server.run()?)
        }
    }
}

/// Runs `stop` in a thread of its own when a signal arrives.
fn on_cancel(cancel: &Cancel, stop: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let cancel = cancel.clone();
    let wait = move || {
        cancel.wait();
        stop();
    };
    spawn("stop", wait).map(drop).map_err(|error| Failure::named(&error))
}
