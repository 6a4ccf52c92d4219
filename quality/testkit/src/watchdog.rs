//! A bound on how long a test's work may take.

use std::fmt::Display;
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Runs `work` on a thread of its own and returns its result. `what` names it when it takes too
/// long.
///
/// # Panics
/// When it is not done after `limit`, and as `work` does.
pub fn within<T: Send + 'static>(
    what: &dyn Display,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (done, wait) = channel();
    let worker = std::thread::spawn(move || {
        // After the limit, no receiver is left.
        let _ = done.send(work());
    });
    match wait.recv_timeout(limit) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("{what}: not done after {limit:?}"),
        Err(RecvTimeoutError::Disconnected) => match worker.join() {
            Err(panic) => resume_unwind(panic),
            Ok(()) => unreachable!("a result is sent before the end"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn results_and_panics_come_through_and_a_hang_is_one() {
        let limit = Duration::from_secs(60);
        assert_eq!(within(&"", limit, || 5), 5);
        let text = |caught: std::thread::Result<()>| {
            let panic = caught.expect_err("panics");
            let text = panic.downcast_ref::<String>().cloned();
            text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
        };
        let panics = catch_unwind(|| within(&"", limit, || panic!("why")));
        assert_eq!(text(panics).as_deref(), Some("why"));
        let (hold, held) = channel::<()>();
        let hangs = catch_unwind(|| {
            within(&"seed 5", Duration::from_millis(1), move || {
                let _ = held.recv();
            });
        });
        drop(hold);
        assert_eq!(text(hangs).as_deref(), Some("seed 5: not done after 1ms"));
    }
}
