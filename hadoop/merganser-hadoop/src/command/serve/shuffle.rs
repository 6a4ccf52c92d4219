//! Merges for Hadoop.

use merganser_hadoop_node::shuffle::server::{ShuffleServer, ShuffleServerOptions};
use merganser_shell::failure::{Failure, notice};
use merganser_shell::serving::{Listening, tell_absent};
use merganser_shell::shown;

use crate::config::ShuffleConfig;
use crate::sentences::shuffle_sentence;

/// Begins to listen.
///
/// # Errors
/// When the socket can't be listened on.
pub(super) fn listen(config: ShuffleConfig) -> Result<Listening, Failure> {
    let ShuffleConfig { socket, socket_mode, local_dirs, memory_bytes, merges, keep_cache } =
        config;
    tell_absent(&local_dirs, "spills");
    let listening = format!(
        "merges for clients of {}: at most {merges} at once, in {memory_bytes} bytes",
        shown::name(&socket)
    );
    let server = ShuffleServer::bind(ShuffleServerOptions {
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
    Ok(Listening::sure(move || server.run(), move || stopper.stop()))
}
