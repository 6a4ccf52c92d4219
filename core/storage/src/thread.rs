//! Threads, which the system may refuse.
//!
//! A user has a limit on threads, and each takes address space. Where work needs a thread of its own,
//! a refusal is an error that says so ([`spawn`], [`spawn_scoped`]). Where threads only share out work
//! that the caller could do alone, it does: [`spawn_or_run`].
//!
//! A thread that contained work starts contains its panics, too ([`crate::contained`]).

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::thread::{self, Builder, JoinHandle, Scope, ScopedJoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::{Buffer, contained};

/// Address space that a thread needs at its start: its stack, and a little for what is allocated before
/// it can report that no memory is left.
const START_BYTES: usize = 3 << 20;

/// Address space that must be free when a process begins. Its first threads start before any buffer is
/// refused, and glibc aborts if one of them finds no memory.
const FIRST_BYTES: usize = 16 << 20;

/// Refuses a process that would find no memory for its first threads: glibc aborts it then.
///
/// # Errors
/// When less than 16 MiB of address space are free, in words that say so.
pub fn check_first() -> io::Result<()> {
    Buffer::try_new(FIRST_BYTES).map(drop)
}

/// Starts a thread called `name`.
///
/// # Errors
/// When the system refuses one, in words that say so.
pub fn spawn<T: Send + 'static>(
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let work = begun_here(work);
    check_room()?;
    Builder::new().name(name.into()).spawn(work).map_err(|error| refused(&error))
}

/// `work` for a thread that this one starts: it contains its panics if this one does.
fn begun_here<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let cause = contained::cause();
    move || {
        contained::from_now_on(cause);
        prepare();
        work()
    }
}

/// Refuses a thread that would find no memory at its start: glibc aborts the process then.
fn check_room() -> io::Result<()> {
    Buffer::try_new(START_BYTES).map(drop).map_err(|error| refused(&error))
}

/// Starts a thread of `scope` called `name`.
///
/// # Errors
/// When the system refuses one, in words that say so.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let work = begun_here(work);
    check_room()?;
    Builder::new().name(name.into()).spawn_scoped(scope, work).map_err(|error| refused(&error))
}

/// Has this thread wait on a lock once, for no time. The first wait registers what is to be dropped at
/// the thread's end, and glibc aborts the process if it has no memory for that. A thread does it at its
/// start, before its buffers have taken the memory; `main` should, too.
pub fn prepare() {
    let lock = Mutex::new(());
    Condvar::new().wait_for(&mut lock.lock(), Duration::ZERO);
}

/// Lets the timed waits of this thread end when they are due. The system otherwise puts off the end of
/// a wait by up to 50 us, so that it can end several waits at once. Where the system refuses, waits
/// stay as they are.
pub fn wake_precisely() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// What the system's refusal of a thread means to a user.
#[must_use]
pub fn refused(error: &io::Error) -> io::Error {
    let reason = error.to_string();
    let reason = reason.split(" (os error").next().unwrap_or_default();
    io::Error::other(format!(
        "the system has no thread left for this process ({reason}); use fewer, or raise what it may have (ulimit -u, ulimit -v)"
    ))
}

/// Work that a thread does, or that the caller has done itself.
#[derive(Debug)]
pub enum Helper<'scope, T> {
    /// A thread is at it.
    Thread(ScopedJoinHandle<'scope, T>),
    /// The system refused a thread, and this is what came of the work.
    Done(T),
}

impl<T> Helper<'_, T> {
    /// Waits for the result.
    ///
    /// # Errors
    /// What the thread panicked with.
    pub fn join(self) -> thread::Result<T> {
        match self {
            Helper::Thread(thread) => thread.join(),
            Helper::Done(result) => Ok(result),
        }
    }
}

/// Has a thread of `scope` called `name` do `work`, or does it at once where the system refuses one.
/// The work must not wait for what the caller does later.
pub fn spawn_or_run<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Helper<'scope, T> {
    // A refused thread drops what it was to do, so it only gets a share in it.
    let work = Arc::new(Mutex::new(Some(work)));
    let take = |work: &Mutex<Option<_>>| work.lock().take().expect("taken once");
    let theirs = Arc::clone(&work);
    match spawn_scoped(scope, name, move || take(&theirs)()) {
        Ok(thread) => Helper::Thread(thread),
        Err(_) => Helper::Done(take(&work)()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_do_their_work_once() {
        let sum: u32 = thread::scope(|scope| {
            let helpers: Vec<_> =
                (0..4).map(|i| spawn_or_run(scope, "helper", move || i)).collect();
            helpers.into_iter().map(|helper| helper.join().expect("no panic")).sum()
        });
        assert_eq!(sum, 6);
        assert_eq!(Helper::Done(3).join().expect("done"), 3);
    }

    #[test]
    fn a_refusal_says_what_is_missing() {
        let error = refused(&io::Error::from_raw_os_error(libc::EAGAIN));
        assert!(error.to_string().starts_with("the system has no thread left"), "{error}");
        assert!(!error.to_string().contains("os error"), "{error}");
        assert_ne!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
