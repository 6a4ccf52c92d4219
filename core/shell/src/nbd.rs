//! An NBD server that runs until a signal ends it.

use merganser_export::Error;
use merganser_export::nbd::{Address, Export, ListenError, NbdOptions, NbdServer};
use merganser_storage::thread::spawn;

use crate::config::NbdConfig;
use crate::failure::{Failure, export_sentence, notice};
use crate::signals::Cancel;
use crate::{service_manager, shown, standard};

/// The usual choices for these exports, where the user wants them.
pub fn options(config: &NbdConfig, exports: Vec<Export>) -> NbdOptions {
    NbdOptions { insecure: config.insecure, ..NbdOptions::new(config.address.clone(), exports) }
}

/// Serves until a signal comes.
pub fn serve(options: NbdOptions, cancel: &Cancel) -> Result<(), Failure> {
    run(listen(options)?, cancel)
}

/// A server that listens. A notice says where, and the address is printed if the system chose the port.
/// Failed requests are notices, too.
pub fn listen(options: NbdOptions) -> Result<NbdServer, Failure> {
    let port_is_chosen = matches!(&options.address, Address::Tcp(at) if at.ends_with(":0"));
    let names: Vec<_> = options.exports.iter().map(|export| export.name.clone()).collect();
    let server = NbdServer::new(NbdOptions {
        on_error: Some(Box::new(|error| notice(&export_sentence(error)))),
        ..options
    })
    .map_err(refusal)?;
    let at = match server.address() {
        Address::Unix(path) => format!("the socket {}", shown::name(path)),
        Address::Tcp(at) => at.clone(),
    };
    notice(&format!("exports for NBD clients of {at}: {}", names.join(", ")));
    if port_is_chosen {
        standard::print(format!("{}\n", server.address()))?;
    }
    Ok(server)
}

fn refusal(error: Error) -> Failure {
    match error {
        Error::Listen { source: source @ ListenError::Reachable { .. }, .. } => format!(
            "--nbd: {source} without protection; give a socket or localhost:PORT, or --insecure"
        )
        .into(),
        error => error.into(),
    }
}

/// Lets it serve until a signal comes.
pub fn run(server: NbdServer, cancel: &Cancel) -> Result<(), Failure> {
    let stopper = server.stopper();
    let cancel = cancel.clone();
    spawn("stop", move || {
        cancel.wait();
        service_manager::stopping();
        stopper.stop();
    })
    .map_err(|error| Failure::named(&error))?;
    service_manager::ready();
    Ok(server.run()?)
}
