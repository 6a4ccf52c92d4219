//! The progress of a command on stderr: phase, bytes, rate and time left, as a bar on a terminal or as lines for a log.
//!
//! ```text
//!   engine ─ phase, advance ─► DrawnBar      redrawn every 200 ms, wiped at the end
//!                           ├► LoggedLines   a line a phase, and one every 10 s by a thread of its own
//!                           └► HiddenBar     nothing
//! ```
//!
//! A phase that has not moved a byte yet is shown with the rate of the phase before it: a merge reads for a while
//! before it writes, and a rate of 0 without a time looks like a fault.

use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{
    HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};
use merganser_pages::text;
use merganser_sort::Progress;
use parking_lot::{Condvar, Mutex};

use crate::failure::notice;
use crate::signals::Cancel;

/// The time between two lines of a log.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// A command that took less than this, on a terminal, ends without a line: no bar was read, either.
const SUMMARY_AFTER: Duration = Duration::from_secs(2);

/// The form in which progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressForm {
    /// A bar if stderr is a terminal, or else nothing.
    Bar,
    /// Lines, wherever stderr goes.
    Lines,
    /// Nothing.
    Nothing,
}

impl ProgressForm {
    /// A bar, or nothing if `quiet` was asked for.
    pub fn bar_unless(quiet: bool) -> Self {
        if quiet { ProgressForm::Nothing } else { ProgressForm::Bar }
    }
}

/// A bar when stderr is a terminal and `quiet` was not asked for; either way `cancel` is passed on.
pub fn on_stderr(quiet: bool, cancel: &Cancel) -> Box<dyn Progress + Send> {
    in_form(ProgressForm::bar_unless(quiet), cancel)
}

/// Progress in the form that was asked for; in any form `cancel` is passed on.
pub fn in_form(form: ProgressForm, cancel: &Cancel) -> Box<dyn Progress + Send> {
    match form {
        ProgressForm::Lines => Box::new(LoggedLines::start(cancel.clone(), LINE_EVERY, |line| {
            notice(line);
        })),
        ProgressForm::Bar if io::stderr().is_terminal() => Box::new(DrawnBar::start(cancel)),
        ProgressForm::Bar | ProgressForm::Nothing => Box::new(HiddenBar(cancel.clone())),
    }
}

/// What a command did, in one line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkSummary {
    /// The work in one word, such as `sorted`.
    pub done: &'static str,
    /// Records of the result, if they were counted.
    pub records: Option<u64>,
    /// Bytes of the input, or of the result if no input was counted.
    pub bytes: Option<u64>,
    /// Bytes written to temporary files and to the result, if they were counted.
    pub written_bytes: Option<u64>,
}

impl WorkSummary {
    /// Tells it on stderr, where it does not disturb: in lines that were asked for, and on a terminal that had a bar to
    /// read and is not that of the result.
    pub fn tell(&self, form: ProgressForm, took: Duration) {
        let is_wanted = match form {
            ProgressForm::Lines => true,
            ProgressForm::Bar => {
                let is_read = io::stderr().is_terminal() && !io::stdout().is_terminal();
                took >= SUMMARY_AFTER && is_read
            }
            ProgressForm::Nothing => false,
        };
        if is_wanted {
            notice(&self.line(took));
        }
    }

    fn line(&self, took: Duration) -> String {
        let seconds = took.as_secs_f64();
        let mut line = self.done.to_owned();
        if let Some(records) = self.records {
            let noun = if records == 1 { "record" } else { "records" };
            line.push_str(&format!(" {} {noun},", text::count(records)));
        }
        if let Some(bytes) = self.bytes {
            line.push_str(&format!(" {},", text::bytes(bytes)));
        }
        line.push_str(&format!(" in {}", text::seconds(seconds)));
        let Some(bytes) = self.bytes.filter(|bytes| *bytes > 0) else { return line };
        line.push_str(&format!(": {}", text::rate(bytes as f64 / seconds.max(1e-9))));
        if let Some(written) = self.written_bytes {
            let share = written as f64 / bytes as f64;
            line.push_str(&format!(", {share:.2} bytes written per byte"));
        }
        line
    }
}

