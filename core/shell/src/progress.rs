//! The progress bar: bytes, rate, time left and phase, on a terminal's stderr.

use std::fmt;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{
    HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};
use merganser_sort::Progress;

use crate::signals::Cancel;

/// A bar when stderr is a terminal and `quiet` was not asked for; either way `cancel` is passed on.
pub fn on_stderr(quiet: bool, cancel: &Cancel) -> Box<dyn Progress + Send> {
    if quiet || !std::io::stderr().is_terminal() {
        return Box::new(HiddenBar(cancel.clone()));
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
    // Nothing to show before the first phase.
    bar.set_style(style(""));
    bar.enable_steady_tick(Duration::from_millis(500));
    Box::new(DrawnBar { bar, cancel: cancel.clone() })
}

/// Draws nothing.
pub struct HiddenBar(pub Cancel);

impl Progress for HiddenBar {
    fn cancelled(&self) -> bool {
        self.0.is_set()
    }
}

/// Draws a bar, and wipes it at the end.
struct DrawnBar {
    bar: ProgressBar,
    cancel: Cancel,
}

impl Progress for DrawnBar {
    fn phase(&self, name: &'static str, total_bytes: Option<u64>) {
        let template = match total_bytes {
            Some(_) => "{msg:10} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {left}",
            None => "{msg:10} {spinner} {done} {elapsed}",
        };
        self.bar.set_style(style(template));
        self.bar.set_message(name);
        self.bar.set_length(total_bytes.unwrap_or(0));
        self.bar.reset();
    }

    fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_set()
    }
}

/// The style of a template, with `left` for the remaining time once it can be estimated, and `done` for bytes and rate once
/// there are some: not all phases have any.
fn style(template: &str) -> ProgressStyle {
    let left = |state: &ProgressState, out: &mut dyn fmt::Write| {
        if state.per_sec() > 0.0 {
            // A line that can't be drawn is not drawn.
            let _ = write!(out, "{:#} left", HumanDuration(state.eta()));
        }
    };
    let done = |state: &ProgressState, out: &mut dyn fmt::Write| {
        if state.pos() > 0 {
            let (bytes, per_second) = (state.pos(), state.per_sec() as u64);
            let _ = write!(out, "{} {}/s", HumanBytes(bytes), HumanBytes(per_second));
        }
    };
    let style = ProgressStyle::with_template(template).expect("a constant template");
    style.with_key("left", left).with_key("done", done)
}

impl Drop for DrawnBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
