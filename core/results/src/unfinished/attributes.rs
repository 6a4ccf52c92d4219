//! The mode and owner of a result that was made in a private folder.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use merganser_storage::file;

/// Mode and owner of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultAttributes {
    /// Permission bits of a file.
    pub mode: u32,
    /// User and group, where they are to be other than this process's.
    pub owner: Option<(u32, u32)>,
}

impl ResultAttributes {
    /// The attributes of a new file: mode 0666 without the bits of the process's mask.
    pub fn of_new() -> Self {
        ResultAttributes { mode: file::new_file_mode(), owner: None }
    }

    /// The attributes of a result that replaces these files: a user may read the result only if the
    /// same user may read all of them.
    pub fn of_sources<'a>(sources: impl IntoIterator<Item = &'a Metadata>) -> Self {
        let mut sources = sources.into_iter();
        let Some(first) = sources.next() else { return Self::of_new() };
        let mut all = ResultAttributes {
            mode: first.mode() & 0o666,
            owner: Some((first.uid(), first.gid())),
        };
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
        match self.owner {
            Some((user, group)) => file::Attributes::new(self.mode, user, group).give_to(file),
            None => file.set_permissions(Permissions::from_mode(self.mode)),
        }
    }

    /// Gives a folder the bits that fit these attributes of its files: users that may read the files may
    /// list the folder.
    ///
    /// # Errors
    /// As [`ResultAttributes::apply`].
    pub fn apply_to_folder(self, folder: &File) -> io::Result<()> {
        ResultAttributes { mode: self.mode | (self.mode & 0o444) >> 2, ..self }.apply(folder)
    }
}

impl From<file::Attributes> for ResultAttributes {
    fn from(old: file::Attributes) -> Self {
        ResultAttributes { mode: old.mode(), owner: Some(old.owner()) }
    }
}
