//! The end of work that is no failure.

use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The interval at which a wait for a file to become ready checks for cancellation.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The reason for which a read or a write ended without a failure. It is the inner error of an
/// [`io::Error`]. An [`io::ErrorKind`] would be ambiguous, since files can fail with each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The end was asked for.
    Cancelled,
    /// The reader of the output went away.
    ClosedPipe,
}

impl Stopped {
    /// Whether `error` is, or was caused by, one of these.
    #[must_use]
    pub fn of_error(error: &io::Error) -> Option<Self> {
        inner(error)
    }
}

/// The first of the errors inside `error` that is a `T`.
#[must_use]
pub fn inner<T: Error + Copy + 'static>(error: &io::Error) -> Option<T> {
    let mut cause: Option<&(dyn Error + 'static)> = error.get_ref().map(|inner| inner as _);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(*found);
        }
        cause = match error.downcast_ref::<io::Error>() {
            // Its own source would be that of its inner error.
            Some(error) => error.get_ref().map(|inner| inner as _),
            None => error.source(),
        };
    }
    None
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stopped::Cancelled => "cancelled",
            Stopped::ClosedPipe => "closed by its reader",
        })
    }
}

impl Error for Stopped {}

impl From<Stopped> for io::Error {
    fn from(stopped: Stopped) -> Self {
        io::Error::other(stopped)
    }
}

/// Says whether the end of the work was asked for, by a signal in a program.
pub trait Cancellation: Send + Sync {
    /// Whether the end was asked for.
    fn is_cancelled(&self) -> bool;

    /// Fails with [`Stopped::Cancelled`] once the end was asked for.
    ///
    /// # Errors
    /// That one.
    fn check(&self) -> io::Result<()> {
        if self.is_cancelled() { Err(Stopped::Cancelled.into()) } else { Ok(()) }
    }
}

/// Waits until `file` is ready for `events`, or has failed.
///
/// # Errors
/// [`Stopped::Cancelled`] once `cancel` asks for the end.
pub fn wait_for(cancel: &dyn Cancellation, file: &impl AsFd, events: PollFlags) -> io::Result<()> {
    let mut wanted = [PollFd::new(file, events)];
    loop {
        cancel.check()?;
        // 0 means that the file is not ready. A signal in this thread is an error.
        if poll(&mut wanted, Some(&LOOK)).is_ok_and(|ready| ready > 0) {
            return Ok(());
        }
    }
}
