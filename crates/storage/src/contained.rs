//! Panics that end a piece of work and not the process.
//!
//! A panic is a mistake of this program, so the command ends at any of them. Code of others that reads what
//! strangers send is an exception: where it panics at bytes that make no sense, the sender is at fault, and only
//! its request may end. Such a call is made by [`run`], and a panic hook asks [`is_under_way`].

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static UNDER_WAY: Cell<bool> = const { Cell::new(false) };
}

/// The work panicked; whatever it changed may be half changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panicked;

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it was ended by a panic")
    }
}

impl std::error::Error for Panicked {}

/// Whether this thread is in [`run`].
#[must_use]
pub fn is_under_way() -> bool {
    UNDER_WAY.get()
}

/// Does `work` in this thread. The caller drops, unused, all that `work` may have changed before it panicked.
///
/// # Errors
/// When it panics.
pub fn run<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    /// Puts back what was there before.
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            UNDER_WAY.set(self.0);
        }
    }
    let _restore = Restore(UNDER_WAY.replace(true));
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Panicked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_nothing_is_left_of_it() {
        assert_eq!(run(|| (is_under_way(), run(|| 1), is_under_way())), Ok((true, Ok(1), true)));
        assert_eq!(run(|| -> u8 { panic!("at bad bytes") }), Err(Panicked));
        assert!(!is_under_way());
    }
}
