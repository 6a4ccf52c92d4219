//! Whether a folder can be mounted on, what is mounted where, and how it comes off again.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use crate::Error;

const DEV_FUSE: &str = "/dev/fuse";
/// How long to wait for another process that mounts on the same folder.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
const LOCK_RETRY: Duration = Duration::from_millis(20);

/// Locks the folder at `path` until the file is closed, so that only one process looks at it and mounts on it. `None` if it
/// can't be opened. A lock that another process keeps is not waited for long, for any user who may read the folder can
/// keep it.
pub(crate) fn lock(path: &Path) -> Option<File> {
    let mut options = File::options();
    let folder = options.read(true).custom_flags(OFlags::DIRECTORY.bits().cast_signed()).open(path);
    let folder = folder.ok()?;
    let until = Instant::now() + LOCK_PATIENCE;
    while let Err(TryLockError::WouldBlock) = folder.try_lock() {
        if Instant::now() >= until {
            break;
        }
        thread::sleep(LOCK_RETRY);
    }
    Some(folder)
}

/// Checks that something can be mounted on `path`, and gives it without links and dots.
///
/// # Errors
/// One sentence for each way in which it cannot.
pub(crate) fn check(path: &Path) -> Result<PathBuf, Error> {
    let bad = |problem: String| Error::Mountpoint { path: path.to_owned(), problem };
    let explain = |e: io::Error| bad(explain_lookup(&e, path));
    if !fs::metadata(path).map_err(explain)?.is_dir() {
        return Err(bad("is not a folder; name an empty folder to mount on".into()));
    }
    let real = path.canonicalize().map_err(explain)?;
    if device_at(&real).is_some() {
        // The kernel may know a folder's attributes longer than its server lives.
        if let Err(e) = fs::read_dir(&real)
            && is_stale(&e)
        {
            return Err(explain(e));
        }
        return Err(bad(format!(
            "something is already mounted there; unmount it (`umount {}`) or name another folder",
            path.display()
        )));
    }
    if fs::read_dir(&real).map_err(explain)?.next().is_some() {
        return Err(bad(
            "is not empty, and mounting would hide what is in it; name an empty folder".into(),
        ));
    }
    Ok(real)
}

/// Checks that this process may talk to the kernel's FUSE at all.
///
/// # Errors
/// A sentence that says what is missing.
pub(crate) fn check_device() -> Result<(), Error> {
    let opened = fs::OpenOptions::new().read(true).write(true).open(DEV_FUSE);
    opened.map(drop).map_err(|e| Error::Unavailable(explain_device(&e)))
}

/// Whether this is the error of a mount whose server is gone.
fn is_stale(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOTCONN | Errno::CONNABORTED))
}

fn explain_lookup(error: &io::Error, path: &Path) -> String {
    let path = path.display();
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => "there is no such folder; make it first, or name another".into(),
        Some(Errno::NOTDIR) => "part of this path is not a folder".into(),
        Some(Errno::ACCESS | Errno::PERM) => "no permission to look into this folder".into(),
        _ if is_stale(error) => format!(
            "is a stale mount whose server is gone; clear it with `fusermount3 -u {path}`, or as \
             root with `umount {path}`"
        ),
        _ => error.to_string(),
    }
}

fn explain_device(error: &io::Error) -> String {
    let problem = match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => {
            "is not there; load the kernel module with `modprobe fuse`, or give a container \
             `--device /dev/fuse --cap-add SYS_ADMIN`"
        }
        Some(Errno::ACCESS | Errno::PERM) => {
            "no permission to open it; run as root, or let users in with `chmod 666 /dev/fuse`"
        }
        _ => return format!("{DEV_FUSE}: {error}"),
    };
    format!("{DEV_FUSE}: {problem}")
}

/// The sentence for a mount that the system or `fusermount3` refused.
pub(crate) fn explain_mount(error: &io::Error, path: &Path, allow_other: bool) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return Error::Unavailable(
            "mounting needs root (CAP_SYS_ADMIN) or the program fusermount3; install the package \
             fuse3"
                .into(),
        );
    }
    if allow_other && error.to_string().contains("user_allow_other") {
        return Error::Unavailable(
            "letting other users read the mount needs the line user_allow_other in /etc/fuse.conf"
                .into(),
        );
    }
    let said = error.to_string();
    let said = said.trim().trim_start_matches("fusermount3: ").trim_start_matches("fusermount: ");
    Error::Mountpoint { path: path.to_owned(), problem: format!("mounting failed: {said}") }
}

/// The device number, as `major:minor`, of what is mounted exactly at `path` (without links and
/// dots), if something is. Asks the kernel's table, never the mounted file system, which may not
/// answer.
pub(crate) fn device_at(path: &Path) -> Option<String> {
    find_device(&fs::read("/proc/self/mountinfo").ok()?, path)
}

/// The last line for `path` counts: it is what was mounted on top.
fn find_device(mountinfo: &[u8], path: &Path) -> Option<String> {
    // 36 35 98:0 /root /mount\040point rw,noatime ...
    let mut found = None;
    for line in mountinfo.split(|&b| b == b'\n') {
        let mut fields = line.split(|&b| b == b' ');
        if let (Some(device), Some(at)) = (fields.nth(2), fields.nth(1))
            && Path::new(&unescape(at)) == path
        {
            found = String::from_utf8(device.to_vec()).ok();
        }
    }
    found
}

