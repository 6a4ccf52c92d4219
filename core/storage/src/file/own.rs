//! Which helper files and folders of earlier runs may be trusted: those that only this user can have
//! made and only this user can change.
//!
//! A helper's name is no secret. In a folder that other users may write, any of them can put a file
//! there first, a link to someone else's file, or a FIFO at which an open would wait. So a helper
//! that is found is looked at before it is used:
//!
//! | | file | folder |
//! |---|---|---|
//! | kind | regular; a symbolic link is not followed | directory; a symbolic link is not followed |
//! | owner | the effective user of this process | the same |
//! | others | one name: a second one could be a link that another user made | not writable by group and others |

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::at;
use super::kind::FileKind;

/// Flags to open a file that may be of any kind: no link is followed, no FIFO is waited
/// for, and no terminal becomes this process's own.
pub(super) const CAREFUL: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Why a file or folder is not used. It is inside the [`io::Error`] of the functions here;
/// [`FileRefusal::of_error`] finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRefusal {
    /// It is of another kind than it should be.
    Kind {
        /// Its kind.
        found: FileKind,
        /// The kind that it should be of.
        expected: FileKind,
    },
    /// It belongs to another user.
    Owner {
        /// Its owner.
        found: u32,
        /// The effective user of this process.
        expected: u32,
    },
    /// The file has other names than this one.
    Links {
        /// How many names it has.
        found: u64,
    },
    /// It belongs to another user and is in a sticky folder that all users may write.
    Planted {
        /// Its kind.
        found: FileKind,
        /// Its owner.
        owner: u32,
    },
    /// A file would be made in a folder of devices.
    OfDevices,
    /// Group or others may write the folder.
    Writable {
        /// Its permissions.
        mode: u32,
    },
}

impl FileRefusal {
    /// The refusal inside `error`, if it is one.
    #[must_use]
    pub fn of_error(error: &io::Error) -> Option<FileRefusal> {
        let mut inner: Option<&(dyn std::error::Error + 'static)> = Some(error.get_ref()?);
        while let Some(error) = inner {
            if let Some(refusal) = error.downcast_ref::<FileRefusal>() {
                return Some(*refusal);
            }
            // An `io::Error` names the source of what it holds, not what it holds.
            inner = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
                Some(held) => Some(held),
                None => error.source(),
            };
        }
        None
    }
}

impl fmt::Display for FileRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileRefusal::Kind { found, expected } => write!(f, "is {found}, not {expected}"),
            FileRefusal::Owner { found, expected } => {
                write!(f, "belongs to user {found}, not to user {expected} who runs this")
            }
            FileRefusal::Links { found } => write!(f, "has {found} names (hard links), not one"),
            FileRefusal::Planted { found, owner } => {
                write!(f, "is {found} of user {owner} in a folder that all users may write")
            }
            FileRefusal::OfDevices => f.write_str(
                "is no device, and a file of this name would be in memory and lost at a restart; \
                 name a device that is there, or another folder",
            ),
            FileRefusal::Writable { mode } => {
                write!(f, "other users may write it (mode {:04o})", mode & 0o7777)
            }
        }
    }
}

impl std::error::Error for FileRefusal {}

impl From<FileRefusal> for io::Error {
    fn from(refusal: FileRefusal) -> io::Error {
        let kind = match refusal {
            FileRefusal::Kind { found: FileKind::Folder, .. } => io::ErrorKind::IsADirectory,
            FileRefusal::Kind { expected: FileKind::Folder, .. } => io::ErrorKind::NotADirectory,
            FileRefusal::Kind { .. } | FileRefusal::OfDevices => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::PermissionDenied,
        };
        io::Error::new(kind, refusal)
    }
}

/// The effective user of this process.
#[must_use]
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Accepts a file of this kind and no other.
pub(super) fn check_kind(found: &Metadata, expected: FileKind) -> Result<(), FileRefusal> {
    let found = FileKind::of_type(found.file_type());
    if found == expected { Ok(()) } else { Err(FileRefusal::Kind { found, expected }) }
}

