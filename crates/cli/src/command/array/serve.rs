//! `merganser array serve`.

use std::sync::Arc;

use merganser_array::{Migrator, Volume};
use merganser_export::nbd::{Address, Export, Server, ServerOptions};
use merganser_storage::thread::spawn;

use super::file::Description;
use crate::config::ArrayServe;
use crate::failure::{Failure, export_sentence, notice};
use crate::signals::Cancel;
use crate::standard;

/// Serves a volume until a signal ends it, and closes it.
pub fn run(config: ArrayServe, cancel: &Cancel) -> Result<(), Failure> {
    let description = Description::read(&config.volume)?;
    let members = description.open(true)?;
    let volume = Arc::new(Volume::open(&description.name(), &members, config.options)?);
    let served = serve(&volume, config.address, cancel);
    let closed = volume.close();
    served?;
    Ok(closed?)
}

fn serve(volume: &Arc<Volume>, address: Address, cancel: &Cancel) -> Result<(), Failure> {
    let port_is_chosen = matches!(&address, Address::Tcp(at) if at.ends_with(":0"));
    let exports = vec![Export::writable("volume", Arc::clone(volume) as Arc<_>)];
    let server = Server::new(ServerOptions {
        on_error: Some(Box::new(|error| notice(&export_sentence(error)))),
        ..ServerOptions::new(address, exports)
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
    let migrator = Migrator::start(Arc::clone(volume)).map_err(|error| Failure::named(&error))?;
    let served = server.run();
    drop(migrator);
    Ok(served?)
}
