//! The thread that does a job, and the caller that waits for it.
//!
//! ```text
//!   caller    waits 50 ms without the interpreter's lock ─► signals? cancelled? progress ─► waits ...
//!   engine    works; looks at `Watch::cancelled` ─────────────────────────────────────────► result
//! ```
//!
//! Python handles signals in its main thread only, between its own instructions, so the engine can't have that thread.
//!
//! A job that is stopped may be in the middle of a sort of its memory, or of a row group. Its caller does not wait for that:
//! the thread ends soon after, and removes what it made. The next job, and the end of the process, wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use merganser_results::stopped::Cancellation;
use merganser_sort::Progress;
use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::failure::Failure;
use crate::process;

/// The time between two looks at signals: a quarter of what a user should wait after Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// How long the caller waits for a job that it has stopped: with two looks before, less than 0.2 seconds.
const PATIENCE: Duration = Duration::from_millis(90);

/// How long the next job, and the end of the process, wait for threads of stopped jobs. Longer, they are not ending: they
/// wait for a table of another library.
const PATIENCE_LATER: Duration = Duration::from_secs(10);

/// The threads of jobs that were stopped.
static ENDING: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Waits until the threads of stopped jobs have ended, or until `look` fails.
fn wait_for_ending(py: Python<'_>, look: impl Fn() -> PyResult<()>) -> PyResult<()> {
    let begun = Instant::now();
    loop {
        let mut ending = ENDING.lock();
        ending.retain(|thread| !thread.is_finished());
        if ending.is_empty() || begun.elapsed() > PATIENCE_LATER {
            return Ok(());
        }
        drop(ending);
        look()?;
        py.detach(|| std::thread::sleep(LOOK / 10));
    }
}

/// Waits for what stopped jobs still remove; Python calls it when it ends.
#[pyfunction]
pub(crate) fn wait_for_jobs(py: Python<'_>) -> PyResult<()> {
    // A process that was forked has none of these threads.
    if process::check().is_err() { Ok(()) } else { wait_for_ending(py, || Ok(())) }
}

/// What the thread of a job and its caller tell each other.
#[derive(Default)]
pub(crate) struct Watch {
    stop: AtomicBool,
    phase: Mutex<Phase>,
}

#[derive(Clone, Copy, Default)]
struct Phase {
    name: &'static str,
    done: u64,
    total: Option<u64>,
}

impl Progress for Watch {
    fn phase(&self, name: &'static str, total_bytes: Option<u64>) {
        let total = total_bytes.filter(|total| *total > 0);
        *self.phase.lock() = Phase { name, done: 0, total };
    }

    fn advance(&self, bytes: u64) {
        self.phase.lock().done += bytes;
    }

    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Cancellation for Watch {
    fn is_cancelled(&self) -> bool {
        self.cancelled()
    }
}

/// The functions of Python that are called while a job is done.
pub(crate) struct Callers {
    /// Gets the name of the phase, its bytes so far, and all of them or None.
    pub(crate) progress: Option<Py<PyAny>>,
    /// Returns whether to stop.
    pub(crate) cancel: Option<Py<PyAny>>,
}

impl Callers {
    /// Tells how far the job is, and asks whether to stop.
    fn look(&self, py: Python<'_>, watch: &Watch) -> PyResult<()> {
        py.check_signals()?;
        if let Some(progress) = &self.progress {
            let Phase { name, done, total } = *watch.phase.lock();
            if !name.is_empty() {
                progress.call1(py, (name, done, total))?;
            }
        }
        if let Some(cancel) = &self.cancel
            && cancel.call0(py)?.is_truthy(py)?
        {
            return Err(Failure::Engine(merganser_sort::Error::Cancelled).into());
        }
        Ok(())
    }
}

/// Has a thread do `job`, and waits for it.
///
/// # Errors
/// Those of the job; a signal's exception; that of a caller, after which the job is stopped.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    callers: &Callers,
    job: impl FnOnce(&Arc<Watch>) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    process::check()?;
    wait_for_ending(py, || py.check_signals())?;
    let watch = Arc::new(Watch::default());
    let (sender, receiver) = sync_channel(1);
    let theirs = Arc::clone(&watch);
    let work = move || {
        // The receiver is gone if the caller has lost its patience.
        let _ = sender.send(job(&theirs));
    };
    let thread = merganser_storage::thread::spawn("merganser", work).map_err(Failure::from)?;
    let mut receiver = receiver;
    let mut stopped: Option<(PyErr, Instant)> = None;
    loop {
        // A receiver can't be shared, so it goes into the wait and comes back.
        let waited;
        (waited, receiver) = py.detach(move || (receiver.recv_timeout(LOOK), receiver));
        match waited {
            Ok(result) => {
                let _ = py.detach(|| thread.join());
                return match stopped {
                    Some((error, _)) => Err(error),
                    None => {
                        callers.look_last(py, &watch)?;
                        Ok(result?)
                    }
                };
            }
            Err(RecvTimeoutError::Disconnected) => {
                let panic = py.detach(|| thread.join()).err();
                return Err(Failure::Other(internal(panic.as_deref())).into());
            }
            Err(RecvTimeoutError::Timeout) => match &stopped {
                None => {
                    if let Err(error) = callers.look(py, &watch) {
                        watch.stop.store(true, Ordering::Relaxed);
                        stopped = Some((error, Instant::now()));
                    }
                }
                Some((error, since)) if since.elapsed() > PATIENCE => {
                    ENDING.lock().push(thread);
                    return Err(error.clone_ref(py));
                }
                Some(_) => {}
            },
        }
    }
}

impl Callers {
    /// Tells the end of the last phase. A job that is done can't be stopped.
    fn look_last(&self, py: Python<'_>, watch: &Watch) -> PyResult<()> {
        if let Some(progress) = &self.progress {
            let Phase { name, done, total } = *watch.phase.lock();
            if !name.is_empty() {
                progress.call1(py, (name, done, total))?;
            }
        }
        Ok(())
    }
}

/// The sentence for a mistake of this program.
pub(crate) fn internal(panic: Option<&(dyn std::any::Any + Send)>) -> String {
    let text = panic.and_then(|panic| {
        let owned = panic.downcast_ref::<String>().map(String::as_str);
        owned.or_else(|| panic.downcast_ref::<&str>().copied())
    });
    format!("internal error: {}; please report it", text.unwrap_or("a thread has ended early"))
}
