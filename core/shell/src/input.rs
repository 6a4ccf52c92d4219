//! Where records come from: files, pipes, standard input.
//!
//! ```text
//!   regular file ──► its size ──► a storage of that size, open while it is in use
//!   size 0 or made up (/proc, /sys), pipe, device ──► a stream, opened at its first read
//! ```
//!
//! The size at the start counts: bytes that are appended later are left out, and an input that gets
//! shorter is an error.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::ops::Deref;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_results::ResultSource;
use merganser_results::stopped::wait_for;
use merganser_sort::error::InputError;
use merganser_sort::run::magic::{self, ContentKind, HEAD_BYTES};
use merganser_storage::address::is_address;
use merganser_storage::closable::{Closable, OpenSet};
use merganser_storage::file::{Direct, FileOptions, FileStorage, descriptors};
use merganser_storage::{Storage, StorageExt};
use rustix::event::PollFlags;
use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat, fcntl_getfl, fcntl_setfl, fstatfs};

use crate::failure::Failure;
use crate::shown;
use crate::signals::Cancel;
use crate::standard;

/// Inputs that are open at once, of many; most have two descriptors.
const OPEN_MAX: u64 = 64;
/// The share of the descriptors that are left which open inputs of a sort may take: runs and the
/// output need others.
const OPEN_SHARE: u64 = 8;
/// A generous number of descriptors that a merge of sorted inputs needs in addition to its inputs.
const OTHER_DESCRIPTORS: u64 = 16;
/// Smaller files are read through the page cache: direct I/O would cost a second descriptor and save
/// nothing.
const DIRECT_BYTES_MIN: u64 = 64 << 10;

/// The name of standard input in sentences and notes.
const STDIN_CALLED: &str = "standard input";

/// An input, as named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Standard input.
    Stdin,
    /// A file, a device or a named pipe.
    File(PathBuf),
}

/// Which inputs are open, of many.
pub struct OpenInputs {
    set: Arc<OpenSet>,
    most: usize,
    direct: Direct,
}

impl OpenInputs {
    /// For a sort, which reads one input after the other.
    pub fn of_sort() -> Self {
        Self::at_most((descriptors::left() / OPEN_SHARE / 2).min(OPEN_MAX))
    }

    /// For a merge, which reads many inputs by turns.
    pub fn of_merge() -> Self {
        Self::at_most(descriptors::left().saturating_sub(OTHER_DESCRIPTORS) / 2)
    }

    /// For a map, which reads like a sort, but through the page cache: a file is often searched and
    /// counted several times, and then the second time is fast.
    pub fn of_map() -> Self {
        OpenInputs { direct: Direct::Never, ..Self::of_sort() }
    }

    fn at_most(most: u64) -> Self {
        if descriptors::are_few() {
            // One at a time: each is opened again when it is read. So any number can be merged at once.
            return OpenInputs { set: OpenSet::new(1), most: usize::MAX, direct: Direct::Never };
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX).max(2);
        OpenInputs { set: OpenSet::new(most), most, direct: Direct::Auto }
    }

    /// How many can be merged at once.
    pub fn most(&self) -> usize {
        self.most
    }
}

impl Input {
    /// The input of this name; `-` is standard input.
    pub fn named(name: &Path) -> Self {
        if name == Path::new("-") { Input::Stdin } else { Input::File(name.to_owned()) }
    }

