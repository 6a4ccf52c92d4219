//! The progress bar: bytes, rate, time left and phase, on a terminal's stderr.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sort::Progress;

use crate::signals::Cancel;

/// A bar when stderr is a terminal and `quiet` was not asked for; either way `cancel` is passed on.
pub fn on_stderr(quiet: bool, cancel: &Cancel) -> Box<dyn Progress + Send> {
    if quiet || !std::io::stderr().is_terminal() {
        return Box::new(Silent(cancel.clone()));
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
    bar.enable_steady_tick(Duration::from_millis(500));
    Box::new(Bar { bar, cancel: cancel.clone() })
}

/// Draws nothing.
pub struct Silent(pub Cancel);

impl Progress for Silent {
    fn cancelled(&self) -> bool {
        self.0.is_set()
    }
}

/// Draws a bar, and wipes it at the end.
struct Bar {
    bar: ProgressBar,
    cancel: Cancel,
}

impl Progress for Bar {
    fn phase(&self, name: &'static str, total_bytes: Option<u64>) {
        let template = match total_bytes {
            Some(_) => "{msg:10} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
            None => "{msg:10} {spinner} {bytes} {bytes_per_sec} {elapsed}",
        };
        self.bar.reset();
        self.bar.set_length(total_bytes.unwrap_or(0));
        self.bar.set_style(ProgressStyle::with_template(template).expect("a constant template"));
        self.bar.set_message(name);
    }

    fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_set()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
