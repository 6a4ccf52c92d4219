//! How many files a process may have open, and how many more it can open.

use std::error::Error;
use std::io;

/// Lets this process open as many files as the system allows it: the soft limit becomes the hard
/// one. Where the system refuses, the limit stays.
pub fn raise_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls touch one structure, which lives during them.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0
            && limit.rlim_cur < limit.rlim_max
        {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// How many more descriptors this process can open now. Counting takes time with their number, so
/// this is for plans, not for each file.
#[must_use]
pub fn left() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes one structure, which lives during it.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return u64::MAX;
    }
    if limit.rlim_cur == libc::RLIM_INFINITY {
        return u64::MAX;
    }
    // The folder's own descriptor is among those listed. Without /proc, a few are assumed.
    let open = std::fs::read_dir("/proc/self/fd").map_or(32, |fds| fds.count() as u64 - 1);
    limit.rlim_cur.saturating_sub(open)
}

/// Whether `error` says, or was caused by one that says, that no more files can be opened, by this
/// process or by the whole system.
pub(crate) fn are_used_up(error: &io::Error) -> bool {
    if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) {
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
