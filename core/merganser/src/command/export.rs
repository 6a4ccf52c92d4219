//! `merganser export`.

use std::sync::Arc;

use merganser_export::nbd::{Export, NbdOptions};
use merganser_shell::failure::Failure;
use merganser_shell::nbd;
use merganser_shell::signals::Cancel;

use crate::config::ExportConfig;

/// Serves views until a signal ends it.
pub(super) fn run(config: ExportConfig, cancel: &Cancel) -> Result<(), Failure> {
    let mut exports = Vec::new();
    for (view, name) in config.views {
        let view =
            merganser_shell::opened::open_view(&view, config.view_memory_bytes, config.threads)?;
        exports.push(Export::read_only(name, Arc::new(view)));
    }
    let options = NbdOptions {
        threads: config.threads,
        reply_bytes: config.reply_bytes,
        ..nbd::options(&config.nbd, exports)
    };
    nbd::serve(options, cancel)
}
