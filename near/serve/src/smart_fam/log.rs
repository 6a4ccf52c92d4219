//! A file of records that one process appends to and another reads.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::record;
use merganser_map::frame::{FrameError, RecordFrame};

/// A file longer than this is no log of this protocol.
pub(super) const LOG_MAX: u64 = 1 << 30;
/// The longest record.
const RECORD_MAX: u64 = (record::BODY_MAX + merganser_map::frame::HEAD_BYTES) as u64;
/// Bytes that are read at once of a log that is read to its end.
const SCAN_BYTES: u64 = 1 << 20;

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

/// Whether an error says what the file is, and so comes again at each attempt. Other errors may pass: a full disk, too
/// many open files, a disk that fails once.
pub(super) fn is_permanent(error: &io::Error) -> bool {
    // The system refuses to open a link, a folder and a socket. An error with a text is one of this module.
    let is_no_file = [Errno::LOOP, Errno::ISDIR, Errno::NXIO].map(Some);
    error.get_ref().is_some() || is_no_file.contains(&Errno::from_io_error(error))
}

/// A file that is known by its inode. It stays open, because a file system gives the inode of a removed file to the
/// next one.
#[derive(Debug)]
pub(super) struct Pinned {
    _file: File,
    device: u64,
    inode: u64,
}

impl Pinned {
    /// The file that has the name `path` now. It may be a link or a folder, too.
    pub(super) fn at(path: &Path) -> io::Result<Pinned> {
        let flags = (OFlags::PATH | OFlags::NOFOLLOW).bits() as i32;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        Ok(Pinned::new(file, &metadata))
    }

    fn new(file: File, metadata: &Metadata) -> Pinned {
        Pinned { _file: file, device: metadata.dev(), inode: metadata.ino() }
    }

    /// Whether `metadata` are those of this file.
    pub(super) fn is(&self, metadata: &Metadata) -> bool {
        (self.device, self.inode) == (metadata.dev(), metadata.ino())
    }
}

/// What a reader finds next.
pub(super) enum LogItem {
    /// A whole record.
    Record {
        /// Its number.
        id: u64,
        /// Its body.
        body: Vec<u8>,
        /// Whether the file begins with it: the reader may have begun again.
        is_first: bool,
    },
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
    pinned: Option<Pinned>,
    /// Whether it reads another file of the same name from its start, or nothing of it.
    follows: bool,
}

impl LogReader {
    /// Reads the file that has the name `path`, and the next one of that name.
    pub(super) fn new(path: PathBuf) -> LogReader {
        LogReader { path, at: 0, pinned: None, follows: true }
    }

    /// Reads the file that has the name `path` now, and no other.
    pub(super) fn pinned(path: PathBuf) -> io::Result<LogReader> {
        let pinned = Some(Pinned::at(&path)?);
        Ok(LogReader { path, at: 0, pinned, follows: false })
    }

    /// Whether `metadata` are those of the file that was read.
    pub(super) fn is_of(&self, metadata: &Metadata) -> bool {
        self.pinned.as_ref().is_some_and(|pinned| pinned.is(metadata))
    }

    /// The next record.
    pub(super) fn next(&mut self) -> io::Result<LogItem> {
        let bytes = self.read(RECORD_MAX)?;
        Ok(match record::decode(&bytes) {
            Ok(None) => LogItem::Nothing,
            Ok(Some((RecordFrame { id, body }, len))) => {
                let is_first = self.at == 0;
                self.at += len as u64;
                LogItem::Record { id, body: body.to_vec(), is_first }
            }
            Err(error) => LogItem::Bad(error),
        })
    }

    /// Calls `each` with the number and the body of all records that are there, until it returns false. Bytes
    /// that are no record end it, too: they are awaited like a record that is not whole.
    pub(super) fn scan(&mut self, mut each: impl FnMut(u64, &[u8]) -> bool) -> io::Result<()> {
        loop {
            let bytes = self.read(SCAN_BYTES)?;
            let mut rest = &bytes[..];
            while let Ok(Some((RecordFrame { id, body }, len))) = record::decode(rest) {
                self.at += len as u64;
                rest = &rest[len..];
                if !each(id, body) {
                    return Ok(());
                }
            }
            if rest.len() == bytes.len() {
                return Ok(());
            }
        }
    }

