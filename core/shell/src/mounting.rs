//! A mount that is served until a signal ends it.

use merganser_export::fuse::Mount;
use merganser_storage::thread::spawn;

use crate::failure::{Failure, notice};
use crate::signals::Cancel;

/// Lets a mount be served until it is unmounted or a signal arrives.
///
/// # Errors
/// When it can't be served or unmounted.
pub fn serve(mount: Mount, cancel: &Cancel) -> Result<(), Failure> {
    let unmounter = mount.unmounter();
    let cancel = cancel.clone();
    spawn("stop", move || {
        cancel.wait();
        if let Err(error) = unmounter.unmount() {
            notice(&error.to_string());
        }
    })
    .map_err(|error| Failure::named(&error))?;
    Ok(mount.run()?)
}
