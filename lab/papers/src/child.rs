//! A process that an experiment runs.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};

use crate::lab::Lab;

/// The process that runs at the moment. It gets SIGTERM when the experiment is cancelled.
pub(crate) struct Child(Arc<Mutex<Option<u32>>>);

impl Child {
    /// No process yet.
    pub(crate) fn watched(lab: &Lab<'_>) -> Self {
        let running: Arc<Mutex<Option<u32>>> = Arc::default();
        let (caller, watched) = (Arc::clone(lab.caller), Arc::clone(&running));
        std::thread::spawn(move || {
            caller.wait_until_cancelled();
            if let Some(id) = *watched.lock() {
                // The child is not reaped: `set(None)` comes before.
                if let Some(id) = Pid::from_raw(id.cast_signed()) {
                    let _ = kill_process(id, Signal::TERM);
                }
            }
        });
        Child(running)
    }

    /// Sets the process that runs; `None` before it is reaped.
    pub(crate) fn set(&self, id: Option<u32>) {
        *self.0.lock() = id;
    }

    /// Returns how the process ended, if it has. It is forgotten when it is reaped.
    pub(crate) fn poll(&self, child: &mut std::process::Child) -> io::Result<Option<ExitStatus>> {
        // The lock is held meanwhile: after the reap, no signal may go to this process number.
        let mut running = self.0.lock();
        let status = child.try_wait()?;
        if status.is_some() {
            *running = None;
        }
        Ok(status)
    }
}