/// Draws nothing.
pub struct HiddenBar(pub Cancel);

impl Progress for HiddenBar {
    fn cancelled(&self) -> bool {
        self.0.is_set()
    }
}

/// The bytes of a phase, and how fast they went.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PhasePace {
    done: u64,
    total: Option<u64>,
    elapsed: Duration,
    /// Bytes per second of the phase before; 0 if there was none.
    rate_before: f64,
}

impl PhasePace {
    /// Bytes per second: of this phase, or of the one before it until this one has moved a byte. 0 if neither is known.
    fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if self.done == 0 || seconds == 0.0 { self.rate_before } else { self.done as f64 / seconds }
    }

    /// The time that the rest of the phase takes at this rate.
    fn left(&self) -> Option<Duration> {
        let (rate, rest) = (self.rate(), self.total?.saturating_sub(self.done));
        (rate > 0.0).then(|| Duration::try_from_secs_f64(rest as f64 / rate).ok()).flatten()
    }
}

/// Tells a line for each phase, and one every while in between.
struct LoggedLines {
    cancel: Cancel,
    log: Arc<ProgressLog>,
    ticking: Option<JoinHandle<()>>,
}

/// The state of a log, which its thread shares.
struct ProgressLog {
    tell: fn(&str),
    started: Instant,
    done: AtomicU64,
    phase: Mutex<LoggedPhase>,
    ended: Condvar,
}

/// The phase that is logged.
struct LoggedPhase {
    name: &'static str,
    total: Option<u64>,
    started: Instant,
    rate_before: f64,
    has_ended: bool,
}

impl LoggedLines {
    fn start(cancel: Cancel, every: Duration, tell: fn(&str)) -> Self {
        let started = Instant::now();
        let phase =
            LoggedPhase { name: "", total: None, started, rate_before: 0.0, has_ended: false };
        let log = Arc::new(ProgressLog {
            tell,
            started,
            done: AtomicU64::new(0),
            phase: Mutex::new(phase),
            ended: Condvar::new(),
        });
        let shared = Arc::clone(&log);
        // Without a thread there still is a line for each phase.
        let ticking = merganser_storage::thread::spawn("progress", move || shared.tick(every));
        LoggedLines { cancel, log, ticking: ticking.ok() }
    }
}

impl ProgressLog {
    /// Tells a line every while, until the work has ended.
    fn tick(&self, every: Duration) {
        let mut phase = self.phase.lock();
        while !phase.has_ended {
            let waited = self.ended.wait_for(&mut phase, every);
            if waited.timed_out() && !phase.has_ended && !phase.name.is_empty() {
                self.tell_line(&phase);
            }
        }
    }

    fn pace(&self, phase: &LoggedPhase) -> PhasePace {
        PhasePace {
            done: self.done.load(Ordering::Relaxed),
            total: phase.total,
            elapsed: phase.started.elapsed(),
            rate_before: phase.rate_before,
        }
    }

    fn tell_line(&self, phase: &LoggedPhase) {
        (self.tell)(&log_line(self.started.elapsed(), phase.name, &self.pace(phase)));
    }
}

/// A line of a log, `since` the begin of the command.
fn log_line(since: Duration, name: &str, pace: &PhasePace) -> String {
    let done = text::bytes(pace.done);
    let mut line = format!("{} s: {name}: {done}", since.as_secs());
    if let Some(total) = pace.total {
        line.push_str(&format!(" of {}", text::bytes(total)));
    }
    let rate = pace.rate();
    if rate > 0.0 {
        line.push_str(&format!(", {}", text::rate(rate)));
    }
    if let Some(left) = pace.left() {
        // Whole seconds, rounded up: an estimate has no others.
        let left = left.as_secs_f64().ceil();
        line.push_str(&match left {
            0.0..60.0 => format!(", {left} s left"),
            left => format!(", {} left", text::seconds(left)),
        });
    }
    line
}

