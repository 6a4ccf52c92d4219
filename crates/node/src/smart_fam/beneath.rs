//! Opens files below a folder, without a link on the way.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// Opens the regular file at `path` below `folder` for reading.
///
/// # Errors
/// `PermissionDenied` for a path that leads elsewhere, or through a link; otherwise the system's.
pub(super) fn open_beneath(folder: &Path, path: &str) -> io::Result<File> {
    let denied = |why: &str| io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned());
    let parts: Vec<&std::ffi::OsStr> = Path::new(path)
        .components()
        .map(|part| match part {
            Component::Normal(name) => Ok(name),
            _ => Err(denied("it is not a path below the data folder")),
        })
        .collect::<io::Result<_>>()?;
    let Some((name, folders)) = parts.split_last() else {
        return Err(denied("it names no file"));
    };
    let link = |error: rustix::io::Errno| match error {
        rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR => denied("a link is on the way to it"),
        error => error.into(),
    };
    let common = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = OFlags::PATH | OFlags::DIRECTORY;
    let mut at: OwnedFd = openat(CWD, folder, directory | OFlags::CLOEXEC, Mode::empty())?;
    for folder in folders {
        at = openat(&at, *folder, directory | common, Mode::empty()).map_err(link)?;
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | common;
    let file = File::from(openat(&at, *name, flags, Mode::empty()).map_err(link)?);
    if !file.metadata()?.is_file() {
        return Err(denied("it is not a regular file"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_below_the_folder_are_opened() {
        let dir = tempfile::tempdir().expect("made");
        let data = dir.path().join("data");
        fs::create_dir_all(data.join("sub")).expect("made");
        fs::write(data.join("sub/file"), b"x").expect("written");
        fs::write(dir.path().join("secret"), b"x").expect("written");
        symlink(dir.path(), data.join("up")).expect("linked");
        symlink("sub/file", data.join("link")).expect("linked");
        rustix::fs::mkfifoat(CWD, data.join("pipe"), Mode::RWXU).expect("made");
        open_beneath(&data, "sub/file").expect("opened");
        open_beneath(&data, "./sub/file").expect_err("not plain");
        for path in ["../secret", "up/secret", "link", "sub", "pipe", "", "/etc/passwd", "sub/.."] {
            let error = open_beneath(&data, path).expect_err(path);
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{path}: {error}");
        }
        let missing = open_beneath(&data, "sub/none").expect_err("missing");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
