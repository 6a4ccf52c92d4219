//! A file of records that one process appends to and another reads.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::record;
use crate::frame::{Frame, FrameError};

/// A file longer than this is no log of this protocol.
pub(super) const LOG_MAX: u64 = 1 << 30;

/// Opens a regular file without following a link, and without waiting for the other end of a pipe.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    check(&file)?;
    Ok(file)
}

/// Refuses what is no file of its own: a second name could be that of a file which a client may not
/// read, or cut off.
fn check(file: &File) -> io::Result<()> {
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.nlink() <= 1 {
        return Ok(());
    }
    let why = "it is not a regular file with one name";
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// What a reader finds next.
pub(super) enum Next {
    /// A whole record: its number and its body.
    Record(u64, Vec<u8>),
    /// Nothing yet, or a record that is not whole.
    Nothing,
    /// Bytes that are no record. Over NFS they may still become one.
    Bad(FrameError),
}

/// Reads a log from its start.
#[derive(Debug)]
pub(super) struct LogReader {
    path: PathBuf,
    at: u64,
    /// The file that was read, to notice another one of the same name.
    inode: Option<u64>,
}

impl LogReader {
    pub(super) fn new(path: PathBuf) -> LogReader {
        LogReader { path, at: 0, inode: None }
    }

    /// The next record. The file is opened each time: an NFS client then asks the server again.
    pub(super) fn next(&mut self) -> io::Result<Next> {
        let mut file = match open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Next::Nothing),
            opened => opened?,
        };
        let metadata = file.metadata()?;
        if self.inode.is_some_and(|inode| inode != metadata.ino()) {
            self.at = 0;
        }
        self.inode = Some(metadata.ino());
        if metadata.len() > LOG_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too long for a log"));
        }
        if metadata.len() <= self.at {
            return Ok(Next::Nothing);
        }
        file.seek(SeekFrom::Start(self.at))?;
        let mut bytes = Vec::new();
        let most = (record::BODY_MAX + crate::frame::HEAD_BYTES) as u64;
        file.take(most).read_to_end(&mut bytes)?;
        Ok(match record::decode(&bytes) {
            Ok(None) => Next::Nothing,
            Ok(Some((Frame { id, body }, len))) => {
                self.at += len as u64;
                Next::Record(id, body.to_vec())
            }
            Err(error) => Next::Bad(error),
        })
    }
}

/// Appends to a log. There is one such writer for each file.
#[derive(Debug)]
pub(super) struct LogWriter {
    file: File,
}

impl LogWriter {
    /// Opens or makes the log at `path`, calls `each` with its records, and cuts off what is no whole
    /// record at its end: the rest of an append that was killed.
    pub(super) fn open(path: &Path, mut each: impl FnMut(u64, &[u8])) -> io::Result<LogWriter> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o644)
            .custom_flags(flags)
            .open(path)?;
        check(&file)?;
        let mut reader = LogReader::new(path.to_owned());
        while let Next::Record(id, body) = reader.next()? {
            each(id, &body);
        }
        if file.metadata()?.len() > reader.at {
            file.set_len(reader.at)?;
        }
        Ok(LogWriter { file })
    }

    /// Appends a record and syncs it.
    pub(super) fn append(&mut self, record: &[u8]) -> io::Result<()> {
        self.file.write_all(record)?;
        self.file.sync_data()
    }
}
