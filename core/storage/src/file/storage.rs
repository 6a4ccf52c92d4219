//! One open file.

use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Advice, OFlags, fadvise};

use super::error::FileError;
use super::flight::Flight;
use super::open_file::{DirectRefusal, Lost, OpenFile};
use super::wall::wall_clock;
use super::{Engines, FileOptions, Mode, at};
use crate::numbers::u64_of;
use crate::{Clock, Completions, Operation, Storage};

/// A regular file or block device.
pub struct FileStorage {
    pub(super) file: Arc<OpenFile>,
    engine: Arc<Engines>,
}

impl FileStorage {
    /// Opens the existing file at `path`, for reading only unless `writable`, with default options.
    ///
    /// # Errors
    /// `NotFound` and the like; `IsADirectory`; `InvalidInput` for a pipe, a terminal or anything
    /// else that has no offsets.
    pub fn open_path(path: impl AsRef<Path>, writable: bool) -> io::Result<Arc<FileStorage>> {
        Self::open_path_with(path, writable, FileOptions::default())
    }

    /// [`FileStorage::open_path`] with options.
    ///
    /// # Errors
    /// As there.
    pub fn open_path_with(
        path: impl AsRef<Path>,
        writable: bool,
        options: FileOptions,
    ) -> io::Result<Arc<FileStorage>> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let open = || {
            // Some devices do something when they are opened, so look before.
            check_addressable(&std::fs::metadata(path)?)?;
            // A pipe that has taken the file's place meanwhile would make the open wait for its
            // other end.
            let mut how = OpenOptions::new();
            how.read(true)
                .write(writable)
                .custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
            let file = how.open(path)?;
            check_addressable(&file.metadata()?)?;
            at::set_blocking(&file)?;
            Ok(file)
        };
        let file = open().map_err(|e| FileError::wrap(&name, "open", e))?;
        Self::from_file(file, name.clone(), writable, options)
    }

    /// Takes over `file`, which is open for reading and, if `writable`, for writing; `name` is what
    /// to call it in errors. For a standard input that is a file, for example.
    ///
    /// # Errors
    /// As [`FileStorage::open_path`].
    pub fn from_file(
        file: File,
        name: String,
        writable: bool,
        options: FileOptions,
    ) -> io::Result<Arc<FileStorage>> {
        let engine =
            Engines::shared(options).map_err(|e| FileError::wrap(&name, "starting threads", e))?;
        Self::assemble(file, name, writable, engine, DirectRefusal::for_options(options))
    }

    /// `file` on `engine`, opened a second time past the page cache if `refusal` does not forbid.
    pub(super) fn assemble(
        file: File,
        name: String,
        writable: bool,
        engine: Arc<Engines>,
        refusal: Arc<DirectRefusal>,
    ) -> io::Result<Arc<FileStorage>> {
        let metadata = file.metadata().map_err(|e| FileError::wrap(&name, "open", e))?;
        check_addressable(&metadata).map_err(|e| FileError::wrap(&name, "open", e))?;
        let device = metadata.file_type().is_block_device();
        let (buffered, direct, lost) = (file, None, Lost::default());
        let mut opened = OpenFile { name, writable, buffered, direct, refusal, device, lost };
        if opened.refusal.reason().is_none() {
            // Through /proc: the same file even when it has no name or has just been renamed.
            let path = format!("/proc/self/fd/{}", opened.buffered_fd());
            let mut how = OpenOptions::new();
            how.read(true).write(writable).custom_flags(OFlags::DIRECT.bits().cast_signed());
            match how.open(path) {
                Ok(file) => opened.direct = Some(file),
                Err(e) => opened.refuse_direct(&e),
            }
        }
        Ok(Arc::new(FileStorage { file: Arc::new(opened), engine }))
    }

    /// How this file is reached now; a refusal of direct I/O may show with the first transfer.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.engine.mode(self.file.direct_fd().is_some(), self.file.refusal.reason())
    }

    /// Bytes that the file occupies on its device, which a hole does not.
    ///
    /// # Errors
    /// The system's own.
    pub fn allocated_bytes(&self) -> io::Result<u64> {
        match self.file.buffered.metadata() {
            Ok(metadata) => Ok(metadata.blocks() * 512),
            Err(e) => Err(FileError::wrap(&self.file.name, "stat", e)),
        }
    }

    /// The file itself, for what the seam does not offer. Its position means nothing.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file.buffered
    }
}

impl AsFd for FileStorage {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.buffered.as_fd()
    }
}

fn check_addressable(metadata: &std::fs::Metadata) -> io::Result<()> {
    let kind = metadata.file_type();
    if kind.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else if kind.is_file() || kind.is_block_device() {
        Ok(())
    } else {
        let why = "neither a regular file nor a block device";
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    }
}

impl Storage for FileStorage {
    fn name(&self) -> &str {
        &self.file.name
    }

    fn size(&self) -> u64 {
        self.file.size().expect("stat of an open file")
    }

    fn clock(&self) -> Arc<dyn Clock> {
        wall_clock()
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        if let Some(flight) = Flight::new(&self.file, token, operation, completions) {
            self.engine.submit(flight);
        }
    }

    fn read_now(&self, offset: u64, out: &mut [u8]) -> Option<io::Result<usize>> {
        if self.file.direct_fd().is_some() {
            return None;
        }
        let mut done = 0;
        while done < out.len() {
            match self.file.buffered.read_at(&mut out[done..], offset + u64_of(done)) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    let place = offset + u64_of(done);
                    let what = format!("read of {} bytes at {place}", out.len() - done);
                    return Some(Err(FileError::wrap(&self.file.name, what, e)));
                }
            }
        }
        Some(Ok(done))
    }

    fn read_ahead(&self, offset: u64, len: u64) {
        if let (None, Some(len)) = (self.file.direct_fd(), NonZeroU64::new(len)) {
            // A file system that has no use for the advice loses nothing.
            let _ = fadvise(&self.file.buffered, offset, Some(len), Advice::WillNeed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StorageExt;
    use crate::file::Direct;

    #[test]
    fn a_file_that_goes_through_the_page_cache_is_read_at_once() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("file");
        std::fs::write(&path, b"0123456789").expect("writes");
        let options = FileOptions { direct: Direct::Never, ..FileOptions::default() };
        let file = FileStorage::open_path_with(&path, false, options).expect("opens");
        let mut out = [b'x'; 4];
        for (offset, expected) in [(0, &b"0123"[..]), (8, b"89"), (10, b""), (99, b"")] {
            let read = file.read_now(offset, &mut out).expect("at once").expect("reads");
            assert_eq!(&out[..read], expected);
            assert_eq!(file.read_vec(offset, read).expect("reads"), expected);
        }
        std::fs::write(&path, b"").expect("cuts");
        assert_eq!(file.read_now(0, &mut out).expect("at once").expect("reads"), 0);
    }
}
