//! Where results go: a file that appears complete or not at all, a device or pipe, or standard
//! output.

mod stream;

pub use stream::closed_pipe;

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_storage::file::{self, FileOptions, FileStorage, OutputKind, ResolvedOutput};
use merganser_storage::{Buffer, Completions, Operation, Storage};

use crate::failure::{Failure, Stopped};
use crate::shown;
use crate::signals::Cancel;
use stream::Stream;

/// An open result. If it is dropped before [`Output::finish`], a new file leaves nothing behind.
pub struct Output(Target);

enum Target {
    Stdout(Stream),
    /// A device or a named pipe, which is written in place.
    Special(Stream, PathBuf),
    New(NewFile),
}

impl Output {
    /// Opens `path`; `None` and `-` are standard output. Writes that wait for a reader end with
    /// `cancel`.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn open(path: Option<&Path>, cancel: &Cancel) -> Result<Self, Failure> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            let stream = Stream::stdout(cancel).map_err(|error| Failure::on_stdout(&error))?;
            return Ok(Output(Target::Stdout(stream)));
        };
        let resolved = file::resolve_output(path).map_err(|e| Failure::named(&e))?;
        let kind = resolved.kind();
        match kind {
            OutputKind::Fifo | OutputKind::Device => {
                // This opens the resolved file, even if another file has its name now.
                let stream = Stream::open(&resolved.reopen_path(), cancel);
                let stream = stream.map_err(|error| Failure::on(path, &error))?;
                Ok(Output(Target::Special(stream, path.to_owned())))
            }
            OutputKind::Folder => {
                Err(format!("{}: is a directory; -o takes a file", shown::name(path)).into())
            }
            OutputKind::Absent | OutputKind::Regular | OutputKind::Socket => {
                let file = NewFile::create(resolved, path).map_err(|error| match kind {
                    OutputKind::Regular if error.kind() == io::ErrorKind::PermissionDenied => {
                        no_room_beside(path)
                    }
                    _ => Failure::named(&error),
                })?;
                Ok(Output(Target::New(file)))
            }
        }
    }

    /// Whether `path` is a device or a named pipe, which is written in place.
    ///
    /// # Errors
    /// When the name can't be followed.
    pub fn is_special(path: &Path) -> Result<bool, Failure> {
        let resolved = file::resolve_output(path).map_err(|e| Failure::named(&e))?;
        Ok(matches!(resolved.kind(), OutputKind::Fifo | OutputKind::Device))
    }

    /// The new file, for callers that do not write through [`Write`]; `None` if there is no new file.
    pub fn storage(&self) -> Option<Arc<FileStorage>> {
        match &self.0 {
            Target::New(file) => Some(Arc::clone(&file.storage)),
            Target::Stdout(_) | Target::Special(..) => None,
        }
    }

    /// Makes the result durable and visible under its name.
    ///
    /// # Errors
    /// When the last bytes can't be written or the name can't be taken.
    pub fn finish(self) -> Result<(), Failure> {
        match self.0 {
            Target::New(file) => file.publish().map_err(|e| Failure::named(&e)),
            Target::Stdout(_) | Target::Special(..) => Ok(()),
        }
    }
}

/// The failure to replace the file at `path`, in whose folder no new file may be made. It is not written in place: a
/// kill in between would leave neither the old content nor the new.
fn no_room_beside(path: &Path) -> Failure {
    let name = shown::name(path);
    format!("{name}: no new file may be made in its folder; write to another folder, then copy the result over with cat").into()
}

/// Errors name where they happened.
impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let named = |name: &dyn fmt::Display, error: io::Error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            _ if Stopped::of(&error).is_some() => error,
            kind => io::Error::new(kind, format!("{name}: {error}")),
        };
        match &mut self.0 {
            Target::Stdout(stream) => stream.write(bytes).map_err(|e| named(&"standard output", e)),
            Target::Special(stream, path) => {
                stream.write(bytes).map_err(|e| named(&shown::name(path), e))
            }
            Target::New(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A new file. It is written in large aligned pieces, several at a time.
struct NewFile {
    file: file::Output,
    storage: Arc<FileStorage>,
    completions: Completions,
    /// The piece that is being filled, and how far it is filled.
    buffer: Buffer,
    filled: usize,
    /// The offset in the file at which the piece will be written.
    offset: u64,
    /// Buffers that are written.
    spare: Vec<Buffer>,
    in_flight: usize,
}

impl NewFile {
    const PIECE_BYTES: usize = 1 << 20;
    const PIECES: usize = 8;

    fn create(resolved: ResolvedOutput, path: &Path) -> io::Result<Self> {
        let file = file::Output::create_resolved(resolved, path, FileOptions::default())?;
        Ok(NewFile {
            storage: file.storage(),
            file,
            completions: Completions::new(),
            buffer: Buffer::try_new(Self::PIECE_BYTES)?,
            filled: 0,
            offset: 0,
            spare: (1..Self::PIECES)
                .map(|_| Buffer::try_new(Self::PIECE_BYTES))
                .collect::<io::Result<_>>()?,
            in_flight: 0,
        })
    }

    fn submit(&mut self, buffer: Buffer) {
        let len = buffer.len() as u64;
        self.storage.submit(0, Operation::Write { offset: self.offset, buffer }, &self.completions);
        self.offset += len;
        self.in_flight += 1;
    }

    fn wait(&mut self) -> io::Result<()> {
        let done = self.completions.wait(&*self.storage.clock());
        self.in_flight -= 1;
        self.spare.extend(done.buffer);
        done.result.map(|_| ())
    }

    fn publish(mut self) -> io::Result<()> {
        let mut rest = std::mem::replace(&mut self.buffer, Buffer::empty());
        drop(rest.split_off(self.filled));
        if !rest.is_empty() {
            self.submit(rest);
        }
        while self.in_flight > 0 {
            self.wait()?;
        }
        let NewFile { file, .. } = self;
        file.publish()
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.filled == self.buffer.len() {
            while self.spare.is_empty() {
                self.wait()?;
            }
            let next = self.spare.pop().expect("just waited for");
            let full = std::mem::replace(&mut self.buffer, next);
            self.submit(full);
            self.filled = 0;
        }
        let room = &mut self.buffer[self.filled..];
        let len = room.len().min(bytes.len());
        room[..len].copy_from_slice(&bytes[..len]);
        self.filled += len;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn pieces_of_any_size_become_the_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("file");
        let bytes: Vec<u8> =
            (0..20 * NewFile::PIECE_BYTES as u32 / 4).flat_map(u32::to_le_bytes).collect();
        for len in [0, 1, NewFile::PIECE_BYTES, NewFile::PIECE_BYTES + 1, bytes.len() - 3] {
            let mut output = Output::open(Some(&path), &Cancel::default()).expect("writable");
            for piece in bytes[..len].chunks(777_777) {
                output.write_all(piece).expect("written");
            }
            output.finish().expect("published");
            assert!(fs::read(&path).expect("there") == bytes[..len], "{len} bytes");
        }
    }

    #[test]
    fn what_is_dropped_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("file");
        fs::write(&path, "old").expect("written");
        let mut output = Output::open(Some(&path), &Cancel::default()).expect("writable");
        output.write_all(&[1; 5 << 20]).expect("written");
        drop(output);
        assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 1);
        assert_eq!(fs::read(&path).expect("there"), b"old");
    }
}
