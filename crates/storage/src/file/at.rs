//! System calls on names in an open folder. A folder that is renamed or replaced meanwhile does not
//! redirect them, as it would redirect calls on paths.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Opens `name` in `folder` with these `O_` flags, always with `O_CLOEXEC`. `mode` counts where a
/// file is made.
pub(super) fn open(folder: &File, name: &OsStr, flags: i32, mode: u32) -> io::Result<File> {
    let name = c_string(name)?;
    let flags = flags | libc::O_CLOEXEC;
    loop {
        // SAFETY: a NUL-terminated string that outlives the call, and a descriptor that is open.
        let fd = unsafe { libc::openat(folder.as_raw_fd(), name.as_ptr(), flags, mode) };
        if fd >= 0 {
            // SAFETY: just opened, and nothing else knows its number.
            return Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd) }));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// A handle that only tells what bears `name`, which may be a symbolic link itself. It waits for
/// nothing, asks for no permission on the file and has no effect on a device.
pub(super) fn look(folder: &File, name: &OsStr) -> io::Result<File> {
    open(folder, name, libc::O_PATH | libc::O_NOFOLLOW, 0)
}

/// The metadata of `name`, links not followed; `None` if there is no such name.
pub(super) fn stat(folder: &File, name: &OsStr) -> io::Result<Option<Metadata>> {
    match look(folder, name) {
        Ok(found) => found.metadata().map(Some),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// The text of the symbolic link that `link`, from [`look`], is.
pub(super) fn read_link(link: &File) -> io::Result<OsString> {
    let mut text = vec![0_u8; libc::PATH_MAX as usize];
    let nothing = c"".as_ptr();
    // SAFETY: writes at most `text.len()` bytes into `text`.
    let len = unsafe {
        libc::readlinkat(link.as_raw_fd(), nothing, text.as_mut_ptr().cast(), text.len())
    };
    text.truncate(usize::try_from(len).map_err(|_| io::Error::last_os_error())?);
    Ok(OsString::from_vec(text))
}

/// Renames within `folder`, replacing what bore the name before.
pub(super) fn rename(folder: &File, from: &OsStr, to: &OsStr) -> io::Result<()> {
    let (from, to, fd) = (c_string(from)?, c_string(to)?, folder.as_raw_fd());
    // SAFETY: both are NUL-terminated strings that outlive the call.
    done(unsafe { libc::renameat(fd, from.as_ptr(), fd, to.as_ptr()) })
}

/// Removes a file.
pub(super) fn remove(folder: &File, name: &OsStr) -> io::Result<()> {
    let name = c_string(name)?;
    // SAFETY: a NUL-terminated string that outlives the call.
    done(unsafe { libc::unlinkat(folder.as_raw_fd(), name.as_ptr(), 0) })
}

/// Gives the unnamed `file` a name that nothing may bear.
pub(super) fn link(file: &File, folder: &File, name: &OsStr) -> io::Result<()> {
    // Linking the descriptor itself (AT_EMPTY_PATH) would ask for a privilege.
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("no NUL");
    let to = c_string(name)?;
    let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: both are NUL-terminated strings that outlive the call.
    done(unsafe { libc::linkat(here, from.as_ptr(), folder.as_raw_fd(), to.as_ptr(), follow) })
}

/// Takes `O_NONBLOCK` off an open file, which would change how io_uring treats it.
pub(super) fn set_blocking(file: &File) -> io::Result<()> {
    // SAFETY: asks for flags of a descriptor that is open.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    done(flags)?;
    // SAFETY: sets flags of a descriptor that is open.
    done(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) })
}

/// Reads the extended attribute `name` of `file`, which [`look`] may have opened; `None` if the
/// file lacks it. An attribute that is longer than `bytes_max` reads as an empty one.
pub(super) fn attribute(file: &File, name: &CStr, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    // A handle of `look` gives no attributes itself, but its path in /proc does.
    let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("no NUL");
    let mut value = vec![0_u8; bytes_max];
    let to = value.as_mut_ptr().cast();
    // SAFETY: two NUL-terminated strings, and at most `value.len()` bytes are written to `value`.
    let len = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), to, value.len()) };
    if let Ok(len) = usize::try_from(len) {
        value.truncate(len);
        return Ok(Some(value));
    }
    match io::Error::last_os_error() {
        e if matches!(e.raw_os_error(), Some(libc::ENODATA | libc::EOPNOTSUPP)) => Ok(None),
        e if e.raw_os_error() == Some(libc::ERANGE) => Ok(Some(Vec::new())),
        e => Err(e),
    }
}

/// Removes an extended attribute, if `file` has it.
pub(super) fn remove_attribute(file: &File, name: &CStr) -> io::Result<()> {
    // SAFETY: a NUL-terminated string that outlives the call, and an open descriptor.
    let result = done(unsafe { libc::fremovexattr(file.as_raw_fd(), name.as_ptr()) });
    match result {
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENODATA | libc::EOPNOTSUPP)) => Ok(()),
        result => result,
    }
}

fn c_string(name: &OsStr) -> io::Result<CString> {
    CString::new(name.as_bytes()).map_err(io::Error::from)
}

fn done(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
