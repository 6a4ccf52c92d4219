//! `merganser mount`.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use merganser_export::fuse::{ExportedFile, Mount, MountOptions};

use crate::config::MountConfig;
use crate::failure::{Failure, export_sentence, notice};
use crate::signals::Cancel;

/// Shows a view as a file until it is unmounted or a signal arrives.
pub fn run(config: MountConfig, cancel: &Cancel) -> Result<(), Failure> {
    let view = super::opened::open_view(&config.view, config.memory_bytes, config.threads)?;
    let modified = SystemTime::UNIX_EPOCH + Duration::from_nanos(view.manifest().made_unix_ns);
    let file = ExportedFile { name: config.file_name.into(), storage: Arc::new(view), modified };
    let mount = Mount::new(MountOptions {
        allow_other: config.allow_other,
        threads: config.threads,
        on_error: Some(Box::new(|error| notice(&export_sentence(error)))),
        ..MountOptions::new(config.mountpoint, vec![file])
    })?;
    super::mounting::serve(mount, cancel)
}
