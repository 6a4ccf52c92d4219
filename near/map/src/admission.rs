//! Admission of runs: memory and threads of the server, given out first come, first served.
//!
//! ```text
//!   take ──► queue ──► at the front, and enough is free? ──► Permit ──dropped──► given back
//!            bounded   no run passes the one at the front
//! ```
//!
//! A request says what it would like and the least that works, and gets what is free in between. No
//! single one gets everything (see [`Shares::one_max`]), so others always find some room.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::ssdlet::{Loan, MemoryLender, NotNow, SsdletError};

/// How long the opening of an SSDlet waits for memory.
const LOAN_PATIENCE: Duration = Duration::from_secs(20);
/// How long a waiting request sleeps before it looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(100);

/// All memory and threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Threads.
    pub threads: usize,
}

impl Shares {
    /// The most that one request gets: three quarters of the memory, and all but one thread.
    pub fn one_max(self) -> Shares {
        Shares {
            memory_bytes: self.memory_bytes / 4 * 3,
            threads: self.threads.saturating_sub(1).max(1),
        }
    }
}

/// Why a request gets nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// It needs more than one request may have.
    #[error(
        "{needed_bytes} bytes of memory are needed and a session of this server gets at most {most_bytes}"
    )]
    Least {
        /// The least memory that works for it, in bytes.
        needed_bytes: u64,
        /// The most of one request, in bytes.
        most_bytes: u64,
    },
    /// Too many wait.
    #[error("{waiting} requests wait already")]
    Queue {
        /// How many.
        waiting: usize,
    },
    /// Its patience came to an end.
    #[error("all memory or threads of this server are in use")]
    InUse,
    /// It was cancelled.
    #[error("the request was cancelled")]
    Cancelled,
}

/// What a request wants.
#[derive(Debug, Clone, Copy)]
pub struct Demand {
    /// Memory that it would like, in bytes.
    pub memory_bytes: u64,
    /// The least memory that works.
    pub memory_least_bytes: u64,
    /// Threads that it would like. One is always enough; none is for memory alone.
    pub threads: usize,
}

/// Memory and threads, and who waits for them.
#[derive(Debug)]
pub struct Admission {
    all: Shares,
    queue_max: usize,
    state: Mutex<AdmissionState>,
    changed: Condvar,
}

#[derive(Debug)]
struct AdmissionState {
    free: Shares,
    /// Numbers of the requests that wait, first come first.
    queue: VecDeque<u64>,
    next: u64,
}

/// A part of it, given back when dropped.
#[derive(Debug)]
pub struct Permit {
    admission: Arc<Admission>,
    /// The memory and threads that were given.
    pub shares: Shares,
}

impl Admission {
    /// All of `all` is free; at most `queue_max` requests wait.
    pub fn new(all: Shares, queue_max: usize) -> Arc<Self> {
        let state = AdmissionState { free: all, queue: VecDeque::new(), next: 0 };
        Arc::new(Admission { all, queue_max, state: Mutex::new(state), changed: Condvar::new() })
    }

    /// All that there is.
    pub fn all(&self) -> Shares {
        self.all
    }

    /// The free memory and threads.
    pub fn free(&self) -> Shares {
        self.state.lock().free
    }

    /// Takes `memory_bytes` that are free now, before those that wait; `None` if they are not.
    pub fn take_now(self: &Arc<Self>, memory_bytes: u64) -> Option<Permit> {
        let mut state = self.state.lock();
        state.free.memory_bytes = state.free.memory_bytes.checked_sub(memory_bytes)?;
        Some(Permit { admission: Arc::clone(self), shares: Shares { memory_bytes, threads: 0 } })
    }

