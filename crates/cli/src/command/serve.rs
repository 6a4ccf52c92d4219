//! `merganser serve`.

use merganser_node::shuffle::server::{Server, ServerOptions};
use merganser_storage::thread::spawn;

use crate::config::ServeConfig;
use crate::failure::{Failure, notice, shuffle_sentence};
use crate::signals::Cancel;

/// Merges for its clients until a signal arrives.
pub fn run(config: ServeConfig, cancel: &Cancel) -> Result<(), Failure> {
    let ServeConfig { socket, socket_mode, local_dirs, memory_bytes, merges, keep_cache } = config;
    for dir in local_dirs.iter().filter(|dir| !dir.is_dir()) {
        notice(&format!(
            "{}: no such folder yet; its spills can be read once it is",
            dir.display()
        ));
    }
    let listening = format!(
        "merges for clients of {}: at most {merges} at once, in {memory_bytes} bytes",
        socket.display()
    );
    let server = Server::bind(ServerOptions {
        socket,
        socket_mode,
        local_dirs,
        memory_bytes,
        merges,
        keep_cache,
        product: env!("CARGO_PKG_VERSION").to_owned(),
        describe: Box::new(shuffle_sentence),
        on_event: Box::new(notice),
    })
    .map_err(|error| error.to_string())?;
    notice(&listening);
    let stopper = server.stopper();
    let signalled = cancel.clone();
    spawn("stop", move || {
        signalled.wait();
        stopper.stop();
    })
    .map_err(|error| Failure::named(&error))?;
    server.run();
    notice("ended, as it was asked to");
    Ok(())
}