    /// The input as the library of results knows it.
    pub fn source(&self) -> ResultSource<'_> {
        match self {
            Input::Stdin => ResultSource::Stream(STDIN_CALLED),
            Input::File(path) => match path.to_str().filter(|_| is_address(path)) {
                Some(address) => ResultSource::Stream(address),
                None => ResultSource::File(path),
            },
        }
    }

    /// Opens it to be read from one end to the other, until `cancel`.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn open(&self, cancel: &Cancel) -> Result<InputReader, Failure> {
        let opened = match self {
            Input::Stdin => standard::input(),
            Input::File(path) => open_without_waiting(path),
        };
        opened
            .and_then(|file| InputReader::new(file, cancel.clone()))
            .map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &io::Error) -> Failure {
        match self {
            Input::Stdin => Failure::on_input(self, error),
            Input::File(path) => Failure::on(path, error),
        }
    }

    /// Makes it ready for the engine: a storage where it has a size, a stream where not. Whether it
    /// is there and may be read is known on return, though it may be closed again until it is used.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn open_for_sort(
        &self,
        open: &OpenInputs,
        cancel: &Cancel,
    ) -> Result<merganser_sort::run::SortInput, Failure> {
        let made = match self {
            Input::Stdin => self.standard_for_sort(open.direct, cancel),
            Input::File(path) => self.file_for_sort(path, open, cancel),
        };
        made.map_err(|error| self.failure(&error))
    }

    fn standard_for_sort(
        &self,
        direct: Direct,
        cancel: &Cancel,
    ) -> io::Result<merganser_sort::run::SortInput> {
        let reader = InputReader::new(standard::input()?, cancel.clone())?;
        // A file that something else has read a part of is a stream of the rest.
        if !reader.whole {
            return Ok(self.stream(Box::new(reader)));
        }
        let options = FileOptions { direct, ..FileOptions::default() };
        let storage = FileStorage::from_file(reader.file, self.to_string(), false, options);
        Ok(merganser_sort::run::SortInput::Storage(Arc::new(
            Closable::pinned(storage?).of_this_size(),
        )))
    }

    fn file_for_sort(
        &self,
        path: &Path,
        open: &OpenInputs,
        cancel: &Cancel,
    ) -> io::Result<merganser_sort::run::SortInput> {
        let late = || {
            let reader = LateReader { path: path.to_owned(), open: None, cancel: cancel.clone() };
            self.stream(Box::new(reader))
        };
        let metadata = fs::metadata(path)?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !metadata.is_file() {
            // Opening a pipe would wait for its writer, which may have to write other pipes first.
            may_be_read(path)?;
            return Ok(late());
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !has_size(&file, &metadata)? {
            return Ok(late());
        }
        let direct = open.direct;
        let storage = regular(file, &metadata, self.to_string(), direct)?;
        let known = (metadata.dev(), metadata.ino());
        let (path, name) = (path.to_owned(), self.to_string());
        let again = move || -> io::Result<Arc<dyn Storage>> {
            let failed = |cause: io::Error| {
                io::Error::new(cause.kind(), InputError { name: name.clone(), cause })
            };
            let mut how = File::options();
            how.read(true).custom_flags(libc::O_NONBLOCK);
            let file = how.open(&path).map_err(failed)?;
            let metadata = file.metadata().map_err(failed)?;
            if (metadata.dev(), metadata.ino()) != known {
                let why = "another file has taken its name since the sort began; leave it alone while it is sorted";
                return Err(failed(io::Error::other(why)));
            }
            Ok(regular(file, &metadata, name.clone(), direct)?)
        };
        let closable = Closable::new(storage, &open.set, again);
        Ok(merganser_sort::run::SortInput::Storage(Arc::new(closable.of_this_size())))
    }

    fn stream(&self, reader: Box<dyn Read + Send>) -> merganser_sort::run::SortInput {
        merganser_sort::run::SortInput::Stream { name: self.to_string(), reader }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::Stdin => f.write_str(STDIN_CALLED),
            Input::File(path) => f.write_str(&shown::name(path)),
        }
    }
}

/// Whether both names are of one file, by whatever link; a name without a file is of none.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    place(one).is_some_and(|one| place(other) == Some(one))
}

fn regular(
    file: File,
    metadata: &fs::Metadata,
    name: String,
    direct: Direct,
) -> io::Result<Arc<FileStorage>> {
    // As long as it is open, no `--consume` begins to give its bytes back. A lock of another program's changes nothing.
    let _ = file.try_lock_shared();
    let direct = if metadata.len() < DIRECT_BYTES_MIN { Direct::Never } else { direct };
    FileStorage::from_file(file, name, false, FileOptions { direct, ..FileOptions::default() })
}

/// Opens a file, a device or a named pipe. A pipe is opened at once, also before it has a writer: nothing could end
/// that wait. [`InputReader`] waits for the writer with its first bytes.
fn open_without_waiting(path: &Path) -> io::Result<File> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.file_type().is_fifo() {
        return File::open(path);
    }
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Looks whether `path` may be read without opening it.
fn may_be_read(path: &Path) -> io::Result<()> {
    Ok(accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS)?)
}

