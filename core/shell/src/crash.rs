//! Two failures that can't be handled where they happen: a panic, and memory that the system refuses
//! to the allocator. Either one, on any thread, ends the process at once:
//!
//! ```text
//!   panic ────────► hook ────┐
//!                            ├─► the first thread only: one line on stderr ─► unfinished folders
//!   allocation ───► null ────┘                                                removed ─► exit 2
//! ```
//!
//! The exception is [contained] work. The panic of work for one client of a server is a mistake of this program: the hook
//! prints its line and returns, that work unwinds and fails, and the other clients are served. A panic of code of others at
//! bytes of a stranger is not worth a line.
//!
//! Otherwise the process ends here, without unwinding. Unwinding would have to wait for other threads, which
//! may wait for this one. The usual message takes a lock, reads debug information and allocates
//! memory, which may have run out (audit finding F16). Temporary files have no names, so they end
//! with the process. A partial copy of a view has a name and stays, so that the same command can
//! continue it.
//!
//! Large buffers do not come this way: [`merganser_storage::Buffer::try_new`] and [`merganser_storage::thread`] give
//! errors, which end a command as any other error does.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use merganser_storage::contained::{self, Cause};

use crate::last_words::{CrashLine, tell};
use crate::signals;

/// Exit status of every error.
const STATUS: i32 = 2;

/// The time that another thread has to remove unfinished files.
const PATIENCE: Duration = Duration::from_secs(1);

/// The thread that ends the process, 0 before.
static ENDING: AtomicI32 = AtomicI32::new(0);

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Makes every panic end the process unless it is [contained]. That takes no memory of the heap.
pub fn install() {
    std::panic::set_hook(Box::new(panicked));
}

/// The system's allocator, whose refusal ends the process in the way of this module. Safe Rust has
/// no other place to say it: the standard library's own handler aborts.
struct Allocator;

// SAFETY: every call is passed unchanged to the system's allocator, and its answer is returned
// unchanged. After a refusal the call does not return.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what the caller promises.
        granted(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: what the caller promises.
        unsafe { System.dealloc(memory, layout) };
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what the caller promises.
        granted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: what the caller promises.
        granted(unsafe { System.realloc(memory, layout, size) }, size)
    }
}

#[inline]
fn granted(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() {
        no_memory(size);
    }
    memory
}

#[cold]
#[inline(never)]
fn no_memory(size: usize) -> ! {
    end(format_args!("the system has no memory for {size} bytes more; {LESS}"))
}

/// The advice when memory or threads are short.
const LESS: &str = "use less, or raise what the process may have (ulimit -v, ulimit -u)";

fn panicked(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("no message");
    // The standard library and dependencies panic if the system refuses them memory or threads.
    if message.starts_with("the system has no memory") {
        end(format_args!("{message}"));
    }
    for (error, what) in [(libc::ENOMEM, "memory"), (libc::EAGAIN, "thread")] {
        let named = |text: &str| CrashLine::of_text(format_args!("{text} {error}")).is_in(message);
        if named("os error") || named("code:") {
            end(format_args!("the system has no {what} left for this process; {LESS}"));
        }
    }
    let cause = contained::cause();
    if cause == Some(Cause::Input) {
        return;
    }
    let (file, line) = panic.location().map_or(("?", 0), |at| (at.file(), at.line()));
    if cause == Some(Cause::Mistake) {
        let what = "it ended the work of one client";
        return tell(format_args!(
            "internal error at {file}:{line}: {message}; {what}; please report it"
        ));
    }
    end(format_args!("internal error at {file}:{line}: {message}; please report it"))
}

