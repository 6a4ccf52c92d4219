//! `merganser mount`.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use merganser_export::fuse::{ExportedFile, Mount, MountOptions};
use merganser_shell::failure::{Failure, export_sentence, notice};
use merganser_shell::signals::Cancel;

use crate::config::MountConfig;

/// Shows a view as a file until it is unmounted or a signal arrives.
pub(super) fn run(config: MountConfig, cancel: &Cancel) -> Result<(), Failure> {
    let view =
        merganser_shell::opened::open_view(&config.view, config.memory_bytes, config.threads)?;
    let modified = SystemTime::UNIX_EPOCH + Duration::from_nanos(view.manifest().made_unix_ns);
    let file = ExportedFile { name: config.file_name.into(), storage: Arc::new(view), modified };
    let mount = Mount::new(MountOptions {
        allow_other: config.allow_other,
        threads: config.threads,
        on_error: Some(Box::new(|error| notice(&export_sentence(error)))),
        ..MountOptions::new(config.mountpoint, vec![file])
    })?;
    merganser_shell::mounting::serve(mount, cancel)
}
