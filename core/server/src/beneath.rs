//! Opens what is below one folder and nothing else, whatever path a client asks for and whatever links
//! are there.
//!
//! ```text
//!   folder ── part ── part ── file        every part is looked up in the folder before it;
//!                                         a link on the way is refused, wherever it leads
//! ```
//!
//! A user who may write below the folder could point a link at a file that this process may read and
//! the client may not. So no link is followed. The folder's own name may be a link.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// Why a path below a folder may not be opened. It is the inner error of an [`io::Error`] of kind
/// `PermissionDenied`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathRefusal {
    /// The path holds a NUL.
    #[error("a path has no NUL in it")]
    Nul,
    /// The path leads through a symbolic link, or through a file.
    #[error("on the way to it is a link, or something that is no folder")]
    Link,
    /// It is a folder, a pipe, a device.
    #[error("it is no regular file")]
    NotRegular,
}

impl From<PathRefusal> for io::Error {
    fn from(refusal: PathRefusal) -> Self {
        io::Error::new(io::ErrorKind::PermissionDenied, refusal)
    }
}

/// Opens the regular file at `below` in `dir` for reading. The caller has checked that `below` is made
/// of plain names.
///
/// # Errors
/// A [`PathRefusal`], or as the system says.
pub fn open_file(dir: &Path, below: &Path) -> io::Result<File> {
    let file = open(dir, below, OPEN_FLAGS)?;
    if !file.metadata()?.is_file() {
        return Err(PathRefusal::NotRegular.into());
    }
    Ok(file)
}

/// Opens the folder at `below` in `dir`, to look up names in it.
///
/// # Errors
/// As [`open_file`].
pub fn open_folder(dir: &Path, below: &Path) -> io::Result<File> {
    open(dir, below, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC)
}

fn open(dir: &Path, below: &Path, flags: OFlags) -> io::Result<File> {
    match open_beneath(dir, below, flags) {
        Err(e) if matches!(Errno::from_io_error(&e), Some(Errno::NOSYS | Errno::PERM)) => {
            open_step_by_step(dir, below, flags)
        }
        opened => opened,
    }
}

/// Lets the system check that there is no link on the way; `dir` itself may be one.
fn open_beneath(dir: &Path, below: &Path, flags: OFlags) -> io::Result<File> {
    let dir = open_dir(dir)?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    opened(openat2(dir, c_string(below.as_os_str())?, flags, Mode::empty(), resolve))
}

/// The same where the system can't: from folder to folder.
fn open_step_by_step(dir: &Path, below: &Path, flags: OFlags) -> io::Result<File> {
    let mut at = open_dir(dir)?;
    let mut parts = below.iter().peekable();
    while let Some(part) = parts.next() {
        let flags = if parts.peek().is_some() { DIR_FLAGS } else { flags };
        let name = c_string(part)?;
        at = opened(openat(&at, name, flags | OFlags::NOFOLLOW, Mode::empty()))?;
    }
    Ok(at)
}

fn open_dir(dir: &Path) -> io::Result<File> {
    std::fs::OpenOptions::new().read(true).custom_flags(DIR_FLAGS.bits().cast_signed()).open(dir)
}

fn c_string(name: &OsStr) -> io::Result<CString> {
    CString::new(name.as_bytes()).map_err(|_| PathRefusal::Nul.into())
}

/// The file that the system has opened, or the reason why it has not.
fn opened(result: rustix::io::Result<OwnedFd>) -> io::Result<File> {
    match result {
        Ok(file) => Ok(File::from(file)),
        Err(Errno::XDEV | Errno::LOOP | Errno::NOTDIR) => Err(PathRefusal::Link.into()),
        Err(error) => Err(error.into()),
    }
}

/// A pipe or a terminal must not make the open wait, or become this process's own.
const OPEN_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// A folder, to look up names in.
const DIR_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_is_followed_with_and_without_openat2() {
        let root = tempfile::tempdir().expect("a folder");
        let dir = root.path().join("data");
        fs::create_dir_all(dir.join("a")).expect("made");
        fs::write(root.path().join("secret"), "secret").expect("written");
        fs::write(dir.join("a/file"), "plain").expect("written");
        symlink("../../secret", dir.join("a/relative")).expect("made");
        symlink("file", dir.join("a/inside")).expect("made");
        symlink("a", dir.join("same")).expect("made");
        symlink(&dir, root.path().join("alias")).expect("made");

        for open in [open_beneath, open_step_by_step] {
            open(&root.path().join("alias"), "a/file".as_ref(), OPEN_FLAGS).expect("no link below");
            for path in ["a/relative", "a/inside", "same/file", "a/file/x"] {
                let error = open(&dir, path.as_ref(), OPEN_FLAGS).expect_err("refused");
                assert_eq!(error.to_string(), PathRefusal::Link.to_string(), "{path}");
            }
            let gone = open(&dir, "a/gone".as_ref(), OPEN_FLAGS).expect_err("it is not there");
            assert_eq!(gone.kind(), io::ErrorKind::NotFound);
        }
        let error = open_file(&dir, "a".as_ref()).expect_err("a folder");
        assert_eq!(error.to_string(), PathRefusal::NotRegular.to_string());
        open_folder(&dir, "a".as_ref()).expect("a folder");
        open_folder(&dir, "same".as_ref()).expect_err("a link");
        open_folder(&dir, "a/file".as_ref()).expect_err("a file");
    }
}
