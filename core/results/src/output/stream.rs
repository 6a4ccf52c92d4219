//! Output that may have no room: a pipe, a socket, a terminal. Its reader may never read, so a write
//! waits for room only until the work is cancelled.
//!
//! ```text
//!   write ──► room, or the end asked for? ──► a write that never waits ──► how much went
//!             poll, looking at the flag       what fits: O_NONBLOCK, or PIPE_BUF bytes
//! ```

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::PollFlags;

use crate::stopped::{Cancellation, Stopped, wait_for};

/// The requested capacity of a pipe: with the default of 64 KiB, reader and writer wait for each
/// other.
const PIPE_BYTES: usize = 1 << 20;
/// The time between two attempts to open a named pipe that has no reader yet.
const RETRY: Duration = Duration::from_millis(20);

/// An output whose writes fail once the work is cancelled.
pub(super) struct OutputStream {
    /// The error code of opening, if there is no file. It is returned only by a write.
    closed: Option<i32>,
    file: File,
    /// A write of more may wait for room although there is some.
    write_bytes_max: usize,
    cancel: Arc<dyn Cancellation>,
}

impl OutputStream {
    /// Standard output, as the process got it, until `cancel`.
    ///
    /// # Errors
    /// The system's own. One that is closed is an error when it is written to, as it is to others.
    pub(super) fn standard(
        output: io::Result<File>,
        cancel: Arc<dyn Cancellation>,
    ) -> io::Result<Self> {
        match output {
            Err(error) if error.raw_os_error() == Some(libc::EBADF) => {
                let nothing = OpenOptions::new().write(true).open("/dev/null")?;
                Ok(OutputStream {
                    closed: Some(libc::EBADF),
                    ..Self::new(nothing, usize::MAX, cancel)
                })
            }
            file => Self::shared(file?, cancel),
        }
    }

    /// Opens the device or named pipe at `path`. For a pipe, it waits until a reader opens the other
    /// end, or until `cancel`.
    ///
    /// # Errors
    /// When it can't be written.
    pub(super) fn open(path: &Path, cancel: Arc<dyn Cancellation>) -> io::Result<Self> {
        if !path.metadata()?.file_type().is_fifo() {
            return Self::shared(OpenOptions::new().write(true).open(path)?, cancel);
        }
        loop {
            cancel.check()?;
            match without_waiting(path) {
                Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                    std::thread::sleep(RETRY);
                }
                opened => return Ok(Self::new(opened?, usize::MAX, cancel)),
            }
        }
    }

    /// A file that other processes may have open, too. They share its flags, so the same file is opened
    /// again for O_NONBLOCK.
    fn shared(file: File, cancel: Arc<dyn Cancellation>) -> io::Result<Self> {
        if !may_be_full(&file.metadata()?, &file) {
            return Ok(Self::new(file, usize::MAX, cancel));
        }
        let reopened = without_waiting(format!("/proc/self/fd/{}", file.as_raw_fd()).as_ref());
        Ok(match reopened {
            Ok(own) => Self::new(own, usize::MAX, cancel),
            // A socket, another user's pipe, no /proc: where `poll` finds room, there is some for so
            // much.
            Err(_) => Self::new(file, libc::PIPE_BUF, cancel),
        })
    }

    fn new(file: File, write_bytes_max: usize, cancel: Arc<dyn Cancellation>) -> Self {
        // Anything but a pipe, and a refusal, is left as it is.
        let _ = rustix::pipe::fcntl_setpipe_size(&file, PIPE_BYTES);
        OutputStream { closed: None, file, write_bytes_max, cancel }
    }
}

impl Write for OutputStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(errno) = self.closed.filter(|_| !bytes.is_empty()) {
            return Err(io::Error::from_raw_os_error(errno));
        }
        let bytes = &bytes[..bytes.len().min(self.write_bytes_max)];
        loop {
            wait_for(&*self.cancel, &self.file, PollFlags::OUT)?;
            match self.file.write(bytes) {
                // Another writer took the room.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(closed_pipe(&self.file, error)),
                done => return done,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `error` of a write to `file`; [`Stopped::ClosedPipe`] when it says that the reader of a pipe or a
/// socket went away. A file system can end a write with the same number, and that is an error.
pub fn closed_pipe(file: &File, error: io::Error) -> io::Error {
    let gone = error.raw_os_error() == Some(libc::EPIPE);
    let kind = file.metadata().map(|metadata| metadata.file_type());
    match kind {
        Ok(kind) if gone && !kind.is_file() && !kind.is_block_device() => {
            Stopped::ClosedPipe.into()
        }
        _ => error,
    }
}

/// Whether a write may have to wait for a reader. Files and other devices take all bytes of a write;
/// some devices make one record of each write.
fn may_be_full(metadata: &Metadata, file: &File) -> bool {
    let kind = metadata.file_type();
    kind.is_fifo() || kind.is_socket() || file.is_terminal()
}

fn without_waiting(path: &Path) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new().write(true).custom_flags(flags).open(path)
}
