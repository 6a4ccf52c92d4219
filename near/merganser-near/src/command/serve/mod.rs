//! `merganser serve`: a node for sessions, calls through files, or both in one process.

mod calls;
mod node;
mod opener;

use merganser_shell::failure::Failure;
use merganser_shell::serving::{self, heap};
use merganser_shell::signals::Cancel;
pub(super) use node::token;

use crate::config::ServeConfig;

/// Serves until a signal arrives.
pub(super) fn run(config: ServeConfig, cancel: &Cancel) -> Result<(), Failure> {
    heap::keep_little();
    heap::give_back();
    let mut servers = Vec::new();
    if let Some(config) = config.calls {
        servers.push(calls::listen(config)?);
    }
    if let Some(config) = config.node {
        servers.push(node::listen(config, cancel)?);
    }
    serving::run(servers, cancel)
}