    /// Waits for its turn and takes what it wants, or less.
    ///
    /// # Errors
    /// When too many wait, after `patience`, when the least is more than one request may have, or when it was cancelled.
    pub fn take(
        self: &Arc<Self>,
        demand: Demand,
        patience: Option<Duration>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Permit, AdmissionError> {
        let one = self.all.one_max();
        let most = Shares {
            memory_bytes: demand.memory_bytes.min(one.memory_bytes),
            threads: demand.threads.min(one.threads),
        };
        let least = demand.memory_least_bytes;
        if least > one.memory_bytes {
            return Err(AdmissionError::Least {
                needed_bytes: least,
                most_bytes: one.memory_bytes,
            });
        }
        let mut state = self.state.lock();
        if state.queue.len() >= self.queue_max {
            return Err(AdmissionError::Queue { waiting: state.queue.len() });
        }
        let number = state.next;
        state.next += 1;
        state.queue.push_back(number);
        let until = patience.map(|patience| Instant::now() + patience);
        let refused = loop {
            let free = state.free;
            let is_first = state.queue.front() == Some(&number);
            let has_thread = free.threads >= most.threads.min(1);
            if is_first && has_thread && free.memory_bytes >= least.min(most.memory_bytes) {
                state.queue.pop_front();
                let shares = Shares {
                    memory_bytes: most.memory_bytes.min(free.memory_bytes),
                    threads: most.threads.min(free.threads),
                };
                state.free.memory_bytes -= shares.memory_bytes;
                state.free.threads -= shares.threads;
                drop(state);
                self.changed.notify_all();
                return Ok(Permit { admission: Arc::clone(self), shares });
            }
            if cancelled() {
                break AdmissionError::Cancelled;
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                break AdmissionError::InUse;
            }
            self.changed.wait_for(&mut state, LOOK);
        };
        state.queue.retain(|other| *other != number);
        drop(state);
        self.changed.notify_all();
        Err(refused)
    }
}

/// Memory of an [`Admission`] for the opening of SSDlets, which waits for its turn like a run.
pub struct AdmissionLender(pub Arc<Admission>);

impl MemoryLender for AdmissionLender {
    fn most_bytes(&self) -> u64 {
        self.0.all.one_max().memory_bytes
    }

    fn lend(&self, bytes: u64) -> Result<Loan, SsdletError> {
        let demand = Demand { memory_bytes: bytes, memory_least_bytes: bytes, threads: 0 };
        let permit = self.0.take(demand, Some(LOAN_PATIENCE), &|| false);
        permit.map(Loan::of_permit).map_err(|_| NotNow::Memory { bytes }.into())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.admission.state.lock();
        state.free.memory_bytes += self.shares.memory_bytes;
        state.free.threads += self.shares.threads;
        drop(state);
        self.admission.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    fn demand(memory_bytes: u64, memory_least_bytes: u64, threads: usize) -> Demand {
        Demand { memory_bytes, memory_least_bytes, threads }
    }

    const NOT: &dyn Fn() -> bool = &|| false;

    #[test]
    fn nobody_gets_everything_and_all_comes_back() {
        let all = Shares { memory_bytes: 1000, threads: 3 };
        let admission = Admission::new(all, 4);
        let first = admission.take(demand(u64::MAX, 0, 99), None, NOT).expect("free");
        assert_eq!(first.shares, Shares { memory_bytes: 750, threads: 2 });
        let second = admission.take(demand(500, 100, 2), None, NOT).expect("the rest");
        assert_eq!(second.shares, Shares { memory_bytes: 250, threads: 1 });
        let busy = admission.take(demand(1, 1, 1), Some(Duration::from_millis(1)), NOT);
        assert!(matches!(busy, Err(AdmissionError::InUse)));
        let cancelled = admission.take(demand(1, 1, 1), None, &|| true);
        assert!(matches!(cancelled, Err(AdmissionError::Cancelled)));
        let never = admission.take(demand(1000, 800, 1), None, NOT);
        assert!(matches!(never, Err(AdmissionError::Least { .. })));
        drop((first, second));
        assert_eq!(admission.free(), all);
    }

    #[test]
    fn the_first_to_come_is_the_first_served() {
        let admission = Admission::new(Shares { memory_bytes: 100, threads: 8 }, 2);
        let held = admission.take(demand(40, 40, 1), None, NOT).expect("free");
        let (sender, served) = mpsc::channel();
        let mut threads = Vec::new();
        // The second would find room at once, but it does not pass the first. Next to that it has no room.
        for (name, bytes) in [("large", 75), ("small", 30)] {
            let (admission, sender) = (Arc::clone(&admission), sender.clone());
            let waiting = admission.state.lock().queue.len();
            let other = Arc::clone(&admission);
            threads.push(thread::spawn(move || {
                let permit = other.take(demand(bytes, bytes, 1), None, NOT).expect("served");
                sender.send(name).expect("heard");
                drop(permit);
            }));
            while admission.state.lock().queue.len() == waiting {
                thread::yield_now();
            }
        }
        let full = admission.take(demand(1, 1, 1), None, NOT);
        assert!(matches!(full, Err(AdmissionError::Queue { .. })), "two wait already");
        assert!(served.try_recv().is_err());
        drop(held);
        assert_eq!(served.recv(), Ok("large"));
        assert_eq!(served.recv(), Ok("small"));
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    }
}