/// Undoes the kernel's `\ooo` for blanks and backslashes.
fn unescape(field: &[u8]) -> OsString {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|d| std::str::from_utf8(d).ok());
        match octal.and_then(|d| u8::from_str_radix(d, 8).ok()) {
            Some(value) if byte == b'\\' => {
                out.push(value);
                rest = &after[3..];
            }
            _ => {
                out.push(byte);
                rest = after;
            }
        }
    }
    OsString::from_vec(out)
}

/// Raises the kernel's read-ahead for the mounted device to `bytes`. Its default of 128 KiB is
/// also the most that a FUSE server may ask for; only root may set more, so this may do nothing.
pub(crate) fn raise_read_ahead(device: &str, bytes: usize) {
    let _ = fs::write(format!("/sys/class/bdi/{device}/read_ahead_kb"), format!("{}", bytes >> 10));
}

/// How a mount came off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unmounted {
    /// It is gone, and the connection to the kernel ends.
    Ended,
    /// Its name is gone, but a program that still has a file open keeps the connection until it
    /// closes it, or until this process ends.
    Detached,
}

/// Takes `device` off `path`; programs that still have files open there get errors from then on.
///
/// # Errors
/// The system's own words, when the mount is still there.
pub(crate) fn unmount(path: &Path, device: Option<&str>) -> Result<Unmounted, String> {
    let now = device_at(path);
    if device.is_some() && now.as_deref() != device {
        return Ok(Unmounted::Ended);
    }
    match rustix::mount::unmount(path, UnmountFlags::NOFOLLOW) {
        Ok(()) => return Ok(Unmounted::Ended),
        Err(Errno::BUSY) => {
            // FORCE ends the connection, so that no reader hangs on a server that goes away.
            let flags = UnmountFlags::NOFOLLOW | UnmountFlags::FORCE | UnmountFlags::DETACH;
            let detached = rustix::mount::unmount(path, flags);
            return detached.map(|()| Unmounted::Ended).map_err(|e| io::Error::from(e).to_string());
        }
        Err(Errno::INVAL) => return Ok(Unmounted::Ended),
        Err(Errno::PERM) => {}
        Err(e) => return Err(io::Error::from(e).to_string()),
    }
    if fusermount(path, "-u").is_ok() {
        return Ok(Unmounted::Ended);
    }
    fusermount(path, "-uz")?;
    let aborted = device.and_then(|d| d.split_once(':')).is_some_and(|(_, minor)| {
        fs::write(format!("/sys/fs/fuse/connections/{minor}/abort"), "1").is_ok()
    });
    Ok(if aborted { Unmounted::Ended } else { Unmounted::Detached })
}

fn fusermount(path: &Path, how: &str) -> Result<(), String> {
    let mut problem = String::new();
    for program in ["fusermount3", "fusermount"] {
        let run = Command::new(program).arg(how).arg("--").arg(path).stdin(Stdio::null()).output();
        match run {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(e) => problem = format!("{program}: {e}"),
        }
    }
    Err(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topmost_mount_of_exactly_this_path_is_found() {
        let table = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            30 22 0:40 / /mnt/a\\040b rw - tmpfs tmpfs rw\n\
            31 30 0:52 / /mnt/a\\040b rw,nosuid shared:3 - fuse merganser rw\n\
            32 22 0:53 / /mnt/back\\134slash ro - fuse x ro\n";
        let at = |path: &str| find_device(table, Path::new(path));
        assert_eq!(at("/").as_deref(), Some("8:1"));
        assert_eq!(at("/mnt/a b").as_deref(), Some("0:52"));
        assert_eq!(at("/mnt/back\\slash").as_deref(), Some("0:53"));
        assert_eq!(at("/mnt"), None);
        assert_eq!(find_device(b"", Path::new("/")), None);
    }

    #[test]
    fn sentences_say_what_to_do() {
        let error = |code: Errno| io::Error::from(code);
        let path = Path::new("/mnt/v");
        assert!(explain_lookup(&error(Errno::NOTCONN), path).contains("fusermount3 -u /mnt/v"));
        assert!(explain_lookup(&error(Errno::ACCESS), path).contains("no permission"));
        assert!(explain_device(&error(Errno::NOENT)).contains("modprobe fuse"));
        assert!(explain_device(&error(Errno::ACCESS)).contains("no permission"));
        let no_helper = explain_mount(&error(Errno::NOENT), path, false).to_string();
        assert!(no_helper.contains("install the package fuse3"), "{no_helper}");
        let said = "fusermount3: user has no write access to mountpoint /mnt/v\n";
        let refused = explain_mount(&io::Error::other(said), path, false).to_string();
        assert_eq!(
            refused,
            "/mnt/v: mounting failed: user has no write access to mountpoint /mnt/v"
        );
        let said = "fusermount3: option allow_other only allowed if 'user_allow_other' is set";
        let other = explain_mount(&io::Error::other(said), path, true).to_string();
        assert!(other.contains("/etc/fuse.conf"), "{other}");
    }
}
