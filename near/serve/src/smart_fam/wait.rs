//! Waiting for files to change: polling with back-off, which inotify may end early.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;

/// How a side waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollIntervals {
    /// The first wait.
    pub least: Duration,
    /// Each wait without news is twice as long as the one before, up to this.
    pub most: Duration,
    /// Whether inotify may end a wait early. It sees only what this machine does.
    pub inotify: bool,
}

impl Default for PollIntervals {
    fn default() -> Self {
        let (least, most) = (Duration::from_millis(5), Duration::from_millis(250));
        PollIntervals { least, most, inotify: true }
    }
}

/// Waits.
pub(super) struct Waiter {
    waiting: PollIntervals,
    now: Duration,
    /// `None` where there is no inotify, or it is not wanted.
    watch: Option<OwnedFd>,
}

impl Waiter {
    pub(super) fn new(waiting: PollIntervals) -> Waiter {
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let watch = waiting.inotify.then(|| inotify::init(flags).ok()).flatten();
        Waiter { waiting, now: waiting.least, watch }
    }

    /// Wakes up when something changes in `folder`, if inotify can tell.
    pub(super) fn watch(&self, folder: &Path) {
        if let Some(watch) = &self.watch {
            let flags = inotify::WatchFlags::CREATE
                | inotify::WatchFlags::MODIFY
                | inotify::WatchFlags::MOVED_TO;
            // Without a watch it polls.
            let _ = inotify::add_watch(watch, folder, flags);
        }
    }

    /// There was news: the next wait is short again.
    pub(super) fn reset(&mut self) {
        self.now = self.waiting.least;
    }

    /// Waits, at most as long as its turn is.
    pub(super) fn wait(&mut self) {
        let span = self.now;
        self.now = (self.now * 2).min(self.waiting.most);
        let Some(watch) = &self.watch else {
            std::thread::sleep(span);
            return;
        };
        let timeout =
            Timespec { tv_sec: span.as_secs() as i64, tv_nsec: i64::from(span.subsec_nanos()) };
        let mut fds = [PollFd::new(watch, PollFlags::IN)];
        if poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0) {
            let mut events = [0_u8; 4096];
            while rustix::io::read(watch, &mut events).is_ok_and(|bytes| bytes > 0) {}
        }
    }
}
