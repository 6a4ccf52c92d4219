//! A mount that is served until a signal ends it.

use merganser_export::fuse::Mount;
use merganser_storage::thread::spawn;

use crate::failure::{Failure, notice};
use crate::signals::Cancel;
use crate::{service_manager, shown};

/// Lets a mount be served until it is unmounted or a signal arrives. A notice names its files as soon as programs can read
/// them.
///
/// # Errors
/// When it can't be served or unmounted.
pub fn serve(mount: Mount, cancel: &Cancel) -> Result<(), Failure> {
    let unmounter = mount.unmounter();
    let cancel = cancel.clone();
    spawn("stop", move || {
        cancel.wait();
        service_manager::stopping();
        if let Err(error) = unmounter.unmount() {
            notice(&error.to_string());
        }
    })
    .map_err(|error| Failure::named(&error))?;
    // If it does not answer, `run` says why.
    if mount.answers() {
        let files: Vec<_> = mount.files().iter().map(|file| shown::name(file)).collect();
        notice(&format!("mounted, until it is unmounted: {}", files.join(", ")));
        service_manager::ready();
    }
    Ok(mount.run()?)
}
