//! How long the processors of this machine stood still: a virtual one waits for its host, and no program on it can
//! know that but by its clock.
//!
//! On each processor a thread with real-time priority asks to be woken every millisecond. When it is much too
//! late, the processor stood still.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};

/// How long a thread asks to sleep.
const SLEEP: Duration = Duration::from_millis(1);
/// A thread that is woken later than this was not only slow to wake.
const STALL_MIN: Duration = Duration::from_micros(300);

/// The threads that watch the processors.
pub(super) struct Watch {
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Stalls>>,
}

/// How long processors stood still.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    /// The longest time at once.
    pub longest: Duration,
    /// All such times, of all processors.
    pub total: Duration,
    /// How long they were watched.
    pub watched: Duration,
}

impl Watch {
    /// Watches from now on.
    pub(super) fn begun() -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let ours = sched_getaffinity(None).expect("asked");
        let threads = (0..CpuSet::MAX_CPU).filter(|&processor| ours.is_set(processor));
        let threads = threads.map(|processor| {
            let end = Arc::clone(&end);
            std::thread::spawn(move || watch(processor, &end))
        });
        Watch { threads: threads.collect(), end }
    }

    /// The stalls since then.
    pub(super) fn end(self) -> Stalls {
        self.end.store(true, Ordering::Relaxed);
        let each = self.threads.into_iter().map(|thread| thread.join().expect("it ended"));
        each.fold(Stalls::default(), |all, one| Stalls {
            longest: all.longest.max(one.longest),
            total: all.total + one.total,
            watched: all.watched.max(one.watched),
        })
    }
}

fn watch(processor: usize, end: &AtomicBool) -> Stalls {
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only).expect("a processor of this process");
    first_of_all();
    let first = Instant::now();
    let mut seen = Stalls::default();
    while !end.load(Ordering::Relaxed) {
        let begun = Instant::now();
        std::thread::sleep(SLEEP);
        let late = begun.elapsed().saturating_sub(SLEEP);
        if late > STALL_MIN {
            seen.longest = seen.longest.max(late);
            seen.total += late;
        }
    }
    seen.watched = first.elapsed();
    seen
}

/// Before the programs that are measured: then these do not delay this thread.
fn first_of_all() {
    let thread = gettid().as_raw_nonzero().to_string();
    let mut chrt = Command::new("chrt");
    let done = chrt.args(["-f", "-p", "30", &thread]).stdout(Stdio::null()).status();
    assert!(done.is_ok_and(|done| done.success()), "chrt -p");
}
