//! `merganser serve`: merges and map tasks for Hadoop, a node for sessions, calls through files, or all in one
//! process.

mod calls;
mod hdfs;
mod heap;
mod node;
mod opener;
mod shuffle;

use std::path::PathBuf;

use merganser_hadoop_node::hdfs::server::Stopper;
use merganser_shell::failure::{Failure, notice};
use merganser_shell::shown;
use merganser_shell::signals::Cancel;
use merganser_storage::thread::spawn;
pub(super) use node::token;

use crate::config::ServeConfig;

/// A server that listens. It is run in a thread of its own, until its [`ServerStop`] is called.
struct Listening {
    run: Box<dyn FnOnce() -> Result<(), Failure> + Send>,
    stop: ServerStop,
}

/// Ends a server.
type ServerStop = Box<dyn Fn() + Send>;

impl Listening {
    /// A server that can't fail once it listens.
    fn of(stopper: Stopper, run: impl FnOnce() + Send + 'static) -> Self {
        let run = move || {
            run();
            Ok(())
        };
        Listening { run: Box::new(run), stop: Box::new(move || stopper.stop()) }
    }
}

/// Reports folders that are not there yet; `what` will be read in them.
fn absent(dirs: &[PathBuf], what: &str) {
    for dir in dirs.iter().filter(|dir| !dir.is_dir()) {
        let name = shown::name(dir);
        notice(&format!("{name}: no such folder yet; its {what} can be read once it is"));
    }
}

/// Serves until a signal arrives.
pub fn run(config: ServeConfig, cancel: &Cancel) -> Result<(), Failure> {
    heap::keep_little();
    heap::give_back();
    let mut servers = Vec::new();
    if let Some(config) = config.shuffle {
        servers.push(shuffle::listen(config)?);
    }
    if let Some(config) = config.hdfs {
        servers.push(hdfs::listen(config)?);
    }
    if let Some(config) = config.calls {
        servers.push(calls::listen(config)?);
    }
    if let Some(config) = config.node {
        servers.push(node::listen(config)?);
    }
    let mut threads = Vec::new();
    let mut stops = Vec::new();
    for Listening { run, stop } in servers {
        let ended = cancel.clone();
        let work = move || {
            let result = run();
            // A server that ends by itself ends the other one.
            if result.is_err() {
                ended.set(libc::SIGTERM);
            }
            result
        };
        threads.push(spawn("serve", work).map_err(|error| Failure::named(&error))?);
        stops.push(stop);
    }
    cancel.wait();
    stops.iter().for_each(|stop| stop());
    for thread in threads {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    }
    notice("ended, as it was asked to");
    Ok(())
}
