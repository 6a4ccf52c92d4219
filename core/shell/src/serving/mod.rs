//! Servers of one process, from the first word that they print to their end.

pub mod heap;

use std::path::PathBuf;

use merganser_storage::thread::spawn;

use crate::failure::{Failure, notice};
use crate::signals::Cancel;
use crate::{service_manager, shown};

/// A server that listens. It is run in a thread of its own, until its [`ServerStop`] is called.
pub struct Listening {
    /// Serves until it is stopped.
    pub run: Box<dyn FnOnce() -> Result<(), Failure> + Send>,
    /// Stops it.
    pub stop: ServerStop,
}

/// Ends a server.
pub type ServerStop = Box<dyn Fn() + Send>;

impl Listening {
    /// A server that can't fail once it listens.
    pub fn sure(run: impl FnOnce() + Send + 'static, stop: impl Fn() + Send + 'static) -> Self {
        let run = move || {
            run();
            Ok(())
        };
        Listening { run: Box::new(run), stop: Box::new(stop) }
    }
}

/// Reports folders that are not there yet; `what` will be read in them.
pub fn tell_absent(dirs: &[PathBuf], what: &str) {
    for dir in dirs.iter().filter(|dir| !dir.is_dir()) {
        let name = shown::name(dir);
        notice(&format!("{name}: no such folder yet; its {what} can be read once it is"));
    }
}

/// Runs all servers until a signal arrives, or one of them fails.
///
/// # Errors
/// That of the server that failed.
pub fn run(servers: Vec<Listening>, cancel: &Cancel) -> Result<(), Failure> {
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
    // All of them listen: a client that comes before its server accepts waits.
    service_manager::ready();
    cancel.wait();
    service_manager::stopping();
    stops.iter().for_each(|stop| stop());
    for thread in threads {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    }
    notice("ended, as it was asked to");
    Ok(())
}
