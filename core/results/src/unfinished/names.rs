//! The names next to a result and an input while work is unfinished.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const PREFIX: &str = ".";

const SUFFIX: &str = ".unfinished";

/// The folder, in a folder of unfinished work, that becomes the result.
pub(super) const FILES_NAME: &str = "files";

/// The name of the folder of unfinished work of a result.
pub fn work_name(result: &OsStr) -> OsString {
    let mut name = OsString::from(PREFIX);
    name.push(result);
    name.push(SUFFIX);
    name
}

/// The name of the result, if `name` is that of a folder of unfinished work.
pub fn is_work_name(name: &OsStr) -> Option<OsString> {
    let inner = name.as_bytes().strip_prefix(PREFIX.as_bytes())?;
    let inner = inner.strip_suffix(SUFFIX.as_bytes())?;
    (!inner.is_empty()).then(|| OsStr::from_bytes(inner).to_owned())
}

const CLAIMED_SUFFIX: &str = ".merganser-consumed";

/// The hidden name of the input at `path`, in the same folder.
pub fn claimed_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(CLAIMED_SUFFIX);
    path.with_file_name(name)
}

/// The name of the input, if `name` is a hidden name.
pub fn claimed_name(name: &OsStr) -> Option<OsString> {
    let inner = name.as_bytes().strip_prefix(b".")?.strip_suffix(CLAIMED_SUFFIX.as_bytes())?;
    (!inner.is_empty()).then(|| OsStr::from_bytes(inner).to_owned())
}
