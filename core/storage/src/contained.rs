//! Panics that end a piece of work and not the process.
//!
//! A panic is a mistake of this program, so the command ends at any of them. There are two exceptions, [`Cause`]: the work
//! of one client of a server, and code of others at bytes that a stranger sent. Such work is done by [`run`]. The
//! program's panic hook asks for the [`cause`] of a panic and lets that work unwind and fail.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a panic of contained work would mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A mistake of this program in the work of one client, which others must not pay for. It is worth a report.
    Mistake,
    /// Bytes that make no sense to code of others: the sender is at fault, and only its request may end.
    Input,
}

thread_local! {
    static CAUSE: Cell<Option<Cause>> = const { Cell::new(None) };
}

/// What a panic of this thread means now; `None` if it ends the process.
#[must_use]
pub fn cause() -> Option<Cause> {
    CAUSE.get()
}

/// Does `work` in this thread. A panic of it, or of threads that it starts by [`crate::thread`], is no reason to end the
/// process. Threads that are shared with others, such as those of storages, are not meant.
///
/// The caller drops, unused, all that `work` may have changed before it panicked, or it is whole at any moment.
///
/// # Errors
/// The value of the panic.
pub fn run<T>(cause: Cause, work: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    let before = CAUSE.replace(Some(cause));
    let result = catch_unwind(AssertUnwindSafe(work));
    CAUSE.set(before);
    result
}

/// The same for all that this thread does from now on, if its owner catches panics.
pub fn from_now_on(cause: Option<Cause>) {
    CAUSE.set(cause);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_nothing_is_left_of_it() {
        let nested = run(Cause::Mistake, || {
            let inner = run(Cause::Input, cause).expect("no panic");
            (cause(), inner, cause())
        });
        let (before, inner, after) = nested.expect("no panic");
        assert_eq!(
            (before, inner, after),
            (Some(Cause::Mistake), Some(Cause::Input), Some(Cause::Mistake))
        );
        assert!(run(Cause::Input, || -> u8 { panic!("at bad bytes") }).is_err());
        assert_eq!(cause(), None);
    }

    #[test]
    fn threads_of_contained_work_are_contained() {
        let helper =
            run(Cause::Mistake, || crate::thread::spawn("helper", cause)).expect("no panic");
        assert_eq!(helper.expect("started").join().expect("ended"), Some(Cause::Mistake));
        let scoped = run(Cause::Mistake, || {
            std::thread::scope(|scope| {
                crate::thread::spawn_scoped(scope, "scoped", cause).expect("started").join()
            })
        });
        assert_eq!(scoped.expect("no panic").expect("ended"), Some(Cause::Mistake));
        let other = crate::thread::spawn("other", cause).expect("started");
        assert_eq!(other.join().expect("ended"), None);
    }
}
