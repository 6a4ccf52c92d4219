//! An NBD server that runs until a signal ends it.

use merganser_export::nbd::{Address, Server, ServerOptions};
use merganser_storage::thread::spawn;

use crate::failure::{Failure, export_sentence, notice};
use crate::signals::Cancel;
use crate::standard;

/// Serves until a signal comes.
pub fn serve(options: ServerOptions, cancel: &Cancel) -> Result<(), Failure> {
    run(listen(options)?, cancel)
}

/// A server that listens. The address is printed if the system chose the port. Failed requests are
/// notices.
pub fn listen(options: ServerOptions) -> Result<Server, Failure> {
    let port_is_chosen = matches!(&options.address, Address::Tcp(at) if at.ends_with(":0"));
    let server = Server::new(ServerOptions {
        on_error: Some(Box::new(|error| notice(&export_sentence(error)))),
        ..options
    })?;
    if port_is_chosen {
        standard::print(format!("{}\n", server.address()))?;
    }
    Ok(server)
}

/// Lets it serve until a signal comes.
pub fn run(server: Server, cancel: &Cancel) -> Result<(), Failure> {
    let stopper = server.stopper();
    let cancel = cancel.clone();
    spawn("stop", move || {
        cancel.wait();
        stopper.stop();
    })
    .map_err(|error| Failure::named(&error))?;
    Ok(server.run()?)
}
