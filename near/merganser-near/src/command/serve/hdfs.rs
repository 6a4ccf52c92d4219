//! Map tasks of Hadoop.

use merganser_hadoop_node::hdfs::Compile;
use merganser_hadoop_node::hdfs::server::{HdfsServer, HdfsServerOptions};
use merganser_serve::session::GuestLimits;
use merganser_shell::failure::{Failure, notice};
use merganser_shell::shown;

use super::opener::judged;
use super::{Listening, absent};
use crate::config::HdfsConfig;
use crate::sentences::hdfs_sentence;

/// Begins to listen.
///
/// # Errors
/// When the socket can't be listened on.
pub(super) fn listen(config: HdfsConfig) -> Result<Listening, Failure> {
    let HdfsConfig { socket, socket_mode, data_dirs, memory_bytes, maps, job_ssdlets } = config;
    absent(&data_dirs, "blocks");
    let listening = format!(
        "map tasks for clients of {}: at most {maps} at once, in {memory_bytes} bytes{}",
        shown::name(&socket),
        if job_ssdlets.is_some() { ", and SSDlets that jobs bring" } else { "" }
    );
    let server = HdfsServer::bind(HdfsServerOptions {
        socket,
        socket_mode,
        data_dirs,
        memory_bytes,
        maps,
        compile: job_ssdlets.map(compile),
        product: env!("CARGO_PKG_VERSION").to_owned(),
        describe: Box::new(hdfs_sentence),
        on_event: Box::new(notice),
    })
    .map_err(|error| error.to_string())?;
    notice(&listening);
    Ok(Listening::of(server.stopper(), move || server.run()))
}

/// The compiler of SSDlets that jobs bring, within `limits`.
fn compile(limits: GuestLimits) -> Box<Compile> {
    use std::sync::Arc;

    use merganser_map::ssdlet::MapperModule;
    use merganser_map::ssdlet::MemoryLender;

    let limits = crate::command::ssdlet::limits(limits);
    Box::new(move |module: &[u8], lender: &dyn MemoryLender| {
        let module = judged(|| merganser_wasm::WasmModule::new(module, limits.clone(), lender))?;
        Ok(Arc::new(module) as Arc<dyn MapperModule>)
    })
}
