//! How many files a process may have open, and how many more it can open.

use std::error::Error;
use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::numbers::u64_of;

/// With a lower limit, descriptors are spared where that costs only speed: files have no second one for direct
/// I/O, and there is no ring. Seven are enough for a sort then.
const FEW: u64 = 24;

/// Lets this process open as many files as the system allows it: the soft limit becomes the hard
/// one. Where the system refuses, the limit stays.
pub fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Whether this process may have so few files open that descriptors have to be spared.
#[must_use]
pub fn are_few() -> bool {
    getrlimit(Resource::Nofile).current.is_some_and(|limit| limit < FEW)
}

/// How many more descriptors this process can open now. Counting takes time with their number, so
/// this is for plans, not for each file.
#[must_use]
pub fn left() -> u64 {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return u64::MAX };
    // The folder's own descriptor is among those listed. Without /proc, a few are assumed.
    let open = std::fs::read_dir("/proc/self/fd").map_or(32, |fds| u64_of(fds.count()) - 1);
    limit.saturating_sub(open)
}

/// Whether `error` says, or was caused by one that says, that no more files can be opened, by this
/// process or by the whole system.
pub(crate) fn are_used_up(error: &io::Error) -> bool {
    if matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE)) {
        return true;
    }
    let mut cause: Option<&(dyn Error + 'static)> = error.get_ref().map(|inner| inner as _);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return are_used_up(error);
        }
        cause = error.source();
    }
    false
}
