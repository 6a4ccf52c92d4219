//! `merganser hadoop serve`: merges and map tasks for Hadoop, or both in one process.

mod hdfs;
mod shuffle;

use merganser_shell::failure::Failure;
use merganser_shell::serving::{self, heap};
use merganser_shell::signals::Cancel;

use crate::config::HadoopServeConfig;

/// Serves until a signal arrives.
pub(super) fn run(config: HadoopServeConfig, cancel: &Cancel) -> Result<(), Failure> {
    heap::keep_little();
    heap::give_back();
    let mut servers = Vec::new();
    if let Some(config) = config.shuffle {
        servers.push(shuffle::listen(config)?);
    }
    if let Some(config) = config.hdfs {
        servers.push(hdfs::listen(config)?);
    }
    serving::run(servers, cancel)
}
