//! Where results go: a file that appears complete or not at all, a device or pipe, or standard
//! output.

mod stream;

pub use crate::error::OutputError;
pub use stream::closed_pipe;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_sort::output::Compressed;
use merganser_sort::run::magic::Codec;
use merganser_storage::file::{self, FileOptions, FileStorage, OutputKind, ResolvedOutput};
use merganser_storage::{Buffer, Completions, Operation, Storage};

use crate::ResultsError;
use crate::stopped::{Cancellation, Stopped};
use stream::OutputStream;

/// A write to a device or a named pipe has failed. It is the inner error of an [`io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct SpecialWriteError {
    /// The device or pipe.
    pub path: PathBuf,
    /// The system's error.
    pub error: io::Error,
}

/// An open result. If it is dropped before [`ResultOutput::finish`], a new file leaves nothing behind.
pub struct ResultOutput {
    target: OutputTarget,
    /// Compresses on the way, because the name says so.
    compressed: Option<Compressed>,
}

enum OutputTarget {
    Stdout(OutputStream),
    /// A device or a named pipe, which is written in place.
    Special(OutputStream, PathBuf),
    New(NewFile),
}

impl ResultOutput {
    /// Standard output, as the process got it. Writes that wait for a reader end with `cancel`.
    ///
    /// # Errors
    /// The system's own. A standard output that is closed is an error when it is written to.
    pub fn standard(output: io::Result<File>, cancel: Arc<dyn Cancellation>) -> io::Result<Self> {
        let stream = OutputStream::standard(output, cancel)?;
        Ok(ResultOutput { target: OutputTarget::Stdout(stream), compressed: None })
    }

    /// Opens `path`: a new file, or the device or named pipe that has the name. Writes that wait for a reader end with
    /// `cancel`.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn open(path: &Path, cancel: Arc<dyn Cancellation>) -> Result<Self, ResultsError> {
        let compressed = compressed_by_name(path)?;
        let resolved = file::resolve_output(path).map_err(ResultsError::Named)?;
        let kind = resolved.kind();
        let target = match kind {
            OutputKind::Fifo | OutputKind::Device => {
                // This opens the resolved file, even if another file has its name now.
                let stream = OutputStream::open(&resolved.reopen_path(), cancel);
                let stream = stream.map_err(ResultsError::on(path))?;
                OutputTarget::Special(stream, path.to_owned())
            }
            OutputKind::Folder => {
                return Err(OutputError::Directory(path.to_owned()).into());
            }
            OutputKind::Absent | OutputKind::Regular | OutputKind::Socket => {
                OutputTarget::New(NewFile::create(resolved, path).map_err(|error| match kind {
                    OutputKind::Regular if error.kind() == io::ErrorKind::PermissionDenied => {
                        OutputError::NoRoomBeside(path.to_owned()).into()
                    }
                    _ => ResultsError::Named(error),
                })?)
            }
        };
        Ok(ResultOutput { target, compressed })
    }

    /// Whether `path` is a device or a named pipe, which is written in place.
    ///
    /// # Errors
    /// When the name can't be followed.
    pub fn is_special(path: &Path) -> Result<bool, ResultsError> {
        let resolved = file::resolve_output(path).map_err(ResultsError::Named)?;
        Ok(matches!(resolved.kind(), OutputKind::Fifo | OutputKind::Device))
    }

    /// The new file, for callers that do not write through [`Write`]; `None` if there is no new file, or its bytes are
    /// compressed on the way.
    pub fn storage(&self) -> Option<Arc<FileStorage>> {
        match &self.target {
            OutputTarget::New(file) if self.compressed.is_none() => Some(Arc::clone(&file.storage)),
            _ => None,
        }
    }

    /// Makes the result durable and visible under its name.
    ///
    /// # Errors
    /// When the last bytes can't be written or the name can't be taken.
    pub fn finish(mut self) -> Result<(), ResultsError> {
        if let Some(compressed) = &mut self.compressed {
            compressed.finish(&mut self.target).map_err(ResultsError::Named)?;
        }
        match self.target {
            OutputTarget::New(file) => file.publish().map_err(ResultsError::Named),
            OutputTarget::Stdout(_) | OutputTarget::Special(..) => Ok(()),
        }
    }
}

