//! What belongs to the whole process.
//!
//! After a fork the child has none of the threads of its parent, and its locks may be held by threads that are gone. So
//! a child of a process that has used the engine is refused, where it would wait forever.

use std::sync::atomic::{AtomicU32, Ordering};

use merganser_storage::contained::{self, Cause};

use crate::failure::Failure;

/// The process that used the engine first; 0 before.
static USED_BY: AtomicU32 = AtomicU32::new(0);

/// Refuses a child of a process that has used the engine.
pub(crate) fn check() -> Result<(), Failure> {
    let this = std::process::id();
    match USED_BY.compare_exchange(0, this, Ordering::Relaxed, Ordering::Relaxed) {
        Err(other) if other != this => Err(Failure::Other(
            "merganser was used before this process was forked, so it can't be used here; start processes with multiprocessing.set_start_method('forkserver') or 'spawn'"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Keeps panics quiet that a damaged file makes in the libraries of Arrow and Parquet: they become errors of that file.
pub(crate) fn expect_contained_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if contained::cause() != Some(Cause::Input) {
            before(panic);
        }
    }));
}
