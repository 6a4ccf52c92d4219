//! Merges for Hadoop.

use merganser_node::shuffle::server::{Server, ServerOptions};

use super::Listening;
use crate::config::ShuffleConfig;
use crate::failure::{Failure, notice, shuffle_sentence};

/// Begins to listen.
///
/// # Errors
/// When the socket can't be listened on.
pub(super) fn listen(config: ShuffleConfig) -> Result<Listening, Failure> {
    let ShuffleConfig { socket, socket_mode, local_dirs, memory_bytes, merges, keep_cache } =
        config;
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
    let run = move || {
        server.run();
        Ok(())
    };
    Ok(Listening { run: Box::new(run), stop: Box::new(move || stopper.stop()) })
}