impl Write for ResultOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.compressed {
            None => self.target.write(bytes),
            Some(compressed) => {
                compressed.write(bytes, &mut self.target)?;
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Errors name where they happened.
impl Write for OutputTarget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_told = |error: &io::Error| {
            error.kind() != io::ErrorKind::Interrupted && Stopped::of_error(error).is_none()
        };
        match self {
            OutputTarget::Stdout(stream) => {
                stream.write(bytes).map_err(|error| match error.kind() {
                    kind if is_told(&error) => {
                        io::Error::new(kind, format!("standard output: {error}"))
                    }
                    _ => error,
                })
            }
            OutputTarget::Special(stream, path) => {
                stream.write(bytes).map_err(|error| match error.kind() {
                    kind if is_told(&error) => {
                        io::Error::new(kind, SpecialWriteError { path: path.clone(), error })
                    }
                    _ => error,
                })
            }
            OutputTarget::New(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Endings of names that say how a file is compressed, and the form if it is written here.
const ENDINGS: [(&str, Option<Codec>); 9] = [
    ("gz", Some(Codec::Gzip)),
    ("zst", Some(Codec::Zstd)),
    ("bz2", None),
    ("xz", None),
    ("lz4", None),
    ("lzma", None),
    ("Z", None),
    ("zip", None),
    ("7z", None),
];

/// The form that the name of an output asks for.
///
/// # Errors
/// A form in which nothing is written.
pub fn codec_by_name(path: &Path) -> Result<Option<Codec>, ResultsError> {
    let ending = path.extension().and_then(OsStr::to_str);
    match ENDINGS.iter().find(|(known, _)| ending == Some(known)) {
        None => Ok(None),
        Some((_, Some(codec))) => Ok(Some(*codec)),
        Some((ending, None)) => {
            Err(OutputError::Unwritten { path: path.to_owned(), ending }.into())
        }
    }
}

fn compressed_by_name(path: &Path) -> Result<Option<Compressed>, ResultsError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(codec_by_name(path)?.and_then(|codec| Compressed::new(codec, threads)))
}

/// A new file. It is written in large aligned pieces, several at a time.
struct NewFile {
    file: file::UnpublishedFile,
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
        let file = file::UnpublishedFile::create_resolved(resolved, path, FileOptions::default())?;
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

    /// The end is never asked for.
    struct Never;

    impl Cancellation for Never {
        fn is_cancelled(&self) -> bool {
            false
        }
    }

    #[test]
    fn pieces_of_any_size_become_the_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("file");
        let bytes: Vec<u8> =
            (0..20 * NewFile::PIECE_BYTES as u32 / 4).flat_map(u32::to_le_bytes).collect();
        for len in [0, 1, NewFile::PIECE_BYTES, NewFile::PIECE_BYTES + 1, bytes.len() - 3] {
            let mut output = ResultOutput::open(&path, Arc::new(Never)).expect("writable");
            for piece in bytes[..len].chunks(777_777) {
                output.write_all(piece).expect("written");
            }
            output.finish().expect("published");
            assert!(fs::read(&path).expect("there") == bytes[..len], "{len} bytes");
        }
    }

    #[test]
    fn a_name_says_whether_it_is_compressed() {
        let of = |name: &str| codec_by_name(Path::new(name)).expect("written");
        assert_eq!((of("a.gz"), of("b/c.tsv.zst")), (Some(Codec::Gzip), Some(Codec::Zstd)));
        for plain in ["a", "gz", ".gz", "a.gz.txt", "a.zst2", "/dev/null", "a.GZ"] {
            assert_eq!(of(plain), None, "{plain}");
        }
        for ending in ["bz2", "xz", "lz4", "zip"] {
            let refused = codec_by_name(Path::new(&format!("x.{ending}"))).expect_err("refused");
            assert!(
                matches!(&refused, ResultsError::Output(OutputError::Unwritten { ending: found, .. }) if *found == ending),
                "{refused}"
            );
        }
    }

    #[test]
    fn what_is_dropped_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("file");
        fs::write(&path, "old").expect("written");
        let mut output = ResultOutput::open(&path, Arc::new(Never)).expect("writable");
        output.write_all(&[1; 5 << 20]).expect("written");
        drop(output);
        assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 1);
        assert_eq!(fs::read(&path).expect("there"), b"old");
    }
}