impl Progress for LoggedLines {
    fn phase(&self, name: &'static str, total_bytes: Option<u64>) {
        let mut phase = self.log.phase.lock();
        phase.rate_before = self.log.pace(&phase).rate();
        phase.name = name;
        phase.total = total_bytes;
        phase.started = Instant::now();
        self.log.done.store(0, Ordering::Relaxed);
        self.log.tell_line(&phase);
    }

    fn advance(&self, bytes: u64) {
        self.log.done.fetch_add(bytes, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_set()
    }
}

impl Drop for LoggedLines {
    fn drop(&mut self) {
        self.log.phase.lock().has_ended = true;
        self.log.ended.notify_all();
        if let Some(ticking) = self.ticking.take() {
            // It tells lines only; a panic there is no failure of the work.
            let _ = ticking.join();
        }
    }
}

/// Draws a bar, and wipes it at the end.
struct DrawnBar {
    bar: ProgressBar,
    cancel: Cancel,
    /// The begin of the phase, and the bytes per second of the one before it.
    begun: Mutex<(Instant, f64)>,
}

impl DrawnBar {
    fn start(cancel: &Cancel) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
        // Nothing to show before the first phase.
        bar.set_style(style("", 0.0));
        bar.enable_steady_tick(Duration::from_millis(500));
        DrawnBar { bar, cancel: cancel.clone(), begun: Mutex::new((Instant::now(), 0.0)) }
    }
}

