//! Requests that run while a thread waits for them, or does other work.
//!
//! This is the only place with threads of tokio. Whoever waits looks at times whether the end was asked for, so a store that
//! does not answer holds no program up.

use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// Threads that send and receive: they mostly wait, and decrypt.
const THREADS: usize = 2;
/// The interval at which a wait looks whether the end was asked for.
const LOOK: Duration = Duration::from_millis(50);

/// Runs requests.
pub(crate) struct Requests {
    runtime: Runtime,
    is_cancelled: Box<dyn Fn() -> bool + Send + Sync>,
}

/// A request that has begun. If it is dropped, it ends.
pub(crate) struct BegunRequest<T> {
    requests: Arc<Requests>,
    answer: Receiver<T>,
    task: JoinHandle<()>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The end was asked for.
    Cancelled,
    /// It took too long.
    Late,
}

impl Requests {
    pub(crate) fn new(
        is_cancelled: Box<dyn Fn() -> bool + Send + Sync>,
    ) -> std::io::Result<Arc<Requests>> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("objects")
            .enable_all()
            .build()?;
        Ok(Arc::new(Requests { runtime, is_cancelled }))
    }

    /// Begins a request. It must not hold `self`, whose threads can't be ended by one of them.
    pub(crate) fn begin<T: Send + 'static>(
        self: &Arc<Self>,
        request: impl Future<Output = T> + Send + 'static,
    ) -> BegunRequest<T> {
        let (send, answer) = sync_channel(1);
        let task = self.runtime.spawn(async move {
            // Without a thread that waits, the answer is of no use.
            let _ = send.send(request.await);
        });
        BegunRequest { requests: Arc::clone(self), answer, task }
    }

    /// Begins a request and waits for it.
    pub(crate) fn run<T: Send + 'static>(
        self: &Arc<Self>,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, NoAnswer> {
        self.begin(request).wait()
    }

    /// The same for a request that ends what was begun: it is sent even if the end was asked for, and waited for so long.
    pub(crate) fn run_at_end<T: Send + 'static>(
        self: &Arc<Self>,
        patience: Duration,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, NoAnswer> {
        let end = Instant::now() + patience;
        self.begin(request).wait_until(|| (Instant::now() >= end).then_some(NoAnswer::Late))
    }
}

impl<T> BegunRequest<T> {
    /// Waits for its answer.
    pub(crate) fn wait(self) -> Result<T, NoAnswer> {
        let requests = Arc::clone(&self.requests);
        self.wait_until(|| (requests.is_cancelled)().then_some(NoAnswer::Cancelled))
    }

    fn wait_until(self, stop: impl Fn() -> Option<NoAnswer>) -> Result<T, NoAnswer> {
        loop {
            match self.answer.recv_timeout(LOOK) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(why) = stop() {
                        return Err(why);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => panic!("a request has panicked"),
            }
        }
    }
}

impl<T> Drop for BegunRequest<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
