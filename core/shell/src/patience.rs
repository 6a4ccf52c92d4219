//! A moment of patience with what a process that was killed still holds.

use std::thread;
use std::time::{Duration, Instant};

/// How long a process that was killed may still have its files: until its last requests to the disk have ended.
const BUSY_PATIENCE: Duration = Duration::from_secs(3);
/// How often it is tried again.
const BUSY_LOOK: Duration = Duration::from_millis(20);

/// Tries again for a moment while a file is `busy`.
pub fn patiently<T, E>(
    mut attempt: impl FnMut() -> Result<T, E>,
    busy: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let until = Instant::now() + BUSY_PATIENCE;
    loop {
        match attempt() {
            Err(error) if busy(&error) && Instant::now() < until => thread::sleep(BUSY_LOOK),
            result => return result,
        }
    }
}