impl Progress for DrawnBar {
    fn phase(&self, name: &'static str, total_bytes: Option<u64>) {
        let template = match total_bytes {
            Some(_) => "{msg:10} {wide_bar} {bytes}/{total_bytes} {rate} {left}",
            None => "{msg:10} {spinner} {done} {elapsed}",
        };
        let rate_before = {
            let mut begun = self.begun.lock();
            let (started, rate_before) = *begun;
            let (done, elapsed) = (self.bar.position(), started.elapsed());
            let rate = PhasePace { done, total: None, elapsed, rate_before }.rate();
            *begun = (Instant::now(), rate);
            rate
        };
        self.bar.set_style(style(template, rate_before));
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

/// The style of a template, with `rate` and `left` for bytes per second and the remaining time once they can be
/// estimated, and `done` for bytes and rate once there are some: not all phases have any.
fn style(template: &str, rate_before: f64) -> ProgressStyle {
    let pace = move |state: &ProgressState| PhasePace {
        done: state.pos(),
        total: state.len(),
        elapsed: state.elapsed(),
        rate_before,
    };
    // The rate of the last seconds, where it is known, follows a disk that becomes slower.
    let rate = move |state: &ProgressState| match state.per_sec() {
        recent if recent > 0.0 => recent,
        _ => pace(state).rate(),
    };
    // A line that can't be drawn is not drawn.
    let shown_rate = move |state: &ProgressState, out: &mut dyn fmt::Write| {
        let rate = rate(state);
        if rate > 0.0 {
            let _ = write!(out, "{}/s", HumanBytes(rate as u64));
        }
    };
    let left = move |state: &ProgressState, out: &mut dyn fmt::Write| {
        let left = match state.per_sec() {
            recent if recent > 0.0 => Some(state.eta()),
            _ => pace(state).left(),
        };
        if let Some(left) = left {
            let _ = write!(out, "{:#} left", HumanDuration(left));
        }
    };
    let done = |state: &ProgressState, out: &mut dyn fmt::Write| {
        if state.pos() > 0 {
            let (bytes, per_second) = (state.pos(), state.per_sec() as u64);
            let _ = write!(out, "{} {}/s", HumanBytes(bytes), HumanBytes(per_second));
        }
    };
    let style = ProgressStyle::with_template(template).expect("a constant template");
    style.with_key("rate", shown_rate).with_key("left", left).with_key("done", done)
}

impl Drop for DrawnBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

    /// Lines without the seconds that they begin with.
    fn told() -> Vec<String> {
        let lines = TOLD.lock();
        lines.iter().map(|line| line.split_once(": ").expect("seconds").1.to_owned()).collect()
    }

    #[test]
    fn a_phase_has_a_rate_from_its_begin() {
        let fresh = PhasePace { done: 0, total: Some(100), elapsed: SECOND, rate_before: 10.0 };
        assert_eq!((fresh.rate(), fresh.left()), (10.0, Some(10 * SECOND)));
        let moving = PhasePace { done: 50, ..fresh };
        assert_eq!((moving.rate(), moving.left()), (50.0, Some(SECOND)));
        let first = PhasePace { rate_before: 0.0, ..fresh };
        assert_eq!((first.rate(), first.left()), (0.0, None));
        assert_eq!(PhasePace { total: None, ..moving }.left(), None);
        assert_eq!(PhasePace { done: 200, ..fresh }.left(), Some(Duration::ZERO), "more than all");
    }

    #[test]
    fn a_line_of_a_log_has_time_phase_bytes_rate_and_time_left() {
        let megabyte = 1_000_000;
        let pace = PhasePace {
            done: 1500 * megabyte,
            total: Some(6000 * megabyte),
            elapsed: 10 * SECOND,
            rate_before: 0.0,
        };
        assert_eq!(
            log_line(70 * SECOND, "merging", &pace),
            "70 s: merging: 1.50 GB of 6 GB, 150 MB/s, 30 s left"
        );
        let long = PhasePace { total: Some(60_000 * megabyte), ..pace };
        assert!(log_line(SECOND, "merging", &long).ends_with(", 6 min 30 s left"));
        let unknown = PhasePace { done: 0, total: None, ..pace };
        assert_eq!(log_line(SECOND, "sorting", &unknown), "1 s: sorting: 0 bytes");
    }

    #[test]
    fn a_log_has_a_line_for_each_phase_and_for_each_while() {
        let cancel = Cancel::default();
        let lines = LoggedLines::start(cancel, Duration::from_millis(20), |line| {
            TOLD.lock().push(line.to_owned());
        });
        lines.phase("sorting", Some(2000));
        lines.advance(1000);
        let began = Instant::now();
        let moved = |line: &String| line.starts_with("sorting: 1 kB of 2 kB, ");
        while !told().iter().any(moved) && began.elapsed() < 60 * SECOND {
            std::thread::sleep(Duration::from_millis(5));
        }
        lines.phase("merging", Some(1000));
        drop(lines);
        let told = told();
        assert_eq!(told[0], "sorting: 0 bytes of 2 kB");
        assert!(told.iter().any(moved), "{told:?}");
        let merging = told.iter().find(|line| line.starts_with("merging")).expect("a line");
        // The rate and the time are those of the phase before.
        assert!(merging.contains("0 bytes of 1 kB, "), "{merging}");
        assert!(merging.contains(" MB/s, ") && merging.ends_with(" left"), "{merging}");
        // The thread has ended with the work.
        assert_eq!(told.len(), TOLD.lock().len());
    }

    #[test]
    fn a_summary_says_what_is_known() {
        let all = WorkSummary {
            done: "sorted",
            records: Some(1_000_000),
            bytes: Some(100_000_000),
            written_bytes: Some(205_000_000),
        };
        assert_eq!(
            all.line(4 * SECOND),
            "sorted 1,000,000 records, 100 MB, in 4.00 s: 25.0 MB/s, 2.05 bytes written per byte"
        );
        let copy = WorkSummary { done: "copied", records: None, written_bytes: None, ..all };
        assert_eq!(copy.line(4 * SECOND), "copied 100 MB, in 4.00 s: 25.0 MB/s");
        let empty = WorkSummary { records: Some(0), bytes: Some(0), ..all };
        assert_eq!(empty.line(SECOND), "sorted 0 records, 0 bytes, in 1.00 s");
        let one = WorkSummary { records: Some(1), bytes: None, ..all };
        assert_eq!(one.line(SECOND), "sorted 1 record, in 1.00 s");
    }
}
