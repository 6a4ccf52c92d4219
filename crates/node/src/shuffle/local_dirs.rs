//! Opens spills, and nothing else: regular files below the folders that were named, whatever a client
//! asks for and whatever links are there. Below those folders no link is followed: a user who may write
//! there could point it at a file that this process may read and the user may not. YARN makes no links.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use super::error::Refusal;

/// Folders, below which files may be opened.
#[derive(Debug, Clone)]
pub(super) struct LocalDirs(Vec<PathBuf>);

impl LocalDirs {
    /// Those at `dirs`, absolute paths. They are looked up at each file, so they may be made later, or
    /// mounted again.
    pub(super) fn new(dirs: Vec<PathBuf>) -> Self {
        LocalDirs(dirs)
    }

    /// Opens the file at `path` for reading.
    ///
    /// # Errors
    /// Of kind `PermissionDenied` when it lies elsewhere, a link is on the way to it, or it is no
    /// regular file; any other as the system says.
    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        if !path.is_absolute() || !path.components().all(plain) {
            return Err(Refusal::Path.into());
        }
        let (dir, below) = self.place(path).ok_or(Refusal::Outside)?;
        let file = match open_beneath(&dir, &below) {
            Err(e) if matches!(Errno::from_io_error(&e), Some(Errno::NOSYS | Errno::PERM)) => {
                open_step_by_step(&dir, &below)
            }
            opened => opened,
        }?;
        if !file.metadata()?.is_file() {
            return Err(Refusal::NotRegular.into());
        }
        Ok(file)
    }

    /// The folder that `path` names a file of, by the folder's own name or by what that leads to, and
    /// the rest of the path.
    fn place(&self, path: &Path) -> Option<(PathBuf, PathBuf)> {
        let below = |dir: &Path| {
            let rest = path.strip_prefix(dir).ok().filter(|rest| !rest.as_os_str().is_empty());
            rest.map(Path::to_path_buf)
        };
        let by_name = self.0.iter().find_map(|dir| Some((dir.clone(), below(dir)?)));
        by_name.or_else(|| {
            let resolved = self.0.iter().filter_map(|dir| dir.canonicalize().ok());
            resolved.into_iter().find_map(|dir| below(&dir).map(|rest| (dir, rest)))
        })
    }
}

/// Lets the system see to it that there is no link on the way; `dir` itself may be one.
fn open_beneath(dir: &Path, below: &Path) -> io::Result<File> {
    let dir = open_dir(dir)?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    opened(openat2(dir, c_string(below.as_os_str())?, OPEN_FLAGS, Mode::empty(), resolve))
}

/// The same where the system can't: from folder to folder.
fn open_step_by_step(dir: &Path, below: &Path) -> io::Result<File> {
    let mut at = open_dir(dir)?;
    let mut parts = below.iter().peekable();
    while let Some(part) = parts.next() {
        let flags = if parts.peek().is_some() { DIR_FLAGS } else { OPEN_FLAGS };
        let name = c_string(part)?;
        at = opened(openat(&at, name, flags | OFlags::NOFOLLOW, Mode::empty()))?;
    }
    Ok(at)
}

fn open_dir(dir: &Path) -> io::Result<File> {
    std::fs::OpenOptions::new().read(true).custom_flags(DIR_FLAGS.bits().cast_signed()).open(dir)
}

fn c_string(name: &OsStr) -> io::Result<CString> {
    CString::new(name.as_bytes()).map_err(|_| Refusal::Nul.into())
}

/// The file that the system has opened, or the reason why it has not.
fn opened(result: rustix::io::Result<OwnedFd>) -> io::Result<File> {
    match result {
        Ok(file) => Ok(File::from(file)),
        Err(Errno::XDEV | Errno::LOOP | Errno::NOTDIR) => Err(Refusal::Link.into()),
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

    use rustix::fs::CWD;

    use super::*;

    #[test]
    fn only_regular_files_below_the_folders_are_opened() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path().canonicalize().expect("there");
        let (dir, outside) = (root.join("local"), root.join("secret"));
        fs::create_dir_all(dir.join("app/output")).expect("made");
        fs::write(&outside, "secret").expect("written");
        let spill = dir.join("app/spill_0.out");
        fs::write(&spill, "spill").expect("written");
        symlink(&outside, dir.join("app/absolute")).expect("made");
        symlink("../../secret", dir.join("app/relative")).expect("made");
        symlink(&root, dir.join("out")).expect("made");
        symlink("app/spill_0.out", dir.join("inside")).expect("made");
        symlink("app", dir.join("same")).expect("made");
        symlink(&dir, root.join("alias")).expect("made");
        rustix::fs::mkfifoat(CWD, dir.join("pipe"), Mode::from(0o600)).expect("made");

        let dirs = LocalDirs::new(vec![root.join("missing"), root.join("alias")]);
        dirs.open(&spill).expect("by what the folder's name leads to");
        dirs.open(&root.join("alias/app/spill_0.out")).expect("by the folder's name");
        let told = |path: PathBuf| {
            let error = dirs.open(&path).expect_err("refused");
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
            error.to_string()
        };
        // Wherever they lead: who may write there could change them between two looks.
        let link = Refusal::Link.to_string();
        let links =
            ["app/absolute", "app/relative", "out/secret", "inside", "same/spill_0.out", "out/a/b"];
        for path in links {
            assert_eq!(told(dir.join(path)), link, "{path}");
        }
        assert!(told(outside.clone()).contains("below none of the folders"));
        assert!(told(root.join("alias")).contains("below none of the folders"));
        assert!(told(dir.join("../secret")).contains("no .."));
        assert!(told("spill_0.out".into()).contains("absolute"));
        assert!(told(dir.join("app")).contains("no regular file"));
        assert!(told(dir.join("pipe")).contains("no regular file"));
        let gone = dirs.open(&dir.join("gone")).expect_err("it is not there");
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);

        for path in links {
            let error = open_step_by_step(&dir, path.as_ref()).expect_err("refused");
            assert_eq!(error.to_string(), link, "{path}");
        }
        open_step_by_step(&root.join("alias"), "app/spill_0.out".as_ref()).expect("no link");
        let gone = open_step_by_step(&dir, "app/gone".as_ref()).expect_err("it is not there");
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    }
}
