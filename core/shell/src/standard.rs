//! Standard input and output, as the process got them.
//!
//! Rust's runtime opens `/dev/null` in the place of a standard descriptor that is closed, so that
//! no file can get its number. A command that then reads or writes there would succeed and lose
//! everything. So which ones are closed is noted before the runtime begins.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, FromRawFd};
use std::sync::atomic::{AtomicU8, Ordering};

use merganser_results::output::closed_pipe;

use crate::failure::Failure;

/// Bit N: descriptor N was closed when the process began.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Called by the loader, before `main` and so before Rust's runtime.
// SAFETY: the section holds addresses of functions that the loader calls once, on the only thread,
// with arguments that a function of the C convention may leave alone; this is one. It allocates
// nothing and needs nothing of Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_CLOSED: extern "C" fn() = note_closed;

extern "C" fn note_closed() {
    for number in 0..3 {
        // SAFETY: asking for the flags of a descriptor touches no memory.
        if unsafe { libc::fcntl(number, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << number, Ordering::Relaxed);
        }
    }
}

fn check_open(number: i32) -> io::Result<()> {
    match CLOSED.load(Ordering::Relaxed) >> number & 1 {
        0 => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::EBADF)),
    }
}

/// A handle of standard input.
///
/// # Errors
/// When it is closed.
pub fn input() -> io::Result<File> {
    check_open(libc::STDIN_FILENO)?;
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Closes standard input, for a command that does not read it and has few descriptors.
pub fn close_input() {
    if CLOSED.fetch_or(1 << libc::STDIN_FILENO, Ordering::Relaxed) & 1 << libc::STDIN_FILENO == 0 {
        // SAFETY: descriptor 0 is open, and nothing else owns or will use it: the bit above says that it is closed.
        drop(unsafe { File::from_raw_fd(libc::STDIN_FILENO) });
    }
}

/// A handle of standard output.
///
/// # Errors
/// When it is closed.
pub fn output() -> io::Result<File> {
    check_open(libc::STDOUT_FILENO)?;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Prints `text`, whole, on standard output.
///
/// # Errors
/// When it is closed or can't be written.
pub fn print(text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let write = || {
        let mut file = output()?;
        file.write_all(text.as_ref()).map_err(|error| closed_pipe(&file, error))
    };
    write().map_err(|error| Failure::on_stdout(&error))
}
