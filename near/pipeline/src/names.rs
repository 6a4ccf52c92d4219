//! The names that commands use for the files of a work folder.
//!
//! A name is put into the text of a command, and a place in it may be in quotes, in a here-document, in a
//! command within a command, or in a text that another shell reads later. No quoting is right for all of these,
//! so a command gets only *plain* names: those that every shell takes as they are, wherever they are. The names
//! below a work folder are plain. If the folder's own name is not, the way to its files is the handle
//! that this process has of it, `/proc/PID/fd/N/...`. It ends with the process, as its commands do.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A name that means the same at every place of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlainName(OsString);

impl PlainName {
    /// `None` if a shell would see more in it than a name.
    pub(super) fn new(name: impl Into<OsString>) -> Option<Self> {
        let name = name.into();
        is_plain(name.as_bytes()).then_some(PlainName(name))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl AsRef<OsStr> for PlainName {
    fn as_ref(&self) -> &OsStr {
        &self.0
    }
}

impl From<PlainName> for OsString {
    fn from(name: PlainName) -> OsString {
        name.0
    }
}

/// Whether a shell takes these bytes as they are, in quotes and outside.
fn is_plain(bytes: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+:,@%=".contains(byte);
    !bytes.is_empty() && bytes.iter().all(plain)
}

/// Plain names of the files in a work folder.
#[derive(Debug)]
pub struct PlainNames {
    folder: PathBuf,
    /// What stands for the folder, and the handle that keeps it so.
    base: PathBuf,
    _handle: Option<File>,
}

impl PlainNames {
    /// Finds the plain name of a work folder.
    ///
    /// # Errors
    /// The system's; `Unsupported` where the folder's name is not plain and there is no `/proc`.
    pub fn of_folder(folder: &Path) -> io::Result<Self> {
        let named =
            |base: PathBuf, handle| PlainNames { folder: folder.to_owned(), base, _handle: handle };
        if is_plain(folder.as_os_str().as_bytes()) {
            return Ok(named(folder.to_owned(), None));
        }
        let handle = File::open(folder)?;
        let base = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), handle.as_raw_fd()));
        if !base.is_dir() {
            let why = "a command can't be given this name safely, and there is no /proc to give it \
                       another; name an output whose folder has a plain name";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        Ok(named(base, Some(handle)))
    }

    /// The plain name of the folder itself, which is valid as long as `self` is.
    ///
    /// # Panics
    /// Never: a plain name is ASCII.
    #[must_use]
    pub fn folder(&self) -> &str {
        self.base.to_str().expect("plain names are ASCII")
    }

    /// The plain name of a file of the folder.
    pub(super) fn name(&self, path: &Path) -> PlainName {
        let below = path.strip_prefix(&self.folder).expect("a file of the work folder");
        PlainName::new(self.base.join(below)).expect("names in a work folder are plain")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_any_folder_have_plain_names() {
        let place = tempfile::tempdir().expect("a folder");
        for name in
            ["plain", "a b", "it's", "$(touch x)", "`x`", "a\nb", "\"", "\\", "*", "{in}", "é"]
        {
            let folder = place.path().join(name);
            std::fs::create_dir(&folder).expect("made");
            let names = PlainNames::of_folder(&folder).expect("a name");
            std::fs::write(folder.join("000001.part"), name).expect("written");
            let seen = names.name(&folder.join("000001.part"));
            assert!(is_plain(seen.as_bytes()), "{name}");
            assert!(is_plain(names.folder().as_bytes()), "{name}");
            let read = std::fs::read_to_string(Path::new(seen.as_ref())).expect("there");
            assert_eq!(read, name);
            assert_eq!(name == "plain", Path::new(seen.as_ref()).starts_with(&folder));
        }
        assert!(PlainName::new("").is_none() && PlainName::new("a b").is_none());
    }
}
