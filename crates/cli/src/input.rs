//! Where records come from: files, pipes, standard input.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use storage::file::{FileOptions, FileStorage};

use crate::failure::Failure;
use crate::signals::Cancel;

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

    /// Opens it to be read from one end to the other, until `cancel`.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn open(&self, cancel: &Cancel) -> Result<Reader, Failure> {
        let opened = match self {
            Input::Stdin => io::stdin().as_fd().try_clone_to_owned().map(File::from),
            Input::File(path) => File::open(path).and_then(refuse_folder),
        };
        opened
            .and_then(|file| Reader::new(file, cancel.clone()))
            .map_err(|error| Failure::on_input(self, &error))
    }

    /// Opens it for the engine: as a storage where it has a size, as a stream where not. It can be
    /// written to (to give its space back) if `consume`.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn open_for_sort(
        &self,
        consume: bool,
        cancel: &Cancel,
    ) -> Result<sort::run::Input, Failure> {
        let reader = self.open(cancel)?;
        let storage = match self {
            // A file that something else has read a part of is a stream of the rest.
            _ if !reader.whole => {
                return Ok(sort::run::Input::Stream {
                    name: self.to_string(),
                    reader: Box::new(reader),
                });
            }
            Input::File(path) => FileStorage::open_path(path, consume),
            Input::Stdin => {
                FileStorage::from_file(reader.file, self.to_string(), false, FileOptions::default())
            }
        };
        Ok(sort::run::Input::Storage(storage.map_err(|error| Failure::named(&error))?))
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

/// An open input, whose reads fail once nobody wants them any more: nothing may ever come through a
/// pipe.
pub struct Reader {
    file: File,
    size: Option<u64>,
    whole: bool,
    cancel: Cancel,
}

impl Reader {
    fn new(mut file: File, cancel: Cancel) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(Reader { file, size: None, whole: false, cancel });
        }
        let position = file.stream_position()?;
        let size = Some(metadata.len().saturating_sub(position));
        Ok(Reader { file, size, whole: position == 0, cancel })
    }

    /// How many bytes are left, if that is known.
    pub fn size(&self) -> Option<u64> {
        self.size
    }
}

impl Read for Reader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.size.is_none() {
            self.cancel.wait_for(&self.file, libc::POLLIN)?;
        }
        self.file.read(out)
    }
}
