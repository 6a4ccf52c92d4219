//! Map tasks of Hadoop.

use std::sync::Arc;

use merganser_guests::{judged, of_engine};
use merganser_hadoop_node::hdfs::Compile;
use merganser_hadoop_node::hdfs::server::{HdfsServer, HdfsServerOptions};
use merganser_map::ssdlet::{MapperModule, MemoryLender};
use merganser_serve::session::GuestLimits;
use merganser_shell::failure::{Failure, notice};
use merganser_shell::serving::{Listening, tell_absent};
use merganser_shell::shown;

use crate::config::HdfsConfig;
use crate::sentences::hdfs_sentence;

/// Begins to listen.
///
/// # Errors
/// When the socket can't be listened on.
pub(super) fn listen(config: HdfsConfig) -> Result<Listening, Failure> {
    let HdfsConfig { socket, socket_mode, data_dirs, memory_bytes, maps, job_ssdlets } = config;
    tell_absent(&data_dirs, "blocks");
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
    let stopper = server.stopper();
    Ok(Listening::sure(move || server.run(), move || stopper.stop()))
}

/// The compiler of SSDlets that jobs bring, within `limits`.
fn compile(limits: GuestLimits) -> Box<Compile> {
    let limits = of_engine(limits);
    Box::new(move |module: &[u8], lender: &dyn MemoryLender| {
        let module = judged(|| merganser_wasm::WasmModule::new(module, limits.clone(), lender))?;
        Ok(Arc::new(module) as Arc<dyn MapperModule>)
    })
}
