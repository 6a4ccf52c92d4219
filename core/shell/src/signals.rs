//! Ctrl-C, SIGTERM and SIGHUP (a closed terminal). They set a flag that work in progress checks, so
//! that it can remove unfinished files. A server may take SIGHUP as the order to read files again.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use merganser_results::removal::remove_folder;
use merganser_results::stopped::Cancellation;
use merganser_storage::file::descriptors;
use parking_lot::{Condvar, Mutex};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_usize;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use crate::last_words;

/// The time that work in progress has to notice a signal. After this time, or at a second signal,
/// the process just ends. Some waits never look at the flag: for a disk that does not answer, for a
/// writer of a named pipe that is an input, for room for a few printed lines.
const PATIENCE: Duration = Duration::from_secs(10);

/// The interval at which a process that may have few descriptors looks whether a signal has arrived.
const PAUSE: Duration = Duration::from_millis(50);

/// Unfinished folders, to be removed even when the process just ends.
static UNFINISHED: Mutex<Vec<CString>> = Mutex::new(Vec::new());

/// Whether a signal asked the process to end, and the number of that signal.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<CancelState>);

#[derive(Debug, Default)]
struct CancelState {
    /// The number of the signal; 0 if no signal has arrived.
    signal: AtomicI32,
    lock: Mutex<()>,
    arrived: Condvar,
    /// Gets each SIGHUP, where a server reads files again.
    hangups: Mutex<Option<Sender<()>>>,
}

impl Cancel {
    /// Asks for the end.
    pub fn set(&self, signal: i32) {
        let _lock = self.0.lock.lock();
        self.0.signal.store(signal, Ordering::Relaxed);
        self.0.arrived.notify_all();
    }

    /// From now on, SIGHUP does not ask for the end: each is received from here. None come under `nohup`.
    pub fn take_hangups(&self) -> Receiver<()> {
        let (to, from) = channel();
        *self.0.hangups.lock() = Some(to);
        from
    }

    /// Whether this signal was received as [`Cancel::take_hangups`] says.
    fn hung_up(&self, signal: i32) -> bool {
        let hangups = self.0.hangups.lock();
        signal == SIGHUP && hangups.as_ref().is_some_and(|to| to.send(()).is_ok())
    }

    /// Sleeps until the end is asked for.
    pub fn wait(&self) {
        let mut lock = self.0.lock.lock();
        while !self.is_set() {
            self.0.arrived.wait(&mut lock);
        }
    }

    /// Whether the end was asked for.
    pub fn is_set(&self) -> bool {
        self.0.signal.load(Ordering::Relaxed) != 0
    }

    /// The exit status that tells the signal to a shell, if there was one.
    pub fn exit_status(&self) -> Option<u8> {
        match self.0.signal.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(status(signal)),
        }
    }
}

impl Cancellation for Cancel {
    fn is_cancelled(&self) -> bool {
        self.is_set()
    }
}

/// Turns SIGINT, SIGTERM and SIGHUP into the flag that is returned. Under `nohup`, which has SIGHUP ignored,
/// it stays ignored.
///
/// # Errors
/// When the system refuses a handler or a thread.
pub fn install() -> io::Result<Cancel> {
    let cancel = Cancel::default();
    let watched = [Some(SIGINT), Some(SIGTERM), (!is_ignored(SIGHUP)).then_some(SIGHUP)];
    let flag = cancel.clone();
    if descriptors::are_few() {
        // Without the pair of sockets below, which takes two of them.
        let arrived = Arc::new(AtomicUsize::new(0));
        for signal in watched.into_iter().flatten() {
            register_usize(signal, Arc::clone(&arrived), signal.cast_unsigned() as usize)?;
        }
        merganser_storage::thread::spawn("signals", move || look_at_times(&arrived, &flag))?;
        return Ok(cancel);
    }
    let (read, write) = UnixStream::pair()?;
    let signals =
        SignalDelivery::with_pipe(read, write, SignalOnly, watched.into_iter().flatten())?;
    merganser_storage::thread::spawn("signals", move || watch(signals, &flag))?;
    Ok(cancel)
}

/// Sets `flag` at the first signal, and ends the process at the next one or after [`PATIENCE`]. One thread does both,
/// because a process that is short of memory could not start another when the signal is there.
fn watch(mut signals: SignalDelivery<UnixStream, SignalOnly>, flag: &Cancel) -> ! {
    let mut first: Option<(i32, Instant)> = None;
    loop {
        let left = first.map(|(_, until)| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        // It fails when a signal interrupts it, and is asked again.
        let _ = poll(&mut [PollFd::new(signals.get_read(), PollFlags::IN)], left.as_ref());
        for signal in signals.pending() {
            if flag.hung_up(signal) {
                continue;
            }
            if flag.is_set() {
                end(signal);
            }
            flag.set(signal);
            first = Some((signal, Instant::now() + PATIENCE));
        }
        match first {
            Some((signal, until)) if Instant::now() >= until => end(signal),
            _ => {}
        }
    }
}

/// As [`watch`], for signals whose numbers are found in `arrived`.
fn look_at_times(arrived: &AtomicUsize, flag: &Cancel) -> ! {
    let mut first: Option<(i32, Instant)> = None;
    loop {
        std::thread::sleep(PAUSE);
        let signal = i32::try_from(arrived.swap(0, Ordering::Relaxed)).unwrap_or_default();
        if signal != 0 && !flag.hung_up(signal) {
            if flag.is_set() {
                end(signal);
            }
            flag.set(signal);
            first = Some((signal, Instant::now() + PATIENCE));
        }
        match first {
            Some((signal, until)) if Instant::now() >= until => end(signal),
            _ => {}
        }
    }
}

/// Whether the program that started this one made it ignore `signal`. False without /proc.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Has this folder removed when the process ends by a signal before [`forget`].
pub fn remember(unfinished: &Path) {
    // A name that is no C string is no name of a file, either.
    UNFINISHED.lock().extend(CString::new(unfinished.as_os_str().as_bytes()));
}

/// The folder is removed or finished.
pub fn forget(unfinished: &Path) {
    UNFINISHED.lock().retain(|path| path.as_bytes() != unfinished.as_os_str().as_bytes());
}

/// Ends the process without waiting for its work.
fn end(signal: i32) -> ! {
    remove_unfinished();
    std::process::exit(i32::from(status(signal)))
}

/// Removes the folders that [`remember`] named, for a process that ends, perhaps because there is no memory.
/// It does not wait long for the lock of the list, because the thread that ends the process may hold it.
pub fn remove_unfinished() {
    let mut tries = 0;
    // Not `try_lock_for`: it may allocate, and this runs when there is no memory.
    let unfinished = loop {
        match UNFINISHED.try_lock() {
            Some(unfinished) => break unfinished,
            None if tries == 200 => return,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
        tries += 1;
    };
    for path in &*unfinished {
        // Work that is still running may create another file there meanwhile.
        let removed = (0..10).any(|_| matches!(remove_folder(path), Ok(()) | Err(Errno::NOENT)));
        if !removed {
            let name = path.to_bytes().escape_ascii();
            last_words::tell(format_args!(
                "{name}: unfinished, but it can't be removed; remove it"
            ));
        }
    }
    // The lock is kept, so that no work can finish any more.
    std::mem::forget(unfinished);
}

/// Does `work` while it holds the list.
#[cfg(test)]
pub fn with_unfinished(work: impl FnOnce()) {
    let _held = UNFINISHED.lock();
    work();
}

fn status(signal: i32) -> u8 {
    128u8.wrapping_add(signal as u8)
}