    /// At most `most` bytes from where it is on. The file is opened each time: an NFS client then asks the server
    /// again.
    fn read(&mut self, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut file = match open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(bytes),
            opened => opened?,
        };
        let metadata = file.metadata()?;
        let is_other = self.pinned.is_some() && !self.is_of(&metadata);
        if is_other && !self.follows {
            return Ok(bytes);
        }
        // A writer cuts off a record that it could not sync, and a new client may empty the file of an old one.
        if is_other || metadata.len() < self.at {
            self.at = 0;
        }
        if metadata.len() > LOG_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too long for a log"));
        }
        if metadata.len() > self.at {
            file.seek(SeekFrom::Start(self.at))?;
            (&file).take(most).read_to_end(&mut bytes)?;
        }
        if self.follows {
            self.pinned = Some(Pinned::new(file, &metadata));
        }
        Ok(bytes)
    }
}

/// Appends to a log. There is one such writer for each file.
#[derive(Debug)]
pub(super) struct LogWriter {
    file: File,
    /// Bytes of its whole records.
    len: u64,
    /// Whether more bytes may be behind them: the part of a record.
    is_torn: bool,
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
        reader.scan(|id, body| {
            each(id, body);
            true
        })?;
        if file.metadata()?.len() > reader.at {
            file.set_len(reader.at)?;
        }
        Ok(LogWriter { file, len: reader.at, is_torn: false })
    }

    /// Appends a record and syncs it. If that fails, what was written of it is cut off, now or before the next append:
    /// what is appended later could not be read behind a part of a record.
    pub(super) fn append(&mut self, record: &[u8]) -> io::Result<()> {
        self.cut()?;
        self.is_torn = true;
        if let Err(error) = self.file.write_all(record).and_then(|()| self.file.sync_data()) {
            let _ = self.cut();
            return Err(error);
        }
        self.len += record.len() as u64;
        self.is_torn = false;
        Ok(())
    }

    fn cut(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.len)?;
            self.is_torn = false;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn encoded(id: u64, body: &str) -> Vec<u8> {
        record::encode(id, &body).expect("short")
    }

    fn ids(reader: &mut LogReader) -> Vec<u64> {
        let mut ids = Vec::new();
        reader
            .scan(|id, _| {
                ids.push(id);
                true
            })
            .expect("readable");
        ids
    }

    #[test]
    fn a_scan_gives_what_next_gives() {
        let dir = tempfile::tempdir().expect("made");
        let path = dir.path().join("log");
        let body = "x".repeat(100_000);
        let whole: Vec<u8> =
            (1..=40).flat_map(|id| encoded(id, &body[..id as usize * 2500])).collect();
        for cut in [0, 30, 2_000_000, whole.len() - 1, whole.len()] {
            std::fs::write(&path, &whole[..cut]).expect("written");
            let (mut one, mut all) = (LogReader::new(path.clone()), LogReader::new(path.clone()));
            let mut single = Vec::new();
            while let LogItem::Record { id, .. } = one.next().expect("readable") {
                single.push(id);
            }
            assert_eq!((single, one.at), (ids(&mut all), all.at), "{cut}");
        }
        let mut some = LogReader::new(path);
        some.scan(|id, _| id < 3).expect("readable");
        assert!(
            matches!(some.next(), Ok(LogItem::Record { id: 4, .. })),
            "it stops behind the last one"
        );
    }

    #[test]
    fn a_file_that_got_shorter_is_read_from_its_start() {
        let dir = tempfile::tempdir().expect("made");
        let path = dir.path().join("log");
        std::fs::write(&path, [encoded(1, "long"), encoded(2, "long")].concat()).expect("written");
        let mut reader = LogReader::new(path.clone());
        assert_eq!(ids(&mut reader), [1, 2]);
        std::fs::write(&path, encoded(3, "")).expect("written");
        assert_eq!(ids(&mut reader), [3]);
    }

    /// A file system gives the inode of a removed file to the next one: most of the time, hence the attempts.
    #[test]
    fn a_new_file_of_the_same_name_is_read_from_its_start() {
        let dir = tempfile::tempdir().expect("made");
        let path = dir.path().join("log");
        std::fs::write(&path, encoded(0, "first")).expect("written");
        let mut follows = LogReader::new(path.clone());
        let mut stays = LogReader::pinned(path.clone()).expect("there");
        assert_eq!((ids(&mut follows), ids(&mut stays)), (vec![0], vec![0]));
        for id in 1..50 {
            std::fs::remove_file(&path).expect("there");
            std::fs::write(&path, encoded(id, "not shorter")).expect("written");
            assert_eq!((ids(&mut follows), ids(&mut stays)), (vec![id], vec![]));
        }
    }

    #[test]
    fn errors_of_the_system_may_pass_but_what_a_file_is_does_not() {
        let dir = tempfile::tempdir().expect("made");
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("folder")).expect("made");
        std::os::unix::fs::symlink(at("folder"), at("link")).expect("linked");
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("bound");
        std::fs::write(at("one"), b"").expect("written");
        std::fs::hard_link(at("one"), at("two")).expect("linked");
        std::fs::write(at("long"), b"").expect("written");
        let long = OpenOptions::new().write(true).open(at("long")).expect("there");
        long.set_len(LOG_MAX + 1).expect("sparse");
        for name in ["folder", "link", "socket", "one", "long"] {
            let read = LogReader::new(at(name)).next().err().expect("no log");
            let written = LogWriter::open(&at(name), |_, _| ()).expect_err("no log");
            assert!(is_permanent(&read) && is_permanent(&written), "{name}: {read}, {written}");
        }
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::MFILE, Errno::IO, Errno::FBIG] {
            assert!(!is_permanent(&errno.into()), "{errno}");
        }
    }

    /// A pipe can't be synced, and nothing can be cut off from it.
    #[test]
    fn nothing_is_appended_behind_what_could_not_be_cut_off() {
        let (mut read, written) = io::pipe().expect("made");
        let file = File::from(std::os::fd::OwnedFd::from(written));
        let mut writer = LogWriter { file, len: 0, is_torn: false };
        for id in 1..=3 {
            writer.append(&encoded(id, "body")).expect_err("a pipe");
        }
        drop(writer);
        let mut bytes = Vec::new();
        read.read_to_end(&mut bytes).expect("readable");
        assert_eq!(bytes, encoded(1, "body"));
    }

    /// The process of the test below; its files can't be longer than 8 KiB.
    #[test]
    fn a_writer_on_a_full_disk() {
        let Ok(path) = std::env::var("MERGANSER_TEST_LOG") else { return };
        let mut writer = LogWriter::open(path.as_ref(), |_, _| ()).expect("made");
        let appended = (1..).find(|id| writer.append(&encoded(*id, &"x".repeat(900))).is_err());
        assert_eq!(appended, Some(9), "no room for the ninth");
        writer.append(&encoded(10, "short")).expect("there is room for this one");
    }

    #[test]
    fn an_append_that_fails_leaves_no_part_of_a_record() {
        let dir = tempfile::tempdir().expect("made");
        let path = dir.path().join("log");
        let this = std::env::current_exe().expect("this test");
        let limited = "trap '' XFSZ; ulimit -f 8 || exit 9; exec \"$0\" --exact smart_fam::log::tests::a_writer_on_a_full_disk";
        let mut command = Command::new("bash");
        command.args(["-c", limited]).arg(this).env("MERGANSER_TEST_LOG", &path);
        let output = command.output().expect("bash");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(ids(&mut LogReader::new(path)), [1, 2, 3, 4, 5, 6, 7, 8, 10]);
    }
}
