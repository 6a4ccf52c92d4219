//! Threads of a scope that fail together.

use std::io;
use std::thread::{Scope, ScopedJoinHandle};

use merganser_storage::thread::{Helper, spawn_or_run, spawn_scoped};
use parking_lot::{Mutex, MutexGuard};

use crate::activity::Activity;
use crate::{Error, Result};

/// The work of a crew.
pub trait Stops: Sync {
    /// Ends all work, because of `error` unless something failed before ([`FirstError`]). Workers that
    /// wait give up with [`Error::Cancelled`].
    fn fail(&self, error: Error);
}

/// The error that ended it all: the first one. [`Error::Cancelled`] gives way to any other, since others
/// give up when one fails.
#[derive(Debug, Default)]
pub struct FirstError(Mutex<Option<Error>>);

impl FirstError {
    fn lock(&self) -> MutexGuard<'_, Option<Error>> {
        self.0.lock()
    }

    /// Takes note of an error.
    pub fn note(&self, error: Error) {
        let mut first = self.lock();
        if matches!(*first, None | Some(Error::Cancelled)) {
            *first = Some(error);
        }
    }

    /// Whether something failed.
    pub fn is_set(&self) -> bool {
        self.lock().is_some()
    }

    /// The first error, if there was one.
    ///
    /// # Errors
    /// That.
    pub fn into_result(self) -> Result<()> {
        let first = self.0.into_inner();
        first.map_or(Ok(()), Err)
    }
}

/// Threads within a scope. All stop when one of them fails or panics.
pub struct Crew<'scope, 'env, S: ?Sized> {
    scope: &'scope Scope<'scope, 'env>,
    on: &'scope S,
}

impl<'scope, 'env, S: Stops + ?Sized> Crew<'scope, 'env, S> {
    /// A crew that works on `on`.
    pub fn new(scope: &'scope Scope<'scope, 'env>, on: &'scope S) -> Self {
        Crew { scope, on }
    }

    /// Starts a worker.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn spawn(
        &self,
        name: &'static str,
        work: impl FnOnce() -> Result<()> + Send + 'scope,
    ) -> io::Result<ScopedJoinHandle<'scope, ()>> {
        spawn_scoped(self.scope, name, self.watched(name, work))
    }

    /// Starts a worker. Where the system gives no thread, the caller does the work at once, so the
    /// work must not wait for anything that the caller does later.
    pub fn spawn_or_run(
        &self,
        name: &'static str,
        work: impl FnOnce() -> Result<()> + Send + 'scope,
    ) -> Helper<'scope, ()> {
        spawn_or_run(self.scope, name, self.watched(name, work))
    }

    fn watched(
        &self,
        name: &'static str,
        work: impl FnOnce() -> Result<()> + Send + 'scope,
    ) -> impl FnOnce() + Send + 'scope {
        let (on, here) = (self.on, Activity::here());
        move || {
            let _worker = here.enroll(name);
            let _alarm = CrewAlarm(on);
            if let Err(error) = work() {
                on.fail(error);
            }
        }
    }
}

/// Stops all when a thread panics; the scope then panics, too.
struct CrewAlarm<'a, S: Stops + ?Sized>(&'a S);

impl<S: Stops + ?Sized> Drop for CrewAlarm<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(Error::Cancelled);
        }
    }
}
