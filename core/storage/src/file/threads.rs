//! The plain engine: a few threads that make blocking calls.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};

use super::flight::{Flight, SystemCall};
use crate::thread::refused;

/// More threads than this no longer make a disk faster.
const THREADS_MAX: u32 = 16;

/// A pool of threads. Dropping it waits for everything submitted.
pub(super) struct ThreadPool {
    shared: Arc<PoolShared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct PoolShared {
    inbox: Mutex<PoolInbox>,
    arrived: Condvar,
}

#[derive(Default)]
struct PoolInbox {
    queue: VecDeque<Flight>,
    closing: bool,
}

impl ThreadPool {
    pub(super) fn start(queue_depth: u32) -> io::Result<ThreadPool> {
        let mut pool = ThreadPool { shared: Arc::default(), threads: Vec::new() };
        for _ in 0..queue_depth.clamp(1, THREADS_MAX) {
            let shared = Arc::clone(&pool.shared);
            let builder = thread::Builder::new().name("storage".to_owned()).stack_size(128 << 10);
            match builder.spawn(move || work(&shared)) {
                Ok(thread) => pool.threads.push(thread),
                // Fewer are slower, and do.
                Err(_) if !pool.threads.is_empty() => break,
                Err(error) => return Err(refused(&error)),
            }
        }
        Ok(pool)
    }

    pub(super) fn submit(&self, flight: Flight) {
        self.shared.inbox.lock().queue.push_back(flight);
        self.shared.arrived.notify_one();
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.shared.inbox.lock().closing = true;
        self.shared.arrived.notify_all();
        // What collects the last completion may let go of the pool, in one of its threads: that ends by itself then.
        let this = thread::current().id();
        for thread in self.threads.drain(..).filter(|thread| thread.thread().id() != this) {
            thread.join().expect("workers do not panic");
        }
    }
}

fn work(shared: &PoolShared) {
    let mut inbox = shared.inbox.lock();
    loop {
        if let Some(flight) = inbox.queue.pop_front() {
            drop(inbox);
            let mut next = Some(flight);
            while let Some(mut flight) = next {
                let call = flight.call();
                next = flight.took(make(call));
            }
            inbox = shared.inbox.lock();
        } else if inbox.closing {
            return;
        } else {
            shared.arrived.wait(&mut inbox);
        }
    }
}

/// Makes `call`, blocking; the count, or the negative error number.
fn make(call: SystemCall) -> i32 {
    // The flight has checked that every end of a range fits an `i64`.
    let signed = u64::cast_signed;
    let short = |count: isize| i32::try_from(count).expect("a piece is at most 1 GiB");
    let result = match call {
        SystemCall::Read { fd, to, len, offset } => {
            // SAFETY: the flight owns `len` writable bytes there until it gets the result.
            short(unsafe { libc::pread64(fd, to.cast(), len, signed(offset)) })
        }
        SystemCall::Write { fd, from, len, offset } => {
            // SAFETY: the flight owns `len` initialised bytes there until it gets the result.
            short(unsafe { libc::pwrite64(fd, from.cast(), len, signed(offset)) })
        }
        SystemCall::Sync { fd } => {
            // SAFETY: no memory is passed.
            unsafe { libc::fdatasync(fd) }
        }
        SystemCall::Allocate { fd, mode, offset, len } => {
            // SAFETY: no memory is passed.
            unsafe { libc::fallocate64(fd, mode, signed(offset), signed(len)) }
        }
    };
    if result < 0 {
        -io::Error::last_os_error().raw_os_error().expect("from the system")
    } else {
        result
    }
}