/// Accepts this user's own regular file with one name.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn check_file(found: &Metadata) -> Result<(), FileRefusal> {
    check_kind(found, FileKind::Regular)?;
    check_owner(found)?;
    match found.nlink() {
        1 => Ok(()),
        found => Err(FileRefusal::Links { found }),
    }
}

/// Accepts this user's own folder that no other user may write.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn check_folder(found: &Metadata) -> Result<(), FileRefusal> {
    check_kind(found, FileKind::Folder)?;
    check_owner(found)?;
    match found.mode() {
        mode if mode & 0o022 == 0 => Ok(()),
        mode => Err(FileRefusal::Writable { mode }),
    }
}

fn check_owner(found: &Metadata) -> Result<(), FileRefusal> {
    let (found, expected) = (found.uid(), user());
    if found == expected { Ok(()) } else { Err(FileRefusal::Owner { found, expected }) }
}

/// Opens the regular file `path`, which is this user's own and has one name. Never waits.
///
/// # Errors
/// `NotFound` and the like, or a [`FileRefusal`]. The path is not in the text.
pub fn open_file(path: &Path, writable: bool) -> io::Result<File> {
    let mut how = File::options();
    let opened =
        how.read(true).write(writable).custom_flags(CAREFUL.bits().cast_signed()).open(path);
    let file = opened.map_err(|e| explain(e, || fs::symlink_metadata(path), FileKind::Regular))?;
    check_file(&file.metadata()?)?;
    at::set_blocking(&file)?;
    Ok(file)
}

/// Opens the folder `path`, which is this user's own and which no other user may write. The handle
/// can be locked and synced.
///
/// # Errors
/// `NotFound` and the like, or a [`FileRefusal`]. The path is not in the text.
pub fn open_folder(path: &Path) -> io::Result<File> {
    let folder = open_folder_unchecked(path)?;
    check_folder(&folder.metadata()?)?;
    Ok(folder)
}

/// Makes the folder `path`, which only this user may read or write, and opens it. If it can't be
/// opened it is removed again.
///
/// # Errors
/// `AlreadyExists`, the system's own, or a [`FileRefusal`] where another user has replaced it at once.
/// The path is not in the text.
pub fn create_folder(path: &Path) -> io::Result<File> {
    fs::DirBuilder::new().mode(0o700).create(path)?;
    // Its mode is not looked at: some file systems (FAT) have one mode for everything.
    let opened = open_folder_unchecked(path)
        .and_then(|folder| Ok((folder.metadata()?, folder)))
        .and_then(|(found, folder)| Ok(check_owner(&found).map(|()| folder)?));
    opened.inspect_err(|_| {
        // The first error is what the caller needs to know. Only an empty folder goes.
        let _ = fs::remove_dir(path);
    })
}

fn open_folder_unchecked(path: &Path) -> io::Result<File> {
    let mut how = File::options();
    let opened =
        how.read(true).custom_flags((CAREFUL | OFlags::DIRECTORY).bits().cast_signed()).open(path);
    opened.map_err(|e| explain(e, || fs::symlink_metadata(path), FileKind::Folder))
}

/// Makes everything that was created, renamed and removed in the folder of `path` survive a power
/// cut: `path` itself has then its name, or none.
///
/// # Errors
/// The system's own.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// The error of a careful open, with the kind of what is in the way. `look` asks for it, links not
/// followed.
pub(super) fn explain(
    error: io::Error,
    look: impl FnOnce() -> io::Result<Metadata>,
    expected: FileKind,
) -> io::Error {
    // ELOOP and ENOTDIR: a link. ENXIO: a FIFO without a reader, or a socket. EISDIR: a folder that
    // should be written.
    let in_the_way = [Errno::LOOP, Errno::NXIO, Errno::NOTDIR, Errno::ISDIR];
    if Errno::from_io_error(&error).is_some_and(|code| in_the_way.contains(&code))
        && let Ok(found) = look()
        && let Err(refusal) = check_kind(&found, expected)
    {
        return refusal.into();
    }
    error
}