/// Whether the size of a regular file is the size of its content. The kernel's own files report 0 or
/// a page, and their content is made when they are read. Some FUSE file systems do the same.
fn has_size(file: &File, metadata: &fs::Metadata) -> io::Result<bool> {
    /// File systems whose files are made up as they are read.
    const MADE_UP: [i64; 10] = [
        0x9fa0,      // proc
        0x6265_6572, // sysfs
        0x6462_6720, // debugfs
        0x7472_6163, // tracefs
        0x7363_6673, // securityfs
        0x6265_6570, // configfs
        0x0027_e0eb, // cgroup
        0x6367_7270, // cgroup2
        0xde5e_81e4, // efivarfs
        0xcafe_4a11, // bpf
    ];
    if metadata.len() == 0 {
        // Not a file of this size: it has a byte.
        return Ok(match file.read_at(&mut [0], 0) {
            Ok(read) => read == 0,
            Err(_) => false,
        });
    }
    Ok(!MADE_UP.contains(&fstatfs(file)?.f_type))
}

/// An open input. Its reads fail once the work is cancelled; otherwise a read of an idle pipe could
/// wait forever.
pub struct InputReader {
    file: File,
    /// The number of bytes after its position when it was opened; `None` if that is unknown.
    size: Option<u64>,
    /// How much of it was read.
    read: u64,
    whole: bool,
    cancel: Cancel,
}

impl InputReader {
    fn new(mut file: File, cancel: Cancel) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() || !has_size(&file, &metadata)? {
            return Ok(InputReader { file, size: None, read: 0, whole: false, cancel });
        }
        let position = file.stream_position()?;
        let size = Some(metadata.len().saturating_sub(position));
        Ok(InputReader { file, size, read: 0, whole: position == 0, cancel })
    }

    /// Whether it is a file that is compressed, if that can be seen without reading on.
    pub fn is_packed(&self, content: ContentKind) -> bool {
        let mut head = [0; HEAD_BYTES];
        let read = self.file.read_at(&mut head, 0);
        self.whole && read.is_ok_and(|read| magic::of_head(&head[..read], content).is_some())
    }

    /// How many bytes it has, from where it is read, if that is known.
    pub fn size(&self) -> Option<u64> {
        self.size
    }
}

impl Read for InputReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Some(size) = self.size else {
            wait_for(&self.cancel, &self.file, PollFlags::IN)?;
            return self.file.read(out);
        };
        let left = usize::try_from(size - self.read).unwrap_or(usize::MAX);
        let want = out.len().min(left);
        let n = self.file.read(&mut out[..want])?;
        if n == 0 && want > 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!(
                    "the file ends after {} bytes but had {size} when it was opened; leave it alone while it is read",
                    self.read
                ),
            ));
        }
        self.read += n as u64;
        Ok(n)
    }
}

/// Reads a storage from its beginning to its end. Bytes that are appended meanwhile are left out.
pub struct StorageReader<S> {
    storage: S,
    offset: u64,
    size: u64,
}

impl<S: Deref<Target: Storage>> StorageReader<S> {
    /// Reads `storage` from its beginning.
    pub fn new(storage: S) -> Self {
        let size = storage.size();
        StorageReader { storage, offset: 0, size }
    }
}

impl<S: Deref<Target: Storage>> Read for StorageReader<S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size - self.offset).unwrap_or(usize::MAX);
        let want = out.len().min(left);
        let read = StorageExt::read_at(&*self.storage, self.offset, &mut out[..want])?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// An input that is opened at its first read: many may be named, and the writer of a pipe may write
/// others before.
struct LateReader {
    path: PathBuf,
    open: Option<InputReader>,
    cancel: Cancel,
}

impl Read for LateReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let reader = match &mut self.open {
            Some(reader) => reader,
            none => {
                let file = open_without_waiting(&self.path)?;
                none.insert(InputReader::new(file, self.cancel.clone())?)
            }
        };
        reader.read(out)
    }
}
