//! System calls on names in an open folder. A folder that is renamed or replaced meanwhile does not
//! redirect them, as it would redirect calls on paths.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

/// Opens `name` in `folder` with these flags, always with `O_CLOEXEC`. `mode` counts where a file is
/// made.
pub(super) fn open(folder: &File, name: &OsStr, flags: OFlags, mode: u32) -> io::Result<File> {
    let open = || rustix::fs::openat(folder, name, flags | OFlags::CLOEXEC, Mode::from(mode));
    Ok(File::from(retry_on_intr(open)?))
}

/// A handle that only tells what is under `name`, which may be a symbolic link itself. It waits for
/// nothing, asks for no permission on the file and has no effect on a device.
pub(super) fn look(folder: &File, name: &OsStr) -> io::Result<File> {
    open(folder, name, OFlags::PATH | OFlags::NOFOLLOW, 0)
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
    let text = rustix::fs::readlinkat(link, c"", Vec::new())?;
    Ok(OsString::from_vec(text.into_bytes()))
}

/// Renames within `folder`, replacing the file that had the name before.
pub(super) fn rename(folder: &File, from: &OsStr, to: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::renameat(folder, from, folder, to)?)
}

/// Removes a file.
pub(super) fn remove(folder: &File, name: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
}

/// Gives the unnamed `file` a name, which must be free.
pub(super) fn link(file: &File, folder: &File, name: &OsStr) -> io::Result<()> {
    // Linking the descriptor itself (AT_EMPTY_PATH) would ask for a privilege.
    Ok(rustix::fs::linkat(CWD, path_of(file), folder, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// Takes `O_NONBLOCK` off an open file, which would change how io_uring treats it.
pub(super) fn set_blocking(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags - OFlags::NONBLOCK)?)
}

/// Reads the extended attribute `name` of `file`, which [`look`] may have opened; `None` if the
/// file lacks it. An attribute that is longer than `bytes_max` reads as an empty one.
pub(super) fn attribute(file: &File, name: &CStr, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let mut value = vec![0_u8; bytes_max];
    // A handle of `look` gives no attributes itself, but its path in /proc does.
    match rustix::fs::getxattr(path_of(file), name, &mut value[..]) {
        Ok(len) => {
            value.truncate(len);
            Ok(Some(value))
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(Errno::RANGE) => Ok(Some(Vec::new())),
        Err(e) => Err(e.into()),
    }
}

/// Removes an extended attribute, if `file` has it.
pub(super) fn remove_attribute(file: &File, name: &CStr) -> io::Result<()> {
    match rustix::fs::fremovexattr(file, name) {
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
        result => Ok(result?),
    }
}

/// The path of an open file in /proc, which leads to it whatever its name is.
fn path_of(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// The name that the system gives an open file now, without links.
pub(super) fn real_path(file: &File) -> io::Result<PathBuf> {
    std::fs::read_link(path_of(file))
}
