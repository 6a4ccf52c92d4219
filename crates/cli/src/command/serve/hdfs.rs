//! Map tasks of Hadoop.

use merganser_node::hdfs::server::{Server, ServerOptions};

use super::{Listening, absent};
use crate::config::HdfsConfig;
use crate::failure::{Failure, hdfs_sentence, notice};
use crate::shown;

/// Begins to listen.
///
/// # Errors
/// When the socket can't be listened on.
pub(super) fn listen(config: HdfsConfig) -> Result<Listening, Failure> {
    let HdfsConfig { socket, socket_mode, data_dirs, memory_bytes, maps } = config;
    absent(&data_dirs, "blocks");
    let listening = format!(
        "map tasks for clients of {}: at most {maps} at once, in {memory_bytes} bytes",
        shown::name(&socket)
    );
    let server = Server::bind(ServerOptions {
        socket,
        socket_mode,
        data_dirs,
        memory_bytes,
        maps,
        product: env!("CARGO_PKG_VERSION").to_owned(),
        describe: Box::new(hdfs_sentence),
        on_event: Box::new(notice),
    })
    .map_err(|error| error.to_string())?;
    notice(&listening);
    Ok(Listening::of(server.stopper(), move || server.run()))
}
