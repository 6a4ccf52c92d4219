//! A processor for the emulation alone (`--cpu`).
//!
//! Threads are woken in microseconds only by a processor that does not sleep. So a thread of the lowest
//! priority keeps it awake: it runs while no other thread of that processor wants to.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, yield_now};

use merganser_shell::failure::Failure;
use merganser_storage::thread::spawn;
use rustix::thread::{CpuSet, sched_setaffinity};

/// The processor is kept awake until this is dropped.
pub(super) struct AwakeProcessor {
    ends: Arc<AtomicBool>,
    awake: Option<JoinHandle<()>>,
}

impl AwakeProcessor {
    /// Moves this thread to the processor, and all threads that it starts from here on.
    pub(super) fn take(number: usize) -> Result<AwakeProcessor, Failure> {
        let failed = |error: io::Error| Failure::from(format!("--cpu {number}: {error}"));
        if number >= CpuSet::MAX_CPU {
            return Err(format!("--cpu {number}: no machine has so many processors").into());
        }
        let mut only = CpuSet::new();
        only.set(number);
        sched_setaffinity(None, &only).map_err(|error| failed(error.into()))?;
        let ends = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&ends);
        let awake = spawn("awake", move || {
            // At a higher priority it would keep the others waiting.
            if run_last().is_ok() {
                while !theirs.load(Ordering::Relaxed) {
                    // A kernel that preempts lazily lets a woken thread run when this one calls it.
                    yield_now();
                }
            }
        })
        .map_err(failed)?;
        Ok(AwakeProcessor { ends, awake: Some(awake) })
    }
}

impl Drop for AwakeProcessor {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(awake) = self.awake.take() {
            awake.join().expect("it only spins");
        }
    }
}

/// Gives this thread the lowest priority.
fn run_last() -> io::Result<()> {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call only reads `param`, which lives until it returns; 0 is this thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const param) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