/// Prints the reason, removes unfinished files, and ends the process. It never waits for a lock that a
/// thread of this process may hold.
fn end(why: fmt::Arguments<'_>) -> ! {
    let this = rustix::thread::gettid().as_raw_nonzero().get();
    match ENDING.compare_exchange(0, this, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => {
            tell(why);
            signals::remove_unfinished();
        }
        // The removal itself has failed.
        Err(ending) if ending == this => {}
        // Another thread has said why.
        Err(_) => std::thread::sleep(PATIENCE),
    }
    // SAFETY: ends the process; exit handlers, which may wait for other threads, are left out.
    unsafe { libc::_exit(STATUS) }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};
    use std::time::Instant;

    use parking_lot::Mutex;

    use merganser_storage::thread;

    use super::*;

    /// Runs one of the ignored tests below in a process of its own.
    fn run(test: &str, folder: &std::path::Path) -> (Output, Duration) {
        let started = Instant::now();
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", &format!("crash::tests::{test}"), "--ignored", "--nocapture"]);
        let output = command.env("CRASH_FOLDER", folder).output().expect("it runs");
        (output, started.elapsed())
    }

    fn crash(test: &str) -> String {
        let dir = tempfile::tempdir().expect("a folder");
        let unfinished = dir.path().join(".view.unfinished");
        std::fs::create_dir_all(unfinished.join("inner")).expect("made");
        std::fs::write(unfinished.join("inner/run"), [7; 1000]).expect("written");
        let (output, took) = run(test, &unfinished);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(STATUS), "{test}: {said}");
        assert!(took < Duration::from_secs(20), "{test}: {took:?}");
        assert!(!unfinished.exists(), "{test}: left behind");
        let told: Vec<_> = said.lines().collect();
        let [one] = told[..] else { panic!("{test}: one line, not {said:?}") };
        assert!(!one.contains("panicked"), "{one}");
        one.to_owned()
    }

    fn prepare() {
        let folder = std::env::var_os("CRASH_FOLDER").expect("run by another test");
        signals::remember(folder.as_ref());
        install();
    }

    #[test]
    fn f16_a_panic_of_any_thread_ends_the_process() {
        let said = crash("panics_while_others_wait_for_it");
        assert!(said.starts_with("merganser: internal error at "), "{said}");
        assert!(said.contains("crash.rs:"), "{said}");
        assert!(said.ends_with(": two lines; please report it"), "{said}");
    }

    #[test]
    fn a_panic_in_the_work_of_one_client_ends_that_work_only() {
        let place = tempfile::tempdir().expect("a folder");
        let unfinished = place.path().join("unfinished");
        std::fs::create_dir(&unfinished).expect("made");
        let (output, _) =
            run("contains_panics_of_itself_and_of_a_thread_that_it_starts", &unfinished);
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.success(), "{said}");
        let end = ": as asked; it ended the work of one client; please report it";
        assert_eq!(said.lines().filter(|line| line.ends_with(end)).count(), 2, "{said}");
        assert!(unfinished.exists(), "other work continues");
        // The same panic outside.
        assert!(crash("panics_after_contained_work").ends_with(": as asked; please report it"));
    }

    #[test]
    fn f16_refused_memory_is_told_whoever_asked() {
        let said = crash("allocates_more_than_there_is");
        assert!(said.starts_with("merganser: the system has no memory for 1152921504606846976"));
        let said = crash("panics_for_a_buffer");
        assert!(said.starts_with("merganser: the system has no memory for a buffer of "), "{said}");
        let said = crash("panics_for_a_thread");
        assert!(said.starts_with("merganser: the system has no thread left"), "{said}");
    }

    #[test]
    fn a_contained_panic_ends_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let (output, _) = run("panics_where_it_is_contained", dir.path());
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.success() && said.is_empty(), "{said}");
        assert!(dir.path().exists(), "it is no end");
    }

    #[test]
    fn f16_a_thread_that_holds_the_list_of_folders_hangs_nobody() {
        let dir = tempfile::tempdir().expect("a folder");
        let (output, took) = run("panics_with_the_list_locked", dir.path());
        assert_eq!(output.status.code(), Some(STATUS));
        assert!(took < Duration::from_secs(20), "{took:?}");
    }

    #[test]
    #[ignore = "ends the process; run by another test"]
    fn panics_while_others_wait_for_it() {
        prepare();
        let lock = Mutex::new(());
        let held = lock.lock();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                // These threads panic together, and the main thread would wait for them forever.
                scope.spawn(|| -> () { panic!("two\nlines") });
            }
            scope.spawn(|| drop(lock.lock()));
            std::thread::sleep(Duration::from_secs(60));
            drop(held);
        });
    }

    #[test]
    #[ignore = "needs a process of its own; run by another test"]
    fn panics_where_it_is_contained() {
        prepare();
        contained::run(Cause::Input, || -> () { panic!("at bad bytes") }).expect_err("it panics");
    }

    #[test]
    #[ignore = "needs a process of its own; run by another test"]
    fn contains_panics_of_itself_and_of_a_thread_that_it_starts() {
        prepare();
        contained::run(Cause::Mistake, || -> () { panic!("as asked") }).expect_err("it panicked");
        contained::run(Cause::Mistake, || {
            let helper = thread::spawn("helper", || -> () { panic!("as asked") });
            helper.expect("started").join().expect_err("it panicked");
        })
        .expect("the panic was that of its helper");
    }

    #[test]
    #[ignore = "ends the process; run by another test"]
    fn panics_after_contained_work() {
        prepare();
        contained::run(Cause::Mistake, || ()).expect("no panic");
        let other = thread::spawn("other", || -> () { panic!("as asked") });
        let _ = other.expect("started").join();
        std::thread::sleep(Duration::from_secs(60));
    }

    #[test]
    #[ignore = "ends the process; run by another test"]
    fn allocates_more_than_there_is() {
        prepare();
        drop(Vec::<u8>::with_capacity(1 << 60));
    }

    #[test]
    #[ignore = "ends the process; run by another test"]
    fn panics_for_a_buffer() {
        prepare();
        drop(merganser_storage::Buffer::new(1 << 60));
    }

    #[test]
    #[ignore = "ends the process; run by another test"]
    fn panics_for_a_thread() {
        prepare();
        let refused = std::io::Error::from_raw_os_error(libc::EAGAIN);
        panic!("failed to spawn thread: {refused:?}");
    }

    #[test]
    #[ignore = "ends the process; run by another test"]
    fn panics_with_the_list_locked() {
        prepare();
        signals::with_unfinished(|| panic!("holds it"));
    }
}
