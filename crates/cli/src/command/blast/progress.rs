//! The progress of the last steps, on a terminal's stderr.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Says what is done, until it is dropped.
pub struct Progress(Option<ProgressBar>);

/// Draws when stderr is a terminal and `quiet` was not asked for.
pub fn on_stderr(quiet: bool) -> Progress {
    if quiet || !std::io::stderr().is_terminal() {
        return Progress(None);
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
    let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
    bar.set_style(style.expect("a constant template"));
    bar.enable_steady_tick(Duration::from_millis(500));
    Progress(Some(bar))
}

impl Progress {
    /// What is done now.
    pub fn says(&self, step: &'static str) {
        if let Some(bar) = &self.0 {
            bar.set_message(step);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
