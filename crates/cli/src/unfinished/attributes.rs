//! The mode and owner of a result that was made in a private folder.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

/// Mode and owner of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits of a file.
    pub mode: u32,
    /// User and group, where they are to be other than this process's.
    pub owner: Option<(u32, u32)>,
}

impl Attributes {
    /// Those of a new file: what the process's mask leaves of 0666.
    pub fn of_new() -> Self {
        Attributes { mode: 0o666 & !mask(), owner: None }
    }

    /// Those of the file that the result replaces.
    pub fn of_replaced(old: &Metadata) -> Self {
        Attributes { mode: old.mode() & 0o777, owner: Some((old.uid(), old.gid())) }
    }

    /// Those of a result that takes the place of these files: nobody may read it who may not read
    /// all of them.
    pub fn of_sources<'a>(sources: impl IntoIterator<Item = &'a Metadata>) -> Self {
        let mut sources = sources.into_iter();
        let Some(first) = sources.next() else { return Self::of_new() };
        let mut all =
            Attributes { mode: first.mode() & 0o666, owner: Some((first.uid(), first.gid())) };
        for source in sources {
            all.mode &= source.mode() & 0o666;
            all.owner = all.owner.filter(|owner| *owner == (source.uid(), source.gid()));
        }
        all.mode |= 0o600;
        all
    }

    /// Gives a file these attributes.
    ///
    /// # Errors
    /// When its mode can't be set. An owner that this user may not set is left out.
    pub fn apply(self, file: &File) -> io::Result<()> {
        // Its group is kept even where its user can't be: then the bits for the group must not
        // speak of another group.
        let mut mode = self.mode;
        if let Some((user, group)) = self.owner {
            let whole = fchown(file, Some(user), Some(group));
            if whole.is_err() && fchown(file, None, Some(group)).is_err() {
                mode &= 0o707;
            }
        }
        file.set_permissions(Permissions::from_mode(mode))
    }

    /// Gives a folder the bits that go with these of its files: who may read files may list it.
    ///
    /// # Errors
    /// As [`Attributes::apply`].
    pub fn apply_to_folder(self, folder: &File) -> io::Result<()> {
        Attributes { mode: self.mode | (self.mode & 0o444) >> 2, ..self }.apply(folder)
    }
}

/// The process's mask for the modes of new files. It can only be read from `/proc` without changing
/// it; without `/proc` the usual one is assumed.
fn mask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022)
}
