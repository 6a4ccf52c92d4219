//! The progress of a pipeline: partitions by stage, on a terminal's stderr.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use merganser_pipeline::{PipelineSettings, PipelineWatch, Standing};
use merganser_shell::signals::Cancel;

/// When the end is asked for, and how the reads of the inputs are ended then.
pub(super) struct Cancels {
    /// The command's own.
    pub command: Cancel,
    /// That of the inputs: it ends reads that wait, also when the pipeline has failed.
    pub reading: Cancel,
}

impl Cancels {
    fn end_reading(&self) {
        // Any signal will do, because none is reported.
        self.reading.set(libc::SIGTERM);
    }
}

/// A bar when stderr is a terminal and `quiet` was not asked for; either way `cancels` are passed on.
pub(super) fn on_stderr(
    settings: &PipelineSettings,
    quiet: bool,
    cancels: Cancels,
) -> Box<dyn PipelineWatch + Send> {
    if quiet || !std::io::stderr().is_terminal() {
        return Box::new(PipelineSilent(cancels));
    }
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(5));
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent}% {elapsed}");
    bar.set_style(style.expect("a constant template"));
    bar.enable_steady_tick(Duration::from_millis(500));
    let names = settings.stages.iter().map(|stage| stage.name.clone()).collect();
    Box::new(PipelineBar { bar, names, cancels })
}

/// Draws nothing.
struct PipelineSilent(Cancels);

impl PipelineWatch for PipelineSilent {
    fn cancelled(&self) -> bool {
        self.0.command.is_set()
    }

    fn standing(&self, _: &Standing) {}

    fn ends_early(&self) {
        self.0.end_reading();
    }
}

/// Draws a bar, and wipes it at the end.
struct PipelineBar {
    bar: ProgressBar,
    names: Vec<String>,
    cancels: Cancels,
}

impl PipelineWatch for PipelineBar {
    fn cancelled(&self) -> bool {
        self.cancels.command.is_set()
    }

    fn standing(&self, standing: &Standing) {
        let (text, done, all) = words(&self.names, standing);
        self.bar.set_message(text);
        self.bar.set_length(all);
        self.bar.set_position(done);
    }

    fn ends_early(&self) {
        self.cancels.end_reading();
    }
}

impl Drop for PipelineBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// `cut 5/8 format 4 search 2`, how many stages of partitions ran, and how many there are, about.
fn words(names: &[String], standing: &Standing) -> (String, u64, u64) {
    let cut = standing.cut as u64;
    let all = match standing.total_bytes {
        _ if standing.all_cut => cut,
        Some(total) if standing.cut_bytes > 0 => {
            let share = total.max(standing.cut_bytes) as f64 / standing.cut_bytes as f64;
            (cut as f64 * share).round() as u64
        }
        _ => cut + 1,
    };
    let about = if standing.all_cut { "" } else { "~" };
    let mut text = format!("cut {cut}/{about}{all}");
    for (name, passed) in names.iter().zip(&standing.passed) {
        // Writing into a string never fails.
        let _ = write!(text, " {name} {passed}");
    }
    let done = standing.passed.iter().map(|passed| *passed as u64).sum();
    (text, done, all * names.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_counted() {
        let names = ["format".to_owned(), "search".to_owned()];
        let mut standing = Standing {
            cut_bytes: 50,
            total_bytes: Some(100),
            cut: 4,
            all_cut: false,
            passed: vec![3, 2],
        };
        assert_eq!(words(&names, &standing), ("cut 4/~8 format 3 search 2".to_owned(), 5, 16));
        standing.all_cut = true;
        assert_eq!(words(&names, &standing), ("cut 4/4 format 3 search 2".to_owned(), 5, 8));
    }
}
