//! `merganser export`.

use std::sync::Arc;

use merganser_export::nbd::{Address, Export, Server, ServerOptions};
use merganser_storage::thread::spawn;

use crate::config::ExportConfig;
use crate::failure::{Failure, export_sentence, notice};
use crate::signals::Cancel;
use crate::standard;

/// Serves views until a signal ends it.
pub fn run(config: ExportConfig, cancel: &Cancel) -> Result<(), Failure> {
    let mut exports = Vec::new();
    for (view, name) in config.views {
        let view = super::open_view(&view, config.view_memory_bytes, config.threads)?;
        exports.push(Export::read_only(name, Arc::new(view)));
    }
    let port_is_chosen = matches!(&config.address, Address::Tcp(at) if at.ends_with(":0"));
    let server = Server::new(ServerOptions {
        threads: config.threads,
        reply_bytes: config.reply_bytes,
        on_error: Some(Box::new(|error| notice(&export_sentence(error)))),
        ..ServerOptions::new(config.address, exports)
    })?;
    if port_is_chosen {
        standard::print(format!("{}\n", server.address()))?;
    }
    let stopper = server.stopper();
    let cancel = cancel.clone();
    spawn("stop", move || {
        cancel.wait();
        stopper.stop();
    })
    .map_err(|error| Failure::named(&error))?;
    Ok(server.run()?)
}
