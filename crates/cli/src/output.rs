//! Where results go: a file that appears complete or not at all, a device or pipe, or standard output.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Bytes that a pipe is asked to hold: the default of 64 KiB makes reader and writer wait for each other.
const PIPE_BYTES: libc::c_int = 1 << 20;

/// An open result. Dropped before [`Output::finish`], a new file leaves nothing behind.
pub struct Output {
    file: File,
    target: Target,
}

enum Target {
    Stdout,
    /// A device or a named pipe, written as it stands.
    Special(PathBuf),
    /// A file, written beside `path` and renamed over it at the end.
    New {
        path: PathBuf,
        unfinished: Option<PathBuf>,
    },
}

impl Output {
    /// Opens `path`; `None` and `-` are standard output.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            return Self::stdout();
        };
        let special = fs::metadata(path).is_ok_and(|found| {
            let kind = found.file_type();
            kind.is_fifo() || kind.is_char_device() || kind.is_block_device()
        });
        if special {
            let file =
                OpenOptions::new().write(true).open(path).map_err(|e| Failure::on(path, &e))?;
            widen(&file);
            return Ok(Output { file, target: Target::Special(path.to_owned()) });
        }
        if path.is_dir() {
            return Err(Failure::Error(format!(
                "{}: is a directory; -o takes a file",
                path.display()
            )));
        }
        // A link keeps pointing where it did: its target is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let unfinished = path.with_file_name(format!(".{name}.{}.unfinished", std::process::id()));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o666)
            .open(&unfinished)
            .map_err(|e| Failure::on(&path, &e))?;
        Ok(Output { file, target: Target::New { path, unfinished: Some(unfinished) } })
    }

    fn stdout() -> Result<Self, Failure> {
        // SAFETY: descriptor 1 is this process's for all its life; `dup` gives one that `File` may own.
        let file = unsafe {
            let copy = libc::dup(libc::STDOUT_FILENO);
            if copy < 0 {
                return Err(Failure::on_stdout(&io::Error::last_os_error()));
            }
            File::from_raw_fd(copy)
        };
        widen(&file);
        Ok(Output { file, target: Target::Stdout })
    }

    /// An error of writing here, with the name of where.
    pub fn failure(&self, error: &io::Error) -> Failure {
        match &self.target {
            Target::Stdout => Failure::on_stdout(error),
            Target::Special(_) if error.kind() == io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            Target::Special(path) | Target::New { path, .. } => Failure::on(path, error),
        }
    }

    /// Makes the result visible under its name.
    ///
    /// # Errors
    /// When the last bytes can't be written or the name can't be taken.
    pub fn finish(mut self) -> Result<(), Failure> {
        if let Target::New { path, unfinished } = &mut self.target {
            if let Some(from) = unfinished.as_deref() {
                fs::rename(from, &*path).map_err(|e| Failure::on(path, &e))?;
            }
            *unfinished = None;
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Target::New { unfinished: Some(unfinished), .. } = &self.target {
            // Nothing more can be done about a file that can't be removed.
            let _ = fs::remove_file(unfinished);
        }
    }
}

/// Asks for a wide pipe; anything else, and a refusal, is left as it is.
fn widen(file: &File) {
    // SAFETY: a call on an open descriptor that touches no memory.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES) };
}
