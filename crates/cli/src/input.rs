//! Where records come from: files, pipes, standard input.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// An input, as named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Standard input.
    Stdin,
    /// A file, a device or a named pipe.
    File(PathBuf),
}

impl Input {
    /// The input of this name; `-` is standard input.
    pub fn named(name: &Path) -> Self {
        if name == Path::new("-") { Input::Stdin } else { Input::File(name.to_owned()) }
    }

    /// Opens it to be read from one end to the other.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn open(&self) -> Result<Reader, Failure> {
        let opened = match self {
            Input::Stdin => io::stdin().as_fd().try_clone_to_owned().map(File::from),
            Input::File(path) => File::open(path).and_then(refuse_folder),
        };
        opened.and_then(Reader::new).map_err(|error| Failure::on_input(self, &error))
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::Stdin => f.write_str("standard input"),
            Input::File(path) => path.display().fmt(f),
        }
    }
}

fn refuse_folder(file: File) -> io::Result<File> {
    if file.metadata()?.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(file) }
}

/// An open input. A read that nothing comes for ends with `Interrupted` after a moment, so that its caller can look
/// whether it is still wanted.
pub struct Reader {
    file: File,
    size: Option<u64>,
}

impl Reader {
    /// How long a read waits, in milliseconds.
    const PATIENCE_MS: libc::c_int = 100;

    fn new(mut file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let size = if metadata.is_file() {
            Some(metadata.len().saturating_sub(file.stream_position()?))
        } else {
            None
        };
        Ok(Reader { file, size })
    }

    /// How many bytes are left, if that is known.
    pub fn size(&self) -> Option<u64> {
        self.size
    }
}

impl Read for Reader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.size.is_none() {
            let mut wanted =
                libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one valid `pollfd`, as the count says.
            if unsafe { libc::poll(&raw mut wanted, 1, Self::PATIENCE_MS) } == 0 {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        self.file.read(out)
    }
}
